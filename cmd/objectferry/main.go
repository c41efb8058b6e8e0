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
	// A command ends at the first signal; `run` handles signals itself, because it
	// drains at the first and hastens at the second.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return exitCode(newRootCommand().ExecuteContext(ctx), os.Stderr)
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "objectferry",
		Short:         "Carry objects that visitors missed from Tencent COS to S3",
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRunCommand(), newCheckCommand(), newParseCommand(), newRequestCommand(), newSweepCommand(), newDeadletterCommand())
	return root
}

// version is what the build recorded of the source it was made from.
func version() string {
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
