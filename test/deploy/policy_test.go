package deploy

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
)

// statement is one statement of a role's policy.
type statement struct {
	Sid       string
	Actions   []string
	Resources []string
	Condition any
}

// grant is one action on one resource.
type grant struct{ action, resource string }

func (s statement) grants() (all []grant) {
	for _, a := range s.Actions {
		for _, r := range s.Resources {
			all = append(all, grant{a, r})
		}
	}
	return all
}

// ofMedia names the queue of the route media where a grant is on those of all
// routes.
func ofMedia(resource string) string {
	if all, ok := strings.CutSuffix(resource, "_*"); ok {
		return all + "_media"
	}
	return resource
}

// policies are the statements that the stacks give a role, by the policy's name.
func policies(t testing.TB, role string, stacks ...*cfn.Stack) map[string][]statement {
	t.Helper()
	all := map[string][]statement{}
	for _, stack := range stacks {
		for name, r := range stack.Resources {
			switch {
			case r.Type == "AWS::IAM::Role" && r.Properties["RoleName"] == role:
				inline, _ := r.Properties["Policies"].([]any)
				for _, p := range inline {
					all[at(p, "PolicyName").(string)] = statements(t, name, at(p, "PolicyDocument"))
				}
			case r.Type == "AWS::IAM::Policy" && slices.Contains(list(r.Properties["Roles"]), role):
				all[r.Properties["PolicyName"].(string)] = statements(t, name, r.Properties["PolicyDocument"])
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("the templates give %s nothing", role)
	}
	return all
}

// statements reads a policy of a role, which only allows, and never everything.
func statements(t testing.TB, name string, document any) (all []statement) {
	t.Helper()
	entries, _ := at(document, "Statement").([]any)
	for _, e := range entries {
		s := statement{Actions: list(at(e, "Action")), Resources: list(at(e, "Resource")), Condition: at(e, "Condition")}
		s.Sid, _ = at(e, "Sid").(string)
		if at(e, "Effect") != "Allow" || s.Sid == "" || len(s.Actions) == 0 || len(s.Resources) == 0 {
			t.Fatalf("%s has a statement that is not understood here: %v", name, e)
		}
		all = append(all, s)
	}
	return all
}

// granted are all grants of a role, sorted.
func granted(byPolicy map[string][]statement) []grant {
	var all []grant
	for _, ss := range byPolicy {
		for _, s := range ss {
			all = append(all, s.grants()...)
		}
	}
	slices.SortFunc(all, func(a, b grant) int {
		return cmp.Or(strings.Compare(a.action, b.action), strings.Compare(a.resource, b.resource))
	})
	return all
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
