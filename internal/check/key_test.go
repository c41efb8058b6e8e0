package check

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/s3store"
)

// S3 asks for the key only after it has let us in itself.
func TestTheKeysRefusalIsToldFromS3s(t *testing.T) {
	const key = "arn:aws:kms:us-west-2:111122223333:key/1"
	w := newWorld(t)
	d := &w.config.Routes[0].Destination
	d.SSE, d.KMSKey = config.SSEKMS, key
	outcome := func() map[string]Status {
		got := map[string]Status{}
		for _, i := range w.live(t) {
			if i.On == key || i.Needs == "s3:PutObject" {
				got[i.Needs] = i.Status
			}
		}
		return got
	}
	if diff := cmp.Diff(map[string]Status{"s3:PutObject": OK, "kms:GenerateDataKey": OK, "kms:Decrypt": NotTried}, outcome()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.destination.write = keyRefusal(t)
	if diff := cmp.Diff(map[string]Status{"s3:PutObject": OK, "kms:GenerateDataKey": Failed}, outcome()); diff != "" {
		t.Errorf("refused by the key (-want +got):\n%s", diff)
	}
}

// keyRefusal is what s3store says of a write that the KMS key refuses.
func keyRefusal(t *testing.T) error {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amz-Request-Id", "R")
		w.WriteHeader(403)
		fmt.Fprint(w, `<Error><Code>AccessDenied</Code><Message>not authorized to perform: kms:GenerateDataKey on resource: k</Message></Error>`)
	}))
	t.Cleanup(s.Close)
	cfg := aws.Config{Region: "us-west-2", BaseEndpoint: &s.URL, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "s"}, nil
	})}
	return s3store.New(s3store.Connect(cfg, s3store.ClientConfig{PathStyle: true}), s3store.Config{Bucket: "media"}).WriteReference(t.Context(), "k")
}
