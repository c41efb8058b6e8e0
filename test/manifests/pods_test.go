package manifests

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
)

// A pod that is told to go needs, in turn: the rest of a long poll, the drain, and
// ten seconds for the last hand-backs. The kubelet must not kill it before.
func TestGracePeriodFollowsTheServicesOwnNumbers(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		for _, cfg := range []*config.Config{config.Default(), s.config(t)} {
			need := time.Duration(cfg.Retry.Wait) + time.Duration(cfg.Drain) + 10*time.Second
			for _, d := range s.of(t, "Deployment") {
				if have := time.Duration(d.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second; have != need {
					t.Errorf("%s: the grace period is %s; retry.wait, drain and 10 s are %s", d.Metadata.Name, have, need)
				}
			}
		}
	})
}

// What Kubernetes calls the restricted profile, and a root filesystem that
// nothing can be written to.
func TestPodsAreRestricted(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		for name, p := range s.pods(t) {
			context := map[string]any{"runAsNonRoot": true, "runAsUser": 65532., "runAsGroup": 65532., "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
			delete(p.Spec.SecurityContext, "fsGroup")
			if diff := cmp.Diff(context, p.Spec.SecurityContext); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			for _, c := range p.Spec.Containers {
				context := map[string]any{"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}}}
				if diff := cmp.Diff(context, c.SecurityContext); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
			if a := p.Spec.AutomountServiceAccountToken; a == nil || *a {
				t.Errorf("%s gets a token for the Kubernetes API", name)
			}
			if p.Spec.ServiceAccountName == "" {
				t.Errorf("%s has no identity of its own", name)
			}
		}
	})
}

// GOMEMLIMIT is the container's limit in MiB, read as MB: 95 % of it. It must hold
// the object bytes that the configuration allows, and something beside them.
func TestMemoryFollowsTheLimit(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		cfg := s.config(t)
		for name, p := range s.pods(t) {
			c := p.Spec.Containers[0]
			want := []map[string]any{
				{"name": "MEMORY_LIMIT_MIB", "valueFrom": map[string]any{"resourceFieldRef": map[string]any{"containerName": c.Name, "resource": "limits.memory", "divisor": "1Mi"}}},
				{"name": "GOMEMLIMIT", "value": "$(MEMORY_LIMIT_MIB)000000"},
			}
			if diff := cmp.Diff(want, c.Env); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			mib, ok := strings.CutSuffix(c.Resources.Limits["memory"], "Mi")
			n, err := strconv.Atoi(mib)
			if !ok || err != nil {
				t.Fatalf("%s: limits.memory %q is not in Mi", name, c.Resources.Limits["memory"])
			}
			if c.Resources.Requests["memory"] != c.Resources.Limits["memory"] || c.Resources.Requests["cpu"] == "" {
				t.Errorf("%s requests %v of %v", name, c.Resources.Requests, c.Resources.Limits)
			}
			if slices.Contains(c.Args, "--role=copy") {
				if need := int(cfg.Copy.Memory) + 128<<20; n*1_000_000 < need {
					t.Errorf("%s: GOMEMLIMIT is %d MB; copy.memory and 128 MiB are %d", name, n, need/1_000_000)
				}
			}
		}
	})
}

func TestProbes(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		for _, d := range s.of(t, "Deployment") {
			c := d.Spec.Template.Spec.Containers[0]
			for path, p := range map[string]probe{"/healthz": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
				if p.HTTPGet.Path != path || p.HTTPGet.Port != "metrics" {
					t.Errorf("%s: %+v is no probe of %s", d.Metadata.Name, p, path)
				}
			}
			// A start is over when the process answers; that its queues can be reached is
			// no part of it, or an outage of SQS would be a crash loop.
			if c.StartupProbe.HTTPGet.Path != "/healthz" {
				t.Errorf("%s: a start ends with %q", d.Metadata.Name, c.StartupProbe.HTTPGet.Path)
			}
		}
	})
}

