package stranger

import (
	"strings"

	"github.com/goccy/go-yaml"
)

// manifest is what of a Deployment or a ConfigMap says how the service is run.
type manifest struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Data map[string]string `yaml:"data"`
	Spec struct {
		Template struct {
			Spec struct {
				Containers []struct {
					Args []string `yaml:"args"`
				} `yaml:"containers"`
				Volumes []struct {
					ConfigMap struct {
						Name string `yaml:"name"`
					} `yaml:"configMap"`
				} `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
	Items manifests `yaml:"items"` // of a List
}

type manifests []manifest

// manifests are what the API server has, or where there is none what would be
// applied.
func (h *hour) manifests() (all manifests) {
	h.Helper()
	text := ""
	if h.full {
		text = h.bash("kubectl -n objectferry get deployment,configmap -o yaml")
	} else {
		text = h.bash("kubectl kustomize " + mine)
	}
	for _, document := range strings.Split(text, "\n---\n") {
		var m manifest
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			h.Fatalf("read a manifest: %v\n%s", err, document)
		}
		all = append(append(all, m), m.Items...)
	}
	return all
}

// config is the objectferry.yaml that a Deployment mounts, "" for none.
func (all manifests) config(deployment manifest) string {
	for _, volume := range deployment.Spec.Template.Spec.Volumes {
		for _, m := range all {
			if m.Kind == "ConfigMap" && m.Metadata.Name == volume.ConfigMap.Name {
				return m.Data["objectferry.yaml"]
			}
		}
	}
	return ""
}
