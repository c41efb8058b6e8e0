package parse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
	"github.com/objectferry/objectferry/pkg/s3event"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

const syncURL = "https://sqs.us-west-2.amazonaws.com/111122223333/sync"

// store is a strict log bucket: exact keys, pinned ranges.
type store struct {
	mu      sync.Mutex
	objects map[string][]byte // by bucket/key
	deleted []string
	reads   int
	fail    error                  // of every read
	refuse  error                  // of the reference
	keep    func(key string) error // of deletes
}

func (s *store) Read(_ context.Context, bucket, key string, r object.Range, pin string) (*object.Read, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.fail != nil {
		return nil, s.fail
	}
	b, ok := s.objects[bucket+"/"+key]
	if !ok {
		return nil, &object.Error{Side: object.Logs, Op: "GetObject", Key: key, Class: object.Absent, Code: "NoSuchKey"}
	}
	etag := fmt.Sprintf("%q", fmt.Sprint(len(b)))
	if pin != "" && pin != etag {
		return nil, &object.Error{Side: object.Logs, Op: "GetObject", Key: key, Class: object.Changed}
	}
	if len(b) == 0 {
		return &object.Read{Body: io.NopCloser(strings.NewReader(""))}, nil
	}
	span := b[r.Offset:min(r.Offset+r.Length, int64(len(b)))]
	return &object.Read{Attributes: object.Attributes{Size: int64(len(b)), ETag: etag}, Range: object.Range{Offset: r.Offset, Length: int64(len(span))},
		Body: io.NopCloser(bytes.NewReader(span))}, nil
}

func (s *store) Delete(_ context.Context, bucket, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keep != nil {
		if err := s.keep(key); err != nil {
			return err
		}
	}
	s.deleted = append(s.deleted, bucket+"/"+key)
	return nil
}

func (s *store) Reference(context.Context, string) error { return s.refuse }

// sender is a sync queue that refuses what its fault says.
type sender struct {
	mu    sync.Mutex
	keys  []string
	calls int
	fault func(key string) error
}

func (s *sender) Send(_ context.Context, entries []queue.Entry) []error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	errs := make([]error, len(entries))
	for i, e := range entries {
		r, err := syncrequest.Decode(e.Body)
		if err != nil {
			panic(err)
		}
		if s.fault != nil {
			errs[i] = s.fault(r.Key)
		}
		if errs[i] == nil {
			s.keys = append(s.keys, r.Key)
		}
	}
	return errs
}

// open is a guard that lets everything through.
type open struct{}

func (open) Do(ctx context.Context, _ string, _ int64, call func(context.Context) error) error {
	return call(ctx)
}

func (o open) Refused(ctx context.Context, _ error, reference func(context.Context) error) error {
	if err := reference(ctx); err != nil {
		return fmt.Errorf("%w: refused", guard.ErrClosed)
	}
	return nil
}

type bench struct {
	*Parser
	store  *store
	sender *sender
}

// newBench wires a parser of one log place and one route; tune may change both.
func newBench(t testing.TB, tune func(*config.Route, *config.Log, *Config)) *bench {
	t.Helper()
	r := config.DefaultRoute()
	r.Bucket, r.Source.Read = "overseas-media", config.ReadAnonymous
	place := config.Log{Bucket: "log-bucket", Prefix: "access/", WhenDone: "keep"}
	cfg := Config{SyncQueue: syncURL, Recent: time.Minute, RecentKeys: 1000, OwnRole: "arn:aws:sts::111122223333:assumed-role/objectferry-copy"}
	if tune != nil {
		tune(&r, &place, &cfg)
	}
	cfg.Places = []config.Log{place}
	routes, err := route.New([]config.Route{r})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{store: &store{objects: map[string][]byte{}}, sender: &sender{}}
	b.Parser, err = New(Deps{Logs: b.store, Guards: map[string]Guard{"log-bucket": open{}}, Senders: map[string]Sender{syncURL: b.sender}, Routes: routes, Tel: telemetry.Nop()}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// row is a log row; what is "" has a usual value.
type row struct {
	bucket, requester, op, key, status, agent string
	age                                       time.Duration
}

func (r row) String() string {
	or := func(s, usual string) string {
		if s == "" {
			return usual
		}
		return s
	}
	return fmt.Sprintf("owner %s [%s] 203.0.113.9 %s REQUEST1 %s %s \"GET /x HTTP/1.1\" %s 287 - 11 - \"-\" \"%s\" -\n",
		or(r.bucket, "overseas-media"), time.Now().Add(-r.age).UTC().Format("02/Jan/2006:15:04:05 -0700"), or(r.requester, "-"), or(r.op, "REST.GET.OBJECT"), r.key,
		or(r.status, "404 NoSuchKey"), or(r.agent, "visitor"))
}

// log stores a log object and returns the delivery that announces it.
func (b *bench) log(name string, rows ...row) *queue.Delivery {
	var text strings.Builder
	for _, r := range rows {
		text.WriteString(r.String())
	}
	b.store.objects["log-bucket/access/"+name] = []byte(text.String())
	return notification("access/" + name)
}

func notification(keys ...string) *queue.Delivery {
	bodies := make([]string, len(keys))
	for i, k := range keys {
		body := s3event.Format(s3event.Record{Bucket: "log-bucket", Key: k, Size: -1})
		bodies[i] = strings.TrimSuffix(strings.TrimPrefix(body, `{"Records":[`), `]}`)
	}
	return &queue.Delivery{Receives: 1, Body: `{"Records":[` + strings.Join(bodies, ",") + `]}`}
}
