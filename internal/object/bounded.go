package object

import (
	"io"
	"net/http"
)

// maxErrorBody bounds what is read of an answer that is an error: the vendors'
// SDKs read it whole.
const maxErrorBody = 64 << 10

// BoundErrors cuts the bodies of error answers that come through next.
func BoundErrors(next http.RoundTripper) http.RoundTripper { return bounded{next} }

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
