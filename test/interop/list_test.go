package interop

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listedInOrder: two listings are merged by the order of their keys.
func listedInOrder(t *testing.T, c *cloud) error {
	s := newShelf(t, c)
	keys := []string{"a b", "a+b", "a/", "a//", "a%2F", "other", "\U0001F600", "\uFF5E", "a\tb", "a&<b>"}
	for _, key := range keys {
		s.put(key, "body of "+key)
	}
	slices.Sort(keys)
	for _, tt := range []struct {
		prefix, after string
		want          []string
	}{
		{"", "", keys}, {"a/", "a+b", []string{"a/", "a//"}}, {"", "b", []string{"other", "\uFF5E", "\U0001F600"}}, {"nothing/", "", nil},
	} {
		var got []string
		for next, more := "", true; more; more = next != "" {
			page, err := s.store.List(t.Context(), tt.prefix, tt.after, next)
			if err != nil {
				return fmt.Errorf("prefix %q after %q: %w", tt.prefix, tt.after, err)
			}
			for _, o := range page.Objects {
				if o.Size != int64(len("body of "+o.Key)) || len(o.ETag) != 34 || o.LastModified.IsZero() {
					return fmt.Errorf("listed %+v", o)
				}
				got = append(got, o.Key)
			}
			next = page.Next
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			return fmt.Errorf("prefix %q after %q (-want +got):\n%s", tt.prefix, tt.after, diff)
		}
	}
	return nil
}
