package glob

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns a glob that matches key. It is text that may be shown and typed:
// in the place of what a glob cannot hold, such as a byte that is not UTF-8, or
// a person cannot read stands "?", so it matches other keys of that form, too. Of
// every other key it matches key alone. The empty key has none.
func Quote(key string) string {
	var b strings.Builder
	for i := 0; i < len(key); {
		r, size := utf8.DecodeRuneInString(key[i:])
		switch {
		case r == utf8.RuneError || !unicode.IsPrint(r):
			b.WriteByte('?')
		case i == 0 && r == '/': // a glob must not begin with one
			b.WriteString("[/]")
		case strings.ContainsRune(`*?[]{}\`, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}
