package observability

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) { ferry.Main(m) }

// prometheus is a running one that scrapes a process every second and has the
// alerts loaded.
type prometheus struct {
	t   *testing.T
	url string
}

func startPrometheus(t *testing.T, program string, p *ferry.Process) *prometheus {
	t.Helper()
	alerts, err := filepath.Abs(infra + "alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - {job_name: objectferry, static_configs: [{targets: [%q]}]}\n",
		alerts, strings.TrimPrefix(p.Admin, "http://"))
	if err := os.WriteFile(filepath.Join(dir, "prometheus.yml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	free.Close()
	cmd := exec.Command(program, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+addr)
	cmd.Stderr, err = os.Create(filepath.Join(dir, "log"))
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended by itself
		_ = cmd.Wait()
		if log, err := os.ReadFile(filepath.Join(dir, "log")); err == nil && t.Failed() {
			t.Logf("%s", log)
		}
	})
	return &prometheus{t, "http://" + addr}
}

// get fetches a page of the API into data; false when it has no good answer.
func (p *prometheus) get(path string, data any) bool {
	resp, err := http.Get(p.url + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	answer := struct {
		Status string
		Error  string
		Data   any
	}{Data: data}
	err = json.NewDecoder(resp.Body).Decode(&answer)
	if answer.Error != "" {
		p.t.Errorf("%s: %s", path, answer.Error)
	}
	return err == nil && answer.Status == "success"
}

// sum evaluates an expression and adds up what it yields; no result is NaN.
func (p *prometheus) sum(expr string) float64 {
	p.t.Helper()
	var data struct {
		Result []struct{ Value [2]any }
	}
	if !p.get("/api/v1/query?query="+url.QueryEscape(expr), &data) || len(data.Result) == 0 {
		return math.NaN()
	}
	total := 0.
	for _, r := range data.Result {
		v, err := strconv.ParseFloat(fmt.Sprint(r.Value[1]), 64)
		if err != nil {
			p.t.Error(err)
		}
		total += v
	}
	return total
}

// TestTheShareOnARealPrometheus: visitors miss ten objects once and find each three
// times when they are healed. The dashboard's own queries say so, by the hour of the
// log and by what came in; and Prometheus can evaluate every panel and every alert.
func TestTheShareOnARealPrometheus(t *testing.T) {
	t.Parallel()
	program := ferry.Tool(t, "prometheus")
	s, err := localcloud.Start(localcloud.Config{AWS: strictaws.Config{LogInterval: time.Hour},
		COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	const objects, again = 10, 3
	for i := range objects {
		s.COS.Put(fmt.Sprint(i), []byte("picture"), cosd.Attributes{})
	}
	process := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{}}, "retry: {wait: 1s}")})
	p := startPrometheus(t, program, process)
	// Before the first row, each hour has been seen at 0.
	ferry.Until(t, time.Minute, "two scrapes", func() bool { return p.sum("max(count_over_time(objectferry_log_requests_total[1h]))") >= 2 })

	visit := func(times int) {
		for i := range objects * times {
			resp, err := http.Get(fmt.Sprintf("%s/%s/%d", s.S3URL, localcloud.Bucket, i%objects))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		s.Cloud.FlushLogs()
	}
	visit(1)
	ferry.Until(t, time.Minute, "all are healed", func() bool {
		for i := range objects {
			if _, ok := s.Cloud.Object(localcloud.Bucket, fmt.Sprint(i)); !ok {
				return false
			}
		}
		return true
	})
	visit(again)

	panels, _ := dashboard(t)
	exprs := map[string]string{} // by unit and query of the last row
	grafana := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1d", "$bucket", localcloud.Bucket)
	for _, panel := range panels {
		for _, q := range panel.Targets {
			expr := grafana.Replace(q.Expr)
			p.sum(expr) // which fails the test if Prometheus cannot
			if strings.Contains(expr, "log_requests") {
				exprs[panel.Type+" "+panel.FieldConfig.Defaults.Unit+" "+q.RefID] = expr
			}
		}
	}
	const share = float64(again) / (again + 1)
	ferry.Until(t, time.Minute, "the hours tell 30 from S3 and 10 misses", func() bool {
		return p.sum(exprs["barchart short A"]) == objects*again && p.sum(exprs["barchart short B"]) == objects
	})
	came := p.sum(exprs["stat percentunit A"])
	if math.Abs(came-share) > 0.01 {
		t.Errorf("the share in what came in is %v, want %v", came, share)
	}
	// Should an hour end between the two rounds, each has its own share.
	if got := p.sum(exprs["barchart percentunit A"]); got != share && got != 1 {
		t.Errorf("the share by hour is %v, want %v", got, share)
	}

	ferry.Until(t, time.Minute, "all alerts are evaluated", func() bool {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		seen, good := 0, p.get("/api/v1/rules", &data)
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				seen++
				good = good && r.Health == "ok"
				if r.LastError != "" {
					t.Fatalf("%s: %s", r.Name, r.LastError)
				}
			}
		}
		return good && seen > 0
	})
}
