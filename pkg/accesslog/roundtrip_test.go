package accesslog_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/pkg/accesslog"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// FuzzKeyRoundTrip carries a key all the way: the text of the log, the message,
// the path of a request to either store, and back.
func FuzzKeyRoundTrip(f *testing.F) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, key := range []string{
		string(all), "a b", "a+b", "100%.txt", "%25", "%2B", "+", "//a//", "..", "x[1]", "Artik & ASTI $1.wav", "测试.jpg", "\xff\xfe", "a\nb",
		`a" 404 NoSuchKey 1 1 1 1 "b`, "-x",
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" || key == "-" || len(key) > 1024 {
			return // "-" is S3's sign of no key
		}
		// S3 writes a space in either way, and the client's path in whatever way the
		// client likes.
		form, percent := url.QueryEscape, func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }
		for _, raw := range []string{form(form(key)), percent(percent(key)), syncrequest.EscapeKey(syncrequest.EscapeKey(key))} {
			for _, path := range []string{"/" + syncrequest.EscapeKey(key), "/b/" + percent(key), "/" + form(key), "/elsewhere", ""} {
				carry(t, key, raw, path)
			}
		}
	})
}

func carry(t *testing.T, key, raw, path string) {
	t.Helper()
	uri := `"GET ` + path + ` HTTP/1.1"`
	if path == "" {
		uri = "-"
	}
	log := "o b [04/Sep/2026:08:03:42 +0000] 203.0.113.9 - ID REST.GET.OBJECT " + raw + " " + uri + ` 404 NoSuchKey 287 - 9 - "-" "curl/8.4.0" -` + "\n"
	rows := accesslog.NewScanner(strings.NewReader(log))
	if !rows.Next() || rows.Row().Verdict != accesslog.Miss {
		t.Fatalf("%q, logged as %s: %s (%s)", key, raw, rows.Row().Verdict, rows.Row().Why)
	}
	row := rows.Row()
	if string(row.Key()) != key {
		t.Fatalf("%q, logged as %s of %s, is read as %q", key, raw, uri, row.Key())
	}
	body, err := syncrequest.Encode(syncrequest.Request{
		Bucket: string(row.Bucket), Key: string(row.Key()), Seen: row.Time(), Cause: string(row.Why), Log: "s3://logs/" + key,
	})
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	request, err := syncrequest.Decode(body)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	if request.Key != key || request.Log != "s3://logs/"+key || !request.Seen.Equal(time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC)) {
		t.Fatalf("%q was carried as %+v", key, request)
	}
	// Both stores take the key as the path of a URL, escaped as RFC 3986 has it.
	u, err := url.Parse("https://store.example.com/" + syncrequest.EscapeKey(request.Key))
	if err != nil {
		t.Fatal(err)
	}
	if u.Path != "/"+key || u.RawQuery != "" || u.Fragment != "" {
		t.Errorf("%q arrives as %q", key, u.Path)
	}
}
