package accesslog

import (
	"strings"
	"testing"
)

func TestKeyIsDecodedByTheRule(t *testing.T) {
	tests := map[string]struct{ op, raw, uri, want string }{
		"plain":                         {"REST.GET.OBJECT", "a/b.jpg", "GET /a/b.jpg HTTP/1.1", "a/b.jpg"},
		"doubly encoded":                {"REST.GET.OBJECT", "a%2520b", "GET /x HTTP/1.1", "a b"},
		"space as a plus":               {"REST.GET.OBJECT", "a%2Bb", "-", "a b"},
		"plus":                          {"REST.GET.OBJECT", "a%252Bb", "-", "a+b"},
		"percent":                       {"REST.GET.OBJECT", "100%2525", "-", "100%"},
		"small digits":                  {"REST.GET.OBJECT", "a%2bb%25e4%25bd%25a0", "-", "a b你"},
		"once, by its look":             {"REST.GET.OBJECT", "a%20b%2525", "-", "a b%25"},
		"once, by a bare plus":          {"REST.GET.OBJECT", "a+b%2525", "-", "a b%25"},
		"batch delete":                  {"BATCH.DELETE.OBJECT", "a+b%2Bc%2525", "-", "a b+c%25"},
		"own doing of S3":               {"S3.EXPIRE.OBJECT", "100%25.txt", "-", "100%.txt"},
		"not UTF-8":                     {"REST.GET.OBJECT", "%25FF%25FE", "-", "\xff\xfe"},
		"URI says once":                 {"REST.GET.OBJECT", "100%2520", "GET /100%2520 HTTP/1.1", "100%20"},
		"URI says twice":                {"REST.GET.OBJECT", "100%2520", "GET /100%20 HTTP/1.1", "100 "},
		"URI says once, path-style":     {"REST.GET.OBJECT", "100%2520", "GET /overseas-media/100%2520 HTTP/1.1", "100%20"},
		"URI with a query":              {"REST.GET.OBJECT", "100%2520", "GET /100%2520?versionId=1 HTTP/1.1", "100%20"},
		"URI in absolute form":          {"REST.GET.OBJECT", "100%2520", "GET http://h/100%2520 HTTP/1.1", "100%20"},
		"URI without a version":         {"REST.GET.OBJECT", "100%2520", "GET /100%2520", "100%20"},
		"URI heals what the rule fails": {"REST.GET.OBJECT", "foo-%25Y", "GET /foo-%25Y HTTP/1.1", "foo-%Y"},
		"URI with a bare plus":          {"REST.GET.OBJECT", "a%2Bb", "GET /a+b HTTP/1.1", "a b"},
		"URI with an escaped plus":      {"REST.GET.OBJECT", "a%2Bb", "GET /a%2Bb HTTP/1.1", "a+b"},
		"URI is no source":              {"REST.GET.OBJECT", "blog/index.html", "GET /blog/ HTTP/1.1", "blog/index.html"},
		"URI that is broken":            {"REST.GET.OBJECT", "a%2520b", "GET /a%zzb HTTP/1.1", "a b"},
		"slash":                         {"REST.GET.OBJECT", "/", "GET // HTTP/1.1", "/"},
		"slashes":                       {"REST.GET.OBJECT", "2026/1//1d8c", "GET /2026/1//1d8c HTTP/1.1", "2026/1//1d8c"},
		"dots":                          {"REST.GET.OBJECT", "..%252F..", "GET /..%2F.. HTTP/1.1", "../.."},
		"bucket's name in the key":      {"REST.GET.OBJECT", "overseas-media/a%2520b", "GET /overseas-media/a%20b HTTP/1.1", "overseas-media/a b"},
	}
	var row Row
	for name, test := range tests {
		line := strings.Replace(missOf(test.raw, test.uri), "REST.GET.OBJECT", test.op, 1)
		if row.Parse([]byte(line)); string(row.Key()) != test.want {
			t.Errorf("%s: %q, want %q (%s)", name, row.Key(), test.want, row.Why)
		}
	}
}

func TestKeyIsNeverGuessed(t *testing.T) {
	var row Row
	for _, raw := range []string{"bad%zz.jpg", "bad%", "bad%2", "foo-%25Y", "%25", "%252"} {
		row.Parse([]byte(missOf(raw, "GET /elsewhere HTTP/1.1")))
		if row.Verdict != Unparsed || row.Why != BadKey || row.Key() != nil || string(row.KeyRaw) != raw {
			t.Errorf("%s: %s (%s), key %q", raw, row.Verdict, row.Why, row.Key())
		}
	}
}

func TestHitIsSkippedWhateverItsKey(t *testing.T) {
	var row Row
	line := strings.Replace(missOf("bad%zz", "GET /bad%zz HTTP/1.1"), "404 NoSuchKey", "200 -", 1)
	if row.Parse([]byte(line)); row.Why != Hit {
		t.Errorf("%s (%s)", row.Verdict, row.Why)
	}
}
