package plane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// token is the one of the only user, who may do everything. It is of no use
// beyond this machine's loopback and the life of the process.
const token = "local"

// Plane is a running control plane. Close it.
type Plane struct {
	Kubeconfig string // a file

	dir       string
	ca        *authority
	client    *http.Client
	apiserver string
	running   []*process // in the order of their start
}

// Start builds what is missing and starts everything; say is told what happens.
// It returns when KEDA serves metrics.
func Start(ctx context.Context, say func(format string, args ...any)) (*Plane, error) {
	built, err := build(ctx, say)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "objectferry-cluster-")
	if err != nil {
		return nil, err
	}
	p := &Plane{dir: dir, Kubeconfig: filepath.Join(dir, "kubeconfig")}
	if err := p.start(ctx, built, say); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Plane) start(ctx context.Context, built programs, say func(string, ...any)) error {
	var err error
	if p.ca, err = newAuthority(); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(p.ca.cert)
	p.client = &http.Client{Transport: bearer{&http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}}
	say("starting etcd and the apiserver")
	etcd, err := p.etcd(ctx)
	if err != nil {
		return err
	}
	if err := p.api(ctx, built.apiserver, etcd); err != nil {
		return err
	}
	say("starting the controller manager")
	if err := p.controllers(ctx, built.controllers); err != nil {
		return err
	}
	say("starting KEDA")
	return p.keda(ctx, built)
}

// Close ends everything, the last started first, and removes its files.
func (p *Plane) Close() {
	for i := len(p.running) - 1; i >= 0; i-- {
		p.running[i].kill()
	}
	os.RemoveAll(p.dir)
}

// Log is what one of the programs has written: etcd, kube-apiserver,
// kube-controller-manager, keda-operator or keda-adapter.
func (p *Plane) Log(name string) string {
	log, _ := os.ReadFile(filepath.Join(p.dir, name+".log"))
	return string(log)
}

// Kubectl runs kubectl as the administrator and returns its output.
func (p *Plane) Kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Env = append(foreign(os.Environ()), "KUBECONFIG="+p.Kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Run starts one more program, in dir; it ends with stop, or with the plane.
func (p *Plane) Run(dir, name, program string, args ...string) (stop func(), err error) {
	started, err := run(dir, name, nil, program, args...)
	if err != nil {
		return nil, err
	}
	p.running = append(p.running, started)
	return started.kill, nil
}

// run starts a program that is ended by Close.
func (p *Plane) run(name string, env []string, program string, args ...string) (*process, error) {
	started, err := run(p.dir, name, env, program, args...)
	if err != nil {
		return nil, err
	}
	p.running = append(p.running, started)
	return started, nil
}

func (p *Plane) etcd(ctx context.Context) (url string, err error) {
	client, err := FreePort()
	if err != nil {
		return "", err
	}
	peer, err := FreePort()
	if err != nil {
		return "", err
	}
	url, peers := "http://127.0.0.1:"+client, "http://127.0.0.1:"+peer
	started, err := p.run("etcd", nil, "etcd", "--data-dir="+filepath.Join(p.dir, "etcd"),
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--listen-peer-urls="+peers,
		"--initial-advertise-peer-urls="+peers, "--initial-cluster=default="+peers)
	if err != nil {
		return "", err
	}
	return url, started.ready(ctx, http.DefaultClient, url+"/health")
}

func (p *Plane) api(ctx context.Context, program, etcd string) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	serving, proxy, accounts := filepath.Join(p.dir, "serving"), filepath.Join(p.dir, "proxy"), filepath.Join(p.dir, "accounts")
	for dir, name := range map[string]string{serving: "kube-apiserver", proxy: "front-proxy", accounts: "accounts"} {
		if err := p.ca.issue(dir, name, "127.0.0.1", "localhost", "kubernetes.default.svc"); err != nil {
			return fmt.Errorf("make certificates: %w", err)
		}
	}
	tokens := filepath.Join(p.dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return err
	}
	started, err := p.run("kube-apiserver", nil, program,
		"--etcd-servers="+etcd, "--bind-address=127.0.0.1", "--secure-port="+port,
		"--endpoint-reconciler-type=none", // or it would insist on an address that is not loopback
		"--service-cluster-ip-range=10.96.0.0/24",
		"--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--tls-cert-file="+serving+"/tls.crt", "--tls-private-key-file="+serving+"/tls.key",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+accounts+"/tls.pub", "--service-account-signing-key-file="+accounts+"/tls.key",
		// The metrics API is another server's: no kube-proxy leads there, and it trusts
		// who comes with the front proxy's certificate.
		"--enable-aggregator-routing=true",
		"--requestheader-client-ca-file="+proxy+"/ca.crt", "--requestheader-allowed-names=front-proxy",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+proxy+"/tls.crt", "--proxy-client-key-file="+proxy+"/tls.key")
	if err != nil {
		return err
	}
	p.apiserver = "https://127.0.0.1:" + port
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: local
clusters: [{name: local, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: admin, user: {token: %s}}]
contexts: [{name: local, context: {cluster: local, user: admin}}]
`, p.apiserver, base64.StdEncoding.EncodeToString(p.ca.pem), token)
	if err := os.WriteFile(p.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		return err
	}
	return started.ready(ctx, p.client, p.apiserver+"/readyz")
}

func (p *Plane) controllers(ctx context.Context, program string) error {
	port, err := FreePort()
	if err != nil {
		return err
	}
	started, err := p.run("kube-controller-manager", nil, program,
		"--kubeconfig="+p.Kubeconfig, "--authentication-kubeconfig="+p.Kubeconfig, "--authorization-kubeconfig="+p.Kubeconfig,
		"--bind-address=127.0.0.1", "--secure-port="+port, "--leader-elect=false",
		"--root-ca-file="+filepath.Join(p.dir, "serving", "ca.crt"),
		"--service-account-private-key-file="+filepath.Join(p.dir, "accounts", "tls.key"),
		"--horizontal-pod-autoscaler-sync-period=5s") // of 15 s
	if err != nil {
		return err
	}
	insecure := &http.Client{Transport: bearer{&http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}} // its certificate is its own
	return started.ready(ctx, insecure, "https://127.0.0.1:"+port+"/healthz")
}

// bearer adds the token to each request.
type bearer struct{ next http.RoundTripper }

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+token)
	return b.next.RoundTrip(req)
}
