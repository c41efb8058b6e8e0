package strictaws_test

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func TestNewObjectsAreAnnounced(t *testing.T) {
	r := newRig(t, strictaws.Config{MinPartSize: 1})
	in := &s3.PutBucketNotificationConfigurationInput{Bucket: aws.String("media"), NotificationConfiguration: &types.NotificationConfiguration{
		QueueConfigurations: []types.QueueConfiguration{{QueueArn: aws.String(r.QueueARN("none")), Events: []types.Event{"s3:ObjectCreated:*"},
			Filter: &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{FilterRules: []types.FilterRule{{Name: "prefix", Value: aws.String("access/")}}}}}}}}
	_, err := r.s3.PutBucketNotificationConfiguration(t.Context(), in)
	wantCode(t, err, "InvalidArgument") // no such queue
	in.NotificationConfiguration.QueueConfigurations[0].QueueArn = aws.String(r.QueueARN("jobs"))
	if _, err := r.s3.PutBucketNotificationConfiguration(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	got, err := r.s3.GetBucketNotificationConfiguration(t.Context(), &s3.GetBucketNotificationConfigurationInput{Bucket: in.Bucket})
	if err != nil || len(got.QueueConfigurations) != 1 || *got.QueueConfigurations[0].QueueArn != r.QueueARN("jobs") || *got.QueueConfigurations[0].Filter.Key.FilterRules[0].Value != "access/" {
		t.Errorf("GetBucketNotificationConfiguration = %+v, %v", got, err)
	}

	r.put(t, "other/x", "not announced")
	r.put(t, "access/year=2026/a b+c//ü", "12345")
	up := r.begin(t, "access/big", nil)
	r.complete(t, up, r.part(t, up, 1, "x"))

	type record struct {
		EventVersion, EventSource, EventName, Key, Bucket string
		Size                                              int64
	}
	var records []record
	var sequencers []string
	messages := r.Messages("jobs")
	for i, m := range messages {
		var body struct {
			Event, Bucket string
			Records       []struct {
				EventVersion, EventSource, EventName string
				S3                                   struct {
					Bucket struct{ Name string }
					Object struct {
						Key, ETag, Sequencer string
						Size                 int64
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(m.Body), &body); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if body.Event != "s3:TestEvent" || body.Bucket != "media" || body.Records != nil {
				t.Errorf("first message = %s, want the test event", m.Body)
			}
			continue
		}
		for _, e := range body.Records {
			records = append(records, record{e.EventVersion, e.EventSource, e.EventName, e.S3.Object.Key, e.S3.Bucket.Name, e.S3.Object.Size})
			sequencers = append(sequencers, e.S3.Object.Sequencer)
		}
	}
	want := []record{
		{"2.1", "aws:s3", "ObjectCreated:Put", "access/year%3D2026/a+b%2Bc//%C3%BC", "media", 5},
		{"2.1", "aws:s3", "ObjectCreated:CompleteMultipartUpload", "access/big", "media", 1},
	}
	if d := cmp.Diff(want, records); d != "" {
		t.Errorf("records (-want +got):\n%s", d)
	}
	if len(sequencers) == 2 && sequencers[0] >= sequencers[1] {
		t.Errorf("sequencers %q do not ascend", sequencers)
	}
}
