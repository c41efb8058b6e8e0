// Command objectferry-demo runs the whole loop on an embedded cloud: seeded
// visitors ask an edge for objects, S3 logs what it misses, and the real service
// carries the objects over. It needs nothing but itself.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns 0 when all that the demo promises came true, 1 when not, and 2 when
// the command line is wrong. Without --once it goes on until Ctrl-C and returns 0.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("objectferry-demo", flag.ContinueOnError)
	flags.SetOutput(stderr)
	once := flags.Bool("once", false, "end by itself, and with 0 only if everything was carried over, byte for byte")
	asJSON := flags.Bool("json", false, "print one JSON line at the end")
	seed := flags.Uint64("seed", 1, "of the objects and the visitors")
	objects := flags.Int("objects", 200, "objects in the embedded COS")
	visits := flags.Int("visits", 300, "visits a round")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() > 0 || *objects < 1 || *visits < 1 {
		fmt.Fprintln(stderr, "objectferry-demo: it takes no arguments, and --objects and --visits must be above 0")
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C does not wait for the drain

	d := &demo{seed: *seed, objects: *objects, visits: *visits, out: stdout}
	if *asJSON {
		d.out = stderr // the one line is all that stdout gets
	}
	result, err := d.play(ctx, *once)
	if err != nil {
		fmt.Fprintf(stderr, "objectferry-demo: %v\n", err)
	}
	if *asJSON {
		if err := json.NewEncoder(stdout).Encode(result); err != nil {
			fmt.Fprintf(stderr, "objectferry-demo: %v\n", err)
			return 1
		}
	}
	if err != nil {
		return 1
	}
	return 0
}
