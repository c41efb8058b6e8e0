package check

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
)

const (
	logsQueue = "https://sqs.us-west-2.amazonaws.com/111122223333/logs"
	syncQueue = "https://sqs.us-west-2.amazonaws.com/111122223333/sync"
	logsARN   = "arn:aws:sqs:us-west-2:111122223333:logs"
	syncARN   = "arn:aws:sqs:us-west-2:111122223333:sync"
)

// world is a configuration and the systems that it names, all in order.
type world struct {
	config      *config.Config
	sqs         *fakeSQS
	logs        fakeLogs
	source      fakeSource
	sourceErr   error
	destination fakeDestination
	role        Role
}

func newWorld(t *testing.T) *world {
	c := config.Default()
	c.Region = "us-west-2"
	c.Queues = config.Queues{Logs: logsQueue, Sync: syncQueue}
	c.Logs = []config.Log{{Bucket: "log-bucket", Prefix: "access/", WhenDone: config.WhenDoneDelete}}
	r := config.DefaultRoute()
	r.Bucket, r.Include = "media", []string{"img/**"}
	r.Source = config.Source{COS: "https://media-1250000000.cos.ap-shanghai.myqcloud.com", Read: config.ReadSigned, CredentialsFile: "cos.json"}
	r.Destination.Region = "cn-north-1"
	c.Routes = []config.Route{r}
	return &world{config: c, sqs: newFakeSQS(t), role: Role{Parse: true, Copy: true}}
}

func (w *world) live(t *testing.T) []Item {
	t.Helper()
	routes, err := route.New(w.config.Routes)
	if err != nil {
		t.Fatal(err)
	}
	return Live(t.Context(), w.config, routes, w.role, Deps{
		SQS:          w.sqs,
		Logs:         func(config.Log) logs { return w.logs },
		Sources:      func(*route.Route) (source, error) { return w.source, w.sourceErr },
		Destinations: func(*route.Route) destination { return w.destination },
	})
}

func (i Item) short() string { return fmt.Sprintf("%s: %s on %s", i.Status, i.Needs, i.On) }

