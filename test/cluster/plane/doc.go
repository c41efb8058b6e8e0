// Package plane runs a real Kubernetes control plane with KEDA on this machine,
// without containers: etcd, kube-apiserver, kube-controller-manager, and KEDA's
// operator and metrics adapter as plain processes. There are no nodes, so that
// pods stay pending; deployments, autoscalers, budgets and jobs do all that they
// do elsewhere, short of running anything.
//
// It needs Go and a module proxy (the first run builds the programs, for half an
// hour on two cores), etcd and kubectl on the PATH, and root: the metrics adapter
// needs an address that is not loopback, and gets one on an interface of its own.
// Whatever it starts ends with this process, however that ends.
package plane

// What is run. etcd and kubectl are the machine's own.
const (
	KubernetesVersion = "v1.35.4"
	KEDAVersion       = "v2.21.0"

	kubernetesModule = "k8s.io/kubernetes"
	kedaModule       = "github.com/kedacore/keda/v2"
)
