package deploy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestEachGrantIsNamedWhenItIsDenied is the second judge of least privilege: the
// embedded cloud, which asks of each queue for itself, tells a missing key only to
// those who may list, and has a key of KMS. Each grant is denied alone.
func TestEachGrantIsNamedWhenItIsDenied(t *testing.T) {
	t.Parallel()
	const key = "arn:aws:kms:us-west-2:111122223333:key/1"
	source := cosd.New(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	if err := source.Start(); err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	bucket := maps.Clone(ofBucket)
	bucket["CreateBucket"], bucket["KmsKey"], bucket["Source"], bucket["Read"] = "true", key, source.URL(), "anonymous"
	both := resolved(t, ofService, bucket)
	file := ferry.Config(t, both.Service.Outputs["Configuration"].(string)+both.Bucket.Outputs["RouteConfiguration"].(string))

	credentials := map[string]strictaws.Credential{}
	for _, role := range roles {
		credentials["AKIA"+role] = strictaws.Credential{Secret: "secret", ARN: session(role)}
	}
	c := strictaws.New(strictaws.Config{Credentials: credentials, LogInterval: -1})
	for _, stack := range []*cfn.Stack{both.Service, both.Bucket} {
		createQueues(t, c, stack)
	}
	c.CreateBucket(logs, strictaws.Bucket{})
	c.CreateBucket(media, strictaws.Bucket{KMS: true, Versioned: true})
	server, err := c.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()

	named := func(t *testing.T, role string) []string {
		cmd := exec.CommandContext(t.Context(), ferry.Binary(t), "check", "--live", "--role", role, "--json", "--config", file)
		cmd.Env = ferry.Environ(nil, map[string]string{
			"AWS_ENDPOINT_URL_S3": server.S3URL, "AWS_ENDPOINT_URL_SQS": server.SQSURL, "AWS_EC2_METADATA_DISABLED": "true",
			"AWS_ACCESS_KEY_ID": "AKIA" + role, "AWS_SECRET_ACCESS_KEY": "secret", "OBJECTFERRY_S3_PATH_STYLE": "true",
			"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		})
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if failed := (*exec.ExitError)(nil); !errors.As(cmd.Run(), &failed) && cmd.ProcessState == nil {
			t.Fatal("check did not run")
		}
		return lacking(t, stdout.String(), stderr.String(), cmd.ProcessState.ExitCode())
	}
	for _, role := range roles {
		if failed := named(t, role); failed != nil {
			t.Errorf("with nothing denied, %s lacks %q", role, failed)
		}
		for _, g := range granted(policies(t, "objectferry-"+role, both.Service, both.Bucket)) {
			if g.action == "kms:Decrypt" { // is asked for when there is something to put together or to read
				continue
			}
			g.resource = ofMedia(g.resource)
			t.Run(role+" "+g.action+" "+g.resource[strings.LastIndexByte(g.resource, ':')+1:], func(t *testing.T) {
				denied := g.resource
				if strings.HasPrefix(g.action, "kms:") { // keys have no name here
					denied = "*"
				}
				c.Deny(session(role), g.action, denied)
				defer c.Allow(session(role), g.action, denied)
				if diff := cmp.Diff([]string{g.action + " on " + g.resource}, named(t, role)); diff != "" {
					t.Errorf("check --live (-denied +named):\n%s", diff)
				}
			})
		}
	}
	if n := len(c.Keys(media)) + len(c.Keys(logs)) + c.Uploads(media); n != 0 {
		t.Errorf("the checks left %d keys and uploads", n)
	}
}

func session(role string) string {
	return "arn:aws:sts::" + account + ":assumed-role/objectferry-" + role + "/test"
}

// createQueues makes the queues of a stack, those of dead letters first.
func createQueues(t *testing.T, c *strictaws.Cloud, stack *cfn.Stack) {
	t.Helper()
	queues := slices.Collect(maps.Values(ofType(stack, "AWS::SQS::Queue")))
	slices.SortFunc(queues, func(a, b map[string]any) int { return len(b["QueueName"].(string)) - len(a["QueueName"].(string)) })
	for _, q := range queues {
		attributes := map[string]string{}
		for name, v := range q {
			switch v := v.(type) {
			case map[string]any:
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				attributes[name] = string(text)
			default:
				attributes[name] = fmt.Sprint(v)
			}
		}
		delete(attributes, "QueueName")
		if err := c.CreateQueue(q["QueueName"].(string), attributes); err != nil {
			t.Fatal(err)
		}
	}
}
