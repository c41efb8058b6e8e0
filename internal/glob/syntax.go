package glob

import (
	"errors"
	"strings"
)

// maxAlternatives bounds what the braces of one pattern may expand to; nested
// braces multiply.
const maxAlternatives = 1024

// expand replaces "{a,b}" by its alternatives, outermost first, which is how
// doublestar reads them.
func expand(text string) ([]string, error) {
	todo, done := []string{text}, []string(nil)
	for len(todo) > 0 {
		t := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		open, alternatives, end := firstBraces(t)
		if open < 0 {
			done = append(done, t)
		} else {
			for i := len(alternatives) - 1; i >= 0; i-- { // a stack: the first is taken first
				todo = append(todo, t[:open]+alternatives[i]+t[end:])
			}
		}
		if len(todo)+len(done) > maxAlternatives {
			return nil, errors.New("has braces that expand to more than 1,024 alternatives; write them as several globs")
		}
	}
	return done, nil
}

// firstBraces finds the first "{…}" of a valid pattern: where it opens, what
// stands between its commas, and where the text after it begins. open is -1 when
// there is none.
func firstBraces(text string) (open int, alternatives []string, end int) {
	open = -1
	depth, start := 0, 0
	for i := 0; i < len(text); i = next(text, i) {
		switch text[i] {
		case '{':
			if depth == 0 {
				open, start = i, i+1
			}
			depth++
		case ',':
			if depth == 1 {
				alternatives = append(alternatives, text[start:i])
				start = i + 1
			}
		case '}':
			if depth--; depth == 0 {
				return open, append(alternatives, text[start:i]), i + 1
			}
		}
	}
	return -1, nil, 0
}

// next is the index after the byte, escaped character or "[…]" class at i.
func next(text string, i int) int {
	switch text[i] {
	case '\\':
		return i + 2
	case '[':
		for i++; i < len(text) && text[i] != ']'; i++ {
			if text[i] == '\\' {
				i++
			}
		}
	}
	return i + 1
}

// literal splits a brace-free pattern before its first wildcard; the first half
// is unescaped.
func literal(text string) (lit, rest string) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '*', '?', '[':
			return b.String(), text[i:]
		case '\\':
			i++
		}
		b.WriteByte(text[i])
	}
	return b.String(), ""
}

// fusedDoublestar returns the first segment of a brace-free pattern that holds
// "**" beside something else, or "".
func fusedDoublestar(text string) string {
	start, fused := 0, false
	for i := 0; i < len(text); i = next(text, i) {
		switch {
		case text[i] == '/':
			if fused && text[start:i] != "**" {
				return text[start:i]
			}
			start, fused = i+1, false
		case strings.HasPrefix(text[i:], "**"):
			fused = true
		}
	}
	if fused && text[start:] != "**" {
		return text[start:]
	}
	return ""
}
