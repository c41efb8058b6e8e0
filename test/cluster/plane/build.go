package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// CacheVariable names the directory where built programs are kept.
const CacheVariable = "OBJECTFERRY_CLUSTER_CACHE"

// programs are what is built from Go modules.
type programs struct {
	apiserver, controllers, operator, adapter string
	crds                                      string // KEDA's, a kustomization
}

// build makes the programs that the cache has not. The versions are in the path,
// and a program appears there only when it is whole.
func build(ctx context.Context, say func(string, ...any)) (programs, error) {
	cache := os.Getenv(CacheVariable)
	if cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			return programs{}, fmt.Errorf("find a cache directory; set %s: %w", CacheVariable, err)
		}
		cache = filepath.Join(dir, "objectferry-cluster")
	}
	kubernetes := filepath.Join(cache, "kubernetes-"+KubernetesVersion)
	keda := filepath.Join(cache, "keda-"+KEDAVersion)
	p := programs{
		apiserver: filepath.Join(kubernetes, "kube-apiserver"), controllers: filepath.Join(kubernetes, "kube-controller-manager"),
		operator: filepath.Join(keda, "keda-operator"), adapter: filepath.Join(keda, "keda-adapter"),
	}
	kedaSource, err := download(ctx, kedaModule, KEDAVersion)
	if err != nil {
		return p, err
	}
	p.crds = filepath.Join(kedaSource, "config", "crd")
	for path, pkg := range map[string]string{p.operator: "./cmd/operator", p.adapter: "./cmd/adapter"} {
		if err := compile(ctx, say, kedaSource, path, pkg); err != nil {
			return p, err
		}
	}
	if exists(p.apiserver) && exists(p.controllers) {
		return p, nil
	}
	source, err := download(ctx, kubernetesModule, KubernetesVersion)
	if err != nil {
		return p, err
	}
	modfile, err := publishedModules(source, kubernetes)
	if err != nil {
		return p, err
	}
	version := "-X k8s.io/component-base/version.gitVersion=" + KubernetesVersion
	for path, pkg := range map[string]string{p.apiserver: "./cmd/kube-apiserver", p.controllers: "./cmd/kube-controller-manager"} {
		if err := compile(ctx, say, source, path, pkg, "-modfile="+modfile, "-mod=mod", "-ldflags=-s -w "+version); err != nil {
			return p, err
		}
	}
	return p, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// download brings a module into Go's module cache and returns where it lies.
func download(ctx context.Context, module, version string) (dir string, err error) {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = os.TempDir() // outside our own module
	out, err := cmd.Output()
	var answer struct{ Dir, Error string }
	if e := json.Unmarshal(out, &answer); e == nil && answer.Error != "" {
		return "", fmt.Errorf("download %s: %s", module, answer.Error)
	}
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	return answer.Dir, nil
}

// publishedModules writes a go.mod for Kubernetes that takes its staging modules
// from where they are published: its own go.mod expects them beside it, and the
// module that the proxy serves does not hold them.
func publishedModules(source, dir string) (modfile string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	sum, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		return "", err
	}
	published := "v0" + strings.TrimPrefix(KubernetesVersion, "v1")
	mod = regexp.MustCompile(`=> \./staging/src/(\S+)`).ReplaceAll(mod, []byte("=> $1 "+published))
	modfile = filepath.Join(dir, "go.mod")
	if err := os.WriteFile(modfile, mod, 0o644); err != nil {
		return "", err
	}
	return modfile, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644)
}

// compile builds a program of a module in the module cache, unless it is there.
func compile(ctx context.Context, say func(string, ...any), source, path, pkg string, flags ...string) error {
	if exists(path) {
		return nil
	}
	say("building %s; this takes minutes, once", filepath.Base(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	defer os.Remove(part)
	args := append([]string{"-C", source, "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", part}, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", filepath.Base(path), err, tail(stderr.Bytes()))
	}
	return os.Rename(part, path)
}

// tail is the end of a log, enough to see why a program has ended.
func tail(log []byte) []byte { return log[max(0, len(log)-4000):] }
