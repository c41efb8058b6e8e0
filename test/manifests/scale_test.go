package manifests

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/queue"
)

// fleets are the ScaledObjects of copiers, by the URL of the queue that they follow.
func fleets(t *testing.T, s set) map[string]object {
	t.Helper()
	found := map[string]object{}
	for _, o := range s.of(t, "ScaledObject") {
		if o.Metadata.Labels["app.kubernetes.io/component"] == "copy" {
			found[trigger(t, o, "depth")["queueURL"]] = o
		}
	}
	return found
}

func trigger(t *testing.T, o object, name string) map[string]string {
	t.Helper()
	for _, tr := range o.Spec.Triggers {
		if tr.Name == name {
			return tr.Metadata
		}
	}
	t.Fatalf("%s has no trigger %q", o.Metadata.Name, name)
	return nil
}

// Each queue of the configuration is followed by one fleet that consumes it: depth,
// gate and process name the same one.
func TestEveryQueueHasOneFleet(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		cfg := s.config(t)
		deployments := map[string]object{}
		for _, d := range s.of(t, "Deployment") {
			deployments[d.Metadata.Name] = d
			if d.Spec.Replicas != nil {
				t.Errorf("%s fixes replicas, which are the autoscaler's", d.Metadata.Name)
			}
		}
		follows := fleets(t, s)
		for _, url := range cfg.SyncQueues() {
			o, ok := follows[url]
			if !ok {
				t.Errorf("nobody follows %s", url)
				continue
			}
			name := queue.Name(url)
			d := deployments[o.Spec.ScaleTargetRef.Name]
			if d.Kind == "" {
				t.Fatalf("%s scales %q, which is not there", o.Metadata.Name, o.Spec.ScaleTargetRef.Name)
			}
			args := d.Spec.Template.Spec.Containers[0].Args
			if !slices.Contains(args, "--role=copy") || len(cfg.SyncQueues()) > 1 && !slices.Contains(args, "--queue="+name) {
				t.Errorf("%s follows %s and runs %q", d.Metadata.Name, name, args)
			}
			if q := trigger(t, o, "closed")["query"]; !strings.HasSuffix(q, `{queue="`+name+`"})`) {
				t.Errorf("%s asks for the gate of another queue than %s: %s", o.Metadata.Name, name, q)
			}
		}
		if len(follows) != len(cfg.SyncQueues()) {
			t.Errorf("%d fleets for %d queues", len(follows), len(cfg.SyncQueues()))
		}
		for _, o := range s.of(t, "ScaledObject") {
			if o.Metadata.Name == "parse" && trigger(t, o, "depth")["queueURL"] != cfg.Queues.Logs {
				t.Errorf("parse follows %s", trigger(t, o, "depth")["queueURL"])
			}
		}
	})
}

// All copiers together read no more at once than the source's owner grants.
func TestMaximumIsTheSourcesLimitByConcurrency(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		cfg := s.config(t)
		for _, o := range fleets(t, s) {
			limit, err := strconv.Atoi(o.Metadata.Annotations["objectferry/source-reads"])
			if err != nil {
				t.Fatalf("%s: objectferry/source-reads: %v", o.Metadata.Name, err)
			}
			if want := limit / cfg.Copy.Concurrency; o.Spec.MaxReplicaCount != want {
				t.Errorf("%s: at most %d replicas; %d reads in all and %d each make %d", o.Metadata.Name, o.Spec.MaxReplicaCount, limit, cfg.Copy.Concurrency, want)
			}
			// More than the maximum would also run while a rollout surges.
			for _, d := range s.of(t, "Deployment") {
				if d.Metadata.Name == o.Spec.ScaleTargetRef.Name && d.Spec.Strategy.RollingUpdate["maxSurge"] != 0. {
					t.Errorf("%s surges by %v", d.Metadata.Name, d.Spec.Strategy.RollingUpdate["maxSurge"])
				}
			}
		}
	})
}

