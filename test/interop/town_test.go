package interop

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/pkg/syncrequest"
	"github.com/objectferry/objectferry/test/ferry"
)

// town is all that one objectferry works with: buckets and queues in someone
// else's cloud, and a COS of ours that is read with a signature.
type town struct {
	*testing.T
	cloud          *cloud
	cos            *cosd.Server
	media          *shelf // what visitors read
	archive        *shelf // of access logs, under access/
	logs, sync     box
	logsDead, dead box // of each queue
	yaml           string
	file           string // the configuration
}

// cosLatency keeps the first copies from ending while requests are still being
// sent: a delete in moto takes the list of messages, makes another and puts it
// back, without a lock, so a message that is sent at that moment may be lost.
const cosLatency = 300 * time.Millisecond

func newTown(t *testing.T, c *cloud) *town {
	t.Helper()
	w := &town{T: t, cloud: c, media: newShelf(t, c), archive: newShelf(t, c), logsDead: open(t, c, 60), dead: open(t, c, 60)}
	queue := func(dead box) box {
		return box{t, c.sqs(), c.queue(t, map[string]string{"VisibilityTimeout": "60", "MessageRetentionPeriod": "604800", "RedrivePolicy": c.redrive(dead.url, 30)})}
	}
	for _, dead := range []box{w.logsDead, w.dead} {
		dead.set("MessageRetentionPeriod", "1209600")
	}
	w.logs, w.sync = queue(w.logsDead), queue(w.dead)

	principal := cosd.Principal{ID: "AKIDinterop", Key: "interop-secret"}
	w.cos = cosd.New(cosd.Config{Principals: []cosd.Principal{principal}, Behaviour: cosd.Behaviour{LatencyMin: cosLatency, LatencyMax: cosLatency}})
	if err := w.cos.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.cos.Close)
	credentials := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(credentials, fmt.Appendf(nil, `{"id":%q,"key":%q}`, principal.ID, principal.Key), 0o600); err != nil {
		t.Fatal(err)
	}
	w.yaml = fmt.Sprintf(`region: %s
queues: {logs: %s, sync: %s}
logs:
  - {bucket: %s, prefix: access/, when_done: delete}
own_role: arn:aws:sts::%s:assumed-role/objectferry-copy
s3: {path_style: true}
routes:
  - bucket: %s
    source: {cos: %s, read: signed, credentials_file: %s}
    include: ["img/**"]
    destination: {expected_owner: %q}
copy: {concurrency: 8, memory: 64MiB, part_size: 5MiB}
retry: {min: 1s, max: 2s, wait: 1s, receives: 2}
guard: {probe_min: 100ms, probe_max: 1s, timeout: 20s}
drain: 20s
`, region, w.logs.url, w.sync.url, w.archive.bucket, c.account, w.media.bucket, w.cos.URL(), credentials, c.account)
	w.file = ferry.Config(t, w.yaml)
	return w
}

// announce switches the announcement of new logs on.
func (w *town) announce() {
	w.Helper()
	_, err := w.archive.witness.PutBucketNotificationConfiguration(w.Context(), &s3.PutBucketNotificationConfigurationInput{Bucket: &w.archive.bucket,
		NotificationConfiguration: notifications(w.cloud.queueARN(w.logs.url), "access/")})
	if err != nil {
		w.Fatalf("announce logs: %v", err)
	}
}

func (w *town) environ() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_S3": w.cloud.s3URL, "AWS_ENDPOINT_URL_SQS": w.cloud.sqsURL,
		"AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": secretKey, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	}
}

// run starts the service.
func (w *town) run() *ferry.Process {
	w.Helper()
	return ferry.Start(w.T, nil, ferry.Options{YAML: w.yaml, Env: w.environ()})
}

// command runs another command of the binary to its end.
func (w *town) command(args ...string) (stdout, stderr string, exit int) {
	w.Helper()
	cmd := exec.CommandContext(w.Context(), ferry.Binary(w), append(args, "--config", w.file)...)
	cmd.Env = ferry.Environ(nil, w.environ())
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	err := cmd.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		w.Fatalf("run %v: %v", args, err)
	}
	return out.String(), problems.String(), cmd.ProcessState.ExitCode()
}

// must runs a command that must succeed and returns what it printed.
func (w *town) must(args ...string) string {
	w.Helper()
	stdout, stderr, exit := w.command(args...)
	if exit != 0 {
		w.Fatalf("objectferry %s: exit code %d\n%s%s", strings.Join(args, " "), exit, stdout, stderr)
	}
	return stdout
}

// row is a row of an access log, as S3 writes it.
func (w *town) row(operation, key string, status int, code string) string {
	once := syncrequest.EscapeKey(key)
	return fmt.Sprintf("%s %s [%s] 203.0.113.9 - 3E57427F3EXAMPLE %s %s \"GET /%s HTTP/1.1\" %d %s 297 - 8 - \"-\" \"Mozilla/5.0\" - "+
		"s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/ - ECDHE-RSA-AES128-GCM-SHA256 - %s.s3.us-west-2.amazonaws.com TLSv1.3 - -\n",
		strings.Repeat("79a59df9", 8), w.media.bucket, time.Now().UTC().Format("02/Jan/2006:15:04:05 -0700"), operation,
		syncrequest.EscapeKey(once), once, status, code, w.media.bucket)
}

// miss is the row of a visitor who found nothing.
func (w *town) miss(key string) string { return w.row("REST.GET.OBJECT", key, 404, "NoSuchKey") }

// healed waits until each key stands in the bucket that visitors read.
func (w *town) healed(p *ferry.Process, keys ...string) {
	w.Helper()
	for _, key := range keys {
		var body string
		w.until(p, fmt.Sprintf("%q is there", key), func() bool {
			var err error
			body, err = w.media.body(key)
			return err == nil
		})
		if want, _, _ := w.cos.Get(key); body != string(want) {
			w.Errorf("%q: %d bytes stand there, which are not the source's %d", key, len(body), len(want))
		}
	}
}

// until waits for a condition. It does not ask often: each question costs moto
// some 10 ms of the one core that it can use.
func (w *town) until(p *ferry.Process, what string, ok func() bool) {
	w.Helper()
	const within = 2 * time.Minute
	for deadline := time.Now().Add(within); !ok(); time.Sleep(250 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("not within %s: %s\n%s", within, what, p.Log())
		}
	}
}

// stop drains the service, after which nothing may be left in the queues that it
// consumes.
func (w *town) stop(p *ferry.Process) {
	w.Helper()
	w.until(p, "the queues are empty", func() bool { return w.logs.total()+w.sync.total() == 0 })
	if err := p.Stop(60 * time.Second); err != nil {
		w.Errorf("drain: %v\n%s", err, p.Log())
	}
	if n := w.logs.total() + w.sync.total(); n != 0 {
		w.Errorf("after the drain the queues hold %d messages", n)
	}
}

// total is how many messages the queue holds.
func (b box) total() int {
	b.Helper()
	waiting, inFlight := b.depth()
	return waiting + inFlight
}
