package visitors

import (
	"bytes"
	"compress/gzip"
	"io"
	"reflect"
	"strings"
	"testing"
)

func TestACatalogueIsAFunctionOfItsSeed(t *testing.T) {
	// Not go-cmp: it would look for the smallest edit between megabytes of bodies.
	a := Catalogue(3, 30, true)
	if !reflect.DeepEqual(a, Catalogue(3, 30, true)) {
		t.Error("the same seed gives another catalogue")
	}
	if reflect.DeepEqual(a, Catalogue(4, 30, true)) {
		t.Error("another seed gives the same catalogue")
	}
}

func TestACatalogueHoldsWhatIsAwkward(t *testing.T) {
	objects := Catalogue(1, 200, true)
	keys := map[string]bool{}
	var all strings.Builder
	seen := map[string]int{}
	for _, o := range objects {
		keys[o.Key] = true
		all.WriteString(o.Key + "\n")
		if n := len(o.Body); n < 1 || n > 200<<10 {
			t.Errorf("%q: %d bytes", o.Key, n)
		}
		seen["type "+o.ContentType]++
		for what, is := range map[string]bool{
			"small": len(o.Body) < 1<<10, "big": len(o.Body) > 64<<10, "gzip": o.ContentEncoding == "gzip",
			"cache control": o.CacheControl != "", "language": o.ContentLanguage != "", "disposition": o.ContentDisposition != "",
			"expires": o.Expires != "", "non-ASCII metadata": strings.Contains(o.Meta["title"], "素材"), "leading slash": o.Key[0] == '/',
		} {
			if is {
				seen[what]++
			}
		}
		if o.ContentEncoding == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(o.Body))
			if err == nil {
				_, err = io.Copy(io.Discard, z)
			}
			if err != nil {
				t.Errorf("%q is not gzip: %v", o.Key, err)
			}
		}
	}
	if len(keys) != 200 {
		t.Errorf("%d distinct keys", len(keys))
	}
	for _, what := range []string{"small", "big", "gzip", "cache control", "language", "disposition", "expires", "non-ASCII metadata", "leading slash"} {
		if seen[what] == 0 {
			t.Errorf("none with: %s", what)
		}
	}
	for _, part := range []string{" ", "+", "%", "测试", "//", "[", "..", "?", "#", "&", "\"", "/\n"} {
		if !strings.Contains(all.String(), part) {
			t.Errorf("no key with %q", part)
		}
	}
	for _, o := range Catalogue(1, 200, false) {
		if o.Key[0] == '/' {
			t.Errorf("%q although leading slashes are excluded", o.Key)
		}
	}
}
