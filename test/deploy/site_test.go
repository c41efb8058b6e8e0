package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/test/ferry"
)

// site is a deployment: both stacks in moto, and a source.
type site struct {
	*cloud
	cos     *cosd.Server
	service *cfn.Stack // the templates, as they were deployed
	bucket  *cfn.Stack
	outputs map[string]map[string]string      // of the stacks, by template
	made    map[string]map[string][]statement // the policies of each role, as moto's CloudFormation made them
	yaml    string                            // the configuration, from the outputs
	file    string
}

// unjudged is what moto does not do as AWS does. Each run prints it, and
// infra/README.md lists it.
var unjudged = []string{
	"stacks: notifications, lifecycles, public-access blocks, versioning, redrive-allow policies and resource policies are not applied; the test applies the first four from the template by API, and reads the others",
	"resource policies: of queues they are not asked; of buckets their conditions are not, so that TlsOnly would refuse everybody",
	"policies of roles: conditions (kms:ViaService) are not asked, and neither is KMS",
	"actions: batches go by the operation's name (sqs:SendMessageBatch), which AWS does not know as a permission; the test grants both together",
	"sqs:GetQueueUrl: is asked of no queue in particular; the test grants it on all while one statement has it",
	"roles: who may take one (trust policies) is not asked for a service; sessions are made by the test",
	"S3 without s3:ListBucket: a missing key is 404, not 403",
	"alarms: are not there; the test reads them",
}

// deploy makes a site. The bucket that visitors read is made by the stack.
func deploy(t *testing.T) *site {
	t.Helper()
	ferry.Tool(t, ferry.MotoProgram)
	c, err := startMoto()
	if err != nil {
		t.Fatalf("start %s: %v", ferry.MotoProgram, err)
	}
	for _, line := range unjudged {
		t.Log("moto does not judge: ", line)
	}
	s := &site{cloud: c, outputs: map[string]map[string]string{}}
	principal := cosd.Principal{ID: "AKIDdeploy", Key: "deploy-secret"}
	s.cos = cosd.New(cosd.Config{Principals: []cosd.Principal{principal}})
	if err := s.cos.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.cos.Close)
	credentials := filepath.Join(t.TempDir(), "cos.json")
	if err := os.WriteFile(credentials, fmt.Appendf(nil, `{"id":%q,"key":%q}`, principal.ID, principal.Key), 0o600); err != nil {
		t.Fatal(err)
	}

	bucket := maps.Clone(ofBucket)
	bucket["CreateBucket"], bucket["Source"], bucket["CredentialsFile"] = "true", s.cos.URL(), credentials
	s.outputs["objectferry.yaml"] = c.stack(t, "objectferry", "objectferry.yaml", ofService)
	s.outputs["bucket.yaml"] = c.stack(t, "objectferry-media", "bucket.yaml", bucket)
	both := resolved(t, ofService, bucket)
	s.service, s.bucket = both.Service, both.Bucket
	for _, stack := range []*cfn.Stack{s.service, s.bucket} {
		s.applyIgnored(t, stack)
	}
	s.made = map[string]map[string][]statement{}
	for _, role := range roles {
		s.made[role] = s.policiesOf(t, "objectferry-"+role)
		s.asMotoReads(t, role, policies(t, "objectferry-"+role, s.service, s.bucket))
	}
	s.yaml = s.outputs["objectferry.yaml"]["Configuration"] + s.outputs["bucket.yaml"]["RouteConfiguration"]
	s.file = ferry.Config(t, s.yaml)
	return s
}

// policiesOf asks moto for a role's policies.
func (s *site) policiesOf(t *testing.T, role string) map[string][]statement {
	t.Helper()
	var listed struct {
		Names []string `xml:"ListRolePoliciesResult>PolicyNames>member"`
	}
	s.must(t, "iam", "ListRolePolicies", url.Values{"RoleName": {role}}, &listed)
	all := map[string][]statement{}
	for _, name := range listed.Names {
		var got struct {
			Document string `xml:"GetRolePolicyResult>PolicyDocument"`
		}
		s.must(t, "iam", "GetRolePolicy", url.Values{"RoleName": {role}, "PolicyName": {name}}, &got)
		text := got.Document
		if plain, err := url.QueryUnescape(text); err == nil { // IAM answers with it escaped
			text = plain
		}
		// Of a policy that stands in its role moto tells Python's text.
		var document any
		if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "'", `"`)), &document); err != nil {
			t.Fatalf("read policy %s of %s: %v\n%s", name, role, err, text)
		}
		all[name] = statements(t, name, document)
	}
	return all
}

var roles = []string{"parse", "copy", "sweep", "oncall"}

// applyIgnored applies by API what moto's CloudFormation leaves out, with the
// words of the template.
func (s *site) applyIgnored(t *testing.T, stack *cfn.Stack) {
	t.Helper()
	ctx, client := t.Context(), s.s3()
	for _, b := range ofType(stack, "AWS::S3::Bucket") {
		name := aws.String(b["BucketName"].(string))
		var errs []error
		did := func(_ any, err error) { errs = append(errs, err) }
		did(client.PutPublicAccessBlock(ctx, &s3.PutPublicAccessBlockInput{Bucket: name, PublicAccessBlockConfiguration: &types.PublicAccessBlockConfiguration{
			BlockPublicAcls: aws.Bool(at(b, "PublicAccessBlockConfiguration.BlockPublicAcls") == true), BlockPublicPolicy: aws.Bool(at(b, "PublicAccessBlockConfiguration.BlockPublicPolicy") == true),
			IgnorePublicAcls: aws.Bool(at(b, "PublicAccessBlockConfiguration.IgnorePublicAcls") == true), RestrictPublicBuckets: aws.Bool(at(b, "PublicAccessBlockConfiguration.RestrictPublicBuckets") == true)}}))
		did(client.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{Bucket: name,
			LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: lifecycle(t, b)}}))
		if status, ok := at(b, "VersioningConfiguration.Status").(string); ok {
			did(client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{Bucket: name, VersioningConfiguration: &types.VersioningConfiguration{Status: types.BucketVersioningStatus(status)}}))
		}
		if events, ok := at(b, "NotificationConfiguration.QueueConfigurations").([]any); ok {
			did(client.PutBucketNotificationConfiguration(ctx, &s3.PutBucketNotificationConfigurationInput{Bucket: name, NotificationConfiguration: notifications(events)}))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatalf("apply the template to %s: %v", *name, err)
		}
	}
}

