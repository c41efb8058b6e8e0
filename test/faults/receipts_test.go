package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/objectferry/objectferry/internal/localcloud"
)

// receipts stands between one process and SQS and knows which messages the
// process has in hand: those that it received and that it has neither deleted nor
// handed back since.
type receipts struct {
	visibility int // seconds, of the queues; to change it to less is to hand back
	transport  http.Transport
	server     *httptest.Server

	mu       sync.Mutex
	inHand   map[string]string // queue by receipt
	received int
	deleted  int
	returned int
	problems []string
}

func newReceipts(t *testing.T, s *localcloud.Site, visibility int) *receipts {
	t.Helper()
	to, err := url.Parse(s.SQSURL)
	if err != nil {
		t.Fatal(err)
	}
	r := &receipts{visibility: visibility, inHand: map[string]string{}}
	r.transport.MaxIdleConnsPerHost = 100
	r.server = httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.URL.Scheme, p.Out.URL.Host = to.Scheme, to.Host },
		Transport: r,
		ErrorLog:  log.New(io.Discard, "", 0), // a process that is gone is no news
	})
	t.Cleanup(r.close)
	return r
}

// close may be called more than once.
func (r *receipts) close() {
	r.server.CloseClientConnections()
	r.server.Close()
	r.transport.CloseIdleConnections()
}

// RoundTrip forwards a call, and books it once SQS has answered that it is done.
func (r *receipts) RoundTrip(q *http.Request) (*http.Response, error) {
	action := strings.TrimPrefix(q.Header.Get("X-Amz-Target"), "AmazonSQS.")
	in, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	q.Body = io.NopCloser(bytes.NewReader(in))
	resp, err := r.transport.RoundTrip(q)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	out, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(out))
	return resp, r.book(action, in, out)
}

// book notes what a call means for the messages in hand.
func (r *receipts) book(action string, in, out []byte) error {
	var asked struct {
		QueueUrl string
		Entries  []struct {
			Id, ReceiptHandle string
			VisibilityTimeout int
		}
	}
	var answered struct {
		Messages   []struct{ ReceiptHandle string }
		Successful []struct{ Id string }
	}
	for _, e := range []error{json.Unmarshal(in, &asked), json.Unmarshal(out, &answered)} {
		if e != nil {
			return fmt.Errorf("read %s: %w", action, e)
		}
	}
	done := map[string]bool{}
	for _, s := range answered.Successful {
		done[s.Id] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch action {
	case "ReceiveMessage":
		for _, m := range answered.Messages {
			r.received++
			r.inHand[m.ReceiptHandle] = asked.QueueUrl[strings.LastIndexByte(asked.QueueUrl, '/')+1:]
		}
	case "DeleteMessageBatch", "ChangeMessageVisibilityBatch":
		for _, e := range asked.Entries {
			if action[0] == 'C' && e.VisibilityTimeout >= r.visibility {
				continue // a heartbeat
			}
			if _, ours := r.inHand[e.ReceiptHandle]; !ours || !done[e.Id] {
				r.problems = append(r.problems, fmt.Sprintf("%s of a receipt that is not in hand, or that failed: in hand %t, done %t", action, ours, done[e.Id]))
				continue
			}
			delete(r.inHand, e.ReceiptHandle)
			if action[0] == 'C' {
				r.returned++
			} else {
				r.deleted++
			}
		}
	case "DeleteMessage", "ChangeMessageVisibility":
		r.problems = append(r.problems, action+": the process is known to work in batches")
	}
	return nil
}

// held is how many messages are in hand now.
func (r *receipts) held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.inHand)
}

// settled checks, after the process has ended, that it left nothing in hand.
func (r *receipts) settled(t *testing.T, who string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	left := map[string]int{}
	for _, queue := range r.inHand {
		left[queue]++
	}
	if len(left) > 0 || r.received != r.deleted+r.returned {
		t.Errorf("%s has received %d messages, deleted %d and handed back %d; it left %v in hand", who, r.received, r.deleted, r.returned, left)
	}
	for _, p := range r.problems {
		t.Errorf("%s: %s", who, p)
	}
}
