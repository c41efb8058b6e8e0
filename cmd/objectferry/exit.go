package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/config"
)

// The exit codes, one table for all commands.
const (
	exitDone   = 0 // done
	exitFailed = 1 // it failed; the error says what and where
	exitUsage  = 2 // the command line or the configuration is wrong; nothing was done
	exitPartly = 3 // some of it was done; the output says what was not
)

// usageError is a mistake on the command line.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// wrongUsage is what cobra says of a command line, and where to read how it is
// meant.
func wrongUsage(c *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w; see %s --help", err, c.CommandPath())}
}

// usageArgs makes wrong arguments a mistake on the command line.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return wrongUsage(c, err)
		}
		return nil
	}
}

// partlyError says that some of the work was done and some was not.
type partlyError struct{ err error }

func (e partlyError) Error() string { return e.err.Error() }
func (e partlyError) Unwrap() error { return e.err }

// exitCode prints err, if there is one, and says which code it stands for.
func exitCode(err error, stderr io.Writer) int {
	if err == nil {
		return exitDone
	}
	var usage usageError
	var wrong config.Errors
	var partly partlyError
	switch {
	case errors.As(err, &wrong): // a line a problem, each names its place
		fmt.Fprintln(stderr, err)
		return exitUsage
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "objectferry: %v\n", err)
		return exitUsage
	case errors.As(err, &partly):
		fmt.Fprintf(stderr, "objectferry: %v\n", err)
		return exitPartly
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(stderr, "objectferry: interrupted")
		return exitFailed
	default:
		fmt.Fprintf(stderr, "objectferry: %v\n", err)
		return exitFailed
	}
}
