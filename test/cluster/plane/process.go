package plane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is a running program. A shell between us and it kills it when the pipe
// to the shell's standard input closes, also when we are killed.
type process struct {
	name, log string
	stdin     io.Closer
	done      chan struct{} // closed when the program has ended
}

// run starts a program; its output goes to a file in dir.
func run(dir, name string, env []string, program string, args ...string) (*process, error) {
	const shell = `exec 3<&0; "$@" 3<&- & program=$!
{ read -r _ <&3; kill -9 $program; } & reader=$!
wait $program; kill $reader 2>/dev/null`
	return start(dir, name, env, shell, append([]string{program}, args...)...)
}

func start(dir, name string, env []string, shell string, args ...string) (*process, error) {
	p := &process{name: name, log: filepath.Join(dir, name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command("sh", append([]string{"-c", shell, "sh"}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(foreign(os.Environ()), env...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.stdin = stdin
	go func() {
		_ = cmd.Wait() // a shell that was told to kill has nothing to say
		close(p.done)
	}()
	return p, nil
}

// foreign is an environment without what belongs to our own caller.
func foreign(environ []string) (env []string) {
	for _, e := range environ {
		if !strings.HasPrefix(e, "AWS_") && !strings.HasPrefix(e, "KUBE") && !strings.HasPrefix(e, "OTEL_") {
			env = append(env, e)
		}
	}
	return env
}

// kill ends the program and waits for it.
func (p *process) kill() {
	p.stdin.Close()
	<-p.done
}

// ready waits until a URL answers 200.
func (p *process) ready(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	go func() {
		select {
		case <-p.done: // it will never be
			cancel()
		case <-ctx.Done():
		}
	}()
	err := poll(ctx, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
	if err != nil {
		log, _ := os.ReadFile(p.log)
		return fmt.Errorf("wait for %s: %w\n%s", p.name, err, tail(log))
	}
	return nil
}

// poll tries until it succeeds or ctx ends, and then returns the last failure.
func poll(ctx context.Context, try func() error) error {
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// FreePort is a port of the loopback that nobody listens on just now.
func FreePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}

// address gives this machine one more address, on an interface of its own, that
// goes with the process: endpoints of a Service must not be loopback addresses.
func address(dir string) (*process, string, error) {
	for n := range 250 {
		name, ip := fmt.Sprintf("ferry%d", n), fmt.Sprintf("198.51.100.%d", n+1) // of a range for documentation
		out, err := exec.Command("ip", "link", "add", name, "type", "veth", "peer", "name", name+"p").CombinedOutput()
		switch {
		case err != nil && strings.Contains(string(out), "File exists"):
			continue // another plane's
		case err != nil:
			return nil, "", fmt.Errorf("add a network interface (this needs root): %w: %s", err, out)
		}
		p, err := start(dir, "interface", nil, `read -r _; ip link del "$1"`, name)
		if err != nil {
			return nil, "", err
		}
		for _, args := range [][]string{{"addr", "add", ip + "/32", "dev", name}, {"link", "set", name, "up"}, {"link", "set", name + "p", "up"}} {
			if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
				p.kill()
				return nil, "", fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
			}
		}
		return p, ip, nil
	}
	return nil, "", errors.New("no network interface name is free")
}
