package edge

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fields reads one mapping of a template. Whatever is not read by the end is a
// problem: an edge that overlooks a property serves something else than the
// template says. Problems are collected; a missing field is one, too.
type fields struct {
	at       string
	m        map[string]any
	problems *[]string
}

// of begins with a copy of m, from which each read field is taken.
func of(at string, m map[string]any, problems *[]string) fields {
	return fields{at, maps.Clone(m), problems}
}

func (f fields) problem(name, format string, args ...any) {
	*f.problems = append(*f.problems, f.at+"."+name+" "+fmt.Sprintf(format, args...))
}

// take is the value of a field, which must be a T.
func take[T any](f fields, name string) T {
	v, ok := f.m[name].(T)
	if !ok {
		f.problem(name, "is %T, must be %T", f.m[name], v)
	}
	delete(f.m, name)
	return v
}

func (f fields) text(name string) string { return take[string](f, name) }

func (f fields) truth(name string) bool { return take[bool](f, name) }

func (f fields) number(name string) int { return f.parse(name, f.text(name)) }

func (f fields) seconds(name string) time.Duration {
	return time.Duration(f.number(name)) * time.Second
}

func (f fields) parse(name, text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		f.problem(name, "is %q, must be a whole number", text)
	}
	return n
}

// numbers is a list of whole numbers.
func (f fields) numbers(name string) []int {
	var all []int
	for _, text := range f.texts(name) {
		all = append(all, f.parse(name, text))
	}
	return all
}

// texts is a list of texts; one that is not there is empty.
func (f fields) texts(name string) []string {
	var all []string
	for i, v := range f.list(name) {
		s, ok := v.(string)
		if !ok {
			f.problem(name, "holds %T at %d, must be a text", v, i)
		}
		all = append(all, s)
	}
	return all
}

func (f fields) list(name string) []any {
	if !f.has(name) {
		return nil
	}
	return take[[]any](f, name)
}

// each is a list of mappings.
func (f fields) each(name string) []fields {
	var all []fields
	for i, v := range f.list(name) {
		m, ok := v.(map[string]any)
		if !ok {
			f.problem(name, "holds %T at %d, must be a mapping", v, i)
		}
		all = append(all, of(fmt.Sprintf("%s.%s[%d]", f.at, name, i), m, f.problems))
	}
	return all
}

// in is a mapping in the mapping.
func (f fields) in(name string) fields {
	return of(f.at+"."+name, take[map[string]any](f, name), f.problems)
}

func (f fields) has(name string) bool { _, ok := f.m[name]; return ok }

// must is a field with just one value that is understood.
func (f fields) must(name string, want any) {
	if got := f.m[name]; got != want {
		f.problem(name, "is %v; only %v is understood here", got, want)
	}
	delete(f.m, name)
}

// done ends the reading. What is named is known and of no matter here.
func (f fields) done(noMatter ...string) {
	for _, name := range noMatter {
		delete(f.m, name)
	}
	if left := slices.Sorted(maps.Keys(f.m)); len(left) > 0 {
		f.problem(strings.Join(left, ", "), "is not understood here")
	}
}
