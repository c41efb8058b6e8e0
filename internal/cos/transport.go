package cos

import (
	"io"
	"net"
	"net/http"
	"time"
)

// NewTransport is a connection pool for one bucket that is read from by up to
// concurrency requests at once. It keeps bodies as they are stored and speaks
// HTTP/1.1, since parts that share one connection share one loss window.
func NewTransport(concurrency int) *http.Transport {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  30 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    concurrency,
		MaxResponseHeaderBytes: 64 << 10,
		ReadBufferSize:         32 << 10,
		DisableCompression:     true,
		Protocols:              &protocols,
	}
}

// maxErrorBody bounds what is read of an answer that is not an object: the SDK
// reads it whole.
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
