package queue

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

func TestOpenRefusesAQueueThatCannotBeConsumedSafely(t *testing.T) {
	const target = `{"deadLetterTargetArn":"arn:aws:sqs:us-west-2:111122223333:main-dead",`
	for name, tc := range map[string]struct{ visibility, policy, want string }{
		"number":            {"60", target + `"maxReceiveCount":30}`, ""},
		"text":              {"60", target + `"maxReceiveCount":"30"}`, ""},
		"no policy":         {"60", "", "no redrive policy"},
		"half a policy":     {"60", `{"maxReceiveCount":3}`, "redrive policy"},
		"broken policy":     {"60", `{`, "redrive policy"},
		"no visibility":     {"0", target + `"maxReceiveCount":30}`, "visibility timeout"},
		"broken visibility": {"", target + `"maxReceiveCount":30}`, "visibility timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeSQS(t)
			f.attributes = map[string]string{"VisibilityTimeout": tc.visibility, "RedrivePolicy": tc.policy}
			cfg := DefaultConfig()
			cfg.Name, cfg.URL = "main", mainURL
			c, err := NewConsumer(f, &testGate{}, settle, cfg, telemetry.Nop())
			if err != nil {
				t.Fatal(err)
			}
			err = c.Open(t.Context())
			if tc.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) || object.ClassOf(err) != object.Refused || !Permanent(err) {
				t.Errorf("%v, want a permanent one of class refused with %q", err, tc.want)
			}
			if err := c.Run(t.Context(), t.Context()); err == nil {
				t.Error("it runs although it was not opened")
			}
		})
	}
}

func TestOpenMayBeTriedAgainWhileAWSCannotBeReached(t *testing.T) {
	for _, failing := range []string{"GetQueueAttributes", "GetQueueUrl"} {
		f := newFakeSQS(t)
		f.fail = func(_ context.Context, op, _ string) error {
			if op == failing {
				return apiError("ServiceUnavailable")
			}
			return nil
		}
		cfg := DefaultConfig()
		cfg.Name, cfg.URL = "main", mainURL
		c, err := NewConsumer(f, &testGate{}, settle, cfg, telemetry.Nop())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Open(t.Context()); object.ClassOf(err) != object.Unavailable || Permanent(err) {
			t.Errorf("%s fails: %v", failing, err)
		}
		f.fail = nil
		if err := c.Open(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestValidateReportsAllProblems(t *testing.T) {
	err := Config{Name: "q", Slots: 0, BackoffMin: time.Second, BackoffMax: 13 * time.Hour, Wait: 1500 * time.Millisecond}.Validate()
	for _, want := range []string{"URL", "slots 0", "receives 0", "13h", "1.5s", "drain"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %q", err, want)
		}
	}
	c := DefaultConfig()
	c.Name, c.URL = "q", mainURL
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestClassifyKnowsSQSsErrors(t *testing.T) {
	status := func(code int, err error) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: code}}, Err: err}
	}
	for _, tc := range []struct {
		err   error
		class object.Class
		code  string
	}{
		{apiError("ThrottlingException"), object.Throttled, "ThrottlingException"},
		{&types.RequestThrottled{}, object.Throttled, "RequestThrottled"},
		{&types.KmsThrottled{}, object.Throttled, "KmsThrottled"},
		{&types.OverLimit{}, object.Throttled, "OverLimit"},
		{apiError("KMS.ThrottlingException"), object.Throttled, "KmsThrottling"},
		{status(400, apiError("AccessDenied")), object.Refused, "AccessDenied"},
		{&types.KmsAccessDenied{}, object.Refused, "KmsAccessDenied"},
		{&types.KmsDisabled{}, object.Refused, "KmsDisabled"},
		{&types.QueueDoesNotExist{}, object.Refused, "QueueDoesNotExist"},
		{status(400, apiError("AWS.SimpleQueueService.NonExistentQueue")), object.Refused, "NonExistentQueue"},
		{apiError("com.amazonaws.sqs#QueueDoesNotExist"), object.Refused, "QueueDoesNotExist"},
		{apiError("InvalidClientTokenId"), object.Refused, "InvalidClientTokenId"},
		{status(403, apiError("SomethingNew")), object.Refused, "SomethingNew"},
		{status(403, errors.New("no body")), object.Refused, "http 403"},
		{status(429, apiError("SomethingNew")), object.Throttled, "SomethingNew"},
		{status(400, apiError("SomethingNew")), object.Unknown, "SomethingNew"},
		{status(503, apiError("SomethingNew")), object.Unavailable, "SomethingNew"},
		{status(502, errors.New("html")), object.Unavailable, ""},
		{fmt.Errorf("send: %w", context.DeadlineExceeded), object.Unavailable, ""},
		{fmt.Errorf("send: %w", context.Canceled), object.Canceled, ""},
		{errors.New("connection reset by peer"), object.Unavailable, ""},
		{&types.InvalidMessageContents{}, object.Unfit, "InvalidMessageContents"},
	} {
		got := Classify(fmt.Errorf("operation error SQS: %w", tc.err), "ReceiveMessage")
		if got.Class != tc.class || got.Code != tc.code || got.Side != object.Queue || !errors.Is(got, tc.err) {
			t.Errorf("%v: class %s, code %q, want %s, %q", tc.err, got.Class, got.Code, tc.class, tc.code)
		}
	}
	if Classify(nil, "ReceiveMessage") != nil {
		t.Error("nil is an error")
	}
	known := &object.Error{Class: object.Refused}
	if Classify(fmt.Errorf("again: %w", known), "x") != known {
		t.Error("an error that is classified was classified again")
	}
}

