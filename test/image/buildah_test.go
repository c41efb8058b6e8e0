//go:build image

package image

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/objectferry/objectferry/test/ferry"
)

// builder is buildah with a storage of its own, which goes with the test.
type builder struct {
	*testing.T
	program string
	storage []string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	b := &builder{T: t, program: ferry.Tool(t, "buildah")}
	if os.Getuid() != 0 {
		t.Fatal("this must be run as root: it mounts images")
	}
	dir := t.TempDir()
	b.storage = []string{"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--storage-driver", "overlay"}
	t.Cleanup(func() {
		b.buildah("rm", "--all")
		// The driver may have mounted its directory onto itself.
		_ = syscall.Unmount(filepath.Join(dir, "root", "overlay"), syscall.MNT_DETACH)
	})
	return b
}

func (b *builder) command(args ...string) *exec.Cmd {
	return exec.Command(b.program, append(b.storage[:len(b.storage):len(b.storage)], args...)...)
}

// buildah runs it and returns what it prints.
func (b *builder) buildah(args ...string) string {
	b.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.Fatalf("buildah %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// try is buildah for what may fail.
func (b *builder) try(args ...string) (string, error) {
	cmd := b.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return strings.TrimSpace(stdout.String()), nil
}

// base makes an image to build in: this machine's Go, a shell, the certificates,
// and nothing else. Modules come from this machine's cache, which is mounted.
func (b *builder) base(name string) {
	b.Helper()
	container := b.buildah("from", "scratch")
	root := b.buildah("mount", container)
	for _, dir := range []string{"tmp", "root", "usr/local"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			b.Fatal(err)
		}
	}
	b.run("cp", "-r", goEnv(b.T, "GOROOT"), filepath.Join(root, "usr/local/go"))
	for _, file := range []string{"/bin/sh", "/etc/ssl/certs/ca-certificates.crt"} {
		b.copy(file, root)
	}
	libraries, err := exec.Command("ldd", "/bin/sh").Output()
	if err != nil {
		b.Fatalf("which libraries has /bin/sh: %v", err)
	}
	for word := range strings.FieldsSeq(string(libraries)) {
		if strings.HasPrefix(word, "/") {
			b.copy(word, root)
		}
	}
	b.buildah("umount", container)
	b.buildah("config", "--env", "PATH=/usr/local/go/bin:/bin", "--env", "GOPROXY=file:///modules", "--env", "GOSUMDB=off", "--env", "GOTOOLCHAIN=local", container)
	b.buildah("commit", "--quiet", container, name)
	b.buildah("rm", container)
}

// copy copies what a path leads to into root, under the same path.
func (b *builder) copy(path, root string) {
	b.Helper()
	to := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		b.Fatal(err)
	}
	b.run("cp", "-L", path, to)
}

func (b *builder) run(name string, args ...string) {
	b.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		b.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatalf("go env %s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}
