// Package app wires objectferry and owns its lifecycle: New wires without
// serving, Start starts each part and takes all back when one fails, Stop drains
// last-in-first-out. It decides nothing about messages or objects.
package app

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/guard"
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
	admin  *admin
	ready  atomic.Bool
	opened atomic.Int32
	failed chan error
	// work ends at the drain's deadline, or when it is hastened.
	work   context.Context
	hasten context.CancelFunc
}

// SQS builds the client of the service and of the on-call commands.
func SQS(ctx context.Context, cfg *config.Config) (*sqs.Client, error) {
	return queue.Connect(ctx, cfg.Region, cfg.Copy.Concurrency)
}

// New wires the service; it opens no socket.
func New(ctx context.Context, cfg *config.Config, o Options, tel *telemetry.Telemetry) (*App, error) {
	a := &App{cfg: cfg, options: o, tel: tel, failed: make(chan error, 1)}
	a.work, a.hasten = context.WithCancel(context.Background())
	w := &wiring{app: a, cfg: cfg, tel: tel}
	if err := w.wire(ctx, o.Role); err != nil {
		return nil, fmt.Errorf("wire the service: %w", err)
	}
	return a, nil
}

// Start starts every part. What was started is stopped again when one fails.
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
	done := make(chan struct{}, len(a.consumers))
	for _, c := range a.consumers {
		go func() {
			defer func() { done <- struct{}{} }()
			if err := a.consume(intake, c); err != nil {
				select {
				case a.failed <- err:
				default: // the first failure already stops the process
				}
			}
		}()
	}
	a.stack.push("consumers", func(ctx context.Context) error {
		stopIntake()
		defer a.hasten()
		stop := context.AfterFunc(ctx, a.hasten)
		defer stop()
		for range a.consumers {
			<-done // bounded: hastened work is handed back at once
		}
		return ctx.Err()
	})
}

// consume opens one queue, for as long as it takes, and consumes it.
func (a *App) consume(intake context.Context, c *queue.Consumer) error {
	name := c.Status().Name
	err := untilOpen(intake, c.Open, queue.Permanent, func(err error) {
		a.tel.Log.Warn().Str("queue", name).Err(err).Msg("queue cannot be opened; trying again")
	})
	if err != nil {
		if intake.Err() != nil {
			return nil // stopped while it was still being opened
		}
		return fmt.Errorf("open queue %s: %w", name, err)
	}
	if int(a.opened.Add(1)) == len(a.consumers) {
		a.ready.Store(true)
	}
	if err := c.Run(intake, a.work); err != nil {
		return fmt.Errorf("consume queue %s: %w", name, err)
	}
	return nil
}

// Failed yields the error of a part that cannot go on; the process should stop.
func (a *App) Failed() <-chan error { return a.failed }

// Stop drains: intake ends at once, work ends by itself or when ctx does, and
// then every part is stopped, the last started first.
func (a *App) Stop(ctx context.Context) error {
	// Parts below the consumers are stopped even when the drain ran out of time.
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(a.cfg.Drain)+stopGrace)
	defer cancel()
	stopped := context.AfterFunc(ctx, a.hasten)
	defer stopped()
	return a.stack.unwind(wait)
}

// stopGrace is what the last hand-backs and closing connections may take after
// the drain's own deadline.
const stopGrace = 10 * time.Second

// Status is what /statusz shows.
func (a *App) Status() Statusz {
	s := Statusz{Version: a.options.Version, Started: a.started, Role: string(a.options.Role), Ready: a.ready.Load(), Queues: a.queues()}
	for _, g := range a.guards {
		s.Guards = append(s.Guards, g.Status())
	}
	return s
}

func (a *App) queues() []queue.Status {
	list := make([]queue.Status, 0, len(a.consumers))
	for _, c := range a.consumers {
		list = append(list, c.Status())
	}
	return list
}
