package strictaws

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
)

// Server is a Cloud on two loopback sockets.
type Server struct {
	S3URL  string // http://127.0.0.1:port
	SQSURL string

	cloud   *Cloud
	servers []*http.Server
	stop    context.CancelFunc
	done    sync.WaitGroup // the listeners and the log delivery
	conns   sync.WaitGroup
}

// Serve starts both endpoints on 127.0.0.1 with free ports, and the delivery of
// access logs. Close it.
func (c *Cloud) Serve() (*Server, error) {
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{cloud: c, stop: stop}
	for _, e := range []struct {
		handler http.Handler
		url     *string
	}{{c.S3(), &s.S3URL}, {c.SQS(), &s.SQSURL}} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			s.Close()
			return nil, fmt.Errorf("listen for the embedded cloud: %w", err)
		}
		*e.url = "http://" + l.Addr().String()
		h := &http.Server{Handler: e.handler, ConnState: s.track}
		s.servers = append(s.servers, h)
		s.done.Go(func() { _ = h.Serve(l) })
	}
	s.done.Go(func() { c.Run(ctx) })
	return s, nil
}

// Close cuts all connections, lets go of hanging requests and waits for what
// Serve started.
func (s *Server) Close() {
	s.stop()
	for _, h := range s.servers {
		_ = h.Close()
	}
	s.cloud.faults.releaseAll()
	s.done.Wait()
	s.conns.Wait()
}

// track counts connections, and with them the requests that still run on them. A
// new one is told by its listener's goroutine, so that none comes after done.
func (s *Server) track(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.conns.Add(1)
	case http.StateClosed, http.StateHijacked:
		s.conns.Done()
	}
}