// A Secret that changes reaches the pod only through a mounted directory, and a
// source's credentials must be in it.
func TestCredentialsAreFilesThatRotate(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		cfg := s.config(t)
		for name, p := range s.pods(t) {
			var cos string // where the secret is mounted
			for _, m := range p.Spec.Containers[0].VolumeMounts {
				if m["subPath"] != nil || m["subPathExpr"] != nil || m["readOnly"] != true {
					t.Errorf("%s: mount %v", name, m)
				}
				if m["name"] == "cos" {
					cos = m["mountPath"].(string)
				}
			}
			if !slices.Contains(p.Spec.Containers[0].Args, "--role=copy") {
				if cos != "" {
					t.Errorf("%s holds credentials that it does not need", name)
				}
				continue
			}
			for _, r := range cfg.Routes {
				if f := r.Source.CredentialsFile; f != "" && path.Dir(f) != cos {
					t.Errorf("%s: credentials_file %s is not in %q", name, f, cos)
				}
			}
		}
	})
}

// Pods of a fleet spread over zones and nodes, and a budget of its own lets sick
// ones go.
func TestSpreadAndBudget(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		budgets := map[string]object{}
		for _, b := range s.of(t, "PodDisruptionBudget") {
			budgets[b.Metadata.Name] = b
		}
		for _, d := range s.of(t, "Deployment") {
			labels := d.Spec.Template.Metadata.Labels
			b := budgets[d.Metadata.Name]
			if b.Spec.UnhealthyPodEvictionPolicy != "AlwaysAllow" || b.Spec.MaxUnavailable == "" {
				t.Errorf("%s: budget %+v", d.Metadata.Name, b.Spec.policy)
			}
			if diff := cmp.Diff(labels, b.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("the budget of %s is another's: %s", d.Metadata.Name, diff)
			}
			if diff := cmp.Diff(labels, d.Spec.Selector.MatchLabels); diff != "" {
				t.Errorf("%s selects others' pods: %s", d.Metadata.Name, diff)
			}
			spread := d.Spec.Template.Spec.TopologySpreadConstraints
			if len(spread) != 2 {
				t.Errorf("%s is spread over %d kinds of places", d.Metadata.Name, len(spread))
			}
			for _, c := range spread {
				if diff := cmp.Diff(labels, c.LabelSelector.MatchLabels); diff != "" {
					t.Errorf("%s is spread by others' pods: %s", d.Metadata.Name, diff)
				}
			}
		}
	})
}

func TestSweepRunsHourlyAndAlone(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		job := s.of(t, "CronJob")[0]
		fields := strings.Fields(job.Spec.Schedule)
		if job.Spec.Concurrency != "Forbid" || len(fields) != 5 || strings.Join(fields[1:], " ") != "* * * *" {
			t.Errorf("schedule %q, concurrency %q", job.Spec.Schedule, job.Spec.Concurrency)
		}
	})
}

// In comes only what reads metrics, out goes only what the service talks to.
func TestNetworkPolicy(t *testing.T) {
	each(t, func(t *testing.T, s set) {
		p := s.of(t, "NetworkPolicy")[0]
		for name, pod := range s.pods(t) {
			for label, value := range p.Spec.PodSelector.MatchLabels {
				if pod.Metadata.Labels[label] != value {
					t.Errorf("the policy does not hold for %s", name)
				}
			}
		}
		if in := p.Spec.Ingress; len(in) != 1 || len(in[0].From) == 0 || len(in[0].Ports) != 1 || in[0].Ports[0].Port != 8080 {
			t.Errorf("in: %+v", in)
		}
		var out []int
		for _, rule := range p.Spec.Egress {
			for _, port := range rule.Ports {
				out = append(out, port.Port)
				if len(rule.To) == 0 {
					t.Errorf("port %d of anywhere", port.Port)
				}
				if block, ok := rule.To[0]["ipBlock"].(map[string]any); port.Port == 80 && (!ok || block["cidr"] != "169.254.170.23/32") {
					t.Errorf("port 80 of %v", rule.To)
				}
			}
		}
		slices.Sort(out)
		if diff := cmp.Diff([]int{53, 53, 80, 443}, out); diff != "" {
			t.Errorf("out: %s", diff)
		}
	})
}
