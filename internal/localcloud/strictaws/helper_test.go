package strictaws_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/queue"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "example-secret"
	roleARN   = "arn:aws:sts::111122223333:assumed-role/objectferry-copy/i-1"
)

// rig is a cloud on sockets with the SDK's clients before it.
type rig struct {
	*strictaws.Cloud
	*strictaws.Server
	s3  *s3.Client
	sqs *sqs.Client
}

// newRig starts a cloud that verifies signatures, with the bucket "media" and the
// queue "jobs".
func newRig(t *testing.T, cfg strictaws.Config) *rig {
	t.Helper()
	cfg.LogInterval = -1
	cfg.Credentials = map[string]strictaws.Credential{accessKey: {Secret: secretKey, ARN: roleARN}}
	cloud := strictaws.New(cfg)
	server, err := cloud.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	r := &rig{Cloud: cloud, Server: server}
	r.s3, r.sqs = r.clients(secretKey)
	r.CreateBucket("media", strictaws.Bucket{})
	if err := r.CreateQueue("jobs", nil); err != nil {
		t.Fatal(err)
	}
	return r
}

// clients returns clients that never retry, so that each test sees each answer.
func (r *rig) clients(secret string) (*s3.Client, *sqs.Client) {
	credentials := aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}, nil
	})
	once := aws.NopRetryer{}
	return s3.New(s3.Options{Region: "us-west-2", BaseEndpoint: &r.S3URL, Credentials: credentials, Retryer: once, UsePathStyle: true}),
		queue.Client(aws.Config{Region: "us-west-2", BaseEndpoint: &r.SQSURL, Credentials: credentials, Retryer: func() aws.Retryer { return once }})
}

func (r *rig) queueURL(name string) *string { return aws.String(r.SQSURL + r.QueuePath(name)) }

func (r *rig) put(t *testing.T, key, body string) {
	t.Helper()
	_, err := r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: &key, Body: strings.NewReader(body)})
	if err != nil {
		t.Fatalf("PutObject %q: %v", key, err)
	}
}

// request sends a plain HTTP request, unsigned, with the target as it stands.
func (r *rig) request(t *testing.T, method, target, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, r.S3URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Opaque = target // as it stands; must not begin with two slashes
	for k, v := range header {
		req.Header[k] = v
	}
	req.Host = header.Get("Host")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

// wantCode fails unless err is the API error code.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code {
		t.Errorf("error = %v, want code %s", err, code)
	}
}
