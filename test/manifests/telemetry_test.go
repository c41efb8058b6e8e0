package manifests

import (
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
)

// TestSpansFindTheCollector: the variable, the way that the policy opens and the
// receiver of the collector's example name the same port, of the protocol that the
// exporter speaks unless told otherwise: OTLP over HTTP, whose path it does not add.
func TestSpansFindTheCollector(t *testing.T) {
	s := with(t, "otlp")
	port := strconv.Itoa(s.of(t, "NetworkPolicy")[1].Spec.Egress[0].Ports[0].Port)
	for name, o := range s.pods(t) {
		if name == "sweep" {
			continue // it makes no spans
		}
		endpoint := ""
		for _, v := range o.Spec.Containers[0].Env {
			if v["name"] == "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" {
				endpoint, _ = v["value"].(string)
			}
		}
		u, err := url.Parse(endpoint)
		if err != nil || u.Port() != port || u.Path != "/v1/traces" {
			t.Errorf("%s sends its spans to %q, and the policy opens %s", name, endpoint, port)
		}
	}
	collector, err := os.ReadFile("../../infra/observability/otel-collector.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(collector), `http: {endpoint: "0.0.0.0:`+port+`"}`) {
		t.Errorf("the collector's example takes no OTLP over HTTP at %s", port)
	}
}

func TestMonitorAsksThePortOfTheMetrics(t *testing.T) {
	s := with(t, "podmonitor")
	if m := s.of(t, "PodMonitor"); len(m) != 1 || m[0].Metadata.Labels["release"] == "" {
		t.Errorf("%d monitors, or one without the label that kube-prometheus-stack looks for: %+v", len(m), m)
	}
	for name, o := range s.pods(t) {
		if name != "sweep" && (len(o.Spec.Containers[0].Ports) != 1 || o.Spec.Containers[0].Ports[0].Name != "metrics") {
			t.Errorf("%s has no port called metrics: %+v", name, o.Spec.Containers[0].Ports)
		}
	}
}
