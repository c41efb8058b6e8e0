package glob

import (
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
	"pgregory.net/rapid"
)

func mustCompile(t testing.TB, patterns ...string) Set {
	t.Helper()
	s, err := Compile(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, key string
		want         bool
	}{
		{"model/**", "model/a.glb", true},
		{"model/**", "model/a/b/c.glb", true},
		{"model/**", "model/", true},
		{"model/**", "model", true}, // doublestar's way
		{"model/**", "models/a", false},
		{"model/**", "Model/a", false},
		{"model/**", "/model/a", false},
		{"model/**", "a/model/a", false},
		{"img/*.jpg", "img/a.jpg", true},
		{"img/*.jpg", "img/a/b.jpg", false},
		{"img/?.jpg", "img/测.jpg", true},
		{"img/?.jpg", "img/测试.jpg", false},
		{"**/*.jpg", "a.jpg", true},
		{"**/*.jpg", "a/b/c.jpg", true},
		{"**/*.jpg", "a/b/c.jpg.bak", false},
		{"a/**/z", "a/z", true},
		{"a/**/z", "a/b/c/z", true},
		{"a/**/z", "a/b/zz", false},
		{"img/{a,b{c,d}}/*", "img/bd/x", true},
		{"img/{a,b{c,d}}/*", "img/b/x", false},
		{"img/[a-c]*", "img/cat", true},
		{"img/[!a-c]*", "img/cat", false},
		{"favicon.ico", "favicon.ico", true},
		{"favicon.ico", "favicon.ico2", false},
		{`x\[1\]\*`, "x[1]*", true},
		{`x\[1\]\*`, "x[1]y", false},
		{"[{]a,b", "{a,b", true},

		// Keys are bytes.
		{"a/**", "a/\xff\xfe", true},
		{"a/*", "a/line\nbreak", true},
		{"a/*", "a/\xe6/b", false}, // a cut character does not swallow the slash
		{"a/??", "a/\xe6\xb5", true},
		{"a/?", "a/\xe6\xb5", false},
		{"a/\\ü", "a/ü", true},
		{"**/b", "a//b", true},
		{"a/*/b", "a//b", true},
		{"2026/**", "2026/1//1d8c", true},
		{"**", "", true},
	} {
		if got := mustCompile(t, tt.pattern).Match(tt.key); got != tt.want {
			t.Errorf("%q matches %q = %t, want %t", tt.pattern, tt.key, got, tt.want)
		}
	}
}

// What is precompiled must not change what is matched: doublestar decides, for
// each combination of the alternatives. (Asked for a pattern with braces as a
// whole, it overlooks that "*{a,}" may match nothing.)
func TestMatchIsDoublestars(t *testing.T) {
	type piece struct {
		text         string
		alternatives []string
	}
	var pieces []piece
	for _, plain := range []string{"a", "b", "/", "/", "**", "*", "?", "[ab]", "[!a]", "[^b-c]", `\*`, `\{`, "[{,]", ",", "ü", "/**/"} {
		pieces = append(pieces, piece{plain, []string{plain}})
	}
	pieces = append(pieces,
		piece{"{a,b}", []string{"a", "b"}}, piece{"{a/,}", []string{"a/", ""}}, piece{"{a,{b,*}}", []string{"a", "b", "*"}},
		piece{"{{a,b}c,**}", []string{"ac", "bc", "**"}}, piece{`{\,,[,}]}`, []string{`\,`, "[,}]"}})
	bit := rapid.SampledFrom([]string{"a", "b", "c", "/", "/", "*", "{", ",", "}", "ü", "\xff", "\n", "aa/b"})
	rapid.Check(t, func(t *rapid.T) {
		text, expanded := "", []string{""}
		for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 7).Draw(t, "pattern") {
			text += p.text
			var longer []string
			for _, before := range expanded {
				for _, alternative := range p.alternatives {
					longer = append(longer, before+alternative)
				}
			}
			expanded = longer
		}
		s, err := Compile(text)
		if err != nil {
			t.Skip("refused")
		}
		key := strings.Join(rapid.SliceOfN(bit, 0, 8).Draw(t, "key"), "")
		want := false
		for _, pattern := range expanded {
			matched, err := doublestar.Match(pattern, key)
			if err != nil {
				t.Fatalf("%q was let through: %v", text, err)
			}
			want = want || matched
		}
		if got := s.Match(key); got != want {
			t.Fatalf("%q matches %q = %t, doublestar says %t", text, key, got, want)
		}
	})
}

func TestCompileRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ pattern, says string }{
		"empty":                      {"", "is empty"},
		"open class":                 {"a/[b", "malformed"},
		"empty class":                {"a/[]", "malformed"},
		"negated empty class":        {"[^]", "malformed"},
		"open brace":                 {"a/{b,c", "malformed"},
		"stray brace":                {"a/b}", "malformed"},
		"stray backslash":            {`a\`, "malformed"},
		"not UTF-8":                  {"a/\xff", "UTF-8"},
		"replacement character":      {"a/\ufffd*", "U+FFFD"},
		"leading slash":              {"/model/**", "leading slash"},
		"leading slash in braces":    {"{a,/b}/**", "leading slash"},
		"doublestar that is a star":  {"model/**.jpg", `"**.jpg"`},
		"doublestar after text":      {"model/a**", `"a**"`},
		"doublestar from braces":     {"model/{a,b}**/x", `"a**"`},
		"too many alternatives":      {strings.Repeat("{a,b}", 11), "1,024"},
		"too many nested and spread": {strings.Repeat("{a,b,c,d,e,f,g,h}", 40), "1,024"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile("ok/**", tt.pattern)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Compile(%q) = %v, want an error with %q", tt.pattern, err, tt.says)
			}
		})
	}
}

func TestLiteral(t *testing.T) {
	for pattern, want := range map[string]struct {
		text  string
		whole bool
	}{
		"model/**":      {"model/", false},
		"model/a*.jpg":  {"model/a", false},
		"{img,model}/*": {"img/", false},
		"favicon.ico":   {"favicon.ico", true},
		`a\*b/*`:        {"a*b/", false},
		"**/*.jpg":      {"", false},
	} {
		text, whole := mustCompile(t, pattern).Literal()
		if text != want.text || whole != want.whole {
			t.Errorf("%q: Literal() = %q, %t, want %q, %t", pattern, text, whole, want.text, want.whole)
		}
	}
}

// Rule 4: a set that restricts nothing is found however it is written.
func TestEverything(t *testing.T) {
	for _, patterns := range [][]string{
		{"**"}, {"**/*"}, {"**/**"}, {"*/**"}, {"*", "**/*"}, {"*", "*/**"}, {"*"}, {"*/*"}, {"*/*/**"},
		{"{a,**}"}, {"{**,b}/*"}, {"{*,*/**}"}, {"?*"}, {"?*/**"}, {"?", "?*/**"}, {"[!_]*/**"}, {"[^/]*/**"}, {"[^a]*/**"},
		{"[a-z]*/**", "[^a-z]*/**"}, {"[a-m]*/**", "[n-zA-Z]*/**", "[0-9]*/**", "[^a-zA-Z0-9]*/**"},
		{"???????*/**"}, {"{?,??,???,????,?????,??????,???????}/**"}, {"**/*.*"}, {"model/**", "**"}, {"**/?*"}, {"**/[^~]*"},
		{"*/**/*"}, {"**/*/**"}, {`{\*,*}/**`}, {"[\x01-\U0010fffe]*/**"},
	} {
		if !mustCompile(t, patterns...).Everything() {
			t.Errorf("%q matches everything and was not found", patterns)
		}
	}
	for _, patterns := range [][]string{
		nil, {"**/"}, {"model/**"}, {"model/**", "img/**"}, {"**/*.jpg"}, {"**/*.{jpg,png,webp}"}, {"*.html", "img/**"}, {"*/public/**"},
		{"tenant-*/**"}, {"[0-9a-f][0-9a-f]/**"}, {"**/thumb/*"}, {"{a,b,c}*/**"}, {`\*\*`}, {`\*/**`}, {"favicon.ico"}, {"[0-9]*/**"},
	} {
		if mustCompile(t, patterns...).Everything() {
			t.Errorf("%q was taken for one that matches everything", patterns)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	for name, patterns := range map[string][]string{
		"subtree": {"model/**", "img/**"},
		"general": {"**/*.{jpg,png,webp}", "model/*/lod[0-9]/*.glb"},
	} {
		s := mustCompile(b, patterns...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				s.Match("img/2026/09/04/a-rather-usual-name-of-an-asset.webp")
			}
		})
	}
}
