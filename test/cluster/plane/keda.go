package plane

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"time"
)

// keda starts KEDA's two halves: the operator makes autoscalers of ScaledObjects
// and asks the triggers, the adapter serves what it found as the cluster's metrics
// API. Certificates are given to both, so that neither makes its own.
func (p *Plane) keda(ctx context.Context, built programs) error {
	nic, ip, err := address(p.dir)
	if err != nil {
		return err
	}
	p.running = append(p.running, nic)
	certs := filepath.Join(p.dir, "keda")
	if err := p.ca.issue(certs, "keda", "keda-operator.keda.svc", "keda-metrics-apiserver.keda.svc"); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if _, err := p.Kubectl(ctx, "", "apply", "--server-side", "-k", built.crds); err != nil {
		return err
	}
	var ports [4]string
	for i := range ports {
		if ports[i], err = FreePort(); err != nil {
			return err
		}
	}
	health, grpc, secure, metrics := ports[0], ports[1], ports[2], ports[3]
	if _, err := p.Kubectl(ctx, p.service(ip, secure), "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	env := []string{"KUBECONFIG=" + p.Kubeconfig, "POD_NAMESPACE=keda", "KEDA_CLUSTER_OBJECT_NAMESPACE=keda", "WATCH_NAMESPACE=", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}
	operator, err := p.run("keda-operator", env, built.operator, "--leader-elect=false", "--cert-dir="+certs,
		"--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:"+health, "--metrics-service-bind-address=127.0.0.1:"+grpc)
	if err != nil {
		return err
	}
	if err := operator.ready(ctx, http.DefaultClient, "http://127.0.0.1:"+health+"/readyz"); err != nil {
		return err
	}
	adapter, err := p.run("keda-adapter", env, built.adapter, "--bind-address="+ip, "--secure-port="+secure, "--port="+metrics,
		"--lister-kubeconfig="+p.Kubeconfig, "--authentication-kubeconfig="+p.Kubeconfig, "--authorization-kubeconfig="+p.Kubeconfig,
		"--tls-cert-file="+certs+"/tls.crt", "--tls-private-key-file="+certs+"/tls.key", "--cert-dir="+certs,
		"--metrics-service-address=127.0.0.1:"+grpc, "--metrics-service-grpc-authority=keda-operator.keda.svc")
	if err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	err = poll(wait, func() error {
		_, err := p.Kubectl(wait, "", "get", "--raw", "/apis/external.metrics.k8s.io/v1beta1")
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for the metrics API: %w\n%s\n%s", err, tail([]byte(p.Log(operator.name))), tail([]byte(p.Log(adapter.name))))
	}
	return nil
}

// service is how the apiserver finds the adapter.
func (p *Plane) service(ip, port string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: keda}
---
apiVersion: v1
kind: Service
metadata: {name: keda-metrics-apiserver, namespace: keda}
spec: {ports: [{name: https, port: 443, targetPort: %[2]s}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: keda-metrics-apiserver
  namespace: keda
  labels: {kubernetes.io/service-name: keda-metrics-apiserver}
addressType: IPv4
ports: [{name: https, port: %[2]s}]
endpoints: [{addresses: [%[1]q], conditions: {ready: true}}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.external.metrics.k8s.io}
spec:
  service: {name: keda-metrics-apiserver, namespace: keda}
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  caBundle: %[3]s
`, ip, port, base64.StdEncoding.EncodeToString(p.ca.pem))
}
