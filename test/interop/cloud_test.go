// Package interop runs the service, and what it relies on, on someone else's
// cloud: moto_server, an S3 and SQS that others wrote. Where moto_server is
// missing, what needs it says so and is skipped.
//
// One contract for queues and one for stores say what AWS does that objectferry
// builds on; they run over the embedded cloud (strictaws) and over moto. What
// a cloud does not guarantee stands beside the rule. Each run prints that, and
// fails where the table has become wrong.
//
// Times are scaled where a test waits for them: visibility 3 s to 10 s (60 s in
// production), back-off 1 s (5 s to 15 min). OBJECTFERRY_LONG=1 adds numbers,
// not rules.
package interop

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/internal/s3store"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) {
	// The rules wait for timeouts of queues; they do not compute.
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	ferry.Main(m)
}

// long is whether the full sizes are run.
var long = os.Getenv("OBJECTFERRY_LONG") != ""

const (
	region    = "us-west-2"
	accessKey = "AKIAOBJECTFERRYLOCAL"
	secretKey = "local-secret-of-the-embedded-cloud"
	roleARN   = "arn:aws:sts::111122223333:assumed-role/objectferry-copy/local"
)

// cloud is an S3 and an SQS.
type cloud struct {
	name          string
	s3URL, sqsURL string
	account       string                        // that owns everything
	page          int                           // keys of one listing
	deny, allow   func(action, resource string) // permissions of everybody; nil where there are none
}

// strict starts the embedded cloud.
func strict(t *testing.T) *cloud {
	t.Helper()
	c := strictaws.New(strictaws.Config{
		Region: region, LogInterval: -1, Credentials: map[string]strictaws.Credential{accessKey: {Secret: secretKey, ARN: roleARN}},
	})
	server, err := c.Serve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &cloud{
		name: "strictaws", s3URL: server.S3URL, sqsURL: server.SQSURL, account: "111122223333", page: 1000,
		deny:  func(action, resource string) { c.Deny("*", action, resource) },
		allow: func(action, resource string) { c.Allow("*", action, resource) },
	}
}

// config is how the AWS SDK finds an endpoint of the cloud.
func (c *cloud) config(endpoint string) aws.Config {
	return aws.Config{
		Region: region, BaseEndpoint: &endpoint,
		Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secretKey}, nil
		}),
	}
}

// sqs is a client as internal/queue uses one.
func (c *cloud) sqs() *sqs.Client { return queue.Client(c.config(c.sqsURL)) }

// s3 is a client of the SDK's own making: a witness that shares nothing with
// internal/s3store.
func (c *cloud) s3() *s3.Client {
	return s3.NewFromConfig(c.config(c.s3URL), func(o *s3.Options) {
		o.UsePathStyle = true
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
}

// client is a client as the service uses one; wrap may be nil.
func (c *cloud) client(wrap func(http.RoundTripper) http.RoundTripper) *s3.Client {
	return s3store.Connect(c.config(c.s3URL), s3store.ClientConfig{PathStyle: true, Wrap: wrap})
}

// unique makes a name that no other test uses.
func unique(what string) string { return what + "-" + strings.ToLower(rand.Text()[:10]) }

// bucket creates a bucket of the test's own.
func (c *cloud) bucket(t *testing.T) string {
	t.Helper()
	name := unique("bucket")
	_, err := c.s3().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name,
		CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: region}})
	if err != nil {
		t.Fatalf("create bucket: %v", err)
	}
	return name
}

// queue creates a queue of the test's own, with SQS's attributes, and returns its URL.
func (c *cloud) queue(t *testing.T, attributes map[string]string) string {
	t.Helper()
	return c.namedQueue(t, unique("queue"), attributes)
}

func (c *cloud) namedQueue(t *testing.T, name string, attributes map[string]string) string {
	t.Helper()
	out, err := c.sqs().CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		t.Fatalf("create queue: %v", err)
	}
	return *out.QueueUrl
}

// redrive is the attribute of a queue that moves messages to the queue at
// deadURL at their receive after the most.
func (c *cloud) redrive(deadURL string, most int) string {
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, c.queueARN(deadURL), most)
}

func (c *cloud) queueARN(url string) string {
	return fmt.Sprintf("arn:aws:sqs:%s:%s:%s", region, c.account, url[strings.LastIndexByte(url, '/')+1:])
}
