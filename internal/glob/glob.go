// Package glob matches object keys against sets of glob patterns, with the
// semantics of doublestar: "*" and "?" stay within one segment, "**" as a whole
// segment crosses slashes, "{a,b}" are alternatives (expanded first, as a shell
// does), "[a-z]" is one character.
//
// Keys are arbitrary bytes: they may hold newlines, "//" and bytes that are not
// UTF-8 (each such byte counts as one character). Patterns are text from the
// operator; what would match less or more than it seems to is refused, because
// a glob decides what becomes public.
//
// A Set is immutable and safe for concurrent use.
package glob

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// Set matches a key that any of its patterns matches. The zero Set matches
// nothing.
type Set struct {
	patterns []pattern
}

// pattern is one brace-free pattern.
type pattern struct {
	text    string
	from    string // the glob as it was given, braces and all
	literal string // the text before the first wildcard, unescaped
	prefix  string // what every key that matches begins with
	kind    kind
}

// kind picks the cheapest test that is right.
type kind int

const (
	general kind = iota
	exact        // no wildcard at all
	subtree      // a literal, then "/**" or "**" alone
)

// Compile checks patterns and prepares them. The error joins one error for each
// pattern that is refused; each names its pattern.
func Compile(patterns ...string) (Set, error) {
	var s Set
	var errs []error
	for _, text := range patterns {
		ps, err := compile(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("glob %q: %w", text, err))
			continue
		}
		for i := range ps {
			ps[i].from = text
		}
		s.patterns = append(s.patterns, ps...)
	}
	return s, errors.Join(errs...)
}

// Match reports whether any pattern matches the whole key.
func (s Set) Match(key string) bool {
	_, ok := s.Find(key)
	return ok
}

// Find returns the first glob, as it was given to Compile, that matches the whole
// key.
func (s Set) Find(key string) (glob string, ok bool) {
	for i := range s.patterns {
		if s.patterns[i].match(key) {
			return s.patterns[i].from, true
		}
	}
	return "", false
}

// Empty reports whether the set has no pattern.
func (s Set) Empty() bool { return len(s.patterns) == 0 }

// Literal returns the text before the first wildcard of the first pattern, and
// whether that is all of it. It is "" for an empty set.
func (s Set) Literal() (text string, whole bool) {
	if s.Empty() {
		return "", false
	}
	p := s.patterns[0]
	return p.literal, p.kind == exact
}

func (p *pattern) match(key string) bool {
	if !strings.HasPrefix(key, p.prefix) {
		return false
	}
	switch p.kind {
	case exact:
		return len(key) == len(p.prefix)
	case subtree: // "a/**" matches "a", "a/" and all below it, as doublestar has it
		return p.prefix == "" || len(key) == len(p.prefix) || key[len(p.prefix)] == '/'
	}
	return doublestar.MatchUnvalidated(p.text, key)
}

// compile refuses what cannot mean what it says, and expands the alternatives
// once instead of at each match.
func compile(text string) ([]pattern, error) {
	switch {
	case text == "":
		return nil, errors.New(`is empty; "**" matches everything`)
	case !utf8.ValidString(text):
		return nil, errors.New("is not UTF-8")
	case strings.ContainsRune(text, utf8.RuneError):
		// doublestar reads every byte that is not UTF-8 as this character.
		return nil, errors.New("holds the replacement character U+FFFD; the pattern was damaged on its way here")
	case !doublestar.ValidatePattern(text):
		return nil, errors.New(`is malformed: a "[", "{" or "\" is not closed or is empty; write "\[" for the character itself`)
	}
	texts, err := expand(text)
	if err != nil {
		return nil, err
	}
	ps := make([]pattern, 0, len(texts))
	for _, t := range texts {
		if strings.HasPrefix(t, "/") {
			return nil, errors.New(`begins with "/", but keys have no leading slash: drop it (or write "[/]" where keys really begin with one)`)
		}
		if s := fusedDoublestar(t); s != "" {
			return nil, fmt.Errorf(`has "**" inside the segment %q, where it would not cross slashes: write it as a segment of its own, such as "**/*.jpg"`, s)
		}
		ps = append(ps, analyse(t))
	}
	return ps, nil
}

func analyse(text string) pattern {
	lit, rest := literal(text)
	p := pattern{text: text, literal: lit, prefix: lit}
	switch {
	case rest == "":
		p.kind = exact
	case rest == "**":
		p.kind = subtree
	}
	// "a/**" and "a/**/" also match "a".
	if strings.HasPrefix(rest, "**") {
		p.prefix = strings.TrimSuffix(lit, "/")
	}
	return p
}
