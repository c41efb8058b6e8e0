package ferry

import (
	"os"
	"os/exec"
	"testing"
)

// Tool returns the path of a program that a test needs and that Go cannot bring,
// such as moto_server. Where it is missing the test says so and is skipped; it
// fails instead when FERRY_TOOLS is "required", as it is in CI. (What begins with
// OBJECTFERRY_ is the configuration, and an unknown name there is an error.)
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("FERRY_TOOLS") == "required":
		t.Fatalf("%s is missing: %v", name, err)
	default:
		t.Skipf("%s is missing: nothing is checked here (%v)", name, err)
	}
	return ""
}
