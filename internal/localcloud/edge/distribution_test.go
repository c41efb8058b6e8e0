package edge

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPatterns(t *testing.T) {
	for _, tc := range []struct {
		pattern, path string
		want          bool
	}{
		{"*", "/", true},
		{"us/*", "/us/a/b.jpg", true},
		{"/us/*", "/us/a", true},
		{"us/*", "/us", false},
		{"us/*", "/a/us/b", false},
		{"*.jpg", "/a/b.jpg", true},
		{"*.jpg", "/a/b.jpgx", false},
		{"a?c*e", "/abcde", true},
		{"a?c*e", "/ace", false},
		{"**a**", "/bab", true},
		{"us/*", "/US/a", false},
		{"us/*", "/u%73/a", true},
		{"us/*", "/a/../us/b", true},
		{"us/*", "/us/../a", false},
		{"us/*", "/./us/b", true},
		{"us/*", "/%zz", false},
	} {
		if got := (&Behaviour{Pattern: tc.pattern}).matches(tc.path); got != tc.want {
			t.Errorf("%s matches %s: %t", tc.pattern, tc.path, got)
		}
	}
}

func TestForHowLongAnAnswerIsKept(t *testing.T) {
	now := time.Date(2026, 9, 4, 8, 0, 0, 0, time.UTC)
	b := &Behaviour{TTL: TTL{10 * time.Second, 60 * time.Second, 100 * time.Second}}
	e := &Edge{dist: Distribution{ErrorTTL: map[int]time.Duration{403: 5 * time.Second, 404: 5 * time.Second}}, cache: newCache(func() time.Time { return now })}
	for _, tc := range []struct {
		name, method string
		status       int
		control      string
		expires      string
		want         time.Duration
	}{
		{"nothing said", "GET", 200, "", "", 60 * time.Second},
		{"max-age", "HEAD", 200, "public, max-age=20", "", 20 * time.Second},
		{"s-maxage wins", "GET", 200, "max-age=20,s-maxage=30", "", 30 * time.Second},
		{"no more than Max", "GET", 200, "max-age=1000", "", 100 * time.Second},
		{"no less than Min", "GET", 200, "max-age=1", "", 10 * time.Second},
		{"no less than Min, though refused", "GET", 200, "no-store", "", 10 * time.Second},
		{"Expires", "GET", 200, "", now.Add(40 * time.Second).Format(http.TimeFormat), 40 * time.Second},
		{"Expires in the past", "GET", 200, "", "Thu, 01 Jan 1970 00:00:00 GMT", 10 * time.Second},
		{"another method", "OPTIONS", 200, "", "", 0},
		{"another status", "GET", 206, "", "", 0},
		{"error", "GET", 404, "", "", 5 * time.Second},
		{"error that asks for more", "GET", 404, "max-age=50", "", 50 * time.Second},
		{"error that asks for less", "GET", 404, "max-age=1", "", 5 * time.Second},
		{"404 that refuses", "GET", 404, "no-store", "", 0},
		{"403 that refuses", "GET", 403, "no-store", "", 5 * time.Second},
		{"error of no lasting", "GET", 416, "", "", 0},
	} {
		resp := &http.Response{StatusCode: tc.status, Header: http.Header{}}
		resp.Header.Set("Cache-Control", tc.control)
		resp.Header.Set("Expires", tc.expires)
		if got := e.lifetime(b, httptest.NewRequest(tc.method, "/", nil), resp); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

func TestScriptsMayUseAnswersAsTheDistributionSays(t *testing.T) {
	cors := &CORS{Origins: []string{"https://a.test", "https://b.test"}, Methods: []string{"GET", "HEAD"}, Headers: []string{"*"}, Expose: []string{"*"}, MaxAge: "600"}
	for _, tc := range []struct {
		name, method, origin string
		want                 http.Header
	}{
		{"without an origin", "GET", "", http.Header{"Access-Control-Allow-Origin": {"said"}}},
		{"allowed", "GET", "https://b.test", http.Header{"Access-Control-Allow-Origin": {"https://b.test"}, "Access-Control-Expose-Headers": {"*"}}},
		{"not allowed", "GET", "https://c.test", http.Header{}},
		{"preflight", "OPTIONS", "https://a.test", http.Header{"Access-Control-Allow-Origin": {"https://a.test"}, "Access-Control-Expose-Headers": {"*"},
			"Access-Control-Allow-Methods": {"GET, HEAD"}, "Access-Control-Allow-Headers": {"*"}, "Access-Control-Max-Age": {"600"}}},
	} {
		r := httptest.NewRequest(tc.method, "/", nil)
		r.Header.Set("Origin", tc.origin)
		h := http.Header{"Access-Control-Allow-Origin": {"said"}} // by the origin
		(&Answer{CORS: cors}).set(h, r)
		if diff := cmp.Diff(tc.want, h); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
