package strictaws

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// logBook holds the rows that are not delivered yet.
type logBook struct {
	delivering sync.Mutex // so that FlushLogs returns only when all is delivered

	mu   sync.Mutex
	rows map[string]*bytes.Buffer // by source bucket
}

// logEntry is what differs between the rows of one request.
type logEntry struct {
	operation, key string
	status         int
	errCode        string
	bytes          int64
	size           int64 // -1: none
	version        string
	once           bool // the key is percent-encoded once, not twice
}

// log writes the request's rows, if its bucket keeps logs.
func (q *s3Request) log() {
	if q.bucket == "" || q.op == nil {
		return
	}
	q.c.store.mu.RLock()
	b := q.c.store.buckets[q.bucket]
	logged := b != nil && b.opts.LogBucket != ""
	q.c.store.mu.RUnlock()
	if !logged {
		return
	}
	main := logEntry{operation: q.op.logged, key: q.key, status: q.w.status, errCode: q.errCode,
		bytes: q.w.sent, size: q.objectSize, version: q.versionID}
	row := q.row(main)
	for _, e := range q.extra {
		e.size = -1
		row = append(row, q.row(e)...)
	}
	l := &q.c.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil {
		l.rows = map[string]*bytes.Buffer{}
	}
	if l.rows[q.bucket] == nil {
		l.rows[q.bucket] = &bytes.Buffer{}
	}
	l.rows[q.bucket].Write(row)
}

// row is one line in S3's form of 27 fields. S3 escapes nothing inside quotes.
func (q *s3Request) row(e logEntry) []byte {
	key := dash
	if e.key != "" {
		key = escape(e.key, "/")
		if !e.once {
			key = escape(key, "/")
		}
	}
	turnaround := dash
	if !q.w.first.IsZero() {
		turnaround = strconv.FormatInt(q.w.first.Sub(q.began).Milliseconds(), 10)
	}
	sigVersion, authType := dash, dash
	if q.sig.authType != "" {
		sigVersion, authType = "SigV4", q.sig.authType
	}
	owner := hexSHA256([]byte(q.c.cfg.Account))
	return fmt.Appendf(nil, "%s %s [%s] %s %s %s %s %s \"%s %s %s\" %s %s %s %s %s %s \"%s\" \"%s\" %s %s %s - %s %s - - - %s\n",
		owner, q.bucket, q.start.UTC().Format("02/Jan/2006:15:04:05 -0700"), q.remoteIP(), q.who, q.id, e.operation, key,
		q.r.Method, q.r.RequestURI, q.r.Proto, number(int64(e.status)), orDash(e.errCode), number(e.bytes), sizeOrDash(e.size),
		strconv.FormatInt(time.Since(q.began).Milliseconds(), 10), turnaround, orDash(q.r.Referer()), orDash(q.r.UserAgent()), orDash(e.version),
		q.hostID, sigVersion, authType, orDash(q.r.Host), q.c.cfg.Region)
}

func (q *s3Request) remoteIP() string {
	ip, _, err := net.SplitHostPort(q.r.RemoteAddr)
	if err != nil {
		return "127.0.0.1"
	}
	return ip
}

const dash = "-"

func orDash(s string) string {
	if s == "" {
		return dash
	}
	return s
}

func number(n int64) string {
	if n == 0 {
		return dash
	}
	return strconv.FormatInt(n, 10)
}

func sizeOrDash(n int64) string {
	if n < 0 {
		return dash
	}
	return strconv.FormatInt(n, 10)
}

// FlushLogs delivers all rows so far, one log object for each bucket that has
// some, and returns how many objects that were.
func (c *Cloud) FlushLogs() int {
	c.logs.delivering.Lock()
	defer c.logs.delivering.Unlock()
	c.logs.mu.Lock()
	rows := c.logs.rows
	c.logs.rows = nil
	c.logs.mu.Unlock()
	n := 0
	for source, text := range rows {
		c.store.mu.RLock()
		b := c.store.buckets[source]
		var to, prefix string
		if b != nil {
			to, prefix = b.opts.LogBucket, b.opts.LogPrefix
		}
		c.store.mu.RUnlock()
		key := prefix + c.cfg.Now().UTC().Format("2006-01-02-15-04-05-") + fmt.Sprintf("%X", random(8))
		if to != "" && c.PutObject(to, key, text.Bytes(), http.Header{"Content-Type": {"text/plain"}}) == nil {
			n++
		}
	}
	return n
}
