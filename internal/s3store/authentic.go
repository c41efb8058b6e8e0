package s3store

import (
	"errors"
	"net/http"
)

// errNotS3 is in the chain of an error for a success that S3 did not answer.
var errNotS3 = errors.New("the answer has no x-amz-request-id, so it is not S3's")

// authentic reports whether S3 itself answered. Interception pages, proxies and
// load balancers send none of these. The last name is moto's.
func authentic(h http.Header) bool {
	return h.Get("X-Amz-Request-Id") != "" || h.Get("X-Amz-Id-2") != "" || h.Get("X-Amzn-Requestid") != ""
}

// onlyS3 makes an error of a success that is not authentic, whatever was asked:
// a proxy's 200 must be neither an object nor a write. Error answers pass;
// classify judges them, and it wants their status.
type onlyS3 struct{ next http.RoundTripper }

func (t onlyS3) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil && resp.StatusCode/100 == 2 && !authentic(resp.Header) {
		resp.Body.Close()
		return nil, errNotS3
	}
	return resp, err
}