func TestTheClientRetriesNothingNamesItselfAndTakesACABundle(t *testing.T) {
	var calls atomic.Int64
	var agent atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		agent.Store(r.UserAgent())
		http.Error(w, "busy", http.StatusServiceUnavailable)
	}))
	defer server.Close()
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, testBundle(), 0o600); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"AWS_CA_BUNDLE": bundle, "AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(k, v)
	}
	if _, err := Connect(t.Context(), "", 64); err == nil || !strings.Contains(err.Error(), "region") {
		t.Errorf("without a region: %v", err)
	}
	client, err := Connect(t.Context(), "us-west-2", 64)
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(server.URL + "/111122223333/main")})
	if got := Classify(err, opReceive); got == nil || got.Class != object.Unavailable {
		t.Errorf("%v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("%d calls, want 1", calls.Load())
	}
	if a := agent.Load().(string); !strings.Contains(a, "app/objectferry") {
		t.Errorf("user agent %q", a)
	}
}

func TestAProbeAsksTheQueueWithoutSendingAMessage(t *testing.T) {
	answer := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("X-Amz-Target") != "AmazonSQS.SendMessageBatch" || !strings.Contains(string(body), `"Entries":[]`) {
			t.Errorf("%s with %s", r.Header.Get("X-Amz-Target"), body)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		status, code, _ := strings.Cut(answer, " ")
		n, _ := strconv.Atoi(status)
		w.WriteHeader(n)
		if code != "" {
			fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#%s","message":"m"}`, code)
		} else {
			fmt.Fprint(w, `{}`)
		}
	}))
	defer server.Close()
	for k, v := range map[string]string{"AWS_CA_BUNDLE": "", "AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "key",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(k, v)
	}
	client, err := Connect(t.Context(), "us-west-2", 1)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]object.Class{
		"400 EmptyBatchRequest": "", "200": "", "400 SomethingNew": "",
		"400 AccessDeniedException": object.Refused, "400 QueueDoesNotExist": object.Refused, "400 KmsAccessDenied": object.Refused,
		"400 RequestThrottled": object.Throttled, "503": object.Unavailable, "500 InternalError": object.Unavailable,
	} {
		answer = given
		if got := object.ClassOf(Probe(t.Context(), client, server.URL+"/111122223333/main")); got != want {
			t.Errorf("%s is %q, want %q", given, got, want)
		}
	}
}

// testBundle is the certificate of a test server.
func testBundle() []byte {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
