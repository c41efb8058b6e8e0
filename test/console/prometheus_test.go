package console

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// startPrometheus starts a Prometheus that scrapes pods every second.
func startPrometheus(t *testing.T, pods ...string) (url string, stop func()) {
	t.Helper()
	program := ferry.Tool(t, "prometheus")
	dir := t.TempDir()
	for i := range pods {
		pods[i] = fmt.Sprintf("%q", host(pods[i]))
	}
	config := filepath.Join(dir, "prometheus.yml")
	text := "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs:\n  - job_name: objectferry\n    static_configs: [{targets: [" + strings.Join(pods, ", ") + "]}]\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String() // free, and nobody else is given it so soon
	l.Close()
	cmd := exec.Command(program, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", address, "--log.level", "error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(stop)
	url = "http://" + address
	ferry.Until(t, time.Minute, "Prometheus is ready", func() bool {
		resp, err := http.Get(url + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return url, stop
}

// TestNumbersFromPrometheus: with a Prometheus the numbers are its own, over two
// pods, and the page says so; what only pods know is said to need them; and when
// it is gone nothing looks like a zero.
func TestNumbersFromPrometheus(t *testing.T) {
	t.Parallel()
	ferry.Tool(t, "chromium")
	ferry.Tool(t, "prometheus")
	s := newSite(t)
	docs, err := s.AddCOS(cosd.Config{})
	if err != nil {
		t.Fatal(err)
	}
	docs.Lie(cosd.When{}, cosd.Page(503))
	config := yaml(s, docs.URL())
	parse := ferry.Start(t, s, ferry.Options{YAML: config, Args: []string{"--role", "parse"}})
	copier := ferry.Start(t, s, ferry.Options{YAML: config, Args: []string{"--role", "copy"}})
	url, stop := startPrometheus(t, parse.Admin, copier.Admin)
	c := startConsole(t, s, config, "--prometheus", url)
	hour := time.Now().Truncate(time.Hour)
	deliver(t, s, "1", visits(localcloud.Bucket, hour, 30, 10)+visits(docsBucket, hour, 0, 3))

	b := open(t, 1240)
	b.load(c.URL)
	b.shows("#from", "Fleet: Prometheus at "+url)
	b.row("#share", localcloud.Bucket, "75.0 %*", "75.0 %", "30", "10", "*")
	b.shows("#share", "From Prometheus")
	b.shows("#ends", localcloud.SyncQueue+" absent – 10 10", "Last hour", "From Prometheus")
	b.row("#guards", "source "+host(docs.URL()), "closed", "*")
	if row := strings.Join(b.cells("#guards", "source "+host(docs.URL())), " "); !strings.Contains(row, "unavailable") || !strings.Contains(row, time.Now().UTC().Format("15:")) {
		t.Errorf("the guard is closed since and why: %s", row)
	}
	b.row("#guards", "destination "+localcloud.Bucket, "open", "–")
	b.row("#queues", localcloud.SyncQueue, "0", "0", "0", "up to*", "0")
	b.shows("#verdict", "Watch", "Gate closed: source "+host(docs.URL()))
	b.shows("#failures", "only the pods know them")

	stop()
	b.shows("#verdict", "Unknown: ends", "Unknown: guards", "Unknown: the share from S3")
	for _, panel := range []string{"#ends", "#guards", "#share"} {
		b.shows(panel, "Not all is known")
	}
}
