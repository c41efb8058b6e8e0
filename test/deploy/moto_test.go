package deploy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/queue"
	"github.com/objectferry/objectferry/test/ferry"
)

// cloud is a moto_server in which nobody may do what no policy allows.
type cloud struct {
	url   string // of the front
	front *front
	admin aws.Credentials
}

// anybody is somebody whom moto lets in while it does not look at permissions.
var anybody = aws.Credentials{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "secret"}

// startMoto starts moto and makes an administrator, and from then on it enforces.
func startMoto() (*cloud, error) {
	u, err := ferry.StartMoto("MOTO_ACCOUNT_ID="+account, "INITIAL_NO_AUTH_ACTION_COUNT=3")
	if err != nil {
		return nil, err
	}
	target, err := url.Parse(u)
	if err != nil {
		return nil, err
	}
	c := &cloud{front: &front{secrets: map[string]string{}}, admin: anybody}
	c.url = c.front.serve(target)
	ctx := context.Background()
	var made struct {
		ID     string `xml:"CreateAccessKeyResult>AccessKey>AccessKeyId"`
		Secret string `xml:"CreateAccessKeyResult>AccessKey>SecretAccessKey"`
	}
	everything := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
	for _, call := range []struct {
		action string
		form   url.Values
		out    any
	}{
		{"CreateUser", url.Values{"UserName": {"admin"}}, nil},
		{"PutUserPolicy", url.Values{"UserName": {"admin"}, "PolicyName": {"all"}, "PolicyDocument": {everything}}, nil},
		{"CreateAccessKey", url.Values{"UserName": {"admin"}}, &made},
	} {
		if err := c.query(ctx, "iam", call.action, call.form, call.out); err != nil {
			return nil, err
		}
	}
	c.front.know(made.ID, made.Secret)
	c.admin = aws.Credentials{AccessKeyID: made.ID, SecretAccessKey: made.Secret}
	return c, nil
}

// query calls a service that speaks AWS's query protocol, as the administrator.
func (c *cloud) query(ctx context.Context, service, action string, form url.Values, out any) error {
	form.Set("Action", action)
	body := form.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	sum := sha256.Sum256([]byte(body))
	if err := v4.NewSigner().SignHTTP(ctx, c.admin, req, hex.EncodeToString(sum[:]), service, region, time.Now()); err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s\n%s", action, resp.Status, bytes.TrimSpace(answer))
	}
	if out == nil {
		return nil
	}
	return xml.Unmarshal(answer, out)
}

// must is query where a failure ends the test.
func (c *cloud) must(t testing.TB, service, action string, form url.Values, out any) {
	t.Helper()
	if err := c.query(t.Context(), service, action, form, out); err != nil {
		t.Fatal(err)
	}
}

// config is how an SDK client of who finds the cloud.
func (c *cloud) config(who aws.Credentials) aws.Config {
	return aws.Config{Region: region, BaseEndpoint: &c.url, Retryer: func() aws.Retryer { return aws.NopRetryer{} },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return who, nil })}
}

func (c *cloud) s3() *s3.Client {
	return s3.NewFromConfig(c.config(c.admin), func(o *s3.Options) {
		o.UsePathStyle = true
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	})
}

func (c *cloud) sqs() *sqs.Client { return queue.Client(c.config(c.admin)) }

// stack makes a stack of a template and returns its outputs.
func (c *cloud) stack(t testing.TB, name, file string, parameters map[string]string) map[string]string {
	t.Helper()
	form := url.Values{"StackName": {name}, "TemplateBody": {string(template(t, file))}, "Capabilities.member.1": {"CAPABILITY_NAMED_IAM"}}
	for i, key := range sorted(parameters) {
		member := fmt.Sprintf("Parameters.member.%d.Parameter", i+1)
		form.Set(member+"Key", key)
		form.Set(member+"Value", parameters[key])
	}
	c.must(t, "cloudformation", "CreateStack", form, nil)
	var made struct {
		Status  string `xml:"DescribeStacksResult>Stacks>member>StackStatus"`
		Outputs []struct {
			OutputKey, OutputValue string
		} `xml:"DescribeStacksResult>Stacks>member>Outputs>member"`
	}
	c.must(t, "cloudformation", "DescribeStacks", url.Values{"StackName": {name}}, &made)
	if made.Status != "CREATE_COMPLETE" {
		t.Fatalf("stack %s is %s", name, made.Status)
	}
	outputs := map[string]string{}
	for _, o := range made.Outputs {
		outputs[o.OutputKey] = o.OutputValue
	}
	return outputs
}

// environ is what a process needs to work in the cloud as who.
func (c *cloud) environ(who aws.Credentials) map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL": c.url, "AWS_REGION": region, "AWS_DEFAULT_REGION": region, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ACCESS_KEY_ID": who.AccessKeyID, "AWS_SECRET_ACCESS_KEY": who.SecretAccessKey, "AWS_SESSION_TOKEN": who.SessionToken,
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
		// Of an emulator, and of a test that does not wait for long polls to end.
		"OBJECTFERRY_S3_PATH_STYLE": "true", "OBJECTFERRY_RETRY_WAIT": "1s",
	}
}
