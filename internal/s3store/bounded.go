package s3store

import (
	"io"
	"net/http"
)

// maxErrorBody bounds what is read of an answer that is an error: the SDK reads
// it whole.
const maxErrorBody = 64 << 10

// bounded cuts the bodies of error answers.
type bounded struct{ next http.RoundTripper }

func (t bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode/100 != 2 {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxErrorBody), resp.Body}
	}
	return resp, err
}
