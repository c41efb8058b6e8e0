//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestManifestsOnARealControlPlane is one story on one control plane; each part
// begins where the one before ended.
func TestManifestsOnARealControlPlane(t *testing.T) {
	r := newRig(t)
	part := func(name string, f func()) {
		t.Run(name, func(t *testing.T) {
			outer := r.t
			r.t = t
			defer func() { r.t = outer }()
			f()
		})
		if t.Failed() {
			t.FailNow()
		}
	}
	part("every variant is accepted", r.variants)
	part("the example runs as restricted pods", r.example)
	r.install()
	part("wanted replicas follow the depth up", func() {
		r.reach(1, "nothing to do")
		r.ask(30)
		r.reach(6, "30 messages, 5 a replica")
		r.pods(6)
	})
	part("and no further than the maximum", func() {
		r.ask(60)
		r.reach(10, "90 messages, at most 10 replicas")
		r.hold(10, 30*time.Second, "at the maximum")
	})
	var copier *ferry.Process
	part("and down again", func() {
		copier = r.copier(t)
		ferry.Until(r.t, 2*time.Minute, "the queue is empty", func() bool { return r.depth() == 0 })
		r.reach(1, "the queue is empty")
	})
	part("they do not rise while the gate is closed", func() {
		r.site.COS.Down()
		r.ask(1)
		ferry.Until(r.t, time.Minute, "Prometheus sees the closed gate", func() bool { return r.query(r.closed()) == "1" })
		r.ask(60)
		r.hold(1, 90*time.Second, "60 messages before a closed gate")
		if n := r.depth(); n != 61 {
			t.Errorf("%d of 61 messages are left", n)
		}
	})
	part("they rise after it has opened", func() {
		// So slow that the queue is still long when the autoscaler looks.
		r.site.COS.Change(func(b *cosd.Behaviour) { b.LatencyMin, b.LatencyMax = 4*time.Second, 4*time.Second })
		if err := r.site.COS.Up(); err != nil {
			r.t.Fatal(err)
		}
		began := time.Now()
		ferry.Until(r.t, patience, "more copiers are wanted", func() bool { return r.wanted("copy") >= 5 })
		r.t.Logf("%d copiers wanted %s after the source returned", r.wanted("copy"), time.Since(began).Round(time.Second))
		r.site.COS.Change(func(b *cosd.Behaviour) { b.LatencyMin, b.LatencyMax = 0, 0 })
		ferry.Until(r.t, patience, "the queue is empty", func() bool { return r.depth() == 0 })
		if n := r.site.Cloud.Depth(localcloud.SyncQueue + localcloud.DeadSuffix).Total(); n != 0 {
			t.Errorf("%d dead letters", n)
		}
		r.reach(1, "the queue is empty")
	})
	part("without Prometheus the depth alone decides", func() {
		if err := copier.Stop(time.Minute); err != nil {
			r.t.Fatal(err)
		}
		r.stop()
		r.ask(30)
		r.reach(6, "30 messages, no Prometheus")
	})
	part("without SQS there are the fallback replicas", func() {
		r.site.Cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: "GetQueueAttributes", Do: strictaws.Fail{Status: 503, Code: "ServiceUnavailable"}})
		r.reach(2, "SQS cannot be asked")
	})
}

// variants has the server validate the base with every component whose CRDs are
// there, without keeping it.
func (r *rig) variants() {
	for _, component := range []string{"identity-irsa", "identity-pod-identity", "identity-static", "without-prometheus", "otlp"} {
		r.kubectl("", "create", "namespace", component)
		dir := r.overlay(fmt.Sprintf("namespace: %s\nresources: [MANIFESTS/base]\ncomponents: [MANIFESTS/components/%[1]s]\n", component))
		out := r.apply(dir, "--dry-run=server")
		r.t.Logf("%s: %d objects", component, strings.Count(out, "\n"))
	}
}

