package cos

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/objectferry/objectferry/internal/object"
)

// server answers every request with the exact bytes of answer and keeps what it
// was asked. It has no router: routers clean paths, and so lie about keys.
type server struct {
	*httptest.Server
	answer func(r *http.Request) string

	mu       sync.Mutex
	requests []*http.Request
}

func serve(t testing.TB, answer func(r *http.Request) string) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		s.mu.Unlock()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, s.answer(r))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// reply writes an answer; head is a status line's rest and headers, a line each.
// It announces that the connection ends, as the server ends it.
func reply(head, body string) string {
	return "HTTP/1.1 " + strings.ReplaceAll(head, "\n", "\r\n") + "\r\nConnection: close\r\n\r\n" + body
}

// always answers everything alike.
func always(answer string) func(*http.Request) string {
	return func(*http.Request) string { return answer }
}

func anonymous(t testing.TB, url string) *Source {
	t.Helper()
	s, err := New(Config{URL: url}, NewTransport(4))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read gets a range and reads all of it; the error is either's.
func read(s *Source, key string, r object.Range, pin string) (*object.Read, string, error) {
	got, err := s.Get(context.Background(), key, r, pin)
	if err != nil {
		return nil, "", err
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	return got, string(data), err
}
