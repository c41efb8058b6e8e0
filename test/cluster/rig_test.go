//go:build cluster

// Package cluster applies the manifests of infra/k8s to a real control plane and
// watches what becomes of them. It is slow and needs root; see docs/CLUSTER.md.
package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/cluster/plane"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) { ferry.Main(m) }

const (
	manifests = "../../infra/k8s"
	namespace = "ferry"
	patience  = 4 * time.Minute // for a number of replicas to be reached
)

// rig is a control plane, a cloud on the loopback, and a Prometheus that scrapes
// the one copier that may run.
type rig struct {
	t          *testing.T
	plane      *plane.Plane
	site       *localcloud.Site
	admin      string // host:port of the copier's admin server
	prometheus string // URL
	stop       func() // ends Prometheus
}

func newRig(t *testing.T) *rig {
	for _, program := range []string{"kubectl", "etcd", "ip", "prometheus"} {
		ferry.Tool(t, program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour) // the first time it builds
	defer cancel()
	p, err := plane.Start(ctx, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	site, err := localcloud.Start(localcloud.Config{COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(site.Close)
	r := &rig{t: t, plane: p, site: site, admin: "127.0.0.1:" + freePort(t)}
	r.startPrometheus()
	return r
}

func freePort(t *testing.T) string {
	port, err := plane.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func (r *rig) startPrometheus() {
	dir := r.t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: objectferry\n    static_configs: [{targets: [%q]}]\n", r.admin)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	address := "127.0.0.1:" + freePort(r.t)
	var err error
	r.stop, err = r.plane.Run(dir, "prometheus", "prometheus", "--config.file="+file, "--storage.tsdb.path="+dir, "--web.listen-address="+address)
	if err != nil {
		r.t.Fatal(err)
	}
	r.prometheus = "http://" + address
	ferry.Until(r.t, time.Minute, "Prometheus is ready", func() bool {
		resp, err := http.Get(r.prometheus + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// kubectl runs kubectl and fails the test with it.
func (r *rig) kubectl(stdin string, args ...string) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	out, err := r.plane.Kubectl(ctx, stdin, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// apply has the server validate and take what a kustomization renders to.
func (r *rig) apply(dir string, more ...string) string {
	r.t.Helper()
	rendered := r.kubectl("", "kustomize", dir)
	return r.kubectl(rendered, append([]string{"apply", "--server-side", "--validate=strict", "-f", "-"}, more...)...)
}

// overlay writes a kustomization beside the repository's and returns its directory.
func (r *rig) overlay(text string) string {
	r.t.Helper()
	dir := r.t.TempDir()
	here, err := filepath.Abs(manifests)
	if err != nil {
		r.t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, here)
	if err != nil {
		r.t.Fatal(err)
	}
	text = strings.ReplaceAll(text, "MANIFESTS", relative)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return dir
}

// wanted is how many replicas a Deployment is to have.
func (r *rig) wanted(deployment string) int {
	r.t.Helper()
	n, err := strconv.Atoi(r.kubectl("", "-n", namespace, "get", "deployment", deployment, "-o", "jsonpath={.spec.replicas}"))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// reach waits until the copiers are n, and says how long that took.
func (r *rig) reach(n int, why string) {
	r.t.Helper()
	began := time.Now()
	last := -1
	for deadline := began.Add(patience); ; time.Sleep(time.Second) {
		is := r.wanted("copy")
		if is != last {
			r.t.Logf("%s: %d copiers wanted after %s", why, is, time.Since(began).Round(time.Second))
			last = is
		}
		if is == n {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: %d copiers, and not %d, after %s\n%s", why, is, n, patience, r.kubectl("", "-n", namespace, "describe", "hpa,scaledobject"))
		}
	}
}

// hold checks for a while that the copiers stay n.
func (r *rig) hold(n int, d time.Duration, why string) {
	r.t.Helper()
	for began := time.Now(); time.Since(began) < d; time.Sleep(time.Second) {
		if is := r.wanted("copy"); is != n {
			r.t.Fatalf("%s: %d copiers, and not %d, after %s", why, is, n, time.Since(began).Round(time.Second))
		}
	}
	r.t.Logf("%s: %d copiers for %s", why, n, d)
}

// ask sends n sync requests for objects that the source has.
func (r *rig) ask(n int) {
	r.t.Helper()
	for range n {
		key := fmt.Sprintf("img/%d.jpg", time.Now().UnixNano())
		r.site.COS.Put(key, []byte(key), cosd.Attributes{})
		text, err := syncrequest.Encode(syncrequest.Request{Bucket: localcloud.Bucket, Key: key, Seen: time.Now()})
		if err != nil {
			r.t.Fatal(err)
		}
		if err := r.site.Cloud.Send(localcloud.SyncQueue, text, nil); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) depth() int { return r.site.Cloud.Depth(localcloud.SyncQueue).Total() }

// query asks Prometheus; "" is no answer.
func (r *rig) query(q string) string {
	r.t.Helper()
	resp, err := http.Get(r.prometheus + "/api/v1/query?query=" + url.QueryEscape(q))
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var answer struct {
		Data struct{ Result []struct{ Value []any } }
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		r.t.Fatalf("%v: %s", err, body)
	}
	if len(answer.Data.Result) == 0 {
		return ""
	}
	return fmt.Sprint(answer.Data.Result[0].Value[1])
}
