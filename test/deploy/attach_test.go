package deploy

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/test/ferry"
)

// TestExistingBucketIsAttached has a bucket that somebody made, first without rules
// of a lifecycle, then with rules of their own and an old one of ours: attach.sh
// switches its log on, sets our rule, and takes nothing away.
func TestExistingBucketIsAttached(t *testing.T) {
	t.Parallel()
	ferry.Tool(t, "aws")
	ferry.Tool(t, ferry.MotoProgram)
	moto, err := ferry.StartMoto("MOTO_ACCOUNT_ID=" + account)
	if err != nil {
		t.Fatalf("start %s: %v", ferry.MotoProgram, err)
	}
	sizes := &minimumSizes{}
	c := &cloud{url: sizes.serve(t, moto), admin: anybody}
	const docs = "overseas-docs"
	s3s := c.s3()
	for _, name := range []string{docs, "somewhere-else"} {
		_, err := s3s.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(name),
			CreateBucketConfiguration: &types.CreateBucketConfiguration{LocationConstraint: region}})
		if err != nil {
			t.Fatal(err)
		}
	}
	service, bucket := maps.Clone(ofService), maps.Clone(ofBucket)
	service["LoggedBuckets"] = "overseas-*"
	bucket["Route"], bucket["Bucket"], bucket["OwnQueue"] = "docs", docs, "false"
	c.stack(t, "objectferry", "objectferry.yaml", service)
	outputs := c.stack(t, "objectferry-docs", "bucket.yaml", bucket)
	if strings.Contains(outputs["RouteConfiguration"], "queue:") || outputs["SyncQueueUrl"] != "" {
		t.Errorf("a source that shares the service's queue has one of its own: %v", outputs)
	}
	c.letLogsIn(t, logs)
	c.letLogsIn(t, "somewhere-else")

	const ours = "objectferry-abort-incomplete-uploads"
	if out, ok := c.attach(t); !ok || !strings.Contains(out, docs+" is logged to "+logs+"/access/"+docs+"/\n") {
		t.Fatalf("attach.sh: %s", out)
	}
	c.isAttached(t, docs, map[string]int32{ours: 2})

	rule := func(id string, days int32) types.LifecycleRule {
		return types.LifecycleRule{ID: &id, Status: types.ExpirationStatusEnabled, Filter: &types.LifecycleRuleFilter{Prefix: aws.String("")},
			AbortIncompleteMultipartUpload: &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: &days}}
	}
	const older = types.TransitionDefaultMinimumObjectSizeVariesByStorageClass
	_, err = s3s.PutBucketLifecycleConfiguration(t.Context(), &s3.PutBucketLifecycleConfigurationInput{Bucket: aws.String(docs),
		TransitionDefaultMinimumObjectSize: older, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: []types.LifecycleRule{rule(ours, 20), rule("theirs", 7)}}})
	if err != nil {
		t.Fatal(err)
	}
	if out, ok := c.attach(t); !ok {
		t.Fatalf("attach.sh: %s", out)
	}
	c.isAttached(t, docs, map[string]int32{"theirs": 7, ours: 2})
	if got := sizes.now(); got != string(older) {
		t.Errorf("objects from %s on are moved to other storage classes now, it was %s", got, older)
	}

	elsewhere := &types.LoggingEnabled{TargetBucket: aws.String("somewhere-else"), TargetPrefix: aws.String("")}
	_, err = s3s.PutBucketLogging(t.Context(), &s3.PutBucketLoggingInput{Bucket: aws.String(docs), BucketLoggingStatus: &types.BucketLoggingStatus{LoggingEnabled: elsewhere}})
	if err != nil {
		t.Fatal(err)
	}
	if out, ok := c.attach(t); ok || !strings.Contains(out, "is already logged to somewhere-else") {
		t.Errorf("attach.sh took somebody's log away: %s", out)
	}
	if got, err := s3s.GetBucketLogging(t.Context(), &s3.GetBucketLoggingInput{Bucket: aws.String(docs)}); err != nil || *got.LoggingEnabled.TargetBucket != "somewhere-else" {
		t.Errorf("the log goes to %+v, %v", got, err)
	}
}

// minimumSizes stands before moto, which does not know it, and keeps with a bucket's
// lifecycle from which size on objects are moved to other storage classes. As in
// S3 a lifecycle that is set without a word on it has the newer default.
type minimumSizes struct {
	mu   sync.Mutex
	size string // "" before there is a lifecycle
}

const sizeHeader = "X-Amz-Transition-Default-Minimum-Object-Size"

func (m *minimumSizes) now() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.size
}

func (m *minimumSizes) serve(t *testing.T, moto string) string {
	t.Helper()
	target, err := url.Parse(moto)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ModifyResponse: func(resp *http.Response) error {
			r := resp.Request
			if !r.URL.Query().Has("lifecycle") || resp.StatusCode != http.StatusOK {
				return nil
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if r.Method == http.MethodPut {
				if m.size = r.Header.Get(sizeHeader); m.size == "" {
					m.size = string(types.TransitionDefaultMinimumObjectSizeAllStorageClasses128k)
				}
			}
			resp.Header.Set(sizeHeader, m.size)
			return nil
		},
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL
}

// attach runs attach.sh and returns what it said, and whether it went well.
func (c *cloud) attach(t *testing.T) (string, bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(templates, "attach.sh"), "objectferry-docs")
	cmd.Env = ferry.Environ(nil, c.environ(c.admin))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// letLogsIn gives a bucket the policy without which moto takes no logging to it.
// moto wants it on the whole bucket.
func (c *cloud) letLogsIn(t *testing.T, bucket string) {
	t.Helper()
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Principal": map[string]any{"Service": "logging.s3.amazonaws.com"}, "Action": "s3:PutObject", "Resource": "arn:aws:s3:::" + bucket + "/*"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.s3().PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{Bucket: &bucket, Policy: aws.String(string(policy))}); err != nil {
		t.Fatal(err)
	}
}

// isAttached holds a bucket's logging, and after how many days its lifecycle rules
// abort uploads, against what they should be.
func (c *cloud) isAttached(t *testing.T, bucket string, want map[string]int32) {
	t.Helper()
	logging, err := c.s3().GetBucketLogging(t.Context(), &s3.GetBucketLoggingInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	if e := logging.LoggingEnabled; e == nil || *e.TargetBucket != logs || *e.TargetPrefix != "access/"+bucket+"/" {
		t.Errorf("the log goes to %+v", e)
	}
	lifecycle, err := c.s3().GetBucketLifecycleConfiguration(t.Context(), &s3.GetBucketLifecycleConfigurationInput{Bucket: &bucket})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int32{}
	for _, r := range lifecycle.Rules {
		if r.AbortIncompleteMultipartUpload != nil {
			got[*r.ID] = *r.AbortIncompleteMultipartUpload.DaysAfterInitiation
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lifecycle rules (-want +got):\n%s", diff)
	}
}
