// Command objectferry carries objects that overseas visitors asked for from
// Tencent COS to S3, and gives on-call the tools to look after that.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	// A command ends at the first signal, and is killed by the second should it
	// still wait, for standard input say. `run` handles signals itself, because it
	// drains at the first and hastens at the second.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return exitCode(newRootCommand().ExecuteContext(ctx), os.Stderr)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "objectferry",
		Short: "Carry objects that visitors missed from Tencent COS to S3",
		Long: `Carry objects that visitors missed from Tencent COS to S3.

S3's access logs tell which objects visitors asked for in vain. "run" is the
service that reads those logs and copies the objects. All other commands are for
people: "report" and "check" before a deployment; "console", "explain",
"deadletter", "request", "reconcile" and "sweep" on call; "parse" to look into a
log. Visitors never wait for any of them.

Exit codes: 0 done, 1 failed, 2 the command line or the configuration is wrong and
nothing was done, 3 partly done.`,
		Example: `  objectferry check --config objectferry.yaml --live   # will it work here?
  objectferry run --config objectferry.yaml            # the service
  objectferry deadletter ls                            # what went wrong, by reason`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("unknown command %q; see objectferry --help", args[0])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetFlagErrorFunc(wrongUsage)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRunCommand(), newCheckCommand(), newParseCommand(), newReportCommand(), newExplainCommand(),
		newReconcileCommand(), newRequestCommand(), newSweepCommand(), newDeadletterCommand(), newConsoleCommand())
	return root
}

// release is set by the linker where there is no repository to tell what was
// built, as in the Dockerfile.
var release string

// version is what the build recorded of the source it was made from.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return info.Main.Version
}
