// Package deploy holds the templates of infra/aws against what they promise: that
// a team which deploys them has all that the service needs, and no role has more.
//
// What a template says is read by internal/localcloud/cfn, where the tests run
// anywhere. What it does is seen in moto_server: the stacks are deployed there,
// the real service runs on their outputs under their roles, and each statement of
// a role's policies is taken out to see `check --live` name it. What moto cannot
// judge stands in unjudged, is printed by each run, and is judged by the embedded
// cloud where that can.
package deploy

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/test/ferry"
)

func TestMain(m *testing.M) {
	// Much of it waits: for long polls, and for programs that start slowly.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	ferry.Main(m)
}

const (
	account = "111122223333"
	region  = "us-west-2"
	media   = "overseas-media"
	logs    = "objectferry-logs-111122223333-us-west-2"
)

// templates is where the templates lie.
var templates = filepath.Join("..", "..", "infra", "aws")

// template is the text of a template.
func template(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(templates, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The parameters of the stacks, but for what only a running test knows.
var (
	ofService = map[string]string{"LoggedBuckets": media, "WhenDone": "delete"}
	ofBucket  = map[string]string{"Route": "media", "Bucket": media, "Source": "https://media-1250000000.cos.ap-shanghai.myqcloud.com", "Read": "signed", "Include": "img/**", "Mode": "copy"}
)

// resolved are both templates, as CloudFormation would resolve them. ids are
// physical ids by the name of the stack; where there are none, made ones of the
// same form stand.
func resolved(t testing.TB, service, bucket map[string]string) (of struct{ Service, Bucket *cfn.Stack }) {
	t.Helper()
	var err error
	if of.Service, err = cfn.ResolveIn(template(t, "objectferry.yaml"), service, cfn.World{IDs: ids(t, "objectferry.yaml", service, nil)}); err != nil {
		t.Fatalf("resolve objectferry.yaml: %v", err)
	}
	imports := of.Service.Exports
	if of.Bucket, err = cfn.ResolveIn(template(t, "bucket.yaml"), bucket, cfn.World{IDs: ids(t, "bucket.yaml", bucket, imports), Imports: imports}); err != nil {
		t.Fatalf("resolve bucket.yaml: %v", err)
	}
	return of
}

// ids are the ids that AWS gives the resources of a template, by the names that
// the template gives them.
func ids(t testing.TB, name string, parameters map[string]string, imports map[string]any) map[string]string {
	t.Helper()
	stack, err := cfn.ResolveIn(template(t, name), parameters, cfn.World{Imports: imports})
	if err != nil {
		t.Fatalf("resolve %s: %v", name, err)
	}
	all := map[string]string{}
	for logical, r := range stack.Resources {
		named := func(property string) string { s, _ := r.Properties[property].(string); return s }
		switch r.Type {
		case "AWS::SQS::Queue":
			all[logical] = "https://sqs." + region + ".amazonaws.com/" + account + "/" + named("QueueName")
			all[logical+".Arn"] = queueARN(named("QueueName"))
			all[logical+".QueueName"] = named("QueueName")
		case "AWS::S3::Bucket":
			all[logical] = named("BucketName")
			all[logical+".Arn"] = "arn:aws:s3:::" + named("BucketName")
		case "AWS::IAM::Role":
			all[logical] = named("RoleName")
			all[logical+".Arn"] = roleARN(named("RoleName"))
		}
	}
	return all
}

func queueARN(name string) string { return "arn:aws:sqs:" + region + ":" + account + ":" + name }
func roleARN(name string) string  { return "arn:aws:iam::" + account + ":role/" + name }

// list is v as a list: CloudFormation takes one value for a list of it.
func list(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var texts []string
		for _, item := range v {
			if s, ok := item.(string); ok {
				texts = append(texts, s)
			}
		}
		return texts
	}
	return nil
}

// at follows names into nested mappings.
func at(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}
