package cfn

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// value resolves v, which stands at a place in the template.
func (r *resolver) value(at string, v any) (any, error) {
	switch v := v.(type) {
	case map[string]any:
		for name, argument := range v {
			if name != "Ref" && !strings.HasPrefix(name, "Fn::") {
				continue
			}
			if len(v) != 1 {
				return nil, fmt.Errorf("%s: %s must stand alone", at, name)
			}
			return r.call(at, name, argument)
		}
		return r.each(at, v)
	case []any:
		list := []any{}
		for i, item := range v {
			item, err := r.value(fmt.Sprintf("%s[%d]", at, i), item)
			if err != nil {
				return nil, err
			}
			if item != (noValue{}) {
				list = append(list, item)
			}
		}
		return list, nil
	}
	return v, nil
}

func (r *resolver) each(at string, m map[string]any) (any, error) {
	out := make(map[string]any, len(m))
	for _, name := range sorted(m) {
		v, err := r.value(at+"."+name, m[name])
		if err != nil {
			return nil, err
		}
		if _, none := v.(noValue); !none {
			out[name] = v
		}
	}
	return out, nil
}

// call is an intrinsic function's result.
func (r *resolver) call(at, name string, argument any) (any, error) {
	switch name {
	case "Ref":
		return r.ref(at, argument)
	case "Fn::GetAtt":
		text, _ := argument.(string)
		resource, attribute, ok := strings.Cut(text, ".")
		if !ok || attribute == "" {
			return nil, fmt.Errorf("%s: GetAtt must name a resource and an attribute", at)
		}
		_, err := r.ref(at, resource)
		return r.id(text), err
	case "Fn::If":
		return r.choose(at, argument)
	case "Fn::Join":
		return r.join(at, argument)
	case "Fn::Sub":
		return r.sub(at, argument)
	case "Fn::Split":
		return r.split(at, argument)
	case "Fn::ImportValue":
		return r.imported(at, argument)
	}
	return nil, fmt.Errorf("%s: %s is not understood here", at, name)
}

// id is the physical id behind a name, or the name.
func (r *resolver) id(name string) string {
	if id, ok := r.world.IDs[name]; ok {
		return id
	}
	return name
}

func (r *resolver) imported(at string, argument any) (any, error) {
	name, err := r.value(at, argument)
	if err != nil {
		return nil, err
	}
	v, ok := r.world.Imports[fmt.Sprint(name)]
	if !ok {
		return nil, fmt.Errorf("%s: no stack exports %v", at, name)
	}
	return v, nil
}

func (r *resolver) split(at string, argument any) (any, error) {
	parts, ok := argument.([]any)
	if !ok || len(parts) != 2 {
		return nil, fmt.Errorf("%s: Split: %w", at, errTwoParts)
	}
	text, err := r.value(at, parts[1])
	if err != nil {
		return nil, err
	}
	list := []any{}
	for item := range strings.SplitSeq(fmt.Sprint(text), fmt.Sprint(parts[0])) {
		list = append(list, item)
	}
	return list, nil
}

// ref is a parameter's value or a resource's id. A resource that its
// condition leaves out cannot be referred to.
func (r *resolver) ref(at string, argument any) (any, error) {
	name, _ := argument.(string)
	if v, ok := r.values[name]; ok {
		return v, nil
	}
	raw, err := mapping(at, r.resources[name])
	if err != nil || raw == nil {
		return nil, fmt.Errorf("%s: there is no %q", at, name)
	}
	holds, err := r.included(at, raw)
	if err == nil && !holds {
		err = fmt.Errorf("%s: %s is not there under these parameters", at, name)
	}
	return r.id(name), err
}

func (r *resolver) choose(at string, argument any) (any, error) {
	parts, ok := argument.([]any)
	if !ok || len(parts) != 3 {
		return nil, fmt.Errorf("%s: If must have a condition and two values", at)
	}
	holds, err := r.condition(at, map[string]any{"Condition": parts[0]})
	if err != nil {
		return nil, err
	}
	if holds {
		return r.value(at, parts[1])
	}
	return r.value(at, parts[2])
}

