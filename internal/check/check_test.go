package check

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
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

// answer is an error as the SDK returns it.
func answer(status int, code string) error {
	return &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
		Err:      &smithy.GenericAPIError{Code: code, Message: code},
	}
}

// fakeSQS answers as SQS does; refuse makes it refuse an operation on a queue.
type fakeSQS struct {
	t          *testing.T
	refuse     map[string]bool // "SendMessage sync-dead"
	attributes map[string]map[string]string
}

func newFakeSQS(t *testing.T) *fakeSQS {
	f := &fakeSQS{t: t, refuse: map[string]bool{}, attributes: map[string]map[string]string{}}
	for _, name := range []string{"logs", "sync"} {
		f.attributes[name] = map[string]string{
			"VisibilityTimeout": "60", "MessageRetentionPeriod": "604800",
			"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":"arn:aws:sqs:us-west-2:111122223333:%s-dead","maxReceiveCount":30}`, name),
		}
		f.attributes[name+"-dead"] = map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "1209600"}
	}
	return f
}

func (f *fakeSQS) may(action string, url *string, entries int) error {
	if entries > 0 {
		f.t.Errorf("%s with %d entries would change something", action, entries)
	}
	if f.refuse[action+" "+(*url)[strings.LastIndexByte(*url, '/')+1:]] {
		return answer(403, "AccessDenied")
	}
	if entries == 0 {
		return answer(400, "AWS.SimpleQueueService.EmptyBatchRequest")
	}
	return nil
}

func (f *fakeSQS) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return nil, f.may("SendMessage", in.QueueUrl, len(in.Entries))
}

func (f *fakeSQS) DeleteMessageBatch(_ context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	return nil, f.may("DeleteMessage", in.QueueUrl, len(in.Entries))
}

func (f *fakeSQS) ChangeMessageVisibilityBatch(_ context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	return nil, f.may("ChangeMessageVisibility", in.QueueUrl, len(in.Entries))
}

func (f *fakeSQS) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if err := f.may("GetQueueAttributes", in.QueueUrl, -1); err != nil {
		return nil, err
	}
	all := f.attributes[(*in.QueueUrl)[strings.LastIndexByte(*in.QueueUrl, '/')+1:]]
	asked := map[string]string{}
	for name, value := range all {
		if slices.Contains(in.AttributeNames, types.QueueAttributeName(name)) {
			asked[name] = value
		}
	}
	return &sqs.GetQueueAttributesOutput{Attributes: asked}, nil
}

func (f *fakeSQS) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) {
	url := "https://sqs.us-west-2.amazonaws.com/" + *in.QueueOwnerAWSAccountId + "/" + *in.QueueName
	if err := f.may("GetQueueUrl", &url, -1); err != nil {
		return nil, err
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: &url}, nil
}

// fakeStore is a log bucket, a source or a destination.
type fakeStore struct {
	read, write error
	empty       bool
	asked       *string
}

func (f fakeStore) Reference(_ context.Context, key string) error {
	if f.asked != nil {
		*f.asked = key
	}
	return f.read
}
func (f fakeStore) First(context.Context, string, string) (bool, error) { return !f.empty, f.read }
func (f fakeStore) ReadReference(context.Context) error                 { return f.read }
func (f fakeStore) WriteReference(_ context.Context, _ string) error    { return f.write }

// world is a configuration and the systems that it names, all in order.
type world struct {
	config      *config.Config
	sqs         *fakeSQS
	logs        fakeStore
	source      fakeStore
	sourceErr   error
	destination fakeStore
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
			"not tried: sqs:ReceiveMessage on " + arn,
			"ok: sqs:DeleteMessage on " + arn,
			"ok: sqs:ChangeMessageVisibility on " + arn,
			"ok: sqs:GetQueueAttributes on " + arn,
			"ok: VisibilityTimeout on " + arn,
			"ok: MessageRetentionPeriod on " + arn,
			"ok: RedrivePolicy on " + arn,
			"ok: sqs:GetQueueUrl on " + arn + "-dead",
			"ok: sqs:SendMessage on " + arn + "-dead",
			"ok: MessageRetentionPeriod on " + arn + "-dead",
		}
	}
	want := slices.Concat(
		queue(logsARN),
		[]string{
			"ok: s3:ListBucket on arn:aws:s3:::log-bucket",
			"ok: s3:GetObject on arn:aws:s3:::log-bucket/access/*",
			"not tried: s3:DeleteObject on arn:aws:s3:::log-bucket/access/*",
			"ok: sqs:SendMessage on " + syncARN,
		},
		queue(syncARN),
		[]string{
			"ok: cos:GetObject on https://media-1250000000.cos.ap-shanghai.myqcloud.com/img/.objectferry-probe",
			"ok: s3:ListBucket, s3:GetObject on arn:aws-cn:s3:::media",
			"ok: s3:PutObject, s3:AbortMultipartUpload on arn:aws-cn:s3:::media/*",
		})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRolesAreCheckedForTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.role = Role{Parse: true}
	for _, i := range w.live(t) {
		if strings.HasPrefix(i.Needs, "cos:") || strings.Contains(i.On, "media") || i.On == syncARN && i.Needs != "sqs:SendMessage" {
			t.Errorf("parse is checked for %s", i.short())
		}
	}
	w.role = Role{Copy: true}
	for _, i := range w.live(t) {
		if strings.Contains(i.On, "log") {
			t.Errorf("copy is checked for %s", i.short())
		}
	}
	w.role = Role{Parse: true, Copy: true}
	w.config.Routes[0].Mode = config.ModeObserve
	for _, i := range w.live(t) {
		if strings.Contains(i.On, "media") || i.On == syncARN && i.Needs == "sqs:SendMessage" {
			t.Errorf("an observed route is checked for %s", i.short())
		}
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
		"list destination":          {func(w *world) { w.destination.read = denied }, "s3:ListBucket, s3:GetObject on arn:aws-cn:s3:::media", "check the policy"},
		"write destination": {func(w *world) {
			w.destination.write = denied
			w.config.Routes[0].Destination.SSE = config.SSEKMS
		}, "s3:PutObject, s3:AbortMultipartUpload, kms:GenerateDataKey on arn:aws-cn:s3:::media/*", "check the policy"},
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
	w := newWorld(t)
	w.logs.empty = true                                 // no log yet
	w.sqs.refuse["GetQueueAttributes logs-dead"] = true // the service itself need not read it
	want := map[string]bool{
		"not tried: s3:GetObject on arn:aws:s3:::log-bucket/access/*": true,
		"not tried: MessageRetentionPeriod on " + logsARN + "-dead":   true,
	}
	for _, i := range w.live(t) {
		delete(want, i.short())
		if i.Status == Failed {
			t.Errorf("%s: %s", i.short(), i.Note)
		}
		if i.Status == NotTried && i.Note == "" {
			t.Errorf("%s does not say why", i.short())
		}
	}
	for missing := range want {
		t.Errorf("no item %q", missing)
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
