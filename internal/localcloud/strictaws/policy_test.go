package strictaws_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func TestMissingKeyIs403WithoutListBucket(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	head := func() error {
		_, err := r.s3.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("media"), Key: aws.String("none")})
		return err
	}
	wantCode(t, head(), "NotFound")
	r.Deny(roleARN, "s3:ListBucket", "media")
	wantCode(t, head(), "Forbidden")
	_, err := r.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("media"), Key: aws.String("none")})
	wantCode(t, err, "AccessDenied")
	r.Allow(roleARN, "s3:ListBucket", "media")
	wantCode(t, head(), "NotFound")
}

func TestDenialIsAsWideAsItSays(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.put(t, "a/1", "x")
	r.put(t, "b/1", "x")
	get := func(key string) error {
		_, err := r.s3.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("media"), Key: &key})
		return err
	}
	r.Deny("arn:aws:sts::111122223333:assumed-role/objectferry-copy/*", "s3:Get*", "arn:aws:s3:::media/a/*")
	wantCode(t, get("a/1"), "AccessDenied")
	if err := get("b/1"); err != nil {
		t.Errorf("another key: %v", err)
	}
	r.put(t, "a/2", "another action")
	r.Deny("arn:aws:iam::999999999999:role/other", "*", "*")
	if err := get("b/1"); err != nil {
		t.Errorf("another principal's denial: %v", err)
	}
}

func TestStrangersSeeOnlyWhatIsPublic(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.put(t, "k", "x")
	r.CreateBucket("public", strictaws.Bucket{PublicRead: true})
	r.CreateBucket("listed", strictaws.Bucket{PublicRead: true, PublicList: true})
	if err := r.PutObject("public", "k", []byte("x"), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{"GET", "/media/k", 403}, {"GET", "/public/k", 200}, {"GET", "/public/none", 403}, {"GET", "/listed/none", 404},
		{"GET", "/public?list-type=2", 403}, {"GET", "/listed?list-type=2", 200}, {"PUT", "/listed/k", 403}, {"DELETE", "/listed/k", 403},
		{"POST", "/listed/k?uploads", 403}, {"POST", "/listed?delete", 403}, {"PUT", "/new-bucket", 403}, {"GET", "/nowhere/k", 404},
	} {
		if resp, _ := r.request(t, c.method, c.target, "", nil); resp.StatusCode != c.status {
			t.Errorf("%s %s = %s, want %d", c.method, c.target, resp.Status, c.status)
		}
	}
}

func TestWritesNeedTheKeyGrant(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.CreateBucket("kms", strictaws.Bucket{KMS: true})
	write := func(bucket string, sse types.ServerSideEncryption) (put, begin error) {
		_, put = r.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("k"), Body: strings.NewReader("x"), ServerSideEncryption: sse})
		_, begin = r.s3.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &bucket, Key: aws.String("k"), ServerSideEncryption: sse})
		return put, begin
	}
	if put, begin := write("kms", ""); put != nil || begin != nil {
		t.Fatalf("with the grant: %v, %v", put, begin)
	}
	r.Deny("*", "kms:GenerateDataKey", "*")
	for _, c := range []struct {
		bucket string
		sse    types.ServerSideEncryption
	}{{"kms", ""}, {"media", "aws:kms"}} {
		put, begin := write(c.bucket, c.sse)
		wantCode(t, put, "AccessDenied")
		wantCode(t, begin, "AccessDenied")
	}
	if put, begin := write("media", ""); put != nil || begin != nil {
		t.Errorf("without KMS: %v, %v", put, begin)
	}
}

func TestSQSActionsCanBeDenied(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.Deny("*", "sqs:SendMessage", "jobs")
	batch := &sqs.SendMessageBatchInput{QueueUrl: r.queueURL("jobs"), Entries: entries("a")}
	_, err := r.sqs.SendMessageBatch(t.Context(), batch)
	wantCode(t, err, "AccessDenied")
	r.Allow("*", "sqs:SendMessage", "jobs")
	if _, err := r.sqs.SendMessageBatch(t.Context(), batch); err != nil {
		t.Error(err)
	}
}

func TestSignaturesAreVerified(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.put(t, "a b/+//%", "right secret")
	badS3, badSQS := r.clients("wrong")
	_, err := badS3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("media"), Key: aws.String("k"), Body: strings.NewReader("x")})
	wantCode(t, err, "SignatureDoesNotMatch")
	_, err = badSQS.GetQueueUrl(t.Context(), &sqs.GetQueueUrlInput{QueueName: aws.String("jobs")})
	wantCode(t, err, "SignatureDoesNotMatch")

	req, _ := http.NewRequestWithContext(t.Context(), "POST", r.SQSURL, strings.NewReader(`{"QueueName":"jobs"}`))
	req.Header.Set("X-Amz-Target", "AmazonSQS.GetQueueUrl")
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != 403 {
		t.Errorf("unsigned SQS request = %v, %v", resp, err)
	} else {
		resp.Body.Close()
	}
}

func TestPresignedURLs(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	r.put(t, "a b//c", "x")
	signed, err := s3.NewPresignClient(r.s3).PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("media"), Key: aws.String("a b//c")})
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]int{signed.URL: 200, strings.Replace(signed.URL, "X-Amz-Signature=", "X-Amz-Signature=0", 1): 403,
		strings.Replace(signed.URL, "//c", "//d", 1): 403} {
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s = %s %s", url, resp.Status, b)
		}
	}
}
