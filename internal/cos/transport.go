package cos

import (
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
