package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	Source string `json:"source"` // the file, "environment NAME" or "flag NAME"; "" for a Config made in code
	Line   int    `json:"line"`   // in the file, 0 when it has no line
	Field  string `json:"field"`  // the field's path, such as routes[0].source.read
	Text   string `json:"text"`   // what is wrong and what to do
}

// What Problem.Source begins with for values that are not in the file.
const (
	fromEnvironment = "environment "
	fromFlag        = "flag "
)

// String reads "objectferry.yaml:14: routes[0].source.read: must be …".
func (p Problem) String() string {
	var b strings.Builder
	if p.Source != "" {
		b.WriteString(p.Source)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	return b.String() + p.Text
}

// Errors are all problems of a configuration, in the order of the file.
type Errors []Problem

// Error has one problem a line.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

func (e *Errors) add(field, format string, args ...any) {
	*e = append(*e, Problem{Field: field, Text: fmt.Sprintf(format, args...)})
}

// sorted puts the file's problems first, by line, then those of the environment
// and of the flags; otherwise they stay in the order in which they were found.
func (e Errors) sorted() Errors {
	rank := func(p Problem) int {
		switch {
		case strings.HasPrefix(p.Source, fromEnvironment):
			return 1
		case strings.HasPrefix(p.Source, fromFlag):
			return 2
		}
		return 0
	}
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Line, b.Line))
	})
	return e
}

// err is nil when there is no problem: a nil Errors in an error is not nil.
func (e Errors) err() error {
	if len(e) == 0 {
		return nil
	}
	return e.sorted()
}
