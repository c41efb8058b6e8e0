package deploy

import (
	"maps"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

// closed is a bucket that nobody can make public by mistake.
var closed = map[string]any{"BlockPublicAcls": true, "BlockPublicPolicy": true, "IgnorePublicAcls": true, "RestrictPublicBuckets": true}

// encrypted is how a bucket encrypts what comes without a word on it.
func encrypted(by map[string]any) map[string]any {
	return map[string]any{"ServerSideEncryptionConfiguration": []any{by}}
}

func TestLogBucketIsClosedAndAnnouncesItsLogs(t *testing.T) {
	service := maps.Clone(ofService)
	service["LoggedBuckets"] = "overseas-media,overseas-img-*"
	stack := resolved(t, service, ofBucket).Service
	want := map[string]any{
		"BucketName":                     logs,
		"OwnershipControls":              map[string]any{"Rules": []any{map[string]any{"ObjectOwnership": "BucketOwnerEnforced"}}},
		"PublicAccessBlockConfiguration": closed,
		"BucketEncryption":               encrypted(map[string]any{"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "AES256"}}),
		"LifecycleConfiguration": map[string]any{"Rules": []any{
			map[string]any{"Id": "expire-access-logs", "Status": "Enabled", "Prefix": "access/", "ExpirationInDays": "14"},
			map[string]any{"Id": "abort-incomplete-uploads", "Status": "Enabled", "AbortIncompleteMultipartUpload": map[string]any{"DaysAfterInitiation": "1"}},
		}},
		"NotificationConfiguration": map[string]any{"QueueConfigurations": []any{map[string]any{
			"Event": "s3:ObjectCreated:*", "Queue": queueARN("objectferry-logs"),
			"Filter": map[string]any{"S3Key": map[string]any{"Rules": []any{map[string]any{"Name": "prefix", "Value": "access/"}}}},
		}}},
	}
	if diff := cmp.Diff(want, stack.Resources["LogBucket"].Properties); diff != "" {
		t.Errorf("log bucket (-want +got):\n%s", diff)
	}
	deliver := map[string]any{"Sid": "DeliverAccessLogs", "Effect": "Allow", "Principal": map[string]any{"Service": "logging.s3.amazonaws.com"},
		"Action": "s3:PutObject", "Resource": "arn:aws:s3:::" + logs + "/access/*", "Condition": map[string]any{
			"StringEquals": map[string]any{"aws:SourceAccount": account},
			"ArnLike":      map[string]any{"aws:SourceArn": []any{"arn:*:s3:::overseas-media", "arn:*:s3:::overseas-img-*"}}}}
	got := at(stack.Resources["LogBucketPolicy"].Properties, "PolicyDocument.Statement")
	if diff := cmp.Diff(any([]any{deliver, tlsOnly("s3", []any{"arn:aws:s3:::" + logs, "arn:aws:s3:::" + logs + "/*"})}), got); diff != "" {
		t.Errorf("its policy (-want +got):\n%s", diff)
	}
}

// A bucket that the stack makes is logged, cleaned up after crashes, and keeps
// what was deleted on purpose deleted.
func TestBucketThatIsMadeIsLoggedAndCleanedUp(t *testing.T) {
	const key = "arn:aws:kms:us-west-2:111122223333:key/1"
	for name, tt := range map[string]struct {
		key  string
		want map[string]any
	}{
		"S3's key": {"", map[string]any{"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "AES256"}}},
		"a key of KMS": {key, map[string]any{"BucketKeyEnabled": true,
			"ServerSideEncryptionByDefault": map[string]any{"SSEAlgorithm": "aws:kms", "KMSMasterKeyID": key}}},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := maps.Clone(ofBucket)
			bucket["CreateBucket"], bucket["KmsKey"] = "true", tt.key
			want := map[string]any{
				"BucketName":                     media,
				"OwnershipControls":              map[string]any{"Rules": []any{map[string]any{"ObjectOwnership": "BucketOwnerEnforced"}}},
				"PublicAccessBlockConfiguration": closed,
				"VersioningConfiguration":        map[string]any{"Status": "Enabled"},
				"BucketEncryption":               encrypted(tt.want),
				"LoggingConfiguration":           map[string]any{"DestinationBucketName": logs, "LogFilePrefix": "access/overseas-media/"},
				"LifecycleConfiguration": map[string]any{"Rules": []any{map[string]any{
					"Id": "objectferry-abort-incomplete-uploads", "Status": "Enabled", "AbortIncompleteMultipartUpload": map[string]any{"DaysAfterInitiation": "2"}}}},
			}
			if diff := cmp.Diff(want, resolved(t, ofService, bucket).Bucket.Resources["MediaBucket"].Properties); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if _, ok := resolved(t, ofService, ofBucket).Bucket.Resources["MediaBucket"]; ok {
		t.Error("a bucket is made that is said to exist")
	}
}

// What a stack made and holds data is kept when the stack goes. A creation that
// failed takes its empty bucket away again, or the name would stop the next try.
func TestBucketsOutliveTheirStackButNoFailedCreation(t *testing.T) {
	buckets := 0
	for _, file := range []string{"objectferry.yaml", "bucket.yaml"} {
		var text struct {
			Resources map[string]map[string]any `yaml:"Resources"`
		}
		if err := yaml.Unmarshal(template(t, file), &text); err != nil {
			t.Fatal(err)
		}
		for name, r := range text.Resources {
			if r["Type"] != "AWS::S3::Bucket" {
				continue
			}
			buckets++
			if r["DeletionPolicy"] != "RetainExceptOnCreate" || r["UpdateReplacePolicy"] != "Retain" {
				t.Errorf("%s: %s has DeletionPolicy %v and UpdateReplacePolicy %v", file, name, r["DeletionPolicy"], r["UpdateReplacePolicy"])
			}
		}
	}
	if buckets != 2 {
		t.Errorf("%d buckets, want 2", buckets)
	}
}