func TestScalingIsSteady(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		for _, o := range s.of(t, "ScaledObject") {
			sp := o.Spec.scale
			if trigger(t, o, "depth")["scaleOnInFlight"] != "true" {
				t.Errorf("%s forgets what is worked on", o.Metadata.Name)
			}
			if sp.Fallback.Replicas < 1 || sp.Fallback.FailureThreshold < 1 {
				t.Errorf("%s falls back to %+v", o.Metadata.Name, sp.Fallback)
			}
			if sp.Advanced.HPA.Behavior.ScaleDown.StabilizationWindowSeconds < 300 {
				t.Errorf("%s scales down after %d s", o.Metadata.Name, sp.Advanced.HPA.Behavior.ScaleDown.StabilizationWindowSeconds)
			}
			if sp.MinReplicaCount < 1 {
				t.Errorf("%s: nobody is left to probe or to notice", o.Metadata.Name)
			}
		}
	})
}

// The formula uses the triggers' names, survives a Prometheus that is gone, and
// its query asks for metrics and labels that the service has.
func TestFormulaAsksForWhatExists(t *testing.T) {
	golden, err := os.ReadFile("../../internal/telemetry/testdata/metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for line := range strings.Lines(string(golden)) {
		name, in, _ := strings.Cut(strings.TrimSpace(line), "{")
		labels[name] = strings.Split(strings.TrimSuffix(in, "}"), ",")
	}
	each(t, func(t *testing.T, s set) {
		for _, o := range fleets(t, s) {
			m := o.Spec.Advanced.ScalingModifiers
			if m.Formula != "(closed ?? 0) >= 0.5 ? 1 : depth" || o.Spec.Fallback.Behavior != "scalingModifiers" {
				t.Errorf("%s: formula %q with fallback %q", o.Metadata.Name, m.Formula, o.Spec.Fallback.Behavior)
			}
			// The formula's target counts; the trigger's own is kept equal for readers and
			// for the component that drops the formula.
			if m.Target != trigger(t, o, "depth")["queueLength"] {
				t.Errorf("%s: targets %q and %q", o.Metadata.Name, m.Target, trigger(t, o, "depth")["queueLength"])
			}
			asked := regexp.MustCompile(`(objectferry_\w+)(?:\{(\w+)=)?`).FindAllStringSubmatch(trigger(t, o, "closed")["query"], -1)
			if len(asked) != 3 {
				t.Errorf("%s asks for %q", o.Metadata.Name, asked)
			}
			for _, a := range asked {
				if have, ok := labels[a[1]]; !ok || a[2] != "" && !slices.Contains(have, a[2]) {
					t.Errorf("%s asks for %s with label %q; there is %q", o.Metadata.Name, a[1], a[2], have)
				}
			}
		}
	})
}

// Each way of giving identity brings the TriggerAuthentication that all triggers
// name. In none of them does KEDA take a role of the service to learn a depth.
func TestEachIdentityAuthenticatesTheTriggers(t *testing.T) {
	for _, component := range []string{"identity-irsa", "identity-pod-identity", "identity-static"} {
		t.Run(component, func(t *testing.T) {
			s := with(t, component)
			auth := s.of(t, "TriggerAuthentication")
			if len(auth) != 1 {
				t.Fatalf("%d TriggerAuthentications", len(auth))
			}
			if p := auth[0].Spec.PodIdentity; component != "identity-static" && (p.Provider != "aws" || p.IdentityOwner != "keda") {
				t.Errorf("KEDA asks as %+v", p)
			}
			for _, o := range s.of(t, "ScaledObject") {
				for _, tr := range o.Spec.Triggers {
					if tr.Type == "aws-sqs-queue" && tr.Auth.Name != auth[0].Metadata.Name {
						t.Errorf("%s authenticates by %q", o.Metadata.Name, tr.Auth.Name)
					}
				}
			}
			roles := map[string]bool{}
			for _, a := range s.of(t, "ServiceAccount") {
				roles[a.Metadata.Annotations["eks.amazonaws.com/role-arn"]] = true
			}
			if component == "identity-irsa" && len(roles) != 3 || component != "identity-irsa" && !cmp.Equal(roles, map[string]bool{"": true}) {
				t.Errorf("roles %v", roles)
			}
		})
	}
}

func TestWithoutPrometheusDepthAloneDecides(t *testing.T) {
	for _, o := range with(t, "without-prometheus").of(t, "ScaledObject") {
		if len(o.Spec.Triggers) != 1 || o.Spec.Advanced.ScalingModifiers.Formula != "" || o.Spec.Fallback.Behavior == "scalingModifiers" {
			t.Errorf("%s: %+v", o.Metadata.Name, o.Spec.scale)
		}
	}
}
