package reconcile

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is both sides, the queue and what was told, in memory.
type world struct {
	t        *testing.T
	route    *route.Route
	src, dst *side
	refusals map[string]error        // of the source, by key; those of the destination are in heads
	heads    map[string]object.Found // beside what dst lists
	headErrs map[string]error

	mu        sync.Mutex
	asked     []string // keys that the source was asked for
	requested []string
	rows      map[string]Class
	told      []Row
	before    func(call string) error // is asked before each call; nil never fails
}

// side is one bucket; it lists pages of size keys.
type side struct {
	w       *world
	name    string
	size    int
	objects map[string]object.Listed
	lie     func(prefix, after, next string) (object.Page, error, bool)
}

func newWorld(t *testing.T, include ...string) *world {
	t.Helper()
	c := config.Route{Bucket: "media", Mode: config.ModeCopy, Source: config.Source{Read: config.ReadSigned}, Include: include, Exclude: []string{"**/private/**"}}
	table, err := route.New([]config.Route{c})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, route: table.Routes()[0], refusals: map[string]error{}, heads: map[string]object.Found{}, headErrs: map[string]error{}, rows: map[string]Class{}}
	w.src = &side{w: w, name: "source", size: 3, objects: map[string]object.Listed{}}
	w.dst = &side{w: w, name: "destination", size: 4, objects: map[string]object.Listed{}}
	return w
}

// put stores an object whose ETag is text.
func (s *side) put(key string, size int64, text string) {
	s.objects[key] = object.Listed{Key: key, Size: size, ETag: strconv.Quote(text)}
}

func (s *side) List(_ context.Context, prefix, after, next string) (object.Page, error) {
	if err := s.w.call("list " + s.name); err != nil {
		return object.Page{}, err
	}
	if s.lie != nil {
		if page, err, told := s.lie(prefix, after, next); told {
			return page, err
		}
	}
	var page object.Page
	from := max(after, strings.TrimPrefix(next, "after:"))
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if key <= from && from != "" || !strings.HasPrefix(key, prefix) {
			continue
		}
		if len(page.Objects) == s.size {
			page.Next = "after:" + page.Objects[s.size-1].Key
			break
		}
		page.Objects = append(page.Objects, s.objects[key])
	}
	return page, nil
}

func (w *world) call(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.before == nil {
		return nil
	}
	return w.before(name)
}

// reads makes a source of a side.
type reads struct{ *side }

func (s reads) Get(_ context.Context, key string, r object.Range, _ string) (*object.Read, error) {
	if err := s.w.call("get"); err != nil {
		return nil, err
	}
	if r != (object.Range{Length: 1}) {
		s.w.t.Errorf("%+v of %q was read", r, key)
	}
	s.w.mu.Lock()
	s.w.asked = append(s.w.asked, key)
	s.w.mu.Unlock()
	o, ok := s.objects[key]
	switch {
	case s.w.refusals[key] != nil:
		return nil, s.w.refusals[key]
	case !ok:
		return nil, failure(object.Source, object.Absent)
	}
	return &object.Read{Attributes: object.Attributes{Size: o.Size, ETag: o.ETag, CRC64: 7, HasCRC64: true}, Body: http.NoBody}, nil
}

// looks makes a destination of a side.
type looks struct{ *side }

func (d looks) Head(_ context.Context, key string) (object.Found, error) {
	if err := d.w.call("head"); err != nil {
		return object.Found{}, err
	}
	if err := d.w.headErrs[key]; err != nil {
		return object.Found{}, err
	}
	if found, ok := d.w.heads[key]; ok {
		return found, nil
	}
	o, ok := d.objects[key]
	return object.Found{Exists: ok, Attributes: object.Attributes{Size: o.Size, ETag: o.ETag}}, nil
}

func (w *world) Send(_ context.Context, entries []queue.Entry) []error {
	errs := make([]error, len(entries))
	for i, e := range entries {
		r, err := syncrequest.Decode(e.Body)
		if err != nil || r.Bucket != "media" {
			w.t.Errorf("sent %q: %v", e.Body, err)
		}
		if errs[i] = w.call("send"); errs[i] == nil {
			w.requested = append(w.requested, r.Key)
		}
	}
	return errs
}

func (w *world) report(rows []Row, _ Totals) error {
	if err := w.call("report"); err != nil {
		return err
	}
	for _, r := range rows {
		w.rows[r.Key] = r.Class
	}
	w.told = append(w.told, rows...)
	return nil
}

// run makes one run.
func (w *world) run(c Config) (Totals, error) {
	w.t.Helper()
	if c.MaxSize == 0 {
		c.MaxSize = 1000
	}
	comparison, err := New(Deps{Route: w.route, Source: reads{w.src}, Destination: looks{w.dst}, Sender: w, Report: w.report}, c)
	if err != nil {
		return Totals{}, err
	}
	return comparison.Run(w.t.Context())
}

func failure(side object.Side, class object.Class) error {
	return &object.Error{Side: side, Op: "test", Class: class, Code: string(class)}
}

// errKilled ends a run at whatever call it is the answer to.
var errKilled = failure(object.Source, object.Canceled)

// list is a list of keys.
func list(keys ...string) func(func(string, error) bool) {
	return func(yield func(string, error) bool) {
		for _, key := range keys {
			if !yield(key, nil) {
				return
			}
		}
	}
}

// many puts n keys into the source and those that keep lets through overseas, too.
func (w *world) many(n int, keep func(int) bool) (missing []string) {
	for i := range n {
		key := fmt.Sprintf("img/%05d", i)
		w.src.put(key, 1, "e")
		if keep(i) {
			w.dst.put(key, 1, "e")
			continue
		}
		missing = append(missing, key)
	}
	return missing
}
