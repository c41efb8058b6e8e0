package edge

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
)

const stack = `
Resources:
  D:
    Type: AWS::CloudFront::Distribution
    Properties:
      DistributionConfig:
        Enabled: true
        DefaultRootObject: index.html
        Origins:
          - {Id: s3, DomainName: b.s3.test, OriginAccessControlId: !GetAtt A.Id, S3OriginConfig: {}}
          - {Id: cos, DomainName: cos.test, OriginPath: /x, CustomOriginConfig: {OriginProtocolPolicy: https-only}}
        OriginGroups:
          Quantity: 1
          Items:
            - Id: both
              FailoverCriteria: {StatusCodes: {Quantity: 1, Items: [404]}}
              Members: {Quantity: 2, Items: [{OriginId: s3}, {OriginId: cos}]}
        DefaultCacheBehavior: {TargetOriginId: both, AllowedMethods: [GET, HEAD], CachePolicyId: !Ref C, OriginRequestPolicyId: !Ref R, ResponseHeadersPolicyId: !Ref H}
        CacheBehaviors:
          - {PathPattern: us/*, TargetOriginId: s3, AllowedMethods: [GET], CachedMethods: [GET, HEAD], CachePolicyId: !Ref C}
        CustomErrorResponses: [{ErrorCode: 403, ErrorCachingMinTTL: 3}, {ErrorCode: 404, ErrorCachingMinTTL: 4}]
  A:
    Type: AWS::CloudFront::OriginAccessControl
    Properties: {OriginAccessControlConfig: {Name: a, OriginAccessControlOriginType: s3, SigningBehavior: always, SigningProtocol: sigv4}}
  C:
    Type: AWS::CloudFront::CachePolicy
    Properties:
      CachePolicyConfig:
        {Name: c, MinTTL: 1, DefaultTTL: 2, MaxTTL: 3, ParametersInCacheKeyAndForwardedToOrigin: {EnableAcceptEncodingBrotli: true, EnableAcceptEncodingGzip: true,
          CookiesConfig: {CookieBehavior: none}, HeadersConfig: {HeaderBehavior: none}, QueryStringsConfig: {QueryStringBehavior: all}}}
  R:
    Type: AWS::CloudFront::OriginRequestPolicy
    Properties:
      OriginRequestPolicyConfig: {Name: r, CookiesConfig: {CookieBehavior: none}, HeadersConfig: {HeaderBehavior: whitelist, Headers: [Origin]}, QueryStringsConfig: {QueryStringBehavior: none}}
  H:
    Type: AWS::CloudFront::ResponseHeadersPolicy
    Properties:
      ResponseHeadersPolicyConfig:
        Name: h
        SecurityHeadersConfig: {ContentTypeOptions: {Override: true}}
        CorsConfig: {AccessControlAllowCredentials: false, AccessControlAllowHeaders: {Items: [x]}, AccessControlAllowMethods: {Items: [GET]},
          AccessControlAllowOrigins: {Items: ["*"]}, AccessControlExposeHeaders: {Items: [y]}, AccessControlMaxAgeSec: 6, OriginOverride: true}
`

func fromText(text string) (Distribution, error) {
	s, err := cfn.Resolve([]byte(text), nil)
	if err != nil {
		return Distribution{}, err
	}
	return FromStack(s)
}

func TestADistributionIsReadFromItsTemplate(t *testing.T) {
	got, err := fromText(stack)
	if err != nil {
		t.Fatal(err)
	}
	s3 := Origin{Name: S3, URL: "https://b.s3.test", Signed: true}
	ttl, encodings := TTL{time.Second, 2 * time.Second, 3 * time.Second}, []string{"br", "gzip"}
	want := Distribution{
		Root: "index.html",
		Behaviours: []Behaviour{
			{Pattern: "us/*", Methods: []string{"GET"}, Origins: []Origin{s3}, Query: true, TTL: ttl, Encodings: encodings},
			{Pattern: "*", Methods: []string{"GET", "HEAD"}, Origins: []Origin{s3, {Name: COS, URL: "https://cos.test/x"}}, Failover: []int{404},
				Query: true, TTL: ttl, Encodings: encodings, Headers: []string{"Origin"},
				Answer: Answer{Header: http.Header{"X-Content-Type-Options": {"nosniff"}},
					CORS: &CORS{Origins: []string{"*"}, Methods: []string{"GET"}, Headers: []string{"x"}, Expose: []string{"y"}, MaxAge: "6"}}},
		},
		ErrorTTL: map[int]time.Duration{403: 3 * time.Second, 404: 4 * time.Second, 410: 10 * time.Second, 414: 10 * time.Second, 500: 10 * time.Second,
			501: 10 * time.Second, 502: 10 * time.Second, 503: 10 * time.Second, 504: 10 * time.Second},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An edge that overlooks a property would serve something else than CloudFront.
func TestWhatTheEdgeDoesNotServeIsAnError(t *testing.T) {
	for _, tc := range []struct{ name, old, new, problem string }{
		{"property", "Enabled: true", "Enabled: true\n        WebACLId: x", "DistributionConfig.WebACLId is not understood"},
		{"property of a behaviour", "PathPattern: us/*,", "PathPattern: us/*, FunctionAssociations: [],", "CacheBehaviors[0].FunctionAssociations"},
		{"several", "PathPattern: us/*,", "PathPattern: us/*, A: b, C: d,", "CacheBehaviors[0].A, C is not understood"},
		{"property of an origin", "OriginPath: /x,", "OriginPath: /x, OriginShield: {},", "Origins[1].OriginShield"},
		{"error page", "ErrorCode: 403,", "ErrorCode: 403, ResponseCode: 200,", "CustomErrorResponses[0].ResponseCode"},
		{"origin", "TargetOriginId: s3", "TargetOriginId: s4", `"s4", which is not there`},
		{"policy of AWS's", "CachePolicyId: !Ref C}", "CachePolicyId: 658327ea}", `CachePolicy "658327ea" is not in the template`},
		{"disabled", "Enabled: true", "Enabled: false", "Enabled is false"},
		{"plain HTTP to an origin", "https-only", "match-viewer", "OriginProtocolPolicy is match-viewer"},
		{"signing", "SigningBehavior: always", "SigningBehavior: never", "SigningBehavior is never"},
		{"cookies", "CookieBehavior: none}, HeadersConfig: {HeaderBehavior: none}", "CookieBehavior: all}, HeadersConfig: {HeaderBehavior: none}", "CookieBehavior is all"},
		{"kept preflights", "CachedMethods: [GET, HEAD]", "CachedMethods: [GET, OPTIONS]", "CachedMethods has OPTIONS"},
		{"no number", "ErrorCachingMinTTL: 3", "ErrorCachingMinTTL: soon", `"soon", must be a whole number`},
		{"another type", "AllowedMethods: [GET]", "AllowedMethods: GET", "AllowedMethods is string"},
		{"no distribution", "AWS::CloudFront::Distribution", "AWS::S3::Bucket", "0 distributions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := strings.Replace(stack, tc.old, tc.new, 1)
			if text == stack {
				t.Fatalf("%q is not in the template", tc.old)
			}
			if _, err := fromText(text); err == nil || !strings.Contains(err.Error(), tc.problem) {
				t.Errorf("error %v, want one with %q", err, tc.problem)
			}
		})
	}
}

func TestASignedOriginNeedsASigner(t *testing.T) {
	d, err := fromText(stack)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(nil, Config{Distribution: d}); err == nil {
		t.Error("an edge that cannot sign was made")
	}
}
