package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes this test binary the command "objectferry-demo" on the PATH.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"objectferry-demo": main})
}

func TestOnceEndsByItselfWithOneLineOfJSON(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--once", "--json", "--objects", "60", "--visits", "90"}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d\n%s", code, &stderr)
	}
	var result map[string]float64
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || strings.Count(stdout.String(), "\n") != 1 {
		t.Fatalf("%v: %s", err, &stdout)
	}
	objects, seconds := result["objects"], result["seconds"]
	if objects < 30 || objects > 60 || seconds <= 0 {
		t.Errorf("%g objects in %g seconds", objects, seconds)
	}
	want := map[string]float64{"visits": 270, "errors": 0, "objects": objects, "copied": objects, "served_from_s3_first": 0, "served_from_s3_last": 1,
		"dead_letters": 0, "seconds": seconds}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	if n := strings.Count(stderr.String(), "round "); n != roundsOnce {
		t.Errorf("%d rounds were shown, want %d:\n%s", n, roundsOnce, &stderr)
	}
	goleak.VerifyNone(t, goleak.IgnoreAnyFunction("os/signal.loop"))
}

func TestUsageErrorsExit2(t *testing.T) {
	for _, args := range [][]string{{"--nonsense"}, {"nonsense"}, {"--objects", "0"}, {"--visits", "-1"}, {"--seed", "x"}} {
		var stdout, stderr bytes.Buffer
		if code := run(args, &stdout, &stderr); code != 2 || stderr.Len() == 0 || stdout.Len() > 0 {
			t.Errorf("%v is %d with %q", args, code, stderr.String())
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run([]string{"--help"}, &stdout, &stderr); code != 0 || !strings.Contains(stderr.String(), "-once") {
		t.Errorf("--help is %d with %q", code, stderr.String())
	}
}

// Without --once the rounds are paced, so that one can watch them, and Ctrl-C is
// the regular end.
func TestLiveIsPacedAndEndsWithCtrlC(t *testing.T) {
	cmd := exec.Command("objectferry-demo", "--json", "--objects", "20", "--visits", "20")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	var rounds []time.Time
	var text strings.Builder
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		text.WriteString(lines.Text() + "\n")
		if !strings.HasPrefix(lines.Text(), "round ") {
			continue
		}
		if rounds = append(rounds, time.Now()); len(rounds) == 4 {
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &text)
	}
	// Each line comes at the end of its round; the first round takes longest.
	if len(rounds) < 4 || rounds[3].Sub(rounds[0]) < 3*roundEvery-roundEvery {
		t.Errorf("rounds ended at %v\n%s", rounds, &text)
	}
	var result Result
	if err := json.Unmarshal(stdout.Bytes(), &result); err != nil || result.Visits < 80 || result.Copied == 0 || result.Errors > 0 || result.Seconds < 2 {
		t.Errorf("%v: %s", err, &stdout)
	}
}
