package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
)

// IAM takes this many characters in all of a role's own policies.
const mostOfARole = 10_240

// A service has many routes, and each adds to the same roles: room is for thirty,
// or for fifteen that have a key of KMS, as infra/README.md says.
func TestThirtyRoutesFitIntoARole(t *testing.T) {
	for key, routes := range map[string]int{"": 30, "arn:aws:kms:us-west-2:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab": 15} {
		var stacks []*cfn.Stack
		for i := range routes {
			bucket := maps.Clone(ofBucket)
			bucket["Route"], bucket["KmsKey"], bucket["OwnQueue"] = fmt.Sprint("route-", i), key, "false" // of parse the worse case
			bucket["Bucket"] = fmt.Sprintf("overseas-media-of-a-long-nam%02d", i)                         // 30 characters
			both := resolved(t, ofService, bucket)
			if i == 0 {
				stacks = append(stacks, both.Service)
			}
			stacks = append(stacks, both.Bucket)
		}
		for _, role := range roles {
			if n := sizeOfPolicies(t, "objectferry-"+role, stacks); n == 0 || n > mostOfARole {
				t.Errorf("with %d routes and key %q the policies of %s are %d characters; at most %d", routes, key, role, n, mostOfARole)
			} else {
				t.Logf("with %d routes and key %q the policies of %s are %d characters", routes, key, role, n)
			}
		}
	}
}

// sizeOfPolicies is what IAM counts: it leaves white space out.
func sizeOfPolicies(t *testing.T, role string, stacks []*cfn.Stack) (size int) {
	t.Helper()
	for _, stack := range stacks {
		var documents []any
		for _, r := range stack.Resources {
			switch {
			case r.Type == "AWS::IAM::Role" && r.Properties["RoleName"] == role:
				inline, _ := r.Properties["Policies"].([]any)
				for _, p := range inline {
					documents = append(documents, at(p, "PolicyDocument"))
				}
			case r.Type == "AWS::IAM::Policy" && slices.Contains(list(r.Properties["Roles"]), role):
				documents = append(documents, r.Properties["PolicyDocument"])
			}
		}
		for _, d := range documents {
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			size += len(text)
		}
	}
	return size
}

// Queues of routes are granted by a pattern of their names. It is of the routes of
// its own service and of their kind of queue, whatever others are called.
func TestPatternsOfQueuesMatchTheServicesOwn(t *testing.T) {
	names := []string{"ferry", "ferry-eu", "ferry-sync", "ferry-sync-dead", "ferry-dead", "ferry-logs"}
	type kind struct{ service, shared string }
	world := map[string]kind{} // of each queue
	services := map[string]*cfn.Stack{}
	for _, name := range names {
		service := maps.Clone(ofService)
		service["Name"], service["KedaRole"] = name, "keda"
		for _, route := range []string{"media", "dead", "sync", "sync-dead", "media-dead", "logs"} {
			bucket := maps.Clone(ofBucket)
			bucket["Route"] = route
			both := resolved(t, service, bucket)
			services[name] = both.Service
			for _, q := range ofType(both.Bucket, "AWS::SQS::Queue") {
				shared := "sync-dead"
				if q["RedrivePolicy"] != nil {
					shared = "sync"
				}
				world[queueARN(q["QueueName"].(string))] = kind{name, shared}
			}
		}
		for _, q := range ofType(services[name], "AWS::SQS::Queue") {
			world[queueARN(q["QueueName"].(string))] = kind{name, ""}
		}
	}
	if len(world) != len(names)*(6*2+4) {
		t.Fatalf("%d queues: some have the same name", len(world))
	}
	patterns := 0
	for _, name := range names {
		for _, role := range []string{name + "-parse", name + "-copy", name + "-oncall", "keda"} {
			for _, g := range granted(policies(t, role, services[name])) {
				if !strings.HasPrefix(g.action, "sqs:") || !strings.Contains(g.resource, "*") {
					continue
				}
				patterns++
				shared := strings.TrimSuffix(g.resource, "_*")
				var want, got []string
				for queue, k := range world {
					if queueARN(k.service+"-"+k.shared) == shared {
						want = append(want, queue)
					}
					if ok, err := path.Match(g.resource, queue); err != nil || ok {
						got = append(got, queue)
					}
				}
				slices.Sort(want)
				slices.Sort(got)
				if diff := cmp.Diff(want, got); diff != "" || len(got) != 6 {
					t.Errorf("%s: %s on %s (-own routes' +matched):\n%s", role, g.action, g.resource, diff)
				}
			}
		}
	}
	if patterns == 0 {
		t.Error("no queue is granted by a pattern")
	}
}
