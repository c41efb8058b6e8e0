package glob

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestQuotedKeyMatchesThatKeyAlone(t *testing.T) {
	bit := rapid.SampledFrom([]string{"a", "b", "/", "**", "*", "?", "[", "]", "{a,b}", "}", ",", `\`, "!", "^", "-", " ", "'", "ü", "中"})
	key := rapid.Map(rapid.SliceOfN(bit, 1, 8), func(bits []string) string { return strings.Join(bits, "") })
	rapid.Check(t, func(t *rapid.T) {
		k, other := key.Draw(t, "key"), key.Draw(t, "other")
		s, err := Compile(Quote(k))
		if err != nil {
			t.Fatalf("Quote(%q) = %q: %v", k, Quote(k), err)
		}
		if !s.Match(k) || other != k && s.Match(other) {
			t.Fatalf("%q matches %q: %t, %q: %t", Quote(k), k, s.Match(k), other, s.Match(other))
		}
	})
}

func TestQuotedKeyOfAnyBytesMatchesIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := string(rapid.SliceOfN(rapid.Byte(), 1, 12).Draw(t, "key"))
		s, err := Compile(Quote(key))
		if err != nil || !s.Match(key) {
			t.Fatalf("Quote(%q) = %q: %v", key, Quote(key), err)
		}
	})
}

func TestFindTellsTheGlobAsItWasGiven(t *testing.T) {
	s := mustCompile(t, "model/**", "img/{a,b}/*")
	if glob, ok := s.Find("img/b/x"); glob != "img/{a,b}/*" || !ok {
		t.Errorf("found %q, %t", glob, ok)
	}
	if glob, ok := s.Find("other"); glob != "" || ok {
		t.Errorf("found %q, %t", glob, ok)
	}
}