func TestLiveTriesAllThatTheServiceNeeds(t *testing.T) {
	var got []string
	for _, i := range newWorld(t).live(t) {
		got = append(got, i.short())
	}
	queue := func(arn string) []string {
		return []string{
			"ok: sqs:ReceiveMessage on " + arn,
			"ok: sqs:DeleteMessage on " + arn,
			"ok: sqs:ChangeMessageVisibility on " + arn,
			"ok: sqs:GetQueueAttributes on " + arn,
			"ok: VisibilityTimeout on " + arn,
			"ok: MessageRetentionPeriod on " + arn,
			"ok: RedrivePolicy on " + arn,
			"ok: sqs:GetQueueUrl on " + arn + "-dead",
			"ok: sqs:SendMessage on " + arn + "-dead",
			"ok: MessageRetentionPeriod on " + arn + "-dead",
			"ok: RedriveAllowPolicy on " + arn + "-dead",
		}
	}
	want := slices.Concat(
		queue(logsARN),
		[]string{
			"ok: s3:ListBucket on arn:aws:s3:::log-bucket",
			"ok: s3:GetObject on arn:aws:s3:::log-bucket/access/*",
			"ok: s3:DeleteObject on arn:aws:s3:::log-bucket/access/*",
			"ok: sqs:SendMessage on " + syncARN,
		},
		queue(syncARN),
		[]string{
			"ok: cos:GetObject on https://media-1250000000.cos.ap-shanghai.myqcloud.com/img/.objectferry-probe",
			"ok: s3:ListBucket on arn:aws-cn:s3:::media",
			"ok: s3:GetObject on arn:aws-cn:s3:::media/*",
			"ok: s3:AbortMultipartUpload on arn:aws-cn:s3:::media/*",
			"ok: s3:PutObject on arn:aws-cn:s3:::media/*",
		})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Each thing that is taken away shows as its own item, and nothing else fails.
func TestLiveNamesWhatIsMissing(t *testing.T) {
	denied := &object.Error{Side: object.Source, Op: "GetObject", Class: object.Denied, Code: "AccessDenied", Hint: "check the policy"}
	for name, tt := range map[string]struct {
		take   func(*world)
		failed string
		says   string
	}{
		"receive":      {func(w *world) { w.sqs.refuse["ReceiveMessage logs"] = true }, "sqs:ReceiveMessage on " + logsARN, "AccessDenied"},
		"delete":       {func(w *world) { w.sqs.refuse["DeleteMessage logs"] = true }, "sqs:DeleteMessage on " + logsARN, "AccessDenied"},
		"extend":       {func(w *world) { w.sqs.refuse["ChangeMessageVisibility sync"] = true }, "sqs:ChangeMessageVisibility on " + syncARN, "AccessDenied"},
		"send":         {func(w *world) { w.sqs.refuse["SendMessage sync"] = true }, "sqs:SendMessage on " + syncARN, "AccessDenied"},
		"bury":         {func(w *world) { w.sqs.refuse["SendMessage logs-dead"] = true }, "sqs:SendMessage on " + logsARN + "-dead", "AccessDenied"},
		"find letters": {func(w *world) { w.sqs.refuse["GetQueueUrl sync-dead"] = true }, "sqs:GetQueueUrl on " + syncARN + "-dead", "AccessDenied"},
		"attributes":   {func(w *world) { w.sqs.refuse["GetQueueAttributes logs"] = true }, "sqs:GetQueueAttributes on " + logsARN, "AccessDenied"},
		"visibility":   {func(w *world) { w.sqs.attributes["logs"]["VisibilityTimeout"] = "5" }, "VisibilityTimeout on " + logsARN, "60 s is good"},
		"retention":    {func(w *world) { w.sqs.attributes["sync"]["MessageRetentionPeriod"] = "3600" }, "MessageRetentionPeriod on " + syncARN, "7 days is good"},
		"letters' retention": {func(w *world) { w.sqs.attributes["sync-dead"]["MessageRetentionPeriod"] = "345600" },
			"MessageRetentionPeriod on " + syncARN + "-dead", "14 days is good"},
		"no redrive policy": {func(w *world) { delete(w.sqs.attributes["logs"], "RedrivePolicy") }, "RedrivePolicy on " + logsARN, "has no redrive policy"},
		"redrive too early": {func(w *world) {
			w.sqs.attributes["logs"]["RedrivePolicy"] = `{"deadLetterTargetArn":"arn:aws:sqs:us-west-2:111122223333:logs-dead","maxReceiveCount":"5"}`
		}, "RedrivePolicy on " + logsARN, "maxReceiveCount is 5"},
		"unreadable redrive policy": {func(w *world) { w.sqs.attributes["logs"]["RedrivePolicy"] = `{"maxReceiveCount":5}` }, "RedrivePolicy on " + logsARN, "cannot be read"},
		"source":                    {func(w *world) { w.source.read = denied }, "cos:GetObject on https://media-1250000000.cos.ap-shanghai.myqcloud.com/img/.objectferry-probe", "source.reference"},
		"credentials":               {func(w *world) { w.sourceErr = errors.New("no such file") }, "cos:GetObject on https://media-1250000000.cos.ap-shanghai.myqcloud.com", "no such file"},
		"list logs":                 {func(w *world) { w.logs.list = denied }, "s3:ListBucket on arn:aws:s3:::log-bucket", "check the policy"},
		"read logs":                 {func(w *world) { w.logs.reference = denied }, "s3:GetObject on arn:aws:s3:::log-bucket/access/*", "check the policy"},
		"one log":                   {func(w *world) { w.logs.read = denied }, "s3:GetObject on arn:aws:s3:::log-bucket/access/*", "check the policy"},
		"delete logs":               {func(w *world) { w.logs.remove = denied }, "s3:DeleteObject on arn:aws:s3:::log-bucket/access/*", "check the policy"},
		"list objects":              {func(w *world) { w.destination.list = denied }, "s3:ListBucket on arn:aws-cn:s3:::media", "check the policy"},
		"read objects":              {func(w *world) { w.destination.read = denied }, "s3:GetObject on arn:aws-cn:s3:::media/*", "check the policy"},
		"abort":                     {func(w *world) { w.destination.abort, w.destination.write = denied, denied }, "s3:AbortMultipartUpload on arn:aws-cn:s3:::media/*", "check the policy"},
		"write":                     {func(w *world) { w.destination.part = denied }, "s3:PutObject on arn:aws-cn:s3:::media/*", "check the policy"},
		"begin":                     {func(w *world) { w.destination.write = denied }, "s3:PutObject on arn:aws-cn:s3:::media/*", "check the policy"},
		"shared dead letters": {func(w *world) {
			w.sqs.attributes["sync"]["RedrivePolicy"] = w.sqs.attributes["logs"]["RedrivePolicy"]
		}, "RedrivePolicy on " + syncARN, "is that of " + logsARN + ", too"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.take(w)
			var failed []string
			for _, i := range w.live(t) {
				if i.Status == Failed {
					failed = append(failed, i.short())
					if !strings.Contains(i.Note, tt.says) {
						t.Errorf("note %q, want %q in it", i.Note, tt.says)
					}
				}
			}
			if diff := cmp.Diff([]string{"failed: " + tt.failed}, failed); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeSeenIsNotTried(t *testing.T) {
	denied := &object.Error{Class: object.Denied}
	for name, tt := range map[string]struct {
		take func(*world)
		want string
	}{
		"dead letters' settings": {func(w *world) { w.sqs.refuse["GetQueueAttributes logs-dead"] = true }, "MessageRetentionPeriod on " + logsARN + "-dead"}, // the service itself need not read them
		"reading unlisted":       {func(w *world) { w.destination.list, w.destination.read = denied, denied }, "s3:GetObject on arn:aws-cn:s3:::media/*"},
		"reading unlisted logs":  {func(w *world) { w.logs.list, w.logs.reference = denied, denied }, "s3:GetObject on arn:aws:s3:::log-bucket/access/*"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.take(w)
			var got []string
			for _, i := range w.live(t) {
				if i.Status == NotTried {
					got = append(got, i.Needs+" on "+i.On)
					if i.Note == "" {
						t.Errorf("%s does not say why", i.short())
					}
				}
			}
			if diff := cmp.Diff([]string{tt.want}, got); diff != "" {
				t.Errorf("not tried (-want +got):\n%s", diff)
			}
		})
	}
}

// All that is missing is told in one go, as far as it can be.
func TestWhatIsMissingTogetherIsNamedTogether(t *testing.T) {
	denied := &object.Error{Class: object.Denied}
	w := newWorld(t)
	w.sqs.refuse["GetQueueUrl logs-dead"], w.sqs.refuse["SendMessage logs-dead"] = true, true
	w.destination = fakeDestination{read: denied, abort: denied, part: denied, write: errors.New("an upload was begun that cannot be thrown away")}
	var failed []string
	for _, i := range w.live(t) {
		if i.Status == Failed {
			failed = append(failed, i.Needs+" on "+i.On)
		}
	}
	want := []string{
		"sqs:GetQueueUrl on " + logsARN + "-dead", "sqs:SendMessage on " + logsARN + "-dead",
		"s3:GetObject on arn:aws-cn:s3:::media/*", "s3:AbortMultipartUpload on arn:aws-cn:s3:::media/*", "s3:PutObject on arn:aws-cn:s3:::media/*",
	}
	if diff := cmp.Diff(want, failed); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}

// A missing redrive-allow policy is no fault, only worth a word.
func TestRedriveAllowPolicyIsAHint(t *testing.T) {
	w := newWorld(t)
	w.sqs.attributes["sync-dead"]["RedriveAllowPolicy"] = `{"redrivePermission":"byQueue","sourceQueueArns":["` + syncARN + `"]}`
	for _, i := range w.live(t) {
		if i.Needs == "RedriveAllowPolicy" && (i.Status != OK || (i.Note == "") != (i.On == syncARN+"-dead")) {
			t.Errorf("%s: %q", i.short(), i.Note)
		}
	}
}

func TestTheConfiguredReferenceIsAskedFor(t *testing.T) {
	w := newWorld(t)
	var asked string
	w.source.asked = &asked
	w.config.Routes[0].Source.Reference = "img/logo.png"
	w.live(t)
	if asked != "img/logo.png" {
		t.Errorf("asked for %q", asked)
	}
}

func TestCredentialsFileIsReadWhereItIs(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "cos.json")
	w.config.Routes[0].Source.CredentialsFile = file
	routes, err := route.New(w.config.Routes)
	if err != nil {
		t.Fatal(err)
	}
	if err := Credentials(routes); err != nil {
		t.Errorf("a file that is not there: %v", err)
	}
	for content, wrong := range map[string]bool{`{"id":"i","key":"s3cret"}`: false, `{"id":"i"}`: true, `{"key":"s3cret"}`: true, `s3cret`: true} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Credentials(routes)
		var problems config.Errors
		if got := errors.As(err, &problems); got != wrong {
			t.Errorf("%s: %v", content, err)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cret") || problems[0].Field != "routes[0].source.credentials_file") {
			t.Errorf("%s: %v", content, err)
		}
	}
}