func lifecycle(t *testing.T, bucket map[string]any) (rules []types.LifecycleRule) {
	for _, r := range at(bucket, "LifecycleConfiguration.Rules").([]any) {
		prefix, _ := at(r, "Prefix").(string)
		rule := types.LifecycleRule{ID: aws.String(at(r, "Id").(string)), Status: types.ExpirationStatusEnabled, Filter: &types.LifecycleRuleFilter{Prefix: &prefix}}
		if days, ok := at(r, "ExpirationInDays").(string); ok {
			rule.Expiration = &types.LifecycleExpiration{Days: aws.Int32(int32(number(t, days)))}
		}
		if days, ok := at(r, "AbortIncompleteMultipartUpload.DaysAfterInitiation").(string); ok {
			rule.AbortIncompleteMultipartUpload = &types.AbortIncompleteMultipartUpload{DaysAfterInitiation: aws.Int32(int32(number(t, days)))}
		}
		rules = append(rules, rule)
	}
	return rules
}

func notifications(events []any) *types.NotificationConfiguration {
	all := &types.NotificationConfiguration{}
	for _, e := range events {
		q := types.QueueConfiguration{QueueArn: aws.String(at(e, "Queue").(string)), Events: []types.Event{types.Event(at(e, "Event").(string))},
			Filter: &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{}}}
		for _, r := range at(e, "Filter.S3Key.Rules").([]any) {
			q.Filter.Key.FilterRules = append(q.Filter.Key.FilterRules, types.FilterRule{
				Name: types.FilterRuleName(at(r, "Name").(string)), Value: aws.String(at(r, "Value").(string))})
		}
		all.QueueConfigurations = append(all.QueueConfigurations, q)
	}
	return all
}

// asMotoReads gives a role its policies in the words that moto understands, see
// unjudged.
func (s *site) asMotoReads(t testing.TB, role string, byPolicy map[string][]statement) {
	t.Helper()
	for _, name := range sorted(byPolicy) {
		entries := []any{}
		for _, st := range byPolicy[name] {
			actions := slices.Clone(st.Actions)
			for _, a := range st.Actions {
				switch a {
				case "sqs:SendMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility":
					actions = append(actions, a+"Batch")
				case "sqs:GetQueueUrl":
					entries = append(entries, map[string]any{"Effect": "Allow", "Action": a, "Resource": "*"})
				}
			}
			if len(actions) > 0 {
				entries = append(entries, map[string]any{"Effect": "Allow", "Action": actions, "Resource": st.Resources})
			}
		}
		form := url.Values{"RoleName": {"objectferry-" + role}, "PolicyName": {name}}
		if len(entries) == 0 { // a policy must have a statement
			s.must(t, "iam", "DeleteRolePolicy", form, nil)
			continue
		}
		text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": entries})
		if err != nil {
			t.Fatal(err)
		}
		form.Set("PolicyDocument", string(text))
		s.must(t, "iam", "PutRolePolicy", form, nil)
	}
}

// take is a session of a role.
func (s *site) take(t testing.TB, role string) aws.Credentials {
	t.Helper()
	s.enforce(t, false) // moto would ask the trust policy, which lets in pods only
	defer s.enforce(t, true)
	var made struct {
		ID     string `xml:"AssumeRoleResult>Credentials>AccessKeyId"`
		Secret string `xml:"AssumeRoleResult>Credentials>SecretAccessKey"`
		Token  string `xml:"AssumeRoleResult>Credentials>SessionToken"`
	}
	arn := map[string]string{"parse": "ParseRoleArn", "copy": "CopyRoleArn", "sweep": "SweepRoleArn", "oncall": "OnCallRoleArn"}[role]
	s.must(t, "sts", "AssumeRole", url.Values{"RoleArn": {s.outputs["objectferry.yaml"][arn]}, "RoleSessionName": {"test"}}, &made)
	s.front.know(made.ID, made.Secret)
	return aws.Credentials{AccessKeyID: made.ID, SecretAccessKey: made.Secret, SessionToken: made.Token}
}

// enforce has moto look at permissions, or not.
func (s *site) enforce(t testing.TB, on bool) {
	t.Helper()
	let := "inf"
	if on {
		let = "0"
	}
	resp, err := http.Post(s.url+"/moto-api/reset-auth", "text/plain", strings.NewReader(let))
	if err != nil {
		t.Fatalf("have moto enforce: %v", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("have moto enforce: %s", resp.Status)
	}
}

// depth is how many messages a queue holds.
func (s *site) depth(t testing.TB, name string) int {
	t.Helper()
	d, err := queue.ReadDepth(t.Context(), s.sqs(), "https://sqs."+region+".amazonaws.com/"+account+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return d.Total()
}

func send(t testing.TB, s *site, url, body string) error {
	t.Helper()
	_, err := s.sqs().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	return err
}
