// Package manifests holds the rules that the manifests under infra/k8s keep. No
// cluster is needed, only kubectl, which renders them; test/cluster applies them.
package manifests

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/test/ferry"
)

const root = "../../infra/k8s"

// object is what any of the manifests may have, as far as a rule asks for it. It
// is read as JSON, which does not mind the case of names.
type object struct {
	Kind     string
	Metadata struct {
		Name        string
		Labels      map[string]string
		Annotations map[string]string
	}
	Data                         map[string]string
	AutomountServiceAccountToken *bool
	Spec                         struct {
		workload
		scale
		policy
		PodIdentity struct{ Provider, IdentityOwner string }
	}
}

type workload struct {
	Replicas    *int
	Selector    struct{ MatchLabels map[string]string }
	Template    template
	Strategy    struct{ RollingUpdate map[string]any }
	Schedule    string
	Concurrency string `json:"concurrencyPolicy"`
	JobTemplate struct{ Spec struct{ Template template } }
}

type template struct {
	Metadata struct{ Labels map[string]string }
	Spec     pod
}

type pod struct {
	ServiceAccountName            string
	AutomountServiceAccountToken  *bool
	EnableServiceLinks            *bool
	TerminationGracePeriodSeconds int
	SecurityContext               map[string]any
	TopologySpreadConstraints     []struct {
		LabelSelector struct{ MatchLabels map[string]string }
	}
	Containers []container
	Volumes    []map[string]any
}

type container struct {
	Image, Name     string
	Args            []string
	Env             []map[string]any
	Ports           []struct{ Name string }
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext map[string]any
	VolumeMounts    []map[string]any
	StartupProbe    probe
	LivenessProbe   probe
	ReadinessProbe  probe
}

type probe struct{ HTTPGet struct{ Path, Port string } }

type scale struct {
	ScaleTargetRef  struct{ Name string }
	MinReplicaCount int
	MaxReplicaCount int
	Fallback        struct {
		FailureThreshold int
		Replicas         int
		Behavior         string
	}
	Advanced struct {
		ScalingModifiers struct{ Formula, Target string }
		HPA              struct {
			Behavior struct {
				ScaleDown struct {
					StabilizationWindowSeconds int
				}
			}
		} `json:"horizontalPodAutoscalerConfig"`
	}
	Triggers []struct {
		Type, Name string
		Metadata   map[string]string
		Auth       struct{ Name string } `json:"authenticationRef"`
	}
}

type policy struct {
	UnhealthyPodEvictionPolicy string
	MaxUnavailable             string
	PodSelector                struct{ MatchLabels map[string]string }
	Ingress, Egress            []struct {
		From, To []map[string]any
		Ports    []struct {
			Port     int
			Protocol string
		}
	}
}

// set is what one kustomization renders to.
type set struct {
	name    string
	objects []object
}

// render runs kubectl over a kustomization under infra/k8s.
func render(t *testing.T, dir string) set {
	t.Helper()
	kubectl := ferry.Tool(t, "kubectl")
	// `go test` runs a test again only when a file has changed that it looked at.
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			_, err = os.Stat(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(kubectl, "kustomize", dir)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("render %s: %v\n%s", dir, err, stderr.String())
	}
	s := set{name: filepath.Base(dir)}
	for _, doc := range bytes.Split(out, []byte("\n---\n")) {
		var o object
		text, err := yaml.YAMLToJSON(doc)
		if err != nil {
			t.Fatalf("%s: %v\n%s", dir, err, doc)
		}
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatalf("%s: %v\n%s", dir, err, doc)
		}
		s.objects = append(s.objects, o)
	}
	return s
}

// with renders the base with a component.
func with(t *testing.T, component string) set {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + base + "/base]\ncomponents: [" + base + "/components/" + component + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := render(t, dir)
	s.name = component
	return s
}

// each runs a rule on the base and on the example.
func each(t *testing.T, rule func(*testing.T, set)) {
	for _, dir := range []string{"base", "overlays/production"} {
		t.Run(dir, func(t *testing.T) { rule(t, render(t, filepath.Join(root, dir))) })
	}
}

// of are the objects of a kind; there must be some.
func (s set) of(t *testing.T, kind string) []object {
	t.Helper()
	var found []object
	for _, o := range s.objects {
		if o.Kind == kind {
			found = append(found, o)
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has no %s", s.name, kind)
	}
	return found
}

// pods are the pod templates of all that runs, by name.
func (s set) pods(t *testing.T) map[string]template {
	t.Helper()
	all := map[string]template{}
	for _, o := range s.of(t, "Deployment") {
		all[o.Metadata.Name] = o.Spec.Template
	}
	for _, o := range s.of(t, "CronJob") {
		all[o.Metadata.Name] = o.Spec.JobTemplate.Spec.Template
	}
	return all
}

// config is the service's configuration, read as the service reads it.
func (s set) config(t *testing.T) *config.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "objectferry.yaml")
	if err := os.WriteFile(file, []byte(s.of(t, "ConfigMap")[0].Data["objectferry.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(file, nil)
	if err != nil {
		t.Fatalf("the configuration of %s: %v", s.name, err)
	}
	return cfg
}
