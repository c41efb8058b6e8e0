package cosd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// network is the bucket's own socket, for those who do not mount the Server
// into one of theirs.
type network struct {
	mu      sync.Mutex
	room    *sync.Cond // mu; a connection ended or a limit changed
	address string     // host:port, kept over Down and Up
	server  *http.Server
	served  chan struct{} // closed when server has stopped accepting
	conns   map[net.Conn]struct{}
	most    int  // connections at once; 0 is no limit
	reset   bool // every connection
	peak    int  // connections at once, seen
}

func (n *network) init() {
	n.room = sync.NewCond(&n.mu)
	n.conns = map[net.Conn]struct{}{}
}

// Start listens on a free port of 127.0.0.1 and serves until Close.
func (s *Server) Start() error {
	return s.listen("127.0.0.1:0")
}

// URL is where the bucket is reached, without a trailing slash; "" before Start.
func (s *Server) URL() string {
	s.net.mu.Lock()
	defer s.net.mu.Unlock()
	if s.net.address == "" {
		return ""
	}
	return "http://" + s.net.address
}

// Down closes the socket and every connection: clients are refused.
func (s *Server) Down() {
	s.net.mu.Lock()
	server, served := s.net.server, s.net.served
	s.net.server = nil
	s.net.room.Broadcast()
	s.net.mu.Unlock()
	if server != nil {
		server.Close()
		<-served
	}
}

// Up listens again on the address that Down gave up.
func (s *Server) Up() error {
	s.net.mu.Lock()
	address, up := s.net.address, s.net.server != nil
	s.net.mu.Unlock()
	if up {
		return nil
	}
	return s.listen(address)
}

// Close stops serving and lets hanging requests go.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closed) })
	s.Down()
}

func (s *Server) listen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen for the bucket: %w", err)
	}
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: time.Minute,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, meterKey{}, &meter{})
		},
	}
	served := make(chan struct{})
	s.net.mu.Lock()
	s.net.address, s.net.server, s.net.served = l.Addr().String(), server, served
	s.net.mu.Unlock()
	go func() {
		defer close(served)
		// ErrServerClosed is Down; another error leaves the bucket as if down,
		// which the clients will tell.
		_ = server.Serve(&listener{Listener: l, net: &s.net, server: server})
	}()
	return nil
}

// limit takes over what Change set.
func (n *network) limit(most int, reset bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.most, n.reset = most, reset
	n.room.Broadcast()
	if !reset {
		return
	}
	for c := range n.conns {
		hangUp(c)
	}
}

// open returns how many connections are open and how many were at most.
func (n *network) open() (now, most int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns), n.peak
}

func (n *network) resetCounts() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peak = len(n.conns)
}

// hangUp ends c with a reset.
func hangUp(c net.Conn) {
	if tcp, ok := c.(*conn).Conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	c.(*conn).Conn.Close() // the server's own Close keeps the books
}

// listener applies the connection limit and the resets.
type listener struct {
	net.Listener
	net    *network
	server *http.Server
}

// Accept waits for room before it accepts, so that a connection too many waits
// in the kernel's queue as before a busy machine.
func (l *listener) Accept() (net.Conn, error) {
	for {
		l.net.mu.Lock()
		for l.net.most > 0 && len(l.net.conns) >= l.net.most && l.net.server == l.server {
			l.net.room.Wait()
		}
		l.net.mu.Unlock()
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &conn{Conn: raw, net: l.net}
		l.net.mu.Lock()
		reset := l.net.reset
		if !reset {
			l.net.conns[c] = struct{}{}
			l.net.peak = max(l.net.peak, len(l.net.conns))
		}
		l.net.mu.Unlock()
		if !reset {
			return c, nil
		}
		hangUp(c)
	}
}

// conn leaves the books when it is closed.
type conn struct {
	net.Conn
	net *network
}

func (c *conn) Close() error {
	c.net.mu.Lock()
	delete(c.net.conns, c)
	c.net.room.Broadcast()
	c.net.mu.Unlock()
	if err := c.Conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
