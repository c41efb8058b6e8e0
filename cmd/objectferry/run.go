package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/app"
	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/telemetry"
)

func newRunCommand() *cobra.Command {
	var configFile, role string
	var queues []string
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the service",
		Long: `Run the service until SIGTERM or Ctrl-C, and then drain: nothing new is received,
and what is in hand is finished within the configuration's drain. A second signal
hands it back at once. Nothing is lost either way, nor by kill -9.

The process logs JSON lines to standard error and serves /healthz, /readyz,
/statusz and /metrics on admin.listen. A source that is down does not end it: see
/statusz.`,
		Example: `  objectferry run --config objectferry.yaml
  objectferry run --config objectferry.yaml --role parse   # reads logs only, needs no COS credentials
  objectferry run --role copy --queue objectferry-sync_media   # a fleet of its own for one source
  OBJECTFERRY_LOG_LEVEL=debug objectferry run              # each field has a variable`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := app.ParseRole(role)
			if err != nil {
				return usageError{err}
			}
			if len(queues) > 0 && r == app.RoleParse {
				return usageError{errors.New("--queue names sync queues, and --role parse consumes none")}
			}
			cfg, err := config.Load(configFile, nil)
			if err != nil {
				return err
			}
			return serve(cfg, r, queues)
		},
	}
	c.Flags().StringVar(&configFile, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&role, "role", "all", "what this process does: parse, copy or all")
	c.Flags().StringSliceVar(&queues, "queue", nil, "consume only the sync queue of this `name`; may be given more than once")
	return c
}

// besideObjects is the memory, in bytes, that the process is given beside the
// object bytes that copy.memory bounds. Past the sum the garbage collector works
// harder, so that buffers which were let go do not add up.
const besideObjects = 32 << 20

// serve runs until a signal comes or a part fails. The first signal drains, the
// second hastens it.
func serve(cfg *config.Config, role app.Role, queues []string) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(cfg.Copy.Memory) + besideObjects)
	}
	ctx := context.Background()
	tel, err := telemetry.New(ctx, telemetry.Config{Service: "objectferry", Version: version(), Level: cfg.Log.Level})
	if err != nil {
		return usageError{err}
	}
	defer func() {
		flush, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if e := tel.Shutdown(flush); e != nil {
			tel.Log.Warn().Err(e).Msg("telemetry was not all sent")
		}
	}()
	a, err := app.New(ctx, cfg, app.Options{Role: role, Version: version(), Queues: queues}, tel)
	if err != nil {
		return usageError{err}
	}
	if err := a.Start(ctx); err != nil {
		return err
	}
	tel.Log.Info().Str("role", string(role)).Str("admin", a.AdminAddr()).Msg("started")

	var failure error
	select {
	case s := <-signals:
		tel.Log.Info().Str("signal", s.String()).Dur("at_most", time.Duration(cfg.Drain)).Msg("draining; a second signal hastens it")
	case failure = <-a.Failed():
		tel.Log.Error().Err(failure).Msg("stopping, because a part cannot go on")
	}
	drain, cancel := context.WithTimeout(ctx, time.Duration(cfg.Drain))
	defer cancel()
	go func() {
		select {
		case <-signals:
			cancel()
		case <-drain.Done():
		}
	}()
	if err := a.Stop(drain); err != nil {
		return errors.Join(failure, fmt.Errorf("drain: %w", err))
	}
	tel.Log.Info().Msg("drained")
	return failure
}
