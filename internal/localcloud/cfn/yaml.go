package cfn

import (
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// read turns a template into maps, lists, strings and bools. A number is its text,
// as CloudFormation takes it; a short form such as !Ref becomes the long one.
func read(text []byte) (map[string]any, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", err)
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("parse template: it has %d documents, must have one", len(file.Docs))
	}
	v, err := plain(file.Docs[0].Body)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("parse template: it must be a mapping")
	}
	return m, nil
}

func plain(n ast.Node) (any, error) {
	switch n := n.(type) {
	case *ast.MappingNode:
		m := make(map[string]any, len(n.Values))
		for _, entry := range n.Values {
			if err := enter(m, entry); err != nil {
				return nil, err
			}
		}
		return m, nil
	case *ast.MappingValueNode: // a mapping of one entry
		m := map[string]any{}
		return m, enter(m, n)
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, item := range n.Values {
			var err error
			if list[i], err = plain(item); err != nil {
				return nil, err
			}
		}
		return list, nil
	case *ast.TagNode:
		return tagged(n)
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode:
		return n.Token.Value, nil
	case *ast.BoolNode:
		return n.Value, nil
	default: // floats, nulls, anchors and merges are not needed, and each has a trap
		return nil, fmt.Errorf("line %d: %s is not understood here", n.GetToken().Position.Line, n.Type())
	}
}

func enter(m map[string]any, entry *ast.MappingValueNode) error {
	key := strings.Trim(entry.Key.GetToken().Value, `"'`)
	v, err := plain(entry.Value)
	m[key] = v
	return err
}

func tagged(n *ast.TagNode) (any, error) {
	name := strings.TrimPrefix(n.Start.Value, "!")
	v, err := plain(n.Value)
	if err != nil {
		return nil, err
	}
	switch name {
	case "Ref", "Condition":
		return map[string]any{name: v}, nil
	}
	return map[string]any{"Fn::" + name: v}, nil
}
