package cfn

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const small = `
AWSTemplateFormatVersion: "2010-09-09"
Parameters:
  Name: {Type: String, AllowedPattern: "[a-z]+"}
  Size: {Type: Number, MinValue: 1, MaxValue: 9, Default: 5}
  Mode: {Type: String, AllowedValues: [on, "off"], Default: on}
  Many: {Type: CommaDelimitedList, AllowedPattern: "[a-z]", Default: "a, b"}
Rules:
  OffIsSmall:
    RuleCondition: !Equals [!Ref Mode, "off"]
    Assertions:
      - {Assert: !Equals [!Ref Size, 1], AssertDescription: off must be of size 1}
Conditions:
  On: !Equals [!Ref Mode, on]
  Off: !Not [!Condition On]
  Either: !Or [!Condition On, !Condition Off]
  Both: !And [!Condition On, !Condition Off]
Resources:
  First:
    Type: A::B::C
    Properties:
      Text: !Sub "${Name}-${AWS::Region}-${Second.Arn}-${First}"
      Long: {"Fn::Sub": "${Size}"}
      List: [!If [On, 1, !Ref AWS::NoValue], !If [Both, 2, !Ref AWS::NoValue], 3]
      Gone: !If [Either, !Ref AWS::NoValue, x]
      Many: !Ref Many
      Joined: !Join ["+", !Ref Many]
      Policy: {Condition: {StringEquals: {"a:b": true}}}
      Folded: !Sub >-
        ${Name}
        x
  Second:
    Type: A::B::D
  Third:
    Type: A::B::E
    Condition: Off
Outputs:
  One: {Value: !GetAtt Second.Arn}
  Two: {Condition: Off, Value: !Ref Third}
`

func TestTheTemplateIsResolved(t *testing.T) {
	got, err := Resolve([]byte(small), map[string]string{"Name": "x"})
	if err != nil {
		t.Fatal(err)
	}
	want := &Stack{
		Resources: map[string]Resource{
			"First": {"A::B::C", map[string]any{
				"Text": "x-us-west-2-Second.Arn-First", "Long": "5", "List": []any{"1", "3"}, "Many": []any{"a", "b"}, "Joined": "a+b",
				"Policy": map[string]any{"Condition": map[string]any{"StringEquals": map[string]any{"a:b": true}}}, "Folded": "x x"}},
			"Second": {"A::B::D", nil},
		},
		Outputs: map[string]any{"One": "Second.Arn"},
		Exports: map[string]any{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	off, err := Resolve([]byte(small), map[string]string{"Name": "x", "Mode": "off", "Size": "1"})
	if err != nil {
		t.Fatal(err)
	}
	if off.Outputs["Two"] != "Third" || off.Resources["Third"].Type != "A::B::E" {
		t.Errorf("what its condition brings in is not there: %v", off)
	}
}

func TestParametersObeyTheirConstraints(t *testing.T) {
	for _, tc := range []struct {
		name   string
		given  map[string]string
		reason string
	}{
		{"missing", nil, "Parameters.Name: it has no default"},
		{"undeclared", map[string]string{"Name": "x", "Nmae": "y"}, "parameter Nmae is not declared"},
		{"pattern, whole", map[string]string{"Name": "x1"}, "must match"},
		{"too small", map[string]string{"Name": "x", "Size": "0"}, "MinValue is 1"},
		{"too large", map[string]string{"Name": "x", "Size": "10"}, "MaxValue is 9"},
		{"no number", map[string]string{"Name": "x", "Size": "many"}, "invalid syntax"},
		{"an item of a list", map[string]string{"Name": "x", "Many": "a,bb"}, "\"bb\": it must match"},
		{"not allowed", map[string]string{"Name": "x", "Mode": "auto"}, "one of [on off]"},
		{"rule", map[string]string{"Name": "x", "Mode": "off"}, "off must be of size 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := Resolve([]byte(small), tc.given); err == nil || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("error %v, want one with %q", err, tc.reason)
			}
		})
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, tc := range []struct{ name, old, new, reason string }{
		{"function", `!Join ["+", !Ref Many]`, `!Select [0, !Ref Many]`, "Fn::Select is not understood"},
		{"condition function", `!Not [!Condition On]`, `!Contains [!Condition On]`, "Fn::Contains"},
		{"form of Sub", `!Sub "${Name}-${AWS::Region}-${Second.Arn}-${First}"`, `!Sub ["${a}"]`, "this form of Sub"},
		{"section", "Rules:", "Mappings:", "section Mappings"},
		{"type", "Type: Number, ", "Type: List<Number>, ", "type List<Number>"},
		{"constraint", "MinValue: 1", "MinLength: 1", "constraint MinLength"},
		{"reference", "!Ref Third", "!Ref Fourth", `there is no "Fourth"`},
		{"reference to what is not there", "Two: {Condition: Off,", "Two: {", "Third is not there"},
		{"condition", "Condition: Off\n", "Condition: Of\n", `no condition "Of"`},
		{"condition of itself", "!Not [!Condition On]", "!Not [!Condition Off]", `no condition "Off"`},
		{"name twice", "Second:\n", "First:\n", "already defined"},
		{"null", "Gone: !If", "Null: null\n      Gone: !If", "Null"},
		{"function beside others", `{"Fn::Sub": "${Size}"}`, `{"Fn::Sub": "${Size}", a: b}`, "must stand alone"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(small, tc.old, tc.new, 1)
			if text == small {
				t.Fatalf("%q is not in the template", tc.old)
			}
			given := map[string]string{"Name": "x", "Mode": "off", "Size": "1"}
			if tc.name == "reference to what is not there" {
				given = map[string]string{"Name": "x"}
			}
			if _, err := Resolve([]byte(text), given); err == nil || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("error %v, want one with %q", err, tc.reason)
			}
		})
	}
}

