//go:build image

// Package image builds the Dockerfile with buildah and looks at what came out:
// `make image-test`. It is no part of the other tests, because it needs root and
// minutes. No registry is asked: the build image is made of this machine's Go.
package image

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

const (
	buildImage = "localhost/objectferry-build"
	name       = "localhost/objectferry"
	version    = "0.0.0-image-test"
	// maxSize of the image in bytes; it has 36 MB, of which all but 0.2 is the binary.
	maxSize = 48 << 20
	// user that nobody is, by number, so that Kubernetes can tell it is not root.
	user = 65532
)

func TestImage(t *testing.T) {
	b := newBuilder(t)
	b.base(buildImage)
	started := time.Now()
	b.buildah("build", "--isolation", "chroot", "--build-arg", "BUILD_IMAGE="+buildImage, "--build-arg", "VERSION="+version,
		"--volume", filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")+":/modules:ro", "--volume", goEnv(t, "GOCACHE")+":/root/.cache/go-build:rw",
		"--tag", name, "../..")
	t.Logf("built in %s", time.Since(started).Round(time.Second))

	t.Run("it says how it is started", func(t *testing.T) {
		var image struct {
			OCIv1 struct {
				Config struct {
					User            string
					Entrypoint, Cmd []string
					ExposedPorts    map[string]struct{}
					Labels          map[string]string
				} `json:"config"`
			}
		}
		if err := json.Unmarshal([]byte(b.buildah("inspect", "--type", "image", name)), &image); err != nil {
			t.Fatal(err)
		}
		c := image.OCIv1.Config
		if c.User != fmt.Sprintf("%d:%d", user, user) || !slices.Equal(c.Entrypoint, []string{"/objectferry"}) ||
			!slices.Equal(c.Cmd, []string{"run", "--config", "/etc/objectferry/objectferry.yaml"}) || len(c.ExposedPorts) != 1 {
			t.Errorf("%+v", c)
		}
		if c.Labels["org.opencontainers.image.version"] != version {
			t.Errorf("labels %q", c.Labels)
		}
	})
	t.Run("it holds the binary and the certificates, no shell, and is small", func(t *testing.T) {
		files, size := map[string]fs.FileMode{}, int64(0)
		container := b.buildah("from", name)
		root := b.buildah("mount", container)
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err == nil {
				files[strings.TrimPrefix(path, root)] = info.Mode()
				size += info.Size()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b.buildah("rm", container)
		want := map[string]fs.FileMode{"/objectferry": 0o755, "/etc/ssl/certs/ca-certificates.crt": 0o644}
		if diff := cmp.Diff(want, files); diff != "" {
			t.Errorf("files (-want +got):\n%s", diff)
		}
		t.Logf("%d bytes", size)
		if size > maxSize {
			t.Errorf("%d bytes, want %d at most", size, maxSize)
		}
	})
	t.Run("the binary in it says its version", func(t *testing.T) {
		container := b.buildah("from", name)
		if got := b.buildah("run", "--isolation", "chroot", container, "--", "/objectferry", "--version"); got != "objectferry version "+version {
			t.Errorf("%q", got)
		}
		if out, err := b.try("run", "--isolation", "chroot", container, "--", "/bin/sh", "-c", "true"); err == nil || !strings.Contains(out, "no such file") {
			t.Errorf("a shell: %v %s", err, out)
		}
		b.buildah("rm", container)
	})
	t.Run("it starts, becomes ready and drains", func(t *testing.T) { starts(t, b) })
}

// starts runs the service out of the image on an embedded cloud.
func starts(t *testing.T, b *builder) {
	site, err := localcloud.Start(localcloud.Config{COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}}})
	if err != nil {
		t.Fatal(err)
	}
	defer site.Close()
	file := ferry.Config(t, site.YAML([]localcloud.Route{{}}, "retry: {wait: 1s}"))
	if err := os.Chmod(file, 0o644); err != nil { // it is not root who reads it
		t.Fatal(err)
	}
	container := b.buildah("from", name)
	args := []string{"run", "--isolation", "chroot", "--volume", file + ":/etc/objectferry/objectferry.yaml:ro"}
	for name, value := range site.Environ() {
		args = append(args, "--env", name+"="+value)
	}
	if out, err := b.try(append(args, container, "--", "/objectferry", "check", "--config", "/etc/objectferry/objectferry.yaml", "--live")...); err != nil {
		t.Errorf("check: %v\n%s", err, out)
	}

	cmd := b.command(append(args, container, "--", "/objectferry", "run", "--config", "/etc/objectferry/objectferry.yaml")...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, admin := bufio.NewReader(stderr), ""
	var log strings.Builder
	for found := regexp.MustCompile(`"admin":"([^"]+)".*"message":"started"`); admin == ""; {
		line, err := lines.ReadString('\n')
		log.WriteString(line)
		if m := found.FindStringSubmatch(line); m != nil {
			admin = "http://" + m[1]
		} else if err != nil {
			t.Fatalf("it did not start: %v\n%s", cmd.Wait(), log.String())
		}
	}
	pid := descendant(t, cmd.Process.Pid, "objectferry")
	ended := false
	defer func() {
		if !ended {
			_ = syscall.Kill(pid, syscall.SIGKILL) // buildah ends with it
			_ = cmd.Wait()
		}
	}()
	ferry.Until(t, time.Minute, "it is ready", func() bool {
		resp, err := http.Get(admin + "/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	if got := status(t, pid, "Uid"); !slices.Equal(got, slices.Repeat([]string{strconv.Itoa(user)}, 4)) {
		t.Errorf("it runs as %q", got)
	}
	// buildah passes no signal on, so the process is sent it.
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(lines) // until the process ends
	if err := cmd.Wait(); err != nil || !strings.Contains(string(rest), `"message":"drained"`) {
		t.Errorf("drain: %v\n%s%s", err, log.String(), rest)
	}
	ended = true
	b.buildah("rm", container)
}

// descendant finds a process by its name among those that parent has started.
func descendant(t *testing.T, parent int, name string) int {
	t.Helper()
	todo := []int{parent}
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		if got := status(t, pid, "Name"); slices.Equal(got, []string{name}) {
			return pid
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // a thread that has ended
			}
			for child := range strings.FieldsSeq(string(text)) {
				n, err := strconv.Atoi(child)
				if err != nil {
					t.Fatal(err)
				}
				todo = append(todo, n)
			}
		}
	}
	t.Fatalf("no process %s below %d", name, parent)
	return 0
}

// status is a line of /proc/PID/status, nil when the process has ended.
func status(t *testing.T, pid int, field string) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if values, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.Fields(values)
		}
	}
	return nil
}
