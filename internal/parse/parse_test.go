package parse

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/telemetry"
)

func TestOnlyMissesOfTheRouteAreRequested(t *testing.T) {
	own := "arn:aws:sts::111122223333:assumed-role/objectferry-copy/pod-1"
	for _, c := range []struct {
		rule string
		tune func(*config.Route, *config.Log, *Config)
		rows []row
		want []string
	}{
		{"a miss", nil, []row{{key: "a.jpg"}, {key: "hit.jpg", status: "200 -"}}, []string{"a.jpg"}},
		{"a key asked for a moment ago, in this log", nil, []row{{key: "a.jpg"}, {key: "a.jpg"}}, []string{"a.jpg"}},
		{"403 is no miss unless the route says so", nil, []row{{key: "a.jpg", status: "403 AccessDenied"}}, nil},
		{"403 is a miss where the route says so", func(r *config.Route, _ *config.Log, _ *Config) { r.ForbiddenIsMiss = true }, []row{{key: "a.jpg", status: "403 AccessDenied"}}, []string{"a.jpg"}},
		{"a bucket without a route", nil, []row{{bucket: "elsewhere", key: "a.jpg"}}, nil},
		{"excluded wins", func(r *config.Route, _ *config.Log, _ *Config) {
			r.Include, r.Exclude = []string{"img/**"}, []string{"img/tmp/**"}
		},
			[]row{{key: "img/a.jpg"}, {key: "img/tmp/b.jpg"}, {key: "c.jpg"}}, []string{"img/a.jpg"}},
		{"older than max_age", func(r *config.Route, _ *config.Log, _ *Config) { r.MaxAge = config.Duration(time.Hour) }, []row{{key: "old.jpg", age: 2 * time.Hour}, {key: "new.jpg", age: time.Minute}}, []string{"new.jpg"}},
		{"the ferry's own role", nil, []row{{key: "a.jpg", requester: own}}, nil},
		{"its own user agent, signed", nil, []row{{key: "a.jpg", requester: "arn:aws:iam::999999999999:user/x", agent: "sdk app/objectferry m/E"}}, nil},
		{"a stranger cannot hide a miss with the user agent", nil, []row{{key: "a.jpg", agent: "sdk app/objectferry m/E"}}, []string{"a.jpg"}},
		{"another role with a longer name", nil, []row{{key: "a.jpg", requester: strings.Replace(own, "copy/", "copy-x/", 1)}}, []string{"a.jpg"}},
		{"observe copies nothing", func(r *config.Route, _ *config.Log, _ *Config) { r.Mode = config.ModeObserve }, []row{{key: "a.jpg"}}, nil},
		{"a bad key costs one row", nil, []row{{key: "bad%zz.jpg"}, {key: "a.jpg"}}, []string{"a.jpg"}},
	} {
		t.Run(c.rule, func(t *testing.T) {
			b := newBench(t, c.tune)
			if got, want := b.Handle(t.Context(), b.log("1", c.rows...)), (queue.Outcome{Verb: queue.Settle, End: "parsed"}); got != want {
				t.Errorf("outcome %+v, want %+v", got, want)
			}
			if diff := cmp.Diff(c.want, b.sender.keys); diff != "" {
				t.Errorf("requested (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSettledOnlyAfterEveryMissWasAccepted: a log with miss A, 1,000 hits and
// miss B; the queue takes A and refuses B.
func TestSettledOnlyAfterEveryMissWasAccepted(t *testing.T) {
	b := newBench(t, func(_ *config.Route, l *config.Log, _ *Config) { l.WhenDone = "delete" })
	rows := []row{{key: "a"}}
	for range 1000 {
		rows = append(rows, row{key: "hit", status: "200 -"})
	}
	d := b.log("1", append(rows, row{key: "b"})...)
	b.sender.fault = func(key string) error {
		if key == "b" {
			return &object.Error{Side: object.Queue, Class: object.Unavailable}
		}
		return nil
	}
	if got := b.Handle(t.Context(), d); got.Verb != queue.Retry || got.Detail != "unavailable" {
		t.Errorf("with b refused: %+v, want a retry for unavailable", got)
	}
	if len(b.store.deleted) != 0 {
		t.Errorf("the log was deleted before its misses were accepted")
	}
	b.sender.fault = nil
	if got := b.Handle(t.Context(), d); got.Verb != queue.Settle {
		t.Errorf("after healing: %+v", got)
	}
	// a had been accepted and is in the recent table: it is asked for once.
	if diff := cmp.Diff([]string{"a", "b"}, b.sender.keys); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"log-bucket/access/1"}, b.store.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
}

func TestMissesAreSentAHundredAtATime(t *testing.T) {
	b := newBench(t, nil)
	var rows []row
	for i := range 250 {
		rows = append(rows, row{key: fmt.Sprint(i)})
	}
	b.Handle(t.Context(), b.log("1", rows...))
	if b.sender.calls != 3 || len(b.sender.keys) != 250 {
		t.Errorf("%d keys in %d sends, want 250 in 3", len(b.sender.keys), b.sender.calls)
	}
}

func TestNotificationsThatCannotBeRead(t *testing.T) {
	b := newBench(t, nil)
	foreign := notification("elsewhere/1")
	missing := notification("access/gone")
	missing3 := notification("access/gone")
	missing3.Receives = missingReceives
	for _, c := range []struct {
		what string
		d    *queue.Delivery
		want queue.Outcome
	}{
		{"no JSON", &queue.Delivery{Body: "hello"}, queue.Outcome{Verb: queue.Bury, End: "poison", Detail: "undecoded"}},
		{"a prefix that the configuration does not name", foreign, queue.Outcome{Verb: queue.Bury, End: "poison", Detail: "foreign"}},
		{"a log that is gone although logs are kept, at first", missing, queue.Outcome{Verb: queue.Retry, Detail: "unknown"}},
		{"a log that is gone although logs are kept, in the end", missing3, queue.Outcome{Verb: queue.Bury, End: "poison", Detail: "missing"}},
		{"a test event", &queue.Delivery{Body: `{"Service":"Amazon S3","Event":"s3:TestEvent","Bucket":"log-bucket"}`}, queue.Outcome{Verb: queue.Settle, End: "parsed"}},
		{"no records", &queue.Delivery{Body: `{"Records":[]}`}, queue.Outcome{Verb: queue.Settle, End: "parsed"}},
	} {
		got := b.Handle(t.Context(), c.d)
		got.Note = ""
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.what, got, c.want)
		}
	}
}

func TestGoneLogIsNormalWhereLogsAreDeleted(t *testing.T) {
	b := newBench(t, func(_ *config.Route, l *config.Log, _ *Config) { l.WhenDone = "delete" })
	if got, want := b.Handle(t.Context(), notification("access/gone")), (queue.Outcome{Verb: queue.Settle, End: "gone"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestOneGoneOfThreeRecords: all are read, the message stays, and a second try
// asks for nothing twice.
func TestOneGoneOfThreeRecords(t *testing.T) {
	b := newBench(t, nil)
	b.log("1", row{key: "a"})
	b.log("3", row{key: "c"})
	d := notification("access/1", "access/2", "access/3")
	for range 2 {
		if got := b.Handle(t.Context(), d); got.Verb != queue.Retry {
			t.Errorf("%+v, want a retry", got)
		}
	}
	if diff := cmp.Diff([]string{"a", "c"}, b.sender.keys); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	b.log("2", row{key: "b"})
	if got := b.Handle(t.Context(), d); got.Verb != queue.Settle {
		t.Errorf("%+v, want it settled", got)
	}
}

func TestRefusedLogBucketHandsBack(t *testing.T) {
	b := newBench(t, nil)
	d := b.log("1", row{key: "a"})
	b.store.fail = &object.Error{Side: object.Logs, Op: "GetObject", Class: object.Denied, Code: "AccessDenied"}
	b.store.refuse = b.store.fail
	if got := b.Handle(t.Context(), d); got.Verb != queue.HandBack {
		t.Errorf("the reference is refused too: %+v, want it handed back", got)
	}
	b.store.refuse = nil
	if got := b.Handle(t.Context(), d); got.Verb != queue.Retry || got.Detail != "denied" {
		t.Errorf("this log alone is refused: %+v, want a retry for denied", got)
	}
}

func TestClosedGateAndCancelledWorkHandBack(t *testing.T) {
	b := newBench(t, nil)
	d := b.log("1", row{key: "a"})
	b.sender.fault = func(string) error { return fmt.Errorf("%w: unavailable", guard.ErrClosed) }
	if got := b.Handle(t.Context(), d); got.Verb != queue.HandBack {
		t.Errorf("closed gate: %+v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b.sender.fault = func(string) error { return &object.Error{Side: object.Queue, Class: object.Unavailable} }
	if got := b.Handle(ctx, d); got.Verb != queue.HandBack {
		t.Errorf("cancelled: %+v", got)
	}
}

// TestLogsOfEveryShape: empty, gzip, cut gzip, over many chunks, a line without end.
func TestLogsOfEveryShape(t *testing.T) {
	packed := func(s string) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		io.WriteString(z, s)
		z.Close()
		return out.Bytes()
	}
	miss, hit := row{key: "a"}.String(), row{key: "hit", status: "200 -"}.String()
	many := strings.Repeat(hit, 3*chunk/len(hit)) + miss
	cut := packed(miss + strings.Repeat(hit, 1000))
	for _, c := range []struct {
		what string
		log  []byte
		want []string
	}{
		{"empty", nil, nil},
		{"no line end", []byte(strings.TrimSuffix(miss, "\n")), []string{"a"}},
		{"gzip", packed(miss), []string{"a"}},
		{"cut gzip: what is readable counts", cut[:len(cut)-10], []string{"a"}},
		{"several chunks", []byte(many), []string{"a"}},
		{"a line longer than a chunk", slices.Concat(bytes.Repeat([]byte("x"), chunk+chunk/2), []byte("\n"+miss)), []string{"a"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBench(t, nil)
			b.store.objects["log-bucket/access/1"] = c.log
			got := b.Handle(t.Context(), notification("access/1"))
			if got.Verb != queue.Settle || got.End != "parsed" || (got.Detail == "empty") != (len(c.log) == 0) {
				t.Errorf("%+v, want it parsed, and only the empty one empty", got)
			}
			if diff := cmp.Diff(c.want, b.sender.keys); diff != "" {
				t.Errorf("requested (-want +got):\n%s", diff)
			}
			if most := len(c.log)/chunk + 1; b.store.reads > most {
				t.Errorf("%d reads, want at most %d", b.store.reads, most)
			}
		})
	}
}

// TestALaterMissAsksAgain: a row that is younger than the asking asks anew, and
// the recent table forgets.
func TestALaterMissAsksAgain(t *testing.T) {
	b := newBench(t, nil)
	b.Handle(t.Context(), b.log("1", row{key: "a"}, row{key: "a"}))
	b.Handle(t.Context(), b.log("2", row{key: "a", age: time.Second}))
	b.Handle(t.Context(), b.log("3", row{key: "a", age: -2 * time.Second}))
	if diff := cmp.Diff([]string{"a", "a"}, b.sender.keys); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	b = newBench(t, func(_ *config.Route, _ *config.Log, c *Config) { c.Recent = time.Millisecond })
	b.Handle(t.Context(), b.log("1", row{key: "a", age: time.Second}))
	time.Sleep(5 * time.Millisecond)
	b.Handle(t.Context(), b.log("2", row{key: "a", age: time.Second}))
	if diff := cmp.Diff([]string{"a", "a"}, b.sender.keys); diff != "" {
		t.Errorf("forgotten, requested (-want +got):\n%s", diff)
	}
}

// TestRefusedDeleteClosesTheLogBucket: a role that may not delete logs holds them
// back, instead of reading each again until it dies.
func TestRefusedDeleteClosesTheLogBucket(t *testing.T) {
	b := newBench(t, func(_ *config.Route, l *config.Log, _ *Config) { l.WhenDone = "delete" })
	d := b.log("1", row{key: "a"})
	b.store.keep = func(string) error {
		return &object.Error{Side: object.Logs, Op: "DeleteObject", Class: object.Denied, Code: "AccessDenied"}
	}
	if got := b.Handle(t.Context(), d); got.Verb != queue.HandBack {
		t.Errorf("none may be deleted: %+v, want it handed back", got)
	}
	b.store.keep = func(key string) error {
		if strings.HasSuffix(key, "/1") {
			return &object.Error{Side: object.Logs, Op: "DeleteObject", Class: object.Denied, Code: "AccessDenied"}
		}
		return nil
	}
	if got := b.Handle(t.Context(), d); got.Verb != queue.Retry || got.Detail != "denied" {
		t.Errorf("this one may not be deleted: %+v, want a retry for denied", got)
	}
}

func TestNewRefusesWhatIsNotWired(t *testing.T) {
	routes, err := route.New([]config.Route{{Bucket: "b", Mode: config.ModeCopy}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = New(Deps{Routes: routes, Tel: telemetry.Nop()}, Config{Places: []config.Log{{Bucket: "log-bucket"}}, SyncQueue: syncURL, OwnRole: "me"})
	var text string
	if err != nil {
		text = err.Error()
	}
	for _, want := range []string{`log bucket "log-bucket" has no guard`, "has no sender", "own role"} {
		if !strings.Contains(text, want) {
			t.Errorf("error %q does not say %q", text, want)
		}
	}
	if errors.Is(err, guard.ErrClosed) {
		t.Error("a wiring mistake is no closed gate")
	}
}
