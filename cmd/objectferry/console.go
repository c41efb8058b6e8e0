package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/console"
	"github.com/objectferry/objectferry/internal/console/fleet"
	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/queue"
)

// consoleFlags are those of `objectferry console`.
type consoleFlags struct {
	config, listen string
	fleet          fleet.Config
	console        console.Config
}

func newConsoleCommand() *cobra.Command {
	f := consoleFlags{fleet: fleet.DefaultConfig(), console: console.DefaultConfig()}
	c := &cobra.Command{
		Use:   "console",
		Short: "Serve a page for on-call: is it healthy, and the dead letters",
		Long: `Serve a page for on-call: whether the service is healthy at one glance, the share
of requests that S3 answered, queues, guards, ends, latest failures, and the dead
letters with redrive and drop, which ask for confirmation and are logged to
standard error.

Run it under the on-call role. It has no login: whoever reaches it acts in its
name, so it listens on this machine only unless --listen says otherwise. Numbers of
the fleet come from Prometheus where one is named, else from the pods' admin pages.
docs/CONSOLE.md has more.`,
		Example: `  objectferry console --prometheus http://127.0.0.1:9090 --pod http://127.0.0.1:8080
  objectferry console --pod http://10.0.3.7:8080 --pod http://10.0.4.9:8080 --as alice
  objectferry console --trace-url 'https://apm.example.com/trace/{trace_id}'`,
		Args: usageArgs(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.serve(c.Context()) },
	}
	c.Flags().StringVar(&f.config, "config", "objectferry.yaml", "configuration `file`")
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8090", "`host:port` to serve on; anything but loopback gives everybody there the right to redrive and drop")
	c.Flags().StringArrayVar(&f.console.Hosts, "host", nil, "a host `name`, beside localhost, that the page is asked by; repeat for more")
	c.Flags().StringVar(&f.fleet.Prometheus, "prometheus", "", "`URL` of a Prometheus that scrapes the pods")
	c.Flags().StringArrayVar(&f.fleet.Pods, "pod", nil, "`URL` of a pod's admin server, such as http://10.0.3.7:8080; repeat for more")
	c.Flags().StringVar(&f.console.TraceURL, "trace-url", "", "`URL` of a trace in the APM tool, with {trace_id} where its id goes")
	c.Flags().StringVar(&f.console.Who, "as", "", "the `name` that moves of letters are logged with; default the user of this process")
	c.Flags().StringVar(&f.console.SaveDir, "save-dir", f.console.SaveDir, "`directory` where dropped letters are saved")
	return c
}

// serve serves the console until the command is interrupted.
func (f *consoleFlags) serve(ctx context.Context) error {
	cfg, err := config.Load(f.config, nil)
	if err != nil {
		return err
	}
	if err := f.complete(); err != nil {
		return usageError{err}
	}
	log := zerolog.New(os.Stderr).With().Timestamp().Logger()
	numbers, err := fleet.New(f.fleet)
	if err != nil {
		return usageError{fmt.Errorf("--prometheus, --pod: %w", err)}
	}
	client, err := patientSQS(ctx, cfg)
	if err != nil {
		return err
	}
	deps := console.Deps{Fleet: numbers, Log: log, Queues: []console.Queue{{Name: "logs", URL: cfg.Queues.Logs}},
		Depth: func(ctx context.Context, url string) (queue.Depth, error) { return queue.ReadDepth(ctx, client, url) },
		// Of the configuration that was read: an edited file must not put other
		// queues in the places of those that the page shows.
		Boxes: func(ctx context.Context) ([]*deadletter.Box, error) { return openBoxes(ctx, client, cfg, "") }}
	for _, url := range cfg.SyncQueues() {
		deps.Queues = append(deps.Queues, console.Queue{Name: "sync", URL: url})
	}
	c, err := console.New(deps, f.console)
	if err != nil {
		return usageError{err}
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", f.listen)
	if err != nil {
		return usageError{fmt.Errorf("--listen: %w", err)}
	}
	if a, ok := l.Addr().(*net.TCPAddr); !ok || !a.IP.IsLoopback() {
		log.Warn().Str("listen", l.Addr().String()).Msg("THIS CONSOLE HAS NO LOGIN, and others than this machine can reach it: whoever does can redrive and drop dead letters")
	}
	log.Info().Str("console", "http://"+l.Addr().String()).Str("who", f.console.Who).Str("numbers", numbers.From()).Msg("started")
	return c.Serve(ctx, l)
}

// complete fills in what is known without flags, and looks at what was given.
func (f *consoleFlags) complete() error {
	if f.console.Who == "" {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("who moves letters is logged; name yourself with --as: %w", err)
		}
		f.console.Who = u.Username
	}
	host, _, err := net.SplitHostPort(f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() || ip == nil && host != "" {
		f.console.Hosts = append(f.console.Hosts, host)
	}
	if f.console.SaveDir, err = filepath.Abs(f.console.SaveDir); err != nil {
		return fmt.Errorf("--save-dir: %w", err)
	}
	if d, err := os.Stat(f.console.SaveDir); err != nil {
		return fmt.Errorf("--save-dir: %w", err)
	} else if !d.IsDir() {
		return errors.New("--save-dir: not a directory")
	}
	return nil
}
