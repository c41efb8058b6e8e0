package visitors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEdge answers "body of <key>" and remembers who was asked for. Keys that
// begin with "s3" come from S3.
type fakeEdge struct {
	*httptest.Server
	mu      sync.Mutex
	asked   map[string]int
	running int
	most    int
	plus    bool                                    // a "+" came unescaped
	answer  func(w http.ResponseWriter, key string) // nil: the honest one
}

func newFakeEdge(t *testing.T) *fakeEdge {
	t.Helper()
	f := &fakeEdge{asked: map[string]int{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeEdge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key, err := url.PathUnescape(strings.TrimPrefix(r.RequestURI, "/"))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	f.asked[key]++
	f.plus = f.plus || strings.Contains(r.RequestURI, "+")
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	defer func() { f.mu.Lock(); f.running--; f.mu.Unlock() }()
	w.Header().Set("X-Origin", "cos")
	if strings.HasPrefix(key, "s3") {
		w.Header().Set("X-Origin", "s3")
	}
	if f.answer != nil {
		f.answer(w, key)
		return
	}
	io.WriteString(w, "body of "+key)
}

func check(key string, body []byte, _ http.Header) error {
	if string(body) != "body of "+key {
		return errors.New("wrong bytes")
	}
	return nil
}

func numbered(prefix string, n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return keys
}

func TestARoundIsCountedByOrigin(t *testing.T) {
	f := newFakeEdge(t)
	keys := append(numbered("s3/", 3), numbered("x/", 20)...)
	got, err := Round(t.Context(), Config{Edge: f.URL, Client: f.Client(), Visits: 300, Parallel: 4, Seed: 1, Keys: keys, Check: check})
	if err != nil {
		t.Fatal(err)
	}
	want := Result{Visits: 300}
	for key, n := range f.asked {
		want.Bytes += int64(n * len("body of "+key))
		if strings.HasPrefix(key, "s3") {
			want.ServedFromS3 += n
		} else {
			want.ServedFromCOS += n
		}
	}
	distinct := got.Distinct
	got.Distinct = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(distinct) != len(f.asked) || want.ServedFromS3 == 0 || want.ServedFromCOS == 0 {
		t.Errorf("distinct %q, asked %v", distinct, f.asked)
	}
	if share := got.ShareFromS3(); share != float64(want.ServedFromS3)/300 {
		t.Errorf("share %v", share)
	}
	if f.most > 4 {
		t.Errorf("%d visitors at once, want at most 4", f.most)
	}
}

func TestTheSameSeedAsksForTheSameKeys(t *testing.T) {
	keys := numbered("k", 200)
	a := Sequence(7, 900, keys)
	if diff := cmp.Diff(a, Sequence(7, 900, keys)); diff != "" {
		t.Errorf("(-first +second):\n%s", diff)
	}
	if cmp.Equal(a, Sequence(8, 900, keys)) {
		t.Error("another seed asks for the same")
	}
	count := map[string]int{}
	for _, key := range a {
		count[key]++
	}
	if len(count) < 50 || count["k0"] <= count["k10"] || count["k10"] < 2 || count["k0"] > 450 {
		t.Errorf("%d distinct keys; the first %d times, the eleventh %d: not Zipf's law", len(count), count["k0"], count["k10"])
	}
}

func TestWhatAVisitorSeesWrongIsAnError(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, string){
		"status": func(w http.ResponseWriter, key string) {
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, "body of "+key)
		},
		"wrong bytes": func(w http.ResponseWriter, _ string) { io.WriteString(w, "other") },
		"cut body": func(w http.ResponseWriter, key string) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "body of "+key)
		},
		"no answer": func(http.ResponseWriter, string) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeEdge(t)
			f.answer = answer
			got, err := Round(t.Context(), Config{Edge: f.URL, Client: f.Client(), Visits: 5, Keys: []string{"k"}, Check: check})
			if err != nil || got.Errors != 5 || got.FirstError == nil || got.ServedFromCOS != 0 || got.ServedFromS3 != 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestARoundEndsWithItsContext(t *testing.T) {
	f := newFakeEdge(t)
	ctx, cancel := context.WithCancel(t.Context())
	f.answer = func(http.ResponseWriter, string) { cancel() }
	got, err := Round(ctx, Config{Edge: f.URL, Client: f.Client(), Visits: 1000, Parallel: 1, Keys: []string{"k"}})
	if !errors.Is(err, context.Canceled) || got.Visits > 10 {
		t.Errorf("%d visits, %v", got.Visits, err)
	}
}

func TestARoundOfNothingIsRefused(t *testing.T) {
	for _, c := range []Config{{Edge: "http://h", Visits: 1}, {Edge: "http://h", Keys: []string{"k"}}, {Edge: "h", Visits: 1, Keys: []string{"k"}}} {
		if _, err := Round(t.Context(), c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// Every key of the catalogue arrives at the edge as the bytes that it is.
func TestCatalogueKeysArriveExactly(t *testing.T) {
	f := newFakeEdge(t)
	for _, o := range Catalogue(1, 40, true) {
		got, err := Round(t.Context(), Config{Edge: f.URL, Client: f.Client(), Visits: 1, Keys: []string{o.Key}, Check: check})
		if err != nil || got.Errors != 0 || f.asked[o.Key] != 1 {
			t.Errorf("%q: %+v, %v", o.Key, got, err)
		}
	}
	if f.plus {
		t.Error(`a "+" came as it is: S3 reads a space`)
	}
}
