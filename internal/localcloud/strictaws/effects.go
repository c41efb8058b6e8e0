package strictaws

import (
	"io"
	"net"
	"net/http"
	"time"
)

// Effects that strike before the call is looked at; nothing is committed.
type (
	// Fail answers an error. SQS codes are those of the JSON protocol, such as
	// "ThrottlingException", "KmsThrottled" or "OverLimit".
	Fail struct {
		Status int
		Code   string
		// Header is added to the answer, such as Retry-After.
		Header http.Header
	}
	// Delay holds the call back, then lets it go on.
	Delay struct{ For time.Duration }
	// Hang holds the call until the fault is removed or the client goes away, then
	// resets the connection.
	Hang struct{}
	// Reset resets the connection.
	Reset struct{}
	// RateLimit answers 503 SlowDown (SQS: RequestThrottled) above PerSecond.
	RateLimit struct {
		PerSecond float64
		Burst     int // at least 1
	}
	// Answer answers this in place of the service, as an interception page would.
	Answer struct {
		Status int
		Header http.Header
		Body   string
	}
)

// Effects on the way in and out of a call that is otherwise carried out.
type (
	// FlipByte inverts one bit of the byte at Offset of an S3 request's body, as a
	// network that lies. A body that is shorter passes unharmed.
	FlipByte struct{ Offset int64 }
	// CommitThenReset carries the call out and resets the connection.
	CommitThenReset struct{}
	// CommitThenHang carries the call out and answers nothing.
	CommitThenHang struct{}
	// CommitThenAnswer carries the call out and answers this instead.
	CommitThenAnswer struct {
		Status int
		Header http.Header
		Body   string
	}
	// DropHeader carries the call out and leaves this header out of the answer.
	DropHeader struct{ Name string }
)

// Effects on the entries of SQS batches and on what is received.
type (
	// FailEntry fails single entries of a batch. An entry fails when its index is
	// in Indexes or Body says so (both empty: every entry); Times and After of the
	// fault count entries.
	FailEntry struct {
		Indexes     []int
		Body        func(string) bool // of sends; the entry's message body
		Code        string            // default InternalError
		SenderFault bool
	}
	// Duplicate leaves a received message visible, so that it is delivered again
	// although nobody gave it back. Times counts messages.
	Duplicate struct{}
	// StaleReceipt hands out a receipt handle that is already out of date: acting
	// on it does nothing. Times counts messages.
	StaleReceipt struct{}
)

func (Fail) effect()             {}
func (Delay) effect()            {}
func (Hang) effect()             {}
func (Reset) effect()            {}
func (RateLimit) effect()        {}
func (Answer) effect()           {}
func (FlipByte) effect()         {}
func (CommitThenReset) effect()  {}
func (CommitThenHang) effect()   {}
func (CommitThenAnswer) effect() {}
func (DropHeader) effect()       {}
func (FailEntry) effect()        {}
func (Duplicate) effect()        {}
func (StaleReceipt) effect()     {}

// before lets the faults of the first group strike. It reports whether the call
// goes on; fail writes an error in the service's form.
func (f *Faults) before(c Call, w http.ResponseWriter, r *http.Request, fail func(Fail)) bool {
	if d, a, ok := strike[Delay](f, c, nil); ok && d.For > 0 {
		wait(r, a, d.For)
	}
	if _, a, ok := strike[Hang](f, c, nil); ok {
		// The server notices that a client is gone only once the body was read.
		_, _ = io.Copy(io.Discard, r.Body)
		wait(r, a, 0)
		reset(w)
	}
	if _, _, ok := strike[Reset](f, c, nil); ok {
		reset(w)
	}
	over := func(a *Active, _ RateLimit) bool { return !a.rate.take() }
	if _, _, ok := strike(f, c, over); ok {
		e := Fail{Status: http.StatusServiceUnavailable, Code: "SlowDown"}
		if c.Service == ServiceSQS {
			e = Fail{Status: http.StatusBadRequest, Code: "RequestThrottled"}
		}
		fail(e)
		return false
	}
	if e, _, ok := strike[Fail](f, c, nil); ok {
		fail(e)
		return false
	}
	if e, _, ok := strike[Answer](f, c, nil); ok {
		answer(w, e.Status, e.Header, e.Body)
		return false
	}
	return true
}

// around carries the call out under the faults of the second group.
func (f *Faults) around(c Call, w http.ResponseWriter, r *http.Request, do func(http.ResponseWriter)) {
	if _, _, ok := strike[CommitThenReset](f, c, nil); ok {
		do(newUnheard())
		reset(w)
	}
	if _, a, ok := strike[CommitThenHang](f, c, nil); ok {
		do(newUnheard())
		wait(r, a, 0)
		reset(w)
	}
	if e, _, ok := strike[CommitThenAnswer](f, c, nil); ok {
		do(newUnheard())
		answer(w, e.Status, e.Header, e.Body)
		return
	}
	if e, _, ok := strike[DropHeader](f, c, nil); ok {
		w = &headerDropper{w, e.Name}
	}
	do(w)
}

// wait ends when the fault is removed, the client is gone or, unless it is 0, d
// is over.
func wait(r *http.Request, a *Active, d time.Duration) {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-a.freed:
	case <-r.Context().Done():
	case <-over:
	}
}

// reset cuts the connection with a TCP reset where there is one, and never returns.
func reset(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	panic(http.ErrAbortHandler)
}

func answer(w http.ResponseWriter, status int, h http.Header, body string) {
	for k, v := range h {
		w.Header()[k] = v
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// unheard is an answer that nobody hears.
type unheard struct{ header http.Header }

func newUnheard() unheard { return unheard{http.Header{}} }

func (u unheard) Header() http.Header         { return u.header }
func (u unheard) WriteHeader(int)             {}
func (u unheard) Write(p []byte) (int, error) { return len(p), nil }

type headerDropper struct {
	http.ResponseWriter
	name string
}

func (d *headerDropper) WriteHeader(status int) {
	d.Header().Del(d.name)
	d.ResponseWriter.WriteHeader(status)
}

func (d *headerDropper) Write(p []byte) (int, error) {
	d.Header().Del(d.name)
	return d.ResponseWriter.Write(p)
}

// flipper inverts the lowest bit of the byte at offset.
type flipper struct {
	io.Reader
	offset int64
}

func (f *flipper) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.offset >= 0 && f.offset < int64(n) {
		p[f.offset] ^= 1
	}
	f.offset -= int64(n)
	return n, err
}
