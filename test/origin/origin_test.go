package origin

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestOriginGroup: what the template says serves every case.
func TestOriginGroup(t *testing.T) {
	text := template(t)
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		t.Run(name, func(t *testing.T) {
			r, err := newRig(t, text)
			if err != nil {
				t.Fatal(err)
			}
			if err := cases[name](r); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEachRuleIsTheTemplates: with one thing changed in the template the case of
// its rule fails, so the cases look at the template and not at the edge's own
// habits.
func TestEachRuleIsTheTemplates(t *testing.T) {
	text := template(t)
	for _, tc := range []struct{ name, old, new, breaks string }{
		{"404 does not fail over", "[403, 404, 500, 502, 503, 504]", "[403, 500, 502, 503, 504]", "miss with fallback"},
		{"403 does not fail over", "[403, 404, 500, 502, 503, 504]", "[404, 500, 502, 503, 504]", "forbidden in S3"},
		{"503 does not fail over", "[403, 404, 500, 502, 503, 504]", "[403, 404, 500, 502, 504]", "S3 fails"},
		{"COS comes first", "- OriginId: s3\n                  - OriginId: cos", "- OriginId: cos\n                  - OriginId: s3", "hit"},
		{"no group", "TargetOriginId: s3-then-cos", "TargetOriginId: s3", "S3 does not answer"},
		{"a missing object is kept for long", "{ErrorCode: 404, ErrorCachingMinTTL: !Ref ErrorTTL}", "{ErrorCode: 404, ErrorCachingMinTTL: 60}", "both missing"},
		{"a missing object is not kept", "{ErrorCode: 404, ErrorCachingMinTTL: !Ref ErrorTTL}", "{ErrorCode: 404, ErrorCachingMinTTL: 0}", "both missing"},
		{"a late upload is not seen", "{ErrorCode: 404, ErrorCachingMinTTL: !Ref ErrorTTL}", "{ErrorCode: 404, ErrorCachingMinTTL: 60}", "a late upload"},
		{"a refusal is kept for long", "{ErrorCode: 403, ErrorCachingMinTTL: !Ref ErrorTTL}", "{ErrorCode: 403, ErrorCachingMinTTL: 60}", "forbidden in both"},
		{"a failure is kept for long", "{ErrorCode: 504, ErrorCachingMinTTL: !Ref ErrorTTL}", "{ErrorCode: 504, ErrorCachingMinTTL: 60}", "S3 fails"},
		{"objects are kept for long", "DefaultTTL: !Ref DefaultTTL", "DefaultTTL: 600", "what was carried is served from S3"},
		{"the first pattern falls back", "PathPattern: !Ref OverseasOnly1\n              TargetOriginId: s3", "PathPattern: !Ref OverseasOnly1\n              TargetOriginId: s3-then-cos", "the first overseas only pattern"},
		{"the second pattern falls back", "PathPattern: !Ref OverseasOnly2\n              TargetOriginId: s3", "PathPattern: !Ref OverseasOnly2\n              TargetOriginId: s3-then-cos", "the second overseas only pattern"},
		{"the third pattern falls back", "PathPattern: !Ref OverseasOnly3\n              TargetOriginId: s3", "PathPattern: !Ref OverseasOnly3\n              TargetOriginId: s3-then-cos", "the third overseas only pattern"},
		{"writes are let through", "AllowedMethods: [GET, HEAD, OPTIONS]\n          CachedMethods", "AllowedMethods: [GET, HEAD, OPTIONS, PUT, PATCH, POST, DELETE]\n          CachedMethods", "writes reach no origin"},
		{"HEAD is not let through", "AllowedMethods: [GET, HEAD, OPTIONS]\n          CachedMethods", "AllowedMethods: [GET, OPTIONS]\n          CachedMethods", "HEAD"},
		{"no root object", "DefaultRootObject: !Ref RootObject", "", "the root is no listing"},
		{"queries are passed on", "QueryStringsConfig: {QueryStringBehavior: none}", "QueryStringsConfig: {QueryStringBehavior: all}", "queries, cookies and secrets stay here"},
		{"a header too many is passed on", "Headers: [Origin,", "Headers: [X-Token, Origin,", "queries, cookies and secrets stay here"},
		{"requests to S3 are not signed", "OriginAccessControlId: !GetAtt OriginAccess.Id", "", "hit"},
		{"the bucket may not be read", `Action: ["s3:GetObject", "s3:ListBucket"]`, `Action: ["s3:ListBucket"]`, "hit"},
		{"the bucket may not be listed", `Action: ["s3:GetObject", "s3:ListBucket"]`, `Action: ["s3:GetObject"]`, "the parser finds the miss"},
		{"any distribution may read", "AWS:SourceArn:", "AWS:SourceAccount:", "hit"},
		{"the visitor's host is passed on", "Headers: [Origin,", "Headers: [Host, Origin,", "each origin has its own host"},
		{"one origin may use scripts", `AccessControlAllowOrigins: {Items: !Ref CorsOrigins}`, `AccessControlAllowOrigins: {Items: [a.test]}`, "headers of answers do not depend on who"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			changed := strings.Replace(text, tc.old, tc.new, 1)
			if changed == text {
				t.Fatalf("the template does not hold %q", tc.old)
			}
			r, err := newRig(t, changed)
			if err != nil {
				t.Fatal(err)
			}
			if err := cases[tc.breaks](r); err == nil {
				t.Errorf("%q holds all the same", tc.breaks)
			} else {
				t.Log(err)
			}
		})
	}
}

// TestThePolicyToAddIsThePolicyCreated: the output for those who keep their own
// bucket policy says what the stack would create, with a staging distribution, too.
func TestThePolicyToAddIsThePolicyCreated(t *testing.T) {
	for _, staging := range []string{"", "E2STAGING000"} {
		given := maps.Clone(parameters)
		given["StagingDistribution"] = staging
		stack, err := cfn.Resolve([]byte(template(t)), given)
		if err != nil {
			t.Fatal(err)
		}
		created := stack.Resources["ReadPolicy"].Properties["PolicyDocument"].(map[string]any)["Statement"].([]any)
		var toAdd any
		if err := json.Unmarshal([]byte(stack.Outputs["BucketPolicyStatement"].(string)), &toAdd); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(created, []any{toAdd}); diff != "" {
			t.Errorf("staging %q: created (-), to add (+):\n%s", staging, diff)
		}
	}

	given := maps.Clone(parameters)
	given["BucketPolicy"] = "leave"
	stack, err := cfn.Resolve([]byte(template(t)), given)
	if err != nil {
		t.Fatal(err)
	}
	if _, there := stack.Resources["ReadPolicy"]; there {
		t.Error("leave touches the bucket's policy")
	}
}

// TestNamesNeedACertificate: a stack that CloudFront would refuse after minutes is
// refused before it begins.
func TestNamesNeedACertificate(t *testing.T) {
	given := maps.Clone(parameters)
	given["TestDomain"] = "media-test.example.com"
	if _, err := cfn.Resolve([]byte(template(t)), given); err == nil {
		t.Error("a name without a certificate was accepted")
	}
	given["CertificateArn"] = "arn:aws:acm:us-east-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef"
	stack, err := cfn.Resolve([]byte(template(t)), given)
	if err != nil {
		t.Fatal(err)
	}
	config := stack.Resources["Distribution"].Properties["DistributionConfig"].(map[string]any)
	if diff := cmp.Diff([]any{"media-test.example.com"}, config["Aliases"]); diff != "" {
		t.Errorf("aliases (-want +got):\n%s", diff)
	}
	given["CertificateArn"] = strings.Replace(given["CertificateArn"], "us-east-1", "us-west-2", 1)
	if _, err := cfn.Resolve([]byte(template(t)), given); err == nil {
		t.Error("a certificate of another region was accepted")
	}
}

// TestTheFallbackIsElsewhere: a fallback under the name that is brought over would
// be CloudFront itself.
func TestTheFallbackIsElsewhere(t *testing.T) {
	for _, name := range []string{"Domain", "TestDomain"} {
		given := maps.Clone(parameters)
		given["CertificateArn"] = "arn:aws:acm:us-east-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef"
		given[name] = cosHost
		if _, err := cfn.Resolve([]byte(template(t)), given); err == nil || !strings.Contains(err.Error(), "ask itself") {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
}

// TestAVisitorDoesNotWaitForS3: an S3 that does not answer is given up in time, at
// the connection and at the first byte, in all tries together.
func TestAVisitorDoesNotWaitForS3(t *testing.T) {
	stack, err := cfn.Resolve([]byte(template(t)), parameters)
	if err != nil {
		t.Fatal(err)
	}
	var distribution struct {
		DistributionConfig struct {
			Origins []struct {
				ID                 string `json:"Id"`
				ConnectionAttempts int    `json:",string"`
				ConnectionTimeout  int    `json:",string"`
				S3OriginConfig     struct {
					OriginReadTimeout int `json:",string"`
				}
			}
		}
	}
	text, err := json.Marshal(stack.Resources["Distribution"].Properties)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &distribution); err != nil {
		t.Fatal(err)
	}
	s3 := distribution.DistributionConfig.Origins[0]
	if s3.ID != "s3" || s3.ConnectionAttempts == 0 || s3.ConnectionTimeout == 0 || s3.S3OriginConfig.OriginReadTimeout == 0 {
		t.Fatalf("an origin s3 that leaves its patience to CloudFront: %+v", s3)
	}
	if wait := s3.ConnectionAttempts * (s3.ConnectionTimeout + s3.S3OriginConfig.OriginReadTimeout); wait > 15 {
		t.Errorf("COS is asked after %d s", wait)
	}
}

// TestNothingKeptIsRefused: CloudFront refuses a cache policy that keeps nothing
// and compresses.
func TestNothingKeptIsRefused(t *testing.T) {
	given := maps.Clone(parameters)
	given["DefaultTTL"], given["MaxTTL"] = "0", "0"
	if _, err := cfn.Resolve([]byte(template(t)), given); err == nil || !strings.Contains(err.Error(), "MaxTTL") {
		t.Errorf("%v, want MaxTTL refused", err)
	}
}

// TestTheTemplateIsCleanForCfnLint asks the vendor's own linter.
func TestTheTemplateIsCleanForCfnLint(t *testing.T) {
	out, err := exec.Command(ferry.Tool(t, "cfn-lint"), "../../infra/aws/cdn.yaml").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("cfn-lint: %v\n%s", err, out)
	}
}
