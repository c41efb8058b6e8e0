package glob

import (
	"fmt"
	"strings"
)

// Everything reports whether the set lets any name through: not by the form of
// the patterns, of which there is no end ("**", "*" with "**/*", "{a,**}",
// "[!_]*/**"), but by names that nobody would list. It is asked at each depth,
// with and without an extension, short and long; a set that takes at least nine
// in ten of the names of one such shape restricts nothing there. An empty set
// matches nothing.
func (s Set) Everything() bool {
	for depth := 1; depth <= 4; depth++ {
		for _, tail := range []string{"q", "qvxkz", strings.Repeat("qvxkz", 12)} {
			for _, extension := range []string{"", ".qvxkz"} {
				if s.takesAnyName(depth, tail, extension) {
					return true
				}
			}
		}
	}
	return false
}

func (s Set) takesAnyName(depth int, tail, extension string) bool {
	names, taken := 0, 0
	for _, first := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_中ü" {
		key := ""
		for level := 1; level <= depth; level++ {
			key += fmt.Sprintf("%c%d%s", first, level, tail)
			if level < depth {
				key += "/"
			}
		}
		names++
		if s.Match(key + extension) {
			taken++
		}
	}
	return taken*10 >= names*9
}
