package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
	"time"
)

// motoProgram is moto's server; version 5 is what the table of features was
// written for.
const motoProgram = "moto_server"

// motoAccount is the one account that moto knows.
const motoAccount = "123456789012"

// motoPage makes moto's listings short, so that few keys are several pages.
const motoPage = 7

// startMoto starts one moto_server for all tests of this process, which lasts as
// long as the process: a shell ends it when the pipe to the shell's standard
// input closes, also when the tests are killed.
var startMoto = sync.OnceValues(func() (url string, err error) {
	shell := exec.Command("sh", "-c", `"$@" & read -r _; kill $!; wait`, "sh", motoProgram, "-H", "127.0.0.1", "-p", "0")
	shell.Env = append(os.Environ(), "TZ=UTC", fmt.Sprintf("MOTO_S3_DEFAULT_MAX_KEYS=%d", motoPage)) // its events tell local time
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
})

// moto is someone else's cloud. The test is skipped where it is not installed.
func moto(t *testing.T) *cloud {
	t.Helper()
	if _, err := exec.LookPath(motoProgram); err != nil {
		t.Skipf("%s is not installed (pip install 'moto[server]'): someone else's cloud is not tested", motoProgram)
	}
	url, err := startMoto()
	if err != nil {
		t.Fatalf("start %s: %v", motoProgram, err)
	}
	return &cloud{name: "moto", s3URL: url, sqsURL: url, account: motoAccount, page: motoPage}
}
