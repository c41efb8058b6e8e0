package deploy

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"
)

// live is what `check --live` says that a role lacks.
func (s *site) live(t *testing.T, role string, who aws.Credentials) (failed []string) {
	t.Helper()
	stdout, stderr, exit := s.command(t, who, "check", "--live", "--role", role, "--json")
	return lacking(t, stdout, stderr, exit)
}

// lacking reads the report of a check.
func lacking(t *testing.T, stdout, stderr string, exit int) (failed []string) {
	t.Helper()
	var report struct {
		Live []struct{ Needs, On, Status, Note string }
	}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || len(report.Live) == 0 {
		t.Fatalf("%v in %s%s", err, stdout, stderr)
	}
	for _, item := range report.Live {
		if item.Status == "failed" {
			failed = append(failed, item.Needs+" on "+item.On)
			t.Logf("%s on %s: %s", item.Needs, item.On, item.Note)
		}
	}
	if (exit == 0) != (failed == nil) {
		t.Errorf("exit code %d, and %d checks failed", exit, len(failed))
	}
	slices.Sort(failed)
	return failed
}

// leastPrivilege takes each statement out of each role's policies, and each
// action out of each statement: `check --live` names all that is missing then,
// and nothing else.
func (s *site) leastPrivilege(t *testing.T) {
	s.deliver(t, "2026-09-04-11-00-00-0123456789ABCDEF", "img/one.jpg") // a log to read a byte of
	for _, role := range roles {
		who := s.take(t, role)
		if failed := s.live(t, role, who); failed != nil {
			t.Errorf("with all that the templates give, %s lacks %q", role, failed)
		}
		all := policies(t, "objectferry-"+role, s.service, s.bucket)
		for _, name := range sorted(all) {
			for i, whole := range all[name] {
				for _, out := range parts(whole) {
					t.Run(strings.Join(append([]string{role, name, whole.Sid}, out.Actions...), " "), func(t *testing.T) {
						rest := slices.Clone(all[name])
						if rest[i].Actions = without(whole.Actions, out.Actions); len(rest[i].Actions) == 0 {
							rest = slices.Delete(rest, i, i+1)
						}
						s.asMotoReads(t, role, map[string][]statement{name: rest})
						defer s.asMotoReads(t, role, map[string][]statement{name: all[name]})
						if diff := cmp.Diff(missing(out, all), s.live(t, role, who)); diff != "" {
							t.Errorf("check --live (-missing +named):\n%s", diff)
						}
					})
				}
			}
		}
	}
}

// parts are what is taken out of a statement: all of it, and each action alone.
func parts(s statement) []statement {
	all := []statement{s}
	if len(s.Actions) == 1 {
		return all
	}
	for _, a := range s.Actions {
		all = append(all, statement{Actions: []string{a}, Resources: s.Resources})
	}
	return all
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(a string) bool { return slices.Contains(some, a) })
}

// missing is what a role may not do without a part of its policies, as moto
// judges: see unjudged on sqs:GetQueueUrl.
func missing(out statement, all map[string][]statement) (words []string) {
	others := -len(out.Resources)
	for _, g := range granted(all) {
		if g.action == "sqs:GetQueueUrl" {
			others++
		}
	}
	for _, g := range out.grants() {
		if g.action != "sqs:GetQueueUrl" || others == 0 {
			words = append(words, g.action+" on "+ofMedia(g.resource))
		}
	}
	slices.Sort(words)
	return words
}
