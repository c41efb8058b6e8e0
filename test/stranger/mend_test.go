package stranger

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
)

// resolve reads the template of a change set with its parameters, as strictly as
// CloudFormation does and moto does not: it refuses what a constraint forbids.
func (m *moto) resolve(change url.Values) (*cfn.Stack, error) {
	text := []byte(change.Get("TemplateBody"))
	parameters := m.parameters[change.Get("StackName")]
	stack, err := cfn.ResolveIn(text, parameters, cfn.World{Imports: m.exports})
	if err != nil {
		return nil, err
	}
	ids := map[string]string{}
	for name, r := range stack.Resources {
		switch r.Type {
		case "AWS::SQS::Queue":
			ids[name+".Arn"] = fmt.Sprintf("arn:aws:sqs:us-west-2:%s:%s", account, r.Properties["QueueName"])
		case "AWS::S3::Bucket":
			ids[name] = fmt.Sprint(r.Properties["BucketName"])
			ids[name+".Arn"] = "arn:aws:s3:::" + ids[name]
		}
	}
	return cfn.ResolveIn(text, parameters, cfn.World{Imports: m.exports, IDs: ids})
}

// mend applies what moto's CloudFormation leaves out of a template and the page
// relies on: logs are announced, and may be delivered.
func (m *moto) mend(stack *cfn.Stack) error {
	for _, r := range stack.Resources {
		var path, body string
		switch r.Type {
		case "AWS::S3::Bucket":
			events, _ := at(r.Properties, "NotificationConfiguration", "QueueConfigurations").([]any)
			path, body = fmt.Sprintf("/%s?notification", r.Properties["BucketName"]), notification(events)
		case "AWS::S3::BucketPolicy":
			path, body = fmt.Sprintf("/%s?policy", r.Properties["Bucket"]), deliverable(r.Properties)
		}
		if body == "" {
			continue
		}
		if _, err := m.call("s3", http.MethodPut, path, body); err != nil {
			return err
		}
	}
	return nil
}

func notification(events []any) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "<QueueConfiguration><Queue>%s</Queue><Event>%s</Event><Filter><S3Key>", at(e, "Queue"), at(e, "Event"))
		rules, _ := at(e, "Filter", "S3Key", "Rules").([]any)
		for _, rule := range rules {
			fmt.Fprintf(&b, "<FilterRule><Name>%s</Name><Value>%s</Value></FilterRule>", at(rule, "Name"), at(rule, "Value"))
		}
		b.WriteString("</S3Key></Filter></QueueConfiguration>")
	}
	if b.Len() == 0 {
		return ""
	}
	return "<NotificationConfiguration>" + b.String() + "</NotificationConfiguration>"
}

// deliverable is the part of a bucket's policy that lets logs be delivered. moto
// wants it for the whole bucket, and would take a condition on a denial for no
// condition.
func deliverable(properties map[string]any) string {
	statements, _ := at(properties, "PolicyDocument", "Statement").([]any)
	var allow []any
	for _, s := range statements {
		if at(s, "Principal", "Service") == "logging.s3.amazonaws.com" {
			allow = append(allow, map[string]any{"Effect": at(s, "Effect"), "Principal": at(s, "Principal"), "Action": at(s, "Action"),
				"Resource": fmt.Sprintf("arn:aws:s3:::%s/*", properties["Bucket"])})
		}
	}
	b, err := json.Marshal(map[string]any{"Statement": allow})
	if err != nil || allow == nil {
		return ""
	}
	return string(b)
}

// at follows names into nested mappings.
func at(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}
