// Package app wires objectferry and owns its lifecycle: New wires without
// serving, Start starts each part or leaves nothing behind, Stop drains
// last-in-first-out. It decides nothing about messages or objects.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// Role is what one process does.
type Role string

// The roles.
const (
	RoleParse Role = "parse"
	RoleCopy  Role = "copy"
	RoleAll   Role = "all"
)

// ParseRole reads a role from the command line.
func ParseRole(s string) (Role, error) {
	switch r := Role(s); r {
	case RoleParse, RoleCopy, RoleAll:
		return r, nil
	}
	return "", fmt.Errorf("role %q: must be parse, copy or all", s)
}

// Options are what is not in the configuration file.
type Options struct {
	Role    Role
	Version string
	// Queues are the names of the sync queues to consume; none means all. A fleet for
	// each queue is scaled by its own depth, and by its own source's limit.
	Queues []string
}

// App is one process of the service.
type App struct {
	cfg     *config.Config
	options Options
	tel     *telemetry.Telemetry
	started time.Time

	guards    []*guard.Guard
	senders   []*queue.Sender
	consumers []*queue.Consumer

	stack  stack
	admin  net.Addr     // nil when it is off
	opened atomic.Int32 // consumers whose queue was found
	failed chan error
	// work ends at the drain's deadline, or when it is hastened.
	work   context.Context
	hasten context.CancelFunc

	stop     sync.Once
	stopping atomic.Bool
	stopErr  error // set by stop
}

// SQS builds the client of the service and of the on-call commands.
func SQS(ctx context.Context, cfg *config.Config) (*sqs.Client, error) {
	return queue.Connect(ctx, cfg.Region, cfg.Copy.Concurrency)
}

// New wires the service; it opens no socket. An error is one of the
// configuration or of the files that it names.
func New(ctx context.Context, cfg *config.Config, o Options, tel *telemetry.Telemetry) (*App, error) {
	a := &App{cfg: cfg, options: o, tel: tel, failed: make(chan error, 1)}
	a.work, a.hasten = context.WithCancel(context.Background())
	w := &wiring{app: a, cfg: cfg, tel: tel, names: map[string]int{}}
	if err := w.wire(ctx, o.Role); err != nil {
		return nil, fmt.Errorf("wire the service: %w", err)
	}
	return a, nil
}

// Start starts every part. The one that can fail comes first, so that after an
// error nothing runs.
func (a *App) Start(ctx context.Context) error {
	a.started = time.Now()
	if a.cfg.Admin.Listen != "" {
		if err := a.startAdmin(ctx); err != nil {
			return err
		}
	}
	for _, g := range a.guards {
		a.stack.loop("guard "+g.Status().Name, g.Run)
	}
	for _, s := range a.senders {
		a.stack.push("sender", func(ctx context.Context) error { s.Close(ctx); return nil })
	}
	a.startConsumers()
	return nil
}

// startConsumers runs all consumers as one step of the stack, so that they drain
// side by side within the one deadline.
func (a *App) startConsumers() {
	intake, stopIntake := context.WithCancel(context.Background())
	done := make(chan error, len(a.consumers))
	for _, c := range a.consumers {
		go func() {
			err := a.consume(intake, c)
			if err != nil && intake.Err() == nil && a.fail(err) {
				err = nil // told once
			}
			done <- err
		}()
	}
	a.stack.push("consumers", func(ctx context.Context) error {
		stopIntake()
		defer a.hasten()
		defer context.AfterFunc(ctx, a.hasten)()
		var errs []error
		for range a.consumers {
			errs = append(errs, <-done) // bounded: hastened work is handed back at once
		}
		return errors.Join(errs...)
	})
}

// consume opens one queue, for as long as it takes, and consumes it.
func (a *App) consume(intake context.Context, c *queue.Consumer) error {
	log := a.tel.Log.With().Str("queue", c.Status().Name).Logger()
	var class object.Class // of the last failure; a line a change tells enough
	err := untilOpen(intake, min(time.Duration(a.cfg.Guard.ProbeMin), staleAfter/4), c.Open, queue.Permanent, func(err error) {
		if c := object.ClassOf(err); c != class {
			class = c
			log.Warn().Err(err).Msg("queue cannot be opened; trying again")
		}
	})
	switch {
	case err != nil && intake.Err() != nil:
		return nil // stopped while it was still being opened
	case err != nil:
		return err
	case class != "":
		log.Info().Msg("queue is opened")
	}
	a.opened.Add(1)
	return c.Run(intake, a.work)
}

// fail reports a part that cannot go on. Only the first is told by Failed: it
// already stops the process.
func (a *App) fail(err error) bool {
	select {
	case a.failed <- err:
		return true
	default:
		return false
	}
}

// Failed yields the error of a part that cannot go on; the process should stop.
func (a *App) Failed() <-chan error { return a.failed }

// Stop drains: intake ends at once, work ends by itself or when ctx does, and
// then every part is stopped, the last started first. A second call hastens the
// first, as the end of its ctx does, and waits for it. The error has what could not
// be done, and the failures of parts that Failed has not told.
func (a *App) Stop(ctx context.Context) error {
	if a.stopping.Swap(true) {
		a.hasten()
	}
	a.stop.Do(func() {
		defer context.AfterFunc(ctx, a.hasten)()
		// Parts below the consumers are stopped even when the drain ran out of time.
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(a.cfg.Drain)+stopGrace)
		defer cancel()
		a.stopErr = a.stack.unwind(wait)
	})
	return a.stopErr
}

// stopGrace is what the last hand-backs and closing connections may take after
// the drain's own deadline.
const stopGrace = 10 * time.Second

// Status is what /statusz shows.
func (a *App) Status() Statusz {
	s := Statusz{Version: a.options.Version, Started: a.started, Role: string(a.options.Role), Ready: a.ready(), Queues: a.queues(),
		Share: a.tel.Share(), Failures: a.tel.Failures()}
	for _, g := range a.guards {
		s.Guards = append(s.Guards, g.Status())
	}
	return s
}

// ready reports whether every queue was found. It stays so whatever becomes of the
// sources, or a rollout could never pass during an outage.
func (a *App) ready() bool { return int(a.opened.Load()) == len(a.consumers) }

func (a *App) queues() []queue.Status {
	list := make([]queue.Status, 0, len(a.consumers))
	for _, c := range a.consumers {
		list = append(list, c.Status())
	}
	return list
}
