package report

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

const (
	hit    = "200 - 7 7 9 1"
	miss   = "404 NoSuchKey 287 - 9 -"
	denied = "403 AccessDenied 287 - 9 -"
)

var noon = time.Date(2026, 9, 4, 12, 0, 0, 0, time.UTC)

// line is a row as S3 writes it; who is the requester, what the status block.
func line(bucket, who, key, what string, at time.Time) []byte {
	return fmt.Appendf(nil, `owner %s [%s] 203.0.113.9 %s ID REST.GET.OBJECT %s "GET /%s HTTP/1.1" %s "-" "curl/8.4.0" -`,
		bucket, at.UTC().Format("02/Jan/2006:15:04:05 -0700"), who, key, key, what)
}

func table(t testing.TB, routes ...config.Route) *route.Table {
	t.Helper()
	table, err := route.New(routes)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func media() config.Route {
	r := config.DefaultRoute()
	r.Bucket, r.Source.Read, r.Exclude = "media", config.ReadAnonymous, []string{"tmp/**"}
	return r
}

// newReport makes one by the default configuration and what change makes of it.
func newReport(t testing.TB, change func(*Config)) *Report {
	t.Helper()
	c := DefaultConfig()
	if change != nil {
		change(&c)
	}
	r, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// take adds rows that were delivered at no known time.
func (r *Report) take(lines ...[]byte) {
	var row accesslog.Row
	for _, l := range lines {
		row.Parse(l)
		r.Add(&row, time.Time{})
	}
}

func counted(b *Bucket) map[string]int64 {
	counts := map[string]int64{}
	for _, c := range b.Counts {
		counts[string(c.Verdict)+" "+string(c.Why)] = c.Rows
	}
	return counts
}

func TestRowsAreJudgedAsTheServiceDoes(t *testing.T) {
	const role = "arn:aws:sts::111122223333:assumed-role/objectferry-copy"
	own, err := accesslog.ParseRole(role)
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(t, func(c *Config) { c.Routes, c.Own = table(t, media()), own })
	r.take(line("media", "-", "a", hit, noon), line("media", "-", "a", miss, noon), line("media", "-", "tmp/a", miss, noon),
		line("media", role+"/session", "a", miss, noon), line("media", role+"/session", "a", hit, noon), line("media", "-", "a", denied, noon),
		line("media", "-", "a", "500 InternalError 287 - 9 -", noon), line("elsewhere", "-", "a", miss, noon), line("elsewhere", "-", "a", hit, noon), []byte("nonsense"))
	var row accesslog.Row
	row.Parse(line("media", "-", "b", miss, noon))
	r.Add(&row, noon.Add(73*time.Hour)) // delivered too late to be acted on

	got := r.Result(false)
	if got.Rows != 11 || len(got.Buckets) != 2 || got.Buckets[0].Bucket != "media" || got.Buckets[1].Bucket != Other {
		t.Fatalf("%+v", got)
	}
	b := got.Buckets[0]
	want := map[string]int64{"miss NoSuchKey": 1, "skip hit": 2, "skip filtered": 1, "skip own": 1, "skip stale": 1, "skip other error": 1, "maybe AccessDenied": 1}
	if diff := cmp.Diff(want, counted(b)); diff != "" {
		t.Errorf("media (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int64{"skip no route": 1, "skip hit": 1, "unparsed not a row": 1}, counted(got.Buckets[1])); diff != "" {
		t.Errorf("other (-want +got)\n%s", diff)
	}
	// A visitor misses what is filtered or old as much as anything else; the ferry is no visitor.
	if b.S3 != 1 || b.Miss != 3 || b.Missed != 1 || b.Keys != (Estimate{Value: 1}) || *b.ShareNow != 0.25 {
		t.Errorf("%+v", b)
	}
}

func TestWithoutRoutesEveryKeyCountsAndNoRowIsTooOld(t *testing.T) {
	for _, forbidden := range []bool{false, true} {
		r := newReport(t, func(c *Config) { c.ForbiddenIsMiss = forbidden })
		old := noon.AddDate(-3, 0, 0)
		r.take(line("a", "-", "../x", miss, old), line("a", "-", "y", denied, noon), line("b", "-", "x", hit, noon))
		got := r.Result(false).Buckets
		want := int64(1)
		if forbidden {
			want = 2
		}
		if len(got) != 2 || got[0].Missed != want || got[0].Miss != want || !got[0].From.Equal(old) || !got[0].To.Equal(noon) || got[1].S3 != 1 {
			t.Errorf("%t: %+v", forbidden, got)
		}
	}
}

func TestRowsBeforeSinceArePassedOver(t *testing.T) {
	r := newReport(t, func(c *Config) { c.Since = noon })
	r.take(line("a", "-", "x", miss, noon.Add(-time.Second)), line("a", "-", "x", miss, noon))
	if got := r.Result(false); got.Rows != 1 || got.Buckets[0].Missed != 1 {
		t.Errorf("%+v", got)
	}
}

// Rule 7: names of buckets and days come from the log.
func TestBucketsAndDaysAreBounded(t *testing.T) {
	r := newReport(t, nil)
	for i := range 3000 {
		r.take(line(fmt.Sprintf("b%d", i), "-", "x", miss, noon), line("b0", "-", "x", hit, noon.AddDate(0, 0, i)))
	}
	got := r.Result(true).Buckets
	if len(got) != maxBuckets+1 || got[maxBuckets].Bucket != Other || got[maxBuckets].Rows != 3000-maxBuckets {
		t.Errorf("%d buckets, the last with %+v", len(got), got[len(got)-1])
	}
	days := got[0].Days
	if len(days) != maxDays+1 || days[0].Day != "other" || days[0].S3 != 3000-maxDays {
		t.Errorf("%d days, the first is %+v", len(days), days[0])
	}
}

func TestAKeyMissesUntilItsObjectIsThere(t *testing.T) {
	r := newReport(t, func(c *Config) { c.Delay = time.Hour })
	for _, after := range []time.Duration{0, time.Minute, time.Hour, time.Hour + time.Second, 30 * time.Hour} {
		r.take(line("media", "-", "a", miss, noon.Add(after)))
	}
	r.take(line("media", "-", "b", miss, noon.Add(30*time.Hour)), line("media", "-", "c", hit, noon), line("media", "-", "c", hit, noon))
	b := r.Result(true).Buckets[0]
	want := Answers{S3: 2, Miss: 6, Still: Estimate{Value: 4}, Saved: Estimate{Value: 2}, ShareNow: ptr(0.25), ShareThen: ptr(0.5)}
	if diff := cmp.Diff(want, b.Answers); diff != "" || b.Keys.Value != 2 {
		t.Errorf("%v keys, (-want +got)\n%s", b.Keys, diff)
	}
	// What a key still misses counts on the day of its first miss.
	days := []Day{
		{Day: "2026-09-04", Keys: Estimate{Value: 1}, Answers: Answers{S3: 2, Miss: 4, Still: Estimate{Value: 3}, Saved: Estimate{Value: 1}}},
		{Day: "2026-09-05", Keys: Estimate{Value: 1}, Answers: Answers{Miss: 2, Still: Estimate{Value: 1}, Saved: Estimate{Value: 1}}},
	}
	if diff := cmp.Diff(days, b.Days, cmpopts.IgnoreFields(Answers{}, "ShareNow", "ShareThen")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestRoutesWithoutARowAreListed(t *testing.T) {
	r := newReport(t, func(c *Config) { c.Routes = table(t, media()) })
	got := r.Result(true).Buckets
	if len(got) != 1 || got[0].Bucket != "media" || got[0].From != nil || got[0].ShareNow != nil || !slices.Equal(got[0].Days, nil) {
		t.Errorf("%+v", got[0])
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"delay":  func(c *Config) { c.Delay = -1 },
		"keys":   func(c *Config) { c.Keys = 0 },
		"sample": func(c *Config) { c.Sample = 300; c.Keys = 1000 },
	} {
		c := DefaultConfig()
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
