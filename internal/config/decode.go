package config

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// origin is where a field's value was given.
type origin struct {
	source string
	line   int
}

// decoder fills a Config from a YAML tree. It exists beside the library's own
// decoder because that one stops at the first problem and forgets the lines, and
// because a configuration needs so little of YAML: mappings, lists and scalars.
// Anchors, aliases, tags and merges are refused, so no input can expand.
type decoder struct {
	file     string
	origins  map[string]origin // by field path; "" is the file itself
	problems Errors
}

func (d *decoder) fail(path string, n ast.Node, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		Source: d.file, Line: line(n), Field: path, Text: fmt.Sprintf(format, args...),
	})
}

func line(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 0
	}
	return n.GetToken().Position.Line
}

// parseYAML returns the tree of the only document in data.
func (d *decoder) parseYAML(data []byte) ast.Node {
	problem := func(line int, text string) ast.Node {
		d.problems = append(d.problems, Problem{Source: d.file, Line: line, Text: text})
		return nil
	}
	if at := firstInvalid(data); at > 0 {
		return problem(at, "is not UTF-8 text; write YAML")
	}
	for i, l := range bytes.Split(data, []byte("\n")) {
		if indent := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]; len(indent) < len(l) && bytes.IndexByte(indent, '\t') >= 0 {
			problem(i+1, "is indented with a tab; YAML takes spaces only")
		}
	}
	if at := tooDeep(data); at > 0 {
		problem(at, "is nested too deeply for a configuration")
	}
	if len(d.problems) > 0 {
		return nil
	}
	tree, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return problem(syntaxError(err))
	}
	var docs []ast.Node
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			docs = append(docs, doc.Body)
		}
	}
	switch {
	case len(docs) == 0:
		return problem(0, "is empty; docs/objectferry.example.yaml is a place to start")
	case len(docs) > 1:
		return problem(line(docs[1]), `starts a second document after "---"; a configuration is one document`)
	}
	return docs[0]
}

// syntaxError keeps the message and the line of a parser's error and leaves out
// the excerpt of the file that it would print: that may hold anything.
func syntaxError(err error) (line int, text string) {
	var y yaml.Error
	if !errors.As(err, &y) {
		return 0, "is not YAML"
	}
	if t := y.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return line, "is not YAML: " + y.GetMessage()
}

// firstInvalid is the line of the first byte that YAML text cannot hold, or 0.
func firstInvalid(data []byte) int {
	n := 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			return n
		case r == '\n':
			n++
		}
		i += size
	}
	return 0
}

// maxDepth is far beyond any configuration; the parser's time grows with the
// square of it.
const maxDepth = 1000

// tooDeep is the line on which brackets, or the "- " and "? " at the beginning of
// a line, reach maxDepth, or 0. It does not know quotes and so counts too much,
// which is harmless.
func tooDeep(data []byte) int {
	open := 0
	for i, l := range bytes.Split(data, []byte("\n")) {
		markers := len(l) - len(bytes.TrimLeft(l, " -?"))
		for _, c := range l {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
			if open+markers/2 > maxDepth {
				return i + 1
			}
		}
	}
	return 0
}

// decode sets v, which must be settable, from n.
func (d *decoder) decode(n ast.Node, v reflect.Value, path string) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.fail(path, n, "uses an anchor, an alias or a tag, which are not read here; write the value out")
		return
	case *ast.NullNode:
		d.fail(path, n, "has no value; give it one or remove the line")
		return
	}
	switch {
	case v.Kind() == reflect.Struct:
		d.mapping(n, v, path)
	case v.Kind() == reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) mapping(n ast.Node, v reflect.Value, path string) {
	var pairs []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		d.fail(path, n, "must be a mapping of the fields %s", strings.Join(fieldNames(v.Type()), ", "))
		return
	}
	seen := make(map[string]int, len(pairs))
	for _, pair := range pairs {
		key, ok := pair.Key.(*ast.StringNode)
		if !ok {
			d.fail(path, pair.Key, "has a key that is not a plain name")
			continue
		}
		field, at := join(path, key.Value), line(pair.Key)
		if before, twice := seen[key.Value]; twice {
			d.fail(field, pair.Key, "is here a second time (first on line %d); keep one", before)
			continue
		}
		seen[key.Value] = at
		f, ok := fieldByName(v, key.Value)
		if !ok {
			d.fail(field, pair.Key, "is not a field; the fields here are %s", strings.Join(fieldNames(v.Type()), ", "))
			continue
		}
		d.origins[field] = origin{d.file, at}
		d.decode(pair.Value, f, field)
	}
}

func (d *decoder) list(n ast.Node, v reflect.Value, path string) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(path, n, `must be a list: write "[…]" or a line with "- " for each`)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values)))
	for i, item := range s.Values {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.origins[at] = origin{d.file, line(item)}
		if r, ok := v.Index(i).Addr().Interface().(*Route); ok {
			*r = DefaultRoute()
		}
		d.decode(item, v.Index(i), at)
	}
}

func (d *decoder) scalar(n ast.Node, v reflect.Value, path string) {
	var text string
	switch s := n.(type) {
	case *ast.StringNode:
		text = s.Value
	case *ast.LiteralNode:
		text = s.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		text = n.GetToken().Value
		if v.Type() == reflect.TypeFor[string]() {
			d.fail(path, n, "must be text; put it in quotes")
			return
		}
	default:
		d.fail(path, n, "must be a single value")
		return
	}
	if err := setScalar(v, text); err != nil {
		d.fail(path, n, "%v", err)
	}
}

// setScalar sets v from text as it stands in a file, the environment or a flag.
func setScalar(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		if text != "true" && text != "false" {
			return errors.New("must be true or false")
		}
		v.SetBool(text == "true")
	case reflect.Int:
		i, err := strconv.Atoi(text)
		if err != nil {
			return errors.New("must be a whole number")
		}
		v.SetInt(int64(i))
	default:
		return errors.New("cannot be set from a single value")
	}
	return nil
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func fieldByName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("yaml") == name {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("yaml")
	}
	return names
}
