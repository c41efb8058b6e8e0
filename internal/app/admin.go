package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// staleAfter is how long a loop may be silent before /healthz is red. A closed
// gate ticks, so an outage never makes it red.
const staleAfter = 2 * time.Minute

// Statusz is the page /statusz: what this process holds and holds back from.
type Statusz struct {
	Version string         `json:"version"`
	Started time.Time      `json:"started"`
	Role    string         `json:"role"`
	Ready   bool           `json:"ready"`
	Queues  []queue.Status `json:"queues"`
	Guards  []guard.Status `json:"guards"`
	// Share is who answered the visitors' requests, by the hour of the log row, as
	// far as this process has read logs.
	Share    []telemetry.Answers `json:"share"`
	Failures []telemetry.Failure `json:"failures"` // the latest, the newest first
}

func (a *App) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		for _, q := range a.queues() {
			if silent := time.Since(q.Tick); silent > staleAfter {
				http.Error(w, fmt.Sprintf("the loop of queue %s has not ticked for %s", q.Name, silent.Round(time.Second)), http.StatusServiceUnavailable)
				return
			}
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.ready() {
			http.Error(w, "not all queues have been opened yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", a.tel.MetricsHandler())
	mux.HandleFunc("GET /statusz", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(a.Status()) // a reader that went away is nobody's failure
	})
	return mux
}

func (a *App) startAdmin(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.cfg.Admin.Listen)
	if err != nil {
		return fmt.Errorf("open the admin server: admin.listen %q: %w", a.cfg.Admin.Listen, err)
	}
	s := &http.Server{Handler: a.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute}
	a.admin = l.Addr()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.fail(fmt.Errorf("serve admin requests: %w", err))
		}
	}()
	a.stack.push("admin server", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if s.Shutdown(ctx) != nil {
			_ = s.Close() // a page that is still being read is nothing to wait for
		}
		<-served
		return nil
	})
	return nil
}

// AdminAddr is where the admin server listens, "" when it is off.
func (a *App) AdminAddr() string {
	if a.admin == nil {
		return ""
	}
	return a.admin.String()
}
