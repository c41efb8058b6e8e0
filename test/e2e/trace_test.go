package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// apm is an OTLP receiver that keeps what it is sent.
type apm struct {
	mu    sync.Mutex
	spans []*trace.Span
	other []string // paths that were asked for beside the traces'
}

func (a *apm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path != "/v1/traces" {
		a.other = append(a.other, r.URL.Path)
		return
	}
	body, err := io.ReadAll(r.Body)
	var in collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, resource := range in.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			a.spans = append(a.spans, scope.Spans...)
		}
	}
}

// find returns the first span whose name begins with prefix and that ok likes.
func (a *apm) find(prefix string, ok func(*trace.Span) bool) *trace.Span {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.spans {
		if strings.HasPrefix(s.Name, prefix) && ok(s) {
			return s
		}
	}
	return nil
}

// below returns the span that is named and descends from top in the same trace.
func (a *apm) below(top *trace.Span, prefix string) *trace.Span {
	parent := map[string]string{}
	a.mu.Lock()
	for _, s := range a.spans {
		parent[string(s.SpanId)] = string(s.ParentSpanId)
	}
	a.mu.Unlock()
	return a.find(prefix, func(s *trace.Span) bool {
		for id := string(s.SpanId); id != ""; id = parent[id] {
			if id == string(top.SpanId) {
				return true
			}
		}
		return false
	})
}

func (a *apm) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var b strings.Builder
	for _, s := range a.spans {
		fmt.Fprintf(&b, "%x %x < %x %s", s.TraceId[:4], s.SpanId, s.ParentSpanId, s.Name)
		for _, l := range s.Links {
			fmt.Fprintf(&b, " link %x %x", l.TraceId[:4], l.SpanId)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestTraceLeadsFromTheLogToTheWrite: one path of spans and links from the log
// object to the S3 write, through both queues; and no secret or raw key on it.
func TestTraceLeadsFromTheLogToTheWrite(t *testing.T) {
	receiver := &apm{}
	server := httptest.NewServer(receiver)
	defer server.Close()
	s := site(t, localcloud.Config{})
	s.COS.Put("img/a.jpg", []byte("picture"), cosd.Attributes{})
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, "retry: {wait: 1s}"),
		Env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": server.URL + "/v1/traces", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf", "OTEL_BSP_SCHEDULE_DELAY": "50"}})
	visit(t, s, "/img/a.jpg")
	s.Cloud.FlushLogs()
	ferry.Until(t, 20*time.Second, "the object is in S3", func() bool {
		_, ok := s.Cloud.Object(localcloud.Bucket, "img/a.jpg")
		return ok
	})
	if err := p.Stop(20 * time.Second); err != nil { // sends what is still held
		t.Fatal(err)
	}

	read := receiver.find("parse log object", func(*trace.Span) bool { return true })
	if read == nil {
		t.Fatalf("no span of the log object in\n%s", receiver)
	}
	send := receiver.below(read, "send ")
	if send == nil || receiver.below(read, "GetObject") == nil {
		t.Fatalf("no spans of the log's read and of the send below it in\n%s", receiver)
	}
	process := receiver.find("process ", func(s *trace.Span) bool {
		for _, l := range s.Links {
			if string(l.TraceId) == string(send.TraceId) && string(l.SpanId) == string(send.SpanId) {
				return true
			}
		}
		return false
	})
	if process == nil {
		t.Fatalf("no span that links to the send in\n%s", receiver)
	}
	if string(process.TraceId) == string(send.TraceId) {
		t.Error("the consumer continues the producer's trace; links are the convention for batches")
	}
	for _, name := range []string{"copy object", "HeadObject", "GetObject", "PutObject"} {
		if receiver.below(process, name) == nil {
			t.Errorf("no span %q below the consumer's in\n%s", name, receiver)
		}
	}
	if text := receiver.String(); strings.Contains(text, localcloud.SecretKey) {
		t.Error("a span holds a secret")
	}
	if !strings.Contains(p.Log(), fmt.Sprintf(`"trace_id":"%x"`, read.TraceId)) {
		t.Error("the line of the log object has not its trace id")
	}
	if len(receiver.other) > 0 {
		t.Errorf("only traces were asked for, but %v was sent", receiver.other)
	}
}
