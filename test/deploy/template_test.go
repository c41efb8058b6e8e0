package deploy

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestTemplatesPassCfnLint(t *testing.T) {
	t.Parallel()
	lint := ferry.Tool(t, "cfn-lint")
	if out, err := exec.Command(lint, allTemplates(t)...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func allTemplates(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(templates, "*.yaml"))
	if err != nil || len(all) < 3 {
		t.Fatalf("templates %v, %v", all, err)
	}
	return all
}

// What is asked of a person says what it is for, and refuses what cannot be.
func TestParametersAreConstrainedAndDescribed(t *testing.T) {
	for _, file := range allTemplates(t) {
		var text struct {
			Parameters map[string]map[string]any `yaml:"Parameters"`
			Outputs    map[string]map[string]any `yaml:"Outputs"`
		}
		if err := yaml.Unmarshal(template(t, filepath.Base(file)), &text); err != nil {
			t.Fatal(err)
		}
		if len(text.Parameters) < 10 || len(text.Outputs) < 3 {
			t.Fatalf("%s: %d parameters and %d outputs were read", file, len(text.Parameters), len(text.Outputs))
		}
		for name, p := range text.Parameters {
			has := func(field string) bool { return p[field] != nil }
			if !has("Description") || !has("AllowedPattern") && !has("AllowedValues") && !(has("MinValue") && has("MaxValue")) ||
				!has("AllowedValues") && !has("ConstraintDescription") {
				t.Errorf("%s: parameter %s is not both described and constrained", file, name)
			}
		}
		for name, o := range text.Outputs {
			if o["Description"] == nil {
				t.Errorf("%s: output %s is not described", file, name)
			}
		}
	}
}

func TestParametersThatCannotBeAreRefused(t *testing.T) {
	imports := resolved(t, ofService, ofBucket).Service.Exports
	for _, tt := range []struct {
		template    string
		name, value string
	}{
		{"objectferry.yaml", "Name", "Objectferry"}, {"objectferry.yaml", "Name", "ferry_eu"}, // see TestPatternsOfQueuesMatchTheServicesOwn
		{"objectferry.yaml", "Name", "a-name-that-is-far-too-long"},
		{"objectferry.yaml", "LoggedBuckets", "media,s3://docs"}, {"objectferry.yaml", "LogPrefix", "access"}, {"objectferry.yaml", "LogPrefix", "/"},
		{"objectferry.yaml", "LogDays", "3"}, {"objectferry.yaml", "WhenDone", "maybe"}, {"objectferry.yaml", "OidcProvider", "https://oidc.eks.us-west-2.amazonaws.com/id/A"},
		{"objectferry.yaml", "OnCallPrincipals", "*"}, {"objectferry.yaml", "OnCallPrincipals", "arn:aws:iam::111122223333:role/a,*"},
		{"objectferry.yaml", "ClusterName", `a"`}, {"objectferry.yaml", "AlarmTopic", "pager"},
		{"bucket.yaml", "Bucket", "arn:aws:s3:::media"}, {"bucket.yaml", "Route", "Media"}, {"bucket.yaml", "Source", "media.cos.ap-shanghai.myqcloud.com"},
		{"bucket.yaml", "Source", "https://media.cos.ap-shanghai.myqcloud.com/img"}, {"bucket.yaml", "Read", ""}, {"bucket.yaml", "Include", `img/"**`},
		{"bucket.yaml", "Include", "**"}, // it is a signed source
		{"bucket.yaml", "KmsKey", "alias/aws/s3"}, {"bucket.yaml", "CredentialsFile", "cos.json"},
	} {
		parameters := maps.Clone(ofService)
		if tt.template == "bucket.yaml" {
			parameters = maps.Clone(ofBucket)
		}
		parameters[tt.name] = tt.value
		if _, err := cfn.ResolveIn(template(t, tt.template), parameters, cfn.World{Imports: imports}); err == nil {
			t.Errorf("%s takes %q for %s", tt.template, tt.value, tt.name)
		}
	}
}

// Numbers of the design, and of FACTS about SQS: what a queue is set to decides
// what an outage or a crash costs.
func TestEveryQueueIsSetAsTheDesignSays(t *testing.T) {
	both := resolved(t, ofService, ofBucket)
	dead := map[any]string{} // dead-letter queue to its queue
	checked := 0
	for _, stack := range []*cfn.Stack{both.Service, both.Bucket} {
		byARN := map[any]map[string]any{}
		for _, r := range ofType(stack, "AWS::SQS::Queue") {
			byARN[queueARN(r["QueueName"].(string))] = r
		}
		for _, arn := range slices.SortedFunc(maps.Keys(byARN), func(a, b any) int { return strings.Compare(a.(string), b.(string)) }) {
			q := byARN[arn]
			want := map[string]any{"ReceiveMessageWaitTimeSeconds": "20", "SqsManagedSseEnabled": true, "QueueName": q["QueueName"]}
			if policy, ok := q["RedrivePolicy"]; ok {
				want["VisibilityTimeout"], want["MessageRetentionPeriod"] = "60", "604800"
				target := at(policy, "deadLetterTargetArn")
				want["RedrivePolicy"] = map[string]any{"deadLetterTargetArn": target, "maxReceiveCount": "30"}
				if other, ok := dead[target]; ok || byARN[target] == nil {
					t.Errorf("the dead letters of %v are those of %q, too, or not there", arn, other)
				}
				dead[target] = arn.(string)
				if diff := cmp.Diff(map[string]any{"redrivePermission": "byQueue", "sourceQueueArns": []any{arn}}, byARN[target]["RedriveAllowPolicy"]); diff != "" {
					t.Errorf("who may send dead letters to %v (-want +got):\n%s", target, diff)
				}
			} else {
				want["MessageRetentionPeriod"], want["RedriveAllowPolicy"] = "1209600", q["RedriveAllowPolicy"]
			}
			if diff := cmp.Diff(want, q); diff != "" {
				t.Errorf("%v (-want +got):\n%s", arn, diff)
			}
			checked++
		}
	}
	if checked != 6 || len(dead) != 3 {
		t.Errorf("%d queues, %d of them of dead letters; want 6 and 3", checked, len(dead))
	}
}

// ofType are the properties of all resources of a type, by logical name.
func ofType(stack *cfn.Stack, kind string) map[string]map[string]any {
	all := map[string]map[string]any{}
	for name, r := range stack.Resources {
		if r.Type == kind {
			all[name] = r.Properties
		}
	}
	return all
}

// tlsOnly is the statement that every resource policy has.
func tlsOnly(service string, resources any) map[string]any {
	return map[string]any{"Sid": "TlsOnly", "Effect": "Deny", "Principal": "*", "Action": service + ":*", "Resource": resources,
		"Condition": map[string]any{"Bool": map[string]any{"aws:SecureTransport": "false"}}}
}

func TestQueuesTakeTLSOnlyAndS3OnlyFromTheLogBucket(t *testing.T) {
	both := resolved(t, ofService, ofBucket)
	queues := 0
	for _, stack := range []*cfn.Stack{both.Service, both.Bucket} {
		for _, policy := range ofType(stack, "AWS::SQS::QueuePolicy") {
			url := list(policy["Queues"])[0]
			arn := queueARN(url[strings.LastIndexByte(url, '/')+1:])
			want := []any{tlsOnly("sqs", arn)}
			if arn == queueARN("objectferry-logs") {
				want = append([]any{map[string]any{"Sid": "AnnounceLogs", "Effect": "Allow", "Principal": map[string]any{"Service": "s3.amazonaws.com"},
					"Action": "sqs:SendMessage", "Resource": arn, "Condition": map[string]any{
						"StringEquals": map[string]any{"aws:SourceAccount": account}, "ArnEquals": map[string]any{"aws:SourceArn": "arn:aws:s3:::" + logs}}}}, want...)
			}
			if diff := cmp.Diff(any(want), at(policy["PolicyDocument"], "Statement")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", arn, diff)
			}
			queues++
		}
	}
	if queues != 6 {
		t.Errorf("%d queues have a policy, want 6", queues)
	}
}

// Without an alarm on it a queue fails in silence.
func TestEveryQueueHasItsAlarms(t *testing.T) {
	service, bucket := maps.Clone(ofService), maps.Clone(ofBucket)
	const topic = "arn:aws:sns:us-west-2:111122223333:on-call"
	service["AlarmTopic"], bucket["AlarmTopic"] = topic, topic
	both := resolved(t, service, bucket)
	got := map[string]bool{}
	for _, stack := range []*cfn.Stack{both.Service, both.Bucket} {
		for name, a := range ofType(stack, "AWS::CloudWatch::Alarm") {
			queue := at(a["Dimensions"].([]any)[0], "Value")
			got[fmt.Sprint(queue, " ", a["MetricName"], " ", a["ComparisonOperator"], " ", a["Threshold"], " missing ", a["TreatMissingData"])] = true
			if diff := cmp.Diff([]any{a["AlarmActions"], a["OKActions"]}, []any{[]any{topic}, []any{topic}}); diff != "" {
				t.Errorf("%s tells %s", name, diff)
			}
			if a["MetricName"] == "NumberOfMessagesSent" && (number(t, a["Period"])*number(t, a["DatapointsToAlarm"]) != 12*3600 || a["DatapointsToAlarm"] != a["EvaluationPeriods"]) {
				t.Errorf("%s does not look at twelve hours: %v", name, a)
			}
		}
	}
	want := map[string]bool{"objectferry-logs NumberOfMessagesSent LessThanThreshold 1 missing breaching": true}
	for queue, dead := range map[string]string{"objectferry-logs": "objectferry-logs-dead", "objectferry-sync": "objectferry-sync-dead", "objectferry-sync_media": "objectferry-sync-dead_media"} {
		want[dead+" ApproximateNumberOfMessagesVisible GreaterThanThreshold 0 missing notBreaching"] = true
		want[queue+" ApproximateAgeOfOldestMessage GreaterThanThreshold 14400 missing notBreaching"] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

func number(t *testing.T, v any) int {
	t.Helper()
	n, err := strconv.Atoi(fmt.Sprint(v))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
