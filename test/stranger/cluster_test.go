//go:build cluster

package stranger

import (
	"testing"

	"github.com/objectferry/objectferry/test/cluster/plane"
)

// TestStrangersHourOnAControlPlane is the full run: the binary is built as the
// page says, and the manifests go to a real API server with KEDA behind it.
func TestStrangersHourOnAControlPlane(t *testing.T) {
	p, err := plane.Start(t.Context(), t.Logf)
	if err != nil {
		t.Fatalf("start the control plane: %v", err)
	}
	t.Cleanup(p.Close)
	newHour(t, p.Kubeconfig).follow()
}
