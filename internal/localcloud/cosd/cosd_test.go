package cosd

import (
	"context"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	cos "github.com/tencentyun/cos-go-sdk-v5"
	"go.uber.org/goleak"
)

var owner = Principal{ID: "AKIDexample", Key: "example-key"}

// start serves a bucket and closes it with the test.
func start(t *testing.T, b Behaviour) *Server {
	t.Helper()
	s := New(Config{Principals: []Principal{owner}, Behaviour: b})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// sdk is Tencent's client for s, set up so that it hides nothing; a zero
// principal reads anonymously.
func sdk(t *testing.T, s *Server, p Principal) *cos.Client {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	c := cos.NewClient(&cos.BaseURL{BucketURL: u}, &http.Client{Transport: &cos.AuthorizationTransport{
		SecretID: p.ID, SecretKey: p.Key, SessionToken: p.Token, Transport: transport,
	}})
	c.Conf.RetryOpt.Count = 1
	c.Conf.ObjectKeySimplifyCheck = false
	return c
}

// reply is an answer with its body read.
type reply struct {
	*http.Response
	body []byte
	err  error // of reading the body
}

// code is the Code of a COS error body, "" when there is none.
func (r reply) code() string {
	var e struct{ Code string }
	if xml.Unmarshal(r.body, &e) != nil {
		return ""
	}
	return e.Code
}

// ask sends one raw request over a connection of its own; header pairs follow.
// path is sent as it stands.
func ask(t *testing.T, s *Server, method, path string, header ...string) reply {
	t.Helper()
	r, err := do(t.Context(), s, method, path, header...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func do(ctx context.Context, s *Server, method, path string, header ...string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.URL(), nil)
	if err != nil {
		return reply{}, err
	}
	req.URL.Path, req.URL.RawQuery, _ = strings.Cut(path, "?")
	req.URL.RawPath = req.URL.Path
	if p, err := url.PathUnescape(req.URL.Path); err == nil {
		req.URL.Path = p
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	transport := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp, body, err}, nil
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
