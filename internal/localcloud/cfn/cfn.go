// Package cfn resolves a CloudFormation template as far as the embedded cloud and
// the tests of our templates need it, so that they serve and check what the
// template says and not what somebody copied from it.
//
// It is strict: a parameter that breaks its constraints, a failing rule, an
// intrinsic function or a section that it does not know is an error, never
// guessed. A resource has no physical id here unless its World gives it one: Ref
// gives its logical name, and GetAtt that name, a dot and the attribute. A Stack
// is not changed after Resolve.
package cfn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Stack is a template with everything resolved. Values are map[string]any, []any,
// string and bool; a number is its decimal text.
type Stack struct {
	Resources map[string]Resource // those whose condition holds
	Outputs   map[string]any
	Exports   map[string]any // of the outputs that are exported, by the name of the export
}

// World is what a template refers to and does not hold.
type World struct {
	IDs     map[string]string // physical ids by "Resource", for Ref, and "Resource.Attribute", for GetAtt
	Imports map[string]any    // exports of other stacks
}

// Resource is one resource of a stack.
type Resource struct {
	Type       string // such as AWS::S3::BucketPolicy
	Properties map[string]any
}

// pseudo are the pseudo parameters, of an account that does not exist.
var pseudo = map[string]any{
	"AWS::AccountId": "111122223333",
	"AWS::Partition": "aws",
	"AWS::Region":    "us-west-2",
	"AWS::StackName": "objectferry",
	"AWS::URLSuffix": "amazonaws.com",
	"AWS::NoValue":   noValue{},
}

// noValue takes the property or list entry that it stands in away.
type noValue struct{}

// resolver holds the raw template.
type resolver struct {
	world      World
	values     map[string]any // of parameters
	conditions map[string]any
	resources  map[string]any
	decided    map[string]bool
}

// Resolve reads a template, in YAML, with the given parameters; those that are
// not given have their defaults.
func Resolve(text []byte, parameters map[string]string) (*Stack, error) {
	return ResolveIn(text, parameters, World{})
}

// ResolveIn is Resolve where there are other stacks, or resources are there.
func ResolveIn(text []byte, parameters map[string]string, world World) (*Stack, error) {
	template, err := read(text)
	if err != nil {
		return nil, err
	}
	r := &resolver{world: world, values: maps.Clone(pseudo), decided: map[string]bool{}}
	var rules, outputs map[string]any
	var declared map[string]any
	for name, into := range map[string]*map[string]any{"Parameters": &declared, "Rules": &rules, "Conditions": &r.conditions, "Resources": &r.resources, "Outputs": &outputs} {
		if *into, err = mapping(name, template[name]); err != nil {
			return nil, err
		}
		delete(template, name)
	}
	for _, text := range []string{"AWSTemplateFormatVersion", "Description", "Metadata"} {
		delete(template, text)
	}
	for name := range template {
		return nil, fmt.Errorf("section %s is not understood here", name)
	}
	if err := r.setParameters(declared, parameters); err != nil {
		return nil, err
	}
	for _, name := range sorted(rules) {
		if err := r.rule(name, rules[name]); err != nil {
			return nil, err
		}
	}
	s := &Stack{Resources: map[string]Resource{}, Outputs: map[string]any{}, Exports: map[string]any{}}
	for _, name := range sorted(r.resources) {
		if err := r.resource(s, name); err != nil {
			return nil, err
		}
	}
	for _, name := range sorted(outputs) {
		if err := r.output(s, name, outputs[name]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (r *resolver) resource(s *Stack, name string) error {
	at := "Resources." + name
	raw, err := mapping(at, r.resources[name])
	if err != nil {
		return err
	}
	if holds, err := r.included(at, raw); err != nil || !holds {
		return err
	}
	properties, err := r.value(at, raw["Properties"])
	if err != nil {
		return err
	}
	p, _ := properties.(map[string]any)
	kind, ok := raw["Type"].(string)
	if !ok {
		return fmt.Errorf("%s: it has no Type", at)
	}
	s.Resources[name] = Resource{kind, p}
	return nil
}

func (r *resolver) output(s *Stack, name string, v any) error {
	at := "Outputs." + name
	raw, err := mapping(at, v)
	if err != nil {
		return err
	}
	if holds, err := r.included(at, raw); err != nil || !holds {
		return err
	}
	if s.Outputs[name], err = r.value(at, raw["Value"]); err != nil {
		return err
	}
	export, err := r.value(at, raw["Export"])
	if m, ok := export.(map[string]any); ok && err == nil {
		s.Exports[fmt.Sprint(m["Name"])] = s.Outputs[name]
	}
	return err
}

// included is whether a resource or output is there at all.
func (r *resolver) included(at string, raw map[string]any) (bool, error) {
	name, ok := raw["Condition"]
	if !ok {
		return true, nil
	}
	return r.condition(at, map[string]any{"Condition": name})
}

// rule fails when an assertion does not hold for these parameters.
func (r *resolver) rule(name string, v any) error {
	at := "Rules." + name
	raw, err := mapping(at, v)
	if err != nil {
		return err
	}
	if when, ok := raw["RuleCondition"]; ok {
		if holds, err := r.condition(at, when); err != nil || !holds {
			return err
		}
	}
	assertions, _ := raw["Assertions"].([]any)
	for _, v := range assertions {
		a, err := mapping(at, v)
		if err != nil {
			return err
		}
		holds, err := r.condition(at, a["Assert"])
		if err != nil {
			return err
		}
		if !holds {
			return fmt.Errorf("%s: %v", at, a["AssertDescription"])
		}
	}
	return nil
}

// mapping is v, which must be one; nil is an empty one.
func mapping(at string, v any) (map[string]any, error) {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, fmt.Errorf("%s: it must be a mapping", at)
	}
	return m, nil
}

func sorted(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

var errTwoParts = errors.New("it must be a list of two")
