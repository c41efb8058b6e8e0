package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/objectferry/objectferry/internal/localcloud"
)

// call is a request to S3 or SQS.
type call struct {
	action string // the API's name, such as PutObject
	target string // bucket or queue
	key    string // exact bytes; "" in SQS
}

// moment is where in a call the proxy may kill the process.
type moment string

const (
	beforeForwarding moment = "before forwarding" // the service never hears of the call
	beforeAnswering  moment = "before answering"  // the call was carried out, the process never hears of it
)

// proxy stands between one process and the site's S3 and SQS, and kills the
// process when hit says so. Each process has a proxy of its own, so that what a
// dead one still had on its way is not taken for the next one's.
//
// The Host header, which is signed, and bodies and paths pass as they are.
type proxy struct {
	hit    func(call, moment) bool
	victim chan func() // the process's kill, handed in once it runs
	killed chan struct{}
	once   sync.Once

	transport http.Transport
	s3, sqs   *httptest.Server
}

var errKilled = errors.New("the process was killed")

// newProxy starts a proxy. Its process is started with environ; whoever starts it
// sends its kill to victim, and hears from killed.
func newProxy(t *testing.T, s *localcloud.Site, hit func(call, moment) bool) *proxy {
	t.Helper()
	p := &proxy{hit: hit, victim: make(chan func(), 1), killed: make(chan struct{})}
	p.transport.DisableCompression = true
	p.transport.MaxIdleConnsPerHost = 100
	p.s3, p.sqs = p.serve(t, s.S3URL), p.serve(t, s.SQSURL)
	t.Cleanup(p.close)
	return p
}

func (p *proxy) serve(t *testing.T, backend string) *httptest.Server {
	to, err := url.Parse(backend)
	if err != nil {
		t.Fatal(err)
	}
	return httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host },
		Transport:    p,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0), // a process that is gone is no news
	})
}

// close may be called more than once.
func (p *proxy) close() {
	for _, server := range []*httptest.Server{p.s3, p.sqs} {
		server.CloseClientConnections()
		server.Close()
	}
	p.transport.CloseIdleConnections()
}

// environ makes a process talk to the proxy.
func (p *proxy) environ() map[string]string {
	return map[string]string{"AWS_ENDPOINT_URL_S3": p.s3.URL, "AWS_ENDPOINT_URL_SQS": p.sqs.URL}
}

// RoundTrip forwards one request, unless that is the end of the process.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	c, err := callOf(r)
	if err != nil {
		return nil, err
	}
	if p.strike(r.Context(), c, beforeForwarding) {
		return nil, errKilled
	}
	resp, err := p.transport.RoundTrip(r)
	if err == nil && resp.StatusCode < 300 && p.strike(r.Context(), c, beforeAnswering) {
		resp.Body.Close()
		return nil, errKilled
	}
	return resp, err
}

// strike kills the process if it is to die here. When it returns true the process
// is dead, or has gone by itself.
func (p *proxy) strike(ctx context.Context, c call, m moment) bool {
	if !p.hit(c, m) {
		return false
	}
	p.once.Do(func() {
		select {
		case kill := <-p.victim:
			kill()
			close(p.killed)
		case <-ctx.Done():
		}
	})
	return true
}

// callOf tells what a request is. It reads the body of one to SQS and puts it
// back.
func callOf(r *http.Request) (call, error) {
	if action, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS."); ok {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return call{}, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		var in struct{ QueueUrl string }
		if err := json.Unmarshal(body, &in); err != nil {
			return call{}, err
		}
		return call{action: action, target: in.QueueUrl[strings.LastIndexByte(in.QueueUrl, '/')+1:]}, nil
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q := r.URL.Query()
	action := r.Method
	switch {
	case r.Method == http.MethodPut && q.Has("partNumber"):
		action = "UploadPart"
	case r.Method == http.MethodPost && q.Has("uploadId"):
		action = "CompleteMultipartUpload"
	case r.Method == http.MethodPut:
		action = "PutObject"
	case r.Method == http.MethodDelete && !q.Has("uploadId"):
		action = "DeleteObject"
	case r.Method == http.MethodHead:
		action = "HeadObject"
	}
	return call{action, bucket, key}, nil
}
