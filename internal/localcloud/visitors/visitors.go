// Package visitors asks an edge for objects as a seeded crowd does: few keys
// often, most keys seldom. With one seed, a round asks for the same keys in the
// same order; only who is answered first differs.
package visitors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// originHeader is where the edge says who answered.
const originHeader = "X-Origin"

// skew is the exponent of Zipf's law: about that of asset requests, and the
// reason why a key is asked for several times in a round.
const skew = 1.1

// Config is one round.
type Config struct {
	Edge     string       // URL of the edge, without a path
	Client   *http.Client // nil is http.DefaultClient
	Visits   int          // requests in all
	Parallel int          // visitors at once; default 8
	Seed     uint64
	Keys     []string // what may be asked for, the most popular first
	// Check says whether body and header are what key should give; nil accepts
	// any 200. It is called concurrently.
	Check func(key string, body []byte, header http.Header) error
}

// Result is what the visitors saw.
type Result struct {
	Visits        int
	Errors        int // no 200, a cut body, or refused by Check
	ServedFromS3  int // without the errors
	ServedFromCOS int
	Bytes         int64
	Distinct      []string // keys asked for, sorted
	FirstError    error    // nil without errors
}

// ShareFromS3 is the part of the visits that S3 served, 0 to 1.
func (r Result) ShareFromS3() float64 {
	if r.Visits == 0 {
		return 0
	}
	return float64(r.ServedFromS3) / float64(r.Visits)
}

// Round sends all visits and returns when the last is answered. What visitors
// see wrong is counted and no error; an error is a Config that asks for nothing
// or the end of ctx, with the result so far.
func Round(ctx context.Context, c Config) (Result, error) {
	base, err := url.Parse(c.Edge)
	if err != nil || base.Host == "" {
		return Result{}, fmt.Errorf("parse edge %q: it must be a URL with a host", c.Edge)
	}
	if len(c.Keys) == 0 || c.Visits < 1 {
		return Result{}, errors.New("send visitors: neither Keys nor Visits may be empty")
	}
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	if c.Parallel < 1 {
		c.Parallel = 8
	}
	asked := Sequence(c.Seed, c.Visits, c.Keys)
	var (
		mu     sync.Mutex
		result Result
		crowd  sync.WaitGroup
	)
	distinct := map[string]bool{}
	queue := make(chan string)
	for range min(c.Parallel, c.Visits) {
		crowd.Go(func() {
			for key := range queue {
				v := visit(ctx, c, base, key)
				mu.Lock()
				distinct[key] = true
				result.add(v)
				mu.Unlock()
			}
		})
	}
send:
	for _, key := range asked {
		select {
		case queue <- key:
		case <-ctx.Done():
			break send
		}
	}
	close(queue)
	crowd.Wait()
	result.Distinct = slices.Sorted(maps.Keys(distinct))
	return result, ctx.Err()
}

// Sequence is the keys that a round asks for, in order.
func Sequence(seed uint64, visits int, keys []string) []string {
	z := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), skew, 1, uint64(len(keys)-1))
	asked := make([]string, visits)
	for i := range asked {
		asked[i] = keys[z.Uint64()]
	}
	return asked
}

// seen is one answered visit.
type seen struct {
	origin string
	bytes  int64
	err    error
}

func (r *Result) add(v seen) {
	r.Visits++
	r.Bytes += v.bytes
	switch {
	case v.err != nil:
		r.Errors++
		if r.FirstError == nil {
			r.FirstError = v.err
		}
	case v.origin == "s3":
		r.ServedFromS3++
	default:
		r.ServedFromCOS++
	}
}

func visit(ctx context.Context, c Config, base *url.URL, key string) seen {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String(), nil)
	if err != nil {
		return seen{err: fmt.Errorf("visit %q: %w", key, err)}
	}
	// All but unreserved characters is escaped, so that no server reads "+" as a space.
	req.URL.Path, req.URL.RawPath = "/"+key, "/"+syncrequest.EscapeKey(key)
	// A visitor that unpacks could not tell whether the bytes are the stored ones.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := c.Client.Do(req)
	if err != nil {
		return seen{err: fmt.Errorf("visit %q: %w", key, err)}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	v := seen{origin: resp.Header.Get(originHeader), bytes: int64(len(body))}
	switch {
	case err != nil:
		v.err = fmt.Errorf("read %q: %w", key, err)
	case resp.StatusCode != http.StatusOK:
		v.err = fmt.Errorf("visit %q: status %d from %q", key, resp.StatusCode, v.origin)
	case c.Check != nil:
		if err := c.Check(key, body, resp.Header); err != nil {
			v.err = fmt.Errorf("check %q from %q: %w", key, v.origin, err)
		}
	}
	return v
}
