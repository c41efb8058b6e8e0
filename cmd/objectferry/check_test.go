package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goodConfig = `region: us-west-2
queues:
  logs: https://sqs.us-west-2.amazonaws.com/111122223333/logs
  sync: https://sqs.us-west-2.amazonaws.com/111122223333/sync
logs: [{bucket: log-bucket, when_done: keep}]
routes:
  - bucket: media
    source: {cos: "https://media-1250000000.cos.ap-shanghai.myqcloud.com", read: signed, credentials_file: CREDENTIALS}
    include: ["img/**"]
`

// runCheck runs the command on a configuration and returns its exit code.
func runCheck(t *testing.T, text string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "objectferry.yaml")
	text = strings.ReplaceAll(text, "CREDENTIALS", filepath.Join(dir, "cos.json"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "# half a key") {
		if err := os.WriteFile(filepath.Join(dir, "cos.json"), []byte(`{"id": "AKIDEXAMPLE"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errOut bytes.Buffer
	root := newRootCommand()
	root.SetOut(&out)
	root.SetErr(&errOut)
	root.SetArgs(append([]string{"check", "--config", file}, args...))
	code = exitCode(root.ExecuteContext(t.Context()), &errOut)
	return code, out.String(), errOut.String()
}

func TestCheckOffline(t *testing.T) {
	for name, tt := range map[string]struct {
		text           string
		code           int
		stdout, stderr string
	}{
		"good": {goodConfig, exitDone, "media   copy  https://media-1250000000.cos.ap-shanghai.myqcloud.com  signed  img/**", ""},
		"every problem at once": {
			strings.NewReplacer("when_done: keep", "prefix: a/", "read: signed", "read: maybe").Replace(goodConfig), exitUsage, "",
			"objectferry.yaml:5: logs[0].when_done: must be \"keep\" or \"delete\"; there is no default, because delete cannot be undone and keep needs a lifecycle rule\n" +
				"objectferry.yaml:8: routes[0].source.read: must be \"anonymous\" or \"signed\"; there is no default, because it decides what may become public\n",
		},
		"signed without include":       {strings.Replace(goodConfig, `    include: ["img/**"]`, "", 1), exitUsage, "", "routes[0].include: is missing"},
		"signed and everything":        {strings.Replace(goodConfig, `"img/**"`, `"**"`, 1), exitUsage, "", "all_public: true"},
		"a credentials file of a half": {goodConfig + "# half a key\n", exitUsage, "", "routes[0].source.credentials_file: read COS credentials"},
		"unknown role":                 {goodConfig, exitUsage, "", "must be parse, copy, all, sweep or oncall"},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			if name == "unknown role" {
				args = []string{"--role", "both"}
			}
			code, stdout, stderr := runCheck(t, tt.text, args...)
			if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
				t.Errorf("exit %d, want %d\nstdout:\n%s\nstderr:\n%s", code, tt.code, stdout, stderr)
			}
		})
	}
}

func TestCheckJSON(t *testing.T) {
	code, stdout, _ := runCheck(t, goodConfig, "--json")
	var report checkReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitDone || !report.OK || len(report.Routes) != 1 {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	code, stdout, stderr := runCheck(t, "region: us-west-2\n", "--json")
	report = checkReport{}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != exitUsage || report.OK || len(report.Problems) < 4 {
		t.Errorf("exit %d, %v: %s", code, err, stdout)
	}
	if strings.Count(stderr, "\n") != len(report.Problems) {
		t.Errorf("%d problems, standard error has:\n%s", len(report.Problems), stderr)
	}
}

// What cannot be reached is a failed check, not a wrong configuration.
func TestCheckLiveFails(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s3cret")
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	text := strings.Replace(goodConfig, `"https://media-1250000000.cos.ap-shanghai.myqcloud.com"`, `"http://127.0.0.1:1"`, 1)
	code, stdout, stderr := runCheck(t, text, "--live")
	if code != exitFailed || !strings.Contains(stderr, "live checks failed") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"failed     s3:ListBucket", "failed     sqs:GetQueueAttributes", "failed     sqs:ReceiveMessage",
		"failed     cos:GetObject", "failed     s3:AbortMultipartUpload", "not tried  s3:PutObject",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout+stderr, "s3cret") {
		t.Error("the secret is shown")
	}
}
