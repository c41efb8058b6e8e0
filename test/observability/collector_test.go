package observability

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// collector is as much of a collector's configuration as the example uses; a field
// beside these is a typing error.
type collector struct {
	Receivers  map[string]any `yaml:"receivers"`
	Processors struct {
		MemoryLimiter struct {
			CheckInterval string `yaml:"check_interval"`
			Limit         int    `yaml:"limit_percentage"`
			Spike         int    `yaml:"spike_limit_percentage"`
		} `yaml:"memory_limiter"`
		TailSampling struct {
			Wait          string         `yaml:"decision_wait"`
			WaitAfterRoot string         `yaml:"decision_wait_after_root_received"`
			Traces        int            `yaml:"num_traces"`
			Cache         map[string]int `yaml:"decision_cache"`
			Policies      []policy       `yaml:"policies"`
		} `yaml:"tail_sampling"`
		Batch map[string]string `yaml:"batch"`
	} `yaml:"processors"`
	Exporters map[string]struct {
		Endpoint string            `yaml:"endpoint"`
		Headers  map[string]string `yaml:"headers"`
		Queue    map[string]int    `yaml:"sending_queue"`
		Retry    map[string]string `yaml:"retry_on_failure"`
	} `yaml:"exporters"`
	Service struct {
		Pipelines map[string]struct {
			Receivers  []string `yaml:"receivers"`
			Processors []string `yaml:"processors"`
			Exporters  []string `yaml:"exporters"`
		} `yaml:"pipelines"`
	} `yaml:"service"`
}

type policy struct {
	Name string `yaml:"name"`
	Type string `yaml:"type"`
	OTTL struct {
		ErrorMode string   `yaml:"error_mode"`
		Span      []string `yaml:"span"`
	} `yaml:"ottl_condition"`
	Probabilistic struct {
		Percentage float64 `yaml:"sampling_percentage"`
	} `yaml:"probabilistic"`
}

// TestTheCollectorKeepsEveryFailingTrace holds the example to what was tried on a real
// collector; docs/OBSERVABILITY.md says which.
func TestTheCollectorKeepsEveryFailingTrace(t *testing.T) {
	var c collector
	decode(t, infra+"otel-collector.yaml", &c)

	traces := c.Service.Pipelines["traces"]
	if diff := cmp.Diff([]string{"memory_limiter", "tail_sampling", "batch"}, traces.Processors); diff != "" {
		t.Errorf("processors in order (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(c.Receivers)), traces.Receivers); diff != "" {
		t.Errorf("receivers (-defined +used):\n%s", diff)
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(c.Exporters)), traces.Exporters); diff != "" {
		t.Errorf("exporters (-defined +used):\n%s", diff)
	}

	policies := c.Processors.TailSampling.Policies
	if len(policies) != 2 {
		t.Fatalf("%d policies", len(policies))
	}
	// Under a copy that went well lies a HEAD with 404, which is an error: only the
	// root may be asked, and the trace must wait for it.
	if diff := cmp.Diff([]string{"IsRootSpan() and span.status.code == STATUS_CODE_ERROR"}, policies[0].OTTL.Span); diff != "" {
		t.Errorf("failing is (-want +got):\n%s", diff)
	}
	if p := policies[1].Probabilistic.Percentage; p <= 0 || p >= 100 {
		t.Errorf("%v %% of the rest are kept", p)
	}
	if s := c.Processors.TailSampling; s.WaitAfterRoot == "" || !strings.HasSuffix(s.Wait, "h") {
		t.Errorf("waits %s, and %q after the root", s.Wait, s.WaitAfterRoot)
	}

	fromEnv := regexp.MustCompile(`^(Bearer )?\$\{env:[A-Z_]+\}$`)
	for name, e := range c.Exporters {
		for _, v := range append(slices.Collect(maps.Values(e.Headers)), e.Endpoint) {
			if !fromEnv.MatchString(v) {
				t.Errorf("%s: %q is not from the environment", name, v)
			}
		}
	}
}
