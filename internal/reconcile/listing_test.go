package reconcile

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/objectferry/objectferry/internal/object"
)

// page is a listing's page of keys.
func page(next string, keys ...string) object.Page {
	p := object.Page{Next: next}
	for _, key := range keys {
		p.Objects = append(p.Objects, object.Listed{Key: key, Size: 1, ETag: `"e"`})
	}
	return p
}

// TestListingThatLiesEndsTheRun: no row of it is told, for a key that comes too
// late would pass for one that is missing; and it ends.
func TestListingThatLiesEndsTheRun(t *testing.T) {
	n := 0
	for name, tt := range map[string]struct {
		lie  func(prefix, after, next string) (object.Page, error, bool)
		says string
	}{
		"out of order": {func(_, _, _ string) (object.Page, error, bool) {
			return page("", "img/a", "img/c", "img/b"), nil, true
		}, `"img/b" comes after "img/c"`},
		"twice the same": {func(_, _, _ string) (object.Page, error, bool) {
			return page("", "img/a", "img/a"), nil, true
		}, `"img/a" comes after "img/a"`},
		"another order, such as UTF-16's": {func(_, _, _ string) (object.Page, error, bool) {
			return page("", "img/\U0001F600", "img/\uFF5E"), nil, true
		}, "not in the order"},
		"the same page for ever": {func(_, _, _ string) (object.Page, error, bool) {
			n++
			return page(fmt.Sprint("next", n), "img/a", "img/b"), nil, true
		}, "does not advance"},
		"the same marker for ever": {func(_, _, next string) (object.Page, error, bool) {
			return page("img/m"), nil, true
		}, "does not advance"},
		"empty pages for ever": {func(_, _, _ string) (object.Page, error, bool) {
			n++
			return page(fmt.Sprint("next", n)), nil, true
		}, "does not advance"},
		"begins before its marker": {func(_, _, next string) (object.Page, error, bool) {
			if next == "" {
				return page("more", "img/m", "img/n"), nil, true
			}
			return page("", "img/a"), nil, true
		}, `"img/a" comes after "img/n"`},
		"another prefix": {func(_, _, _ string) (object.Page, error, bool) {
			return page("", "img/a", "private/b"), nil, true
		}, "prefix"},
		"an error after a page": {func(_, _, next string) (object.Page, error, bool) {
			if next == "" {
				return page("more", "img/a"), nil, true
			}
			return object.Page{}, failure(object.Destination, object.Denied), true
		}, "denied"},
	} {
		for _, side := range []string{"source", "destination"} {
			t.Run(name+" at the "+side, func(t *testing.T) {
				w := newWorld(t, "img/**")
				w.many(10, func(i int) bool { return true })
				if side == "source" {
					w.src.lie = tt.lie
				} else {
					w.dst.lie = tt.lie
				}
				_, err := w.run(Config{Prefix: "img/", Request: true})
				if err == nil || !strings.Contains(err.Error(), tt.says) || object.ClassOf(err) == object.Unknown {
					t.Errorf("%v, want an error of a store with %q", err, tt.says)
				}
				if len(w.told) > 0 || len(w.requested) > 0 {
					t.Errorf("told %v, requested %q", w.told, w.requested)
				}
			})
		}
	}
}

func TestMarkerThatStandsStillIsNotAskedForAgainAndAgain(t *testing.T) {
	w := newWorld(t, "img/**")
	asked := 0
	w.src.lie = func(_, _, _ string) (object.Page, error, bool) {
		asked++
		return page("img/m"), nil, true
	}
	if _, err := w.run(Config{}); err == nil || asked != 2 {
		t.Errorf("%v after %d pages", err, asked)
	}
}

// TestPageMayBeginWithItsMarker: COS's documentation has said both.
func TestPageMayBeginWithItsMarker(t *testing.T) {
	w := newWorld(t, "img/**")
	w.src.lie = func(_, _, next string) (object.Page, error, bool) {
		if next == "" {
			return page("img/b", "img/a", "img/b"), nil, true
		}
		return page("", "img/b", "img/c"), nil, true
	}
	if totals, err := w.run(Config{}); err != nil || totals.Classes[Missing] != 3 {
		t.Errorf("%+v, %v", totals, err)
	}
}