// A stack beside another one, and with resources that are there.
func TestWhatIsOutsideIsReferredTo(t *testing.T) {
	const text = `
Parameters:
  Names: {Type: CommaDelimitedList}
Rules:
  NotAll: {Assertions: [{Assert: !Not ["Fn::Contains": [!Ref Names, all]], AssertDescription: all is too many}]}
Resources:
  Queue:
    Type: A::B::C
    Properties:
      Name: !Sub ["${Prefix}-${Queue}-${Queue.Arn}-${AWS::Region}", {Prefix: {"Fn::ImportValue": !Sub "${AWS::StackName}-Name"}}]
      List: !Split [",", !Join [",x", !Ref Names]]
Outputs:
  Queue: {Value: !Ref Queue, Export: {Name: !Sub "${AWS::StackName}-Queue"}}
`
	world := World{IDs: map[string]string{"Queue": "q", "Queue.Arn": "arn:q"}, Imports: map[string]any{"objectferry-Name": "n"}}
	got, err := ResolveIn([]byte(text), map[string]string{"Names": "a,b"}, world)
	if err != nil {
		t.Fatal(err)
	}
	want := &Stack{
		Resources: map[string]Resource{"Queue": {"A::B::C", map[string]any{"Name": "n-q-arn:q-us-west-2", "List": []any{"a", "xb"}}}},
		Outputs:   map[string]any{"Queue": "q"},
		Exports:   map[string]any{"objectferry-Queue": "q"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := ResolveIn([]byte(text), map[string]string{"Names": "a,all"}, world); err == nil || !strings.Contains(err.Error(), "all is too many") {
		t.Errorf("a rule that fails: %v", err)
	}
	if _, err := Resolve([]byte(text), map[string]string{"Names": "a"}); err == nil || !strings.Contains(err.Error(), "no stack exports objectferry-Name") {
		t.Errorf("an import that is not there: %v", err)
	}
}
