package cfn

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// setParameters checks the parameters against their declarations and makes them
// known to Ref.
func (r *resolver) setParameters(declared map[string]any, given map[string]string) error {
	for name := range given {
		if _, ok := declared[name]; !ok {
			return fmt.Errorf("parameter %s is not declared", name)
		}
	}
	for _, name := range sorted(declared) {
		at := "Parameters." + name
		d, err := mapping(at, declared[name])
		if err != nil {
			return err
		}
		text, ok := given[name]
		if !ok {
			fallback, has := d["Default"]
			if !has {
				return fmt.Errorf("%s: it has no default and was not given", at)
			}
			text = fmt.Sprint(fallback)
		}
		items := []string{text}
		if r.values[name] = text; d["Type"] == "CommaDelimitedList" { // each item must obey
			items = strings.Split(text, ",")
			list := make([]any, len(items))
			for i := range items {
				items[i] = strings.TrimSpace(items[i])
				list[i] = items[i]
			}
			r.values[name] = list
		}
		for field, limit := range d {
			for _, item := range items {
				if err := obeys(field, limit, item); err != nil {
					return fmt.Errorf("%s: %q: %w", at, item, err)
				}
			}
		}
	}
	return nil
}

// obeys checks text against one field of its parameter's declaration.
func obeys(field string, limit any, text string) error {
	switch field {
	case "Description", "ConstraintDescription", "Default":
		return nil
	case "Type":
		if limit == "Number" {
			_, err := strconv.ParseFloat(text, 64)
			return err
		}
		if limit != "String" && limit != "CommaDelimitedList" {
			return fmt.Errorf("type %v is not understood here", limit)
		}
		return nil
	case "AllowedPattern":
		pattern, err := regexp.Compile(fmt.Sprintf("^(?:%s)$", limit))
		if err == nil && !pattern.MatchString(text) {
			err = fmt.Errorf("it must match %s", limit)
		}
		return err
	case "AllowedValues":
		if list, _ := limit.([]any); !slices.Contains(list, any(text)) {
			return fmt.Errorf("it must be one of %v", limit)
		}
		return nil
	case "MinValue", "MaxValue":
		bound, err := strconv.ParseFloat(fmt.Sprint(limit), 64)
		if err != nil {
			return err
		}
		n, err := strconv.ParseFloat(text, 64)
		if err == nil && (field == "MinValue" && n < bound || field == "MaxValue" && n > bound) {
			err = fmt.Errorf("%s is %v", field, limit)
		}
		return err
	}
	return fmt.Errorf("constraint %s is not understood here", field)
}