// TestEmptyPagesArePassedOver, as S3 sends them for many delete markers.
func TestEmptyPagesArePassedOver(t *testing.T) {
	w := newWorld(t, "img/**")
	w.src.put("img/z", 1, "e")
	n := 0
	w.dst.lie = func(_, _, next string) (object.Page, error, bool) {
		if n++; n < 900 {
			return page(fmt.Sprint("next", n)), nil, true
		}
		return page("", "img/z"), nil, true
	}
	if totals, err := w.run(Config{}); err != nil || totals.Classes[Same] != 1 {
		t.Errorf("%+v, %v", totals, err)
	}
}

func TestStoreThatIsAwayForAMomentIsAskedAgain(t *testing.T) {
	for _, tt := range []struct {
		class object.Class
		times int
		want  object.Class
	}{
		{object.Unavailable, attempts - 1, ""}, {object.Throttled, attempts - 1, ""}, {object.Unavailable, attempts, object.Unavailable},
		{object.Denied, 1, object.Denied}, {object.Refused, 1, object.Refused}, {object.Corrupt, 1, object.Corrupt},
	} {
		for _, call := range []string{"list source", "list destination", "head", "get"} {
			t.Run(fmt.Sprintf("%s of %s, %d times", tt.class, call, tt.times), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, "img/**")
					w.src.put("img/a", 1, "e")
					left := tt.times
					w.before = func(name string) error {
						if name == call && left > 0 {
							left--
							return failure(object.Source, tt.class)
						}
						return nil
					}
					totals, err := w.run(Config{Deep: true})
					switch asked := call == "head" || call == "get"; {
					case tt.want == "" && (err != nil || totals.Classes[Missing] != 1):
						t.Errorf("%+v, %v", totals, err)
					case tt.want != "" && !asked && object.ClassOf(err) != tt.want:
						t.Errorf("%v, want class %s", err, tt.want)
					}
				})
			})
		}
	}
}

// TestKeyThatFailsAloneCostsThatKey; a side that answers nothing, or refuses us
// altogether, ends the run.
func TestKeyThatFailsAloneCostsThatKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "img/**")
		w.many(10, func(int) bool { return false })
		w.refusals["img/00003"] = failure(object.Source, object.Unavailable)
		w.headErrs["img/00004"] = failure(object.Destination, object.Unknown)
		totals, err := w.run(Config{Deep: true, Request: true})
		if err != nil || totals.Classes[Failed] != 2 || totals.Classes[Missing] != 8 || len(w.requested) != 8 {
			t.Errorf("%+v, %v, requested %q", totals, err, w.requested)
		}
		clear(w.headErrs)
		w.many(10, func(i int) bool { return i != 3 }) // no other key has to be asked for
		if totals, err := w.run(Config{Deep: true, AtOnce: 1}); err != nil || totals.Classes[Failed] != 1 {
			t.Errorf("the only key that is asked for: %+v, %v", totals, err)
		}
		clear(w.dst.objects)
		w.many(unansweredInARow, func(int) bool { return false })
		for _, class := range []object.Class{object.Unavailable, object.Throttled, object.Refused} {
			w.told = nil
			w.before = func(name string) error {
				if name == "get" {
					return failure(object.Source, class)
				}
				return nil
			}
			if totals, err := w.run(Config{Deep: true}); object.ClassOf(err) != class || len(w.told) > 0 || totals.Keys != 0 {
				t.Errorf("%s of all: %+v, %v, told %v", class, totals, err, w.told)
			}
		}
	})
}

func TestInterruptedRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := newWorld(t, "img/**")
		w.before = func(string) error { cancel(); return failure(object.Source, object.Unavailable) }
		c, err := New(Deps{Route: w.route, Source: reads{w.src}, Destination: looks{w.dst}, Report: w.report}, Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(ctx); err == nil {
			t.Error("no error")
		}
	})
}
