package ferry

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"time"
)

// MotoProgram is moto's server; version 5 is what the suites were written for.
const MotoProgram = "moto_server"

// StartMoto starts a moto_server with more in its environment and returns where
// it serves. It lasts as long as this process: a shell ends it when the pipe to
// the shell's standard input closes, also when the tests are killed.
func StartMoto(environ ...string) (url string, err error) {
	shell := exec.Command("sh", "-c", `"$@" & read -r _; kill $!; wait`, "sh", MotoProgram, "-H", "127.0.0.1", "-p", "0")
	shell.Env = append(append(os.Environ(), "TZ=UTC"), environ...) // its events tell local time
	if _, err := shell.StdinPipe(); err != nil {
		return "", err
	}
	stderr, err := shell.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := shell.Start(); err != nil {
		return "", err
	}
	ready := make(chan string, 1)
	go func() {
		running := regexp.MustCompile(`Running on (http://\S+)`)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			if m := running.FindStringSubmatch(lines.Text()); m != nil {
				ready <- m[1]
				break
			}
		}
		close(ready)
		_, _ = io.Copy(io.Discard, stderr) // or moto would stall
		_ = shell.Wait()                   // this also keeps the pipes from being collected
	}()
	select {
	case url, ok := <-ready:
		if !ok {
			return "", errors.New("it ended before it served")
		}
		return url, nil
	case <-time.After(2 * time.Minute):
		return "", errors.New("it does not serve after two minutes")
	}
}
