package s3store

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// server answers every request with the exact bytes of answer and keeps what it
// was asked. It has no router: routers clean paths, and so lie about keys.
type server struct {
	*httptest.Server
	answer func(r request) string

	mu       sync.Mutex
	requests []request
}

type request struct {
	*http.Request
	body string
}

func serve(t testing.TB, answer func(r request) string) *server {
	t.Helper()
	s := &server{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		req := request{r, string(body)}
		s.mu.Lock()
		s.requests = append(s.requests, req)
		s.mu.Unlock()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		io.WriteString(conn, s.answer(req))
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) asked() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// last is the last request that the server was asked.
func (s *server) last() request {
	asked := s.asked()
	return asked[len(asked)-1]
}

// reply writes an answer; head is a status line's rest and headers, a line each.
// It announces that the connection ends, as the server ends it.
func reply(head, body string) string {
	return "HTTP/1.1 " + strings.ReplaceAll(head, "\n", "\r\n") + "\r\nConnection: close\r\n\r\n" + body
}

// always answers everything alike.
func always(answer string) func(request) string {
	return func(request) string { return answer }
}

// client talks to url in path style, as bucket b.
func client(url string) *s3.Client {
	return Connect(aws.Config{
		Region:       "us-west-2",
		BaseEndpoint: &url,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "SECRET"}, nil
		}),
	}, ClientConfig{PathStyle: true})
}

func store(s *server) *Store { return New(client(s.URL), Config{Bucket: "b"}) }
