package cos_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/cos"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/object"
)

// all lists page after page.
func all(t *testing.T, source *cos.Source, prefix, after string) (keys []string, pages int) {
	t.Helper()
	for next := ""; ; pages++ {
		page, err := source.List(t.Context(), prefix, after, next)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Objects {
			keys = append(keys, o.Key)
		}
		if next = page.Next; next == "" {
			return keys, pages + 1
		}
	}
}

func TestSignedListingHasEveryKindOfKeyInTheOrderOfItsBytes(t *testing.T) {
	s, source := bucket(t)
	keys := []string{"a", "/img.jpg", "2026/1//1d8c", "a//", "//a", "a/../b", "a b", "a+b", "100%.txt", "x[1]", "测试.jpg", "\U0001F600", "\uFF5E", "\xff\xfe"}
	for b := range 256 {
		keys = append(keys, "k"+string([]byte{byte(b)})+"k")
	}
	for i := range 2100 {
		keys = append(keys, fmt.Sprintf("many/%05d", i))
	}
	for _, key := range keys {
		s.Put(key, []byte(key), cosd.Attributes{})
	}
	slices.Sort(keys)
	got, pages := all(t, source, "", "")
	if diff := cmp.Diff(keys, got); diff != "" || pages != 3 {
		t.Errorf("%d pages (-want +got):\n%s", pages, diff)
	}
	for _, tt := range []struct {
		prefix, after string
		want          int
	}{
		{"many/", "", 2100}, {"many/", "many/02097", 2}, {"many/", "many/02097x", 2}, {"many/", "z", 0}, {"", "many/02099", 5}, {"k\xff", "", 1}, {"none", "", 0},
	} {
		if got, _ := all(t, source, tt.prefix, tt.after); len(got) != tt.want {
			t.Errorf("prefix %q after %q: %d keys, want %d", tt.prefix, tt.after, len(got), tt.want)
		}
	}
	s.Change(func(b *cosd.Behaviour) { b.ListDenied = true })
	if _, err := source.List(t.Context(), "", "", ""); object.ClassOf(err) != object.Denied {
		t.Errorf("a listing that the policy denies: %v", err)
	}
}