// example applies the overlay for production. Its namespace enforces the restricted
// profile, which a pod that is created has passed.
func (r *rig) example() {
	out := r.apply(manifests + "/overlays/production")
	r.t.Logf("%d objects", strings.Count(out, "\n"))
	for _, name := range []string{"parse", "copy-media", "copy-docs"} {
		ferry.Until(r.t, 2*time.Minute, name+" has its pods and its autoscaler", func() bool {
			pods := r.kubectl("", "-n", "objectferry", "get", "deployment", name, "-o", "jsonpath={.status.replicas}")
			hpas := r.kubectl("", "-n", "objectferry", "get", "hpa", "-o", "name")
			return pods != "" && pods != "0" && strings.Contains(hpas, "keda-hpa-"+name)
		})
	}
	r.kubectl("", "-n", "objectferry", "create", "job", "now", "--from=cronjob/sweep")
	ferry.Until(r.t, time.Minute, "the sweep has its pod", func() bool {
		return strings.Contains(r.kubectl("", "-n", "objectferry", "get", "pods", "-o", "name"), "pod/now-")
	})
	r.kubectl("", "delete", "namespace", "objectferry", "--wait=false")
}

// install applies the base for the embedded cloud: 5 messages a replica instead
// of 1,000, and a scale-down window of seconds instead of minutes.
func (r *rig) install() {
	r.kubectl("", "create", "namespace", namespace)
	r.kubectl("", "-n", namespace, "create", "secret", "generic", "objectferry-aws",
		"--from-literal=AWS_ACCESS_KEY_ID="+localcloud.AccessKey, "--from-literal=AWS_SECRET_ACCESS_KEY="+localcloud.SecretKey)
	scaled := func(name, queue string, more ...string) string {
		return fmt.Sprintf(`  - target: {kind: ScaledObject, name: %s}
    patch: |
      - {op: replace, path: /spec/triggers/0/metadata/queueURL, value: %q}
      - {op: replace, path: /spec/triggers/0/metadata/queueLength, value: "5"}
      - {op: add, path: /spec/triggers/0/metadata/awsEndpoint, value: %q}
      - {op: replace, path: /spec/advanced/horizontalPodAutoscalerConfig/behavior/scaleDown, value: {stabilizationWindowSeconds: 5, policies: [{type: Percent, value: 100, periodSeconds: 5}]}}
%s`, name, r.site.QueueURL(queue), r.site.SQSURL, strings.Join(more, ""))
	}
	r.apply(r.overlay("namespace: " + namespace + `
resources: [MANIFESTS/base]
components: [MANIFESTS/components/identity-static]
patches:
` + scaled("parse", localcloud.LogsQueue) +
		scaled("copy", localcloud.SyncQueue, `      - {op: replace, path: /spec/advanced/scalingModifiers/target, value: "5"}
`, fmt.Sprintf("      - {op: replace, path: /spec/triggers/1/metadata/serverAddress, value: %q}\n", r.prometheus))))
}

// pods checks that the wanted copiers were also created, though nothing runs them.
func (r *rig) pods(n int) {
	r.t.Helper()
	ferry.Until(r.t, time.Minute, fmt.Sprintf("there are %d pods", n), func() bool {
		out := r.kubectl("", "-n", namespace, "get", "pods", "-l", "app.kubernetes.io/component=copy", "-o", "name")
		return strings.Count(out, "\n") == n
	})
}

// copier runs the real service on the loopback, where Prometheus scrapes it.
func (r *rig) copier(t *testing.T) *ferry.Process {
	return ferry.Start(t, r.site, ferry.Options{Args: []string{"--role=copy", "--queue=" + localcloud.SyncQueue}, YAML: r.site.YAML([]localcloud.Route{{}},
		"copy: {concurrency: 2}", "retry: {min: 1s, max: 2s, wait: 1s}", "guard: {probe_min: 500ms, probe_max: 2s}", fmt.Sprintf("admin: {listen: %q}", r.admin))})
}

// closed is the query that the manifest asks.
func (r *rig) closed() string {
	r.t.Helper()
	var o struct {
		Spec struct {
			Triggers []struct {
				Name     string
				Metadata map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(r.kubectl("", "-n", namespace, "get", "scaledobject", "copy", "-o", "json")), &o); err != nil {
		r.t.Fatal(err)
	}
	for _, t := range o.Spec.Triggers {
		if t.Name == "closed" {
			return t.Metadata["query"]
		}
	}
	r.t.Fatal("no trigger is named closed")
	return ""
}
