package deploy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// run starts one half of the service under its own role, with the outputs of the
// stacks for its configuration.
func (s *site) run(t *testing.T, role string) *ferry.Process {
	t.Helper()
	return ferry.Start(t, nil, ferry.Options{YAML: s.yaml, Args: []string{"--role", role}, Env: s.environ(s.take(t, role))})
}

// command runs another command of the binary as who.
func (s *site) command(t *testing.T, who aws.Credentials, args ...string) (stdout, stderr string, exit int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), ferry.Binary(t), append(args, "--config", s.file)...)
	cmd.Env = ferry.Environ(nil, s.environ(who))
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatalf("run %v: %v", args, err)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

// succeed runs a command that must succeed, and returns what it printed.
func (s *site) succeed(t *testing.T, who aws.Credentials, args ...string) string {
	t.Helper()
	stdout, stderr, exit := s.command(t, who, args...)
	if exit != 0 {
		t.Fatalf("objectferry %s: exit code %d\n%s%s", strings.Join(args, " "), exit, stdout, stderr)
	}
	return stdout
}

// deliver puts an access log with a miss of each key where S3 would.
func (s *site) deliver(t *testing.T, name string, keys ...string) {
	t.Helper()
	var log strings.Builder
	for _, key := range keys {
		fmt.Fprintf(&log, "%s %s [%s] 203.0.113.9 - 3E57427F3EXAMPLE REST.GET.OBJECT %s \"GET /%s HTTP/1.1\" 403 AccessDenied 297 - 8 - \"-\" \"Mozilla/5.0\" -\n",
			strings.Repeat("79a59df9", 8), media, time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"), key, key)
	}
	_, err := s.s3().PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(logs), Key: aws.String("access/overseas-media/" + name), Body: strings.NewReader(log.String())})
	if err != nil {
		t.Fatalf("deliver a log: %v", err)
	}
}

// object is the body that stands at the destination, "" if there is none.
func (s *site) object(t *testing.T, key string) string {
	t.Helper()
	out, err := s.s3().GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(media), Key: &key})
	if err != nil {
		return ""
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// until polls seldom: each question costs moto some 10 ms of the one core that it
// can use.
func until(t *testing.T, what string, ok func() bool, log func() string) {
	t.Helper()
	const within = 2 * time.Minute
	for deadline := time.Now().Add(within); !ok(); time.Sleep(250 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s\n%s", within, what, log())
		}
	}
}

// TestOutputsAreTheConfiguration runs the service and the commands of on-call on
// the deployed stacks: with their outputs, and nothing else, for configuration,
// and each process under its own role. moto announces the logs itself.
func TestOutputsAreTheConfiguration(t *testing.T) {
	t.Parallel()
	s := deploy(t)
	t.Run("templates are read as moto reads them", s.readAlike)
	t.Run("a miss becomes an object", s.missBecomesObject)
	t.Run("on-call may do its work", s.onCallMayDoItsWork)
	t.Run("least privilege", s.leastPrivilege)
}

// readAlike holds what the tests of the templates read (cfn) against what moto
// made of them: the outputs, and the statements of the roles' policies.
func (s *site) readAlike(t *testing.T) {
	for name, stack := range map[string]*cfn.Stack{"objectferry.yaml": s.service, "bucket.yaml": s.bucket} {
		read := map[string]string{}
		for output, v := range stack.Outputs {
			read[output] = fmt.Sprint(v)
		}
		if diff := cmp.Diff(read, s.outputs[name]); diff != "" {
			t.Errorf("outputs of %s (-read +moto):\n%s", name, diff)
		}
	}
	for role, made := range s.made {
		if diff := cmp.Diff(policies(t, "objectferry-"+role, s.service, s.bucket), made); diff != "" {
			t.Errorf("policies of %s (-read +moto):\n%s", role, diff)
		}
	}
}

func (s *site) missBecomesObject(t *testing.T) {
	keys := []string{"img/one.jpg", "img/large.bin"}
	s.cos.Put(keys[0], []byte("one"), cosd.Attributes{ContentType: "image/jpeg"})
	s.cos.Put(keys[1], bytes.Repeat([]byte("0123456789abcdef!"), 1_100_000), cosd.Attributes{}) // two parts
	s.cos.Put("private/secret", []byte("secret"), cosd.Attributes{})
	parser, copier := s.run(t, "parse"), s.run(t, "copy")
	log := func() string { return parser.Log() + copier.Log() }
	s.deliver(t, "2026-09-04-09-00-00-0123456789ABCDEF", append(keys, "private/secret", "img/nowhere")...)
	for _, key := range keys {
		want, _, _ := s.cos.Get(key)
		until(t, key+" stands overseas", func() bool { return s.object(t, key) == string(want) }, log)
	}
	until(t, "the queues are empty", func() bool {
		return s.depth(t, "objectferry-logs")+s.depth(t, "objectferry-sync_media") == 0
	}, log)
	for name, p := range map[string]*ferry.Process{"parse": parser, "copy": copier} {
		if err := p.Stop(60 * time.Second); err != nil {
			t.Errorf("drain %s: %v", name, err)
		}
	}
	if strings.Contains(log(), "AccessDenied") {
		t.Errorf("a role lacks something:\n%s", log())
	}
	if s.object(t, "private/secret") != "" {
		t.Error("a key that Include does not name was carried over")
	}
	if n := s.depth(t, "objectferry-logs-dead") + s.depth(t, "objectferry-sync-dead_media"); n != 0 {
		t.Errorf("%d dead letters\n%s", n, log())
	}
	left, err := s.s3().ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String(logs)})
	if err != nil || len(left.Contents) != 0 {
		t.Errorf("logs that were read are not deleted: %v, %v", left.Contents, err)
	}
}

// onCallMayDoItsWork has every command run as the role that it is for.
func (s *site) onCallMayDoItsWork(t *testing.T) {
	onCall := s.take(t, "oncall")
	s.cos.Put("img/asked.jpg", []byte("asked"), cosd.Attributes{})
	s.deliver(t, "2026-09-04-10-00-00-0123456789ABCDEF", "img/asked.jpg")
	letter := "nobody can read this"
	dead := "https://sqs." + region + ".amazonaws.com/" + account + "/objectferry-sync-dead_media"
	if err := send(t, s, dead, letter); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		who  aws.Credentials
		args []string
		want string
	}{
		{onCall, []string{"request", "--bucket", media, "img/asked.jpg"}, "1 requested"},
		{onCall, []string{"explain", "--bucket", media, "img/asked.jpg"}, "img/asked.jpg"},
		{onCall, []string{"reconcile", "--bucket", media, "--prefix", "img/"}, "img/asked.jpg"},
		{onCall, []string{"report", "--from-bucket"}, media},
		{s.take(t, "sweep"), []string{"sweep"}, "1 log objects announced, 0 failed"},
		{onCall, []string{"sweep"}, "1 log objects announced, 0 failed"},
		{onCall, []string{"deadletter", "ls", "--queue", "logs"}, ""},
		{onCall, []string{"deadletter", "redrive", "--queue", "sync"}, "1 of 1 letters redriven"},
	} {
		if out := s.succeed(t, tt.who, tt.args...); !strings.Contains(out, tt.want) {
			t.Errorf("objectferry %s printed %q, want %q in it", strings.Join(tt.args, " "), out, tt.want)
		}
	}
	if n := s.depth(t, "objectferry-sync_media"); n != 2 {
		t.Errorf("the request and the letter are %d messages", n)
	}
}