func (r *resolver) join(at string, argument any) (any, error) {
	parts, ok := argument.([]any)
	if !ok || len(parts) != 2 {
		return nil, fmt.Errorf("%s: Join: %w", at, errTwoParts)
	}
	list, err := r.value(at, parts[1])
	if err != nil {
		return nil, err
	}
	items, ok := list.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: Join: there is no list", at)
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = fmt.Sprint(item)
	}
	return strings.Join(texts, fmt.Sprint(parts[0])), nil
}

var placeholder = regexp.MustCompile(`\$\{([^!}][^}]*)\}`)

// sub fills the placeholders of a text, which may come with variables of its own.
// "${!" is not needed.
func (r *resolver) sub(at string, argument any) (any, error) {
	own := map[string]any{}
	if parts, ok := argument.([]any); ok && len(parts) == 2 {
		variables, err := mapping(at, parts[1])
		if err != nil {
			return nil, err
		}
		resolved, err := r.each(at, variables)
		if err != nil {
			return nil, err
		}
		own, _ = resolved.(map[string]any)
		argument = parts[0]
	}
	text, ok := argument.(string)
	if !ok || strings.Contains(text, "${!") {
		return nil, fmt.Errorf("%s: this form of Sub is not understood here", at)
	}
	var failed error
	out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
		name := found[2 : len(found)-1]
		v, err := r.filling(at, name, own)
		if s, ok := v.(string); ok && err == nil {
			return s
		}
		if failed == nil {
			if failed = err; err == nil {
				failed = fmt.Errorf("%s: %s is no text", at, name)
			}
		}
		return ""
	})
	return out, failed
}

func (r *resolver) filling(at, name string, own map[string]any) (any, error) {
	if v, ok := own[name]; ok {
		return v, nil
	}
	if strings.Contains(name, ".") {
		return r.call(at, "Fn::GetAtt", name)
	}
	return r.call(at, "Ref", name)
}

// condition decides a condition function, or the named condition of
// {"Condition": name}.
func (r *resolver) condition(at string, v any) (bool, error) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return false, fmt.Errorf("%s: it must be one condition function", at)
	}
	for name, argument := range m {
		if name == "Condition" {
			return r.named(at, argument)
		}
		parts, ok := argument.([]any)
		if !ok {
			return false, fmt.Errorf("%s: %s must have a list", at, name)
		}
		switch name {
		case "Fn::Equals":
			return r.equal(at, parts)
		case "Fn::Contains":
			return r.contains(at, parts)
		}
		return r.combine(at, name, parts)
	}
	panic("unreachable: m has an entry")
}

func (r *resolver) named(at string, argument any) (bool, error) {
	name, _ := argument.(string)
	if holds, ok := r.decided[name]; ok {
		return holds, nil
	}
	raw, ok := r.conditions[name]
	if !ok {
		return false, fmt.Errorf("%s: there is no condition %q", at, name)
	}
	delete(r.conditions, name) // so that one that needs itself is not found, instead of for ever
	holds, err := r.condition("Conditions."+name, raw)
	r.decided[name] = holds
	return holds, err
}

func (r *resolver) equal(at string, parts []any) (bool, error) {
	if len(parts) != 2 {
		return false, fmt.Errorf("%s: Equals: %w", at, errTwoParts)
	}
	a, err := r.value(at, parts[0])
	if err != nil {
		return false, err
	}
	b, err := r.value(at, parts[1])
	return fmt.Sprint(a) == fmt.Sprint(b), err
}

func (r *resolver) contains(at string, parts []any) (bool, error) {
	if len(parts) != 2 {
		return false, fmt.Errorf("%s: Fn::Contains: %w", at, errTwoParts)
	}
	v, err := r.value(at, parts[0])
	if err != nil {
		return false, err
	}
	list, ok := v.([]any)
	if !ok {
		return false, fmt.Errorf("%s: Fn::Contains: there is no list", at)
	}
	return slices.Contains(list, parts[1]), nil
}

func (r *resolver) combine(at, name string, parts []any) (bool, error) {
	all, some := true, false
	for _, part := range parts {
		holds, err := r.condition(at, part)
		if err != nil {
			return false, err
		}
		all, some = all && holds, some || holds
	}
	switch {
	case name == "Fn::And" && len(parts) >= 2:
		return all, nil
	case name == "Fn::Or" && len(parts) >= 2:
		return some, nil
	case name == "Fn::Not" && len(parts) == 1:
		return !all, nil
	}
	return false, fmt.Errorf("%s: %s of %d is not understood here", at, name, len(parts))
}
