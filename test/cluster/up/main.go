// Command up runs the control plane of package plane for as long as its standard
// input stays open, prints the path of its kubeconfig on standard output when it
// is ready, and what it is doing on standard error.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/objectferry/objectferry/test/cluster/plane"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p, err := plane.Start(ctx, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	if err != nil {
		fmt.Fprintf(os.Stderr, "start the control plane: %v\n", err)
		return 1
	}
	defer p.Close()
	fmt.Println(p.Kubeconfig)
	closed := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until it closes
		close(closed)
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
	return 0
}
