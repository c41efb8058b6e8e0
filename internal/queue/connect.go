package queue

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// appID is in the user agent of every call, see rule 8 of the design.
const appID = "objectferry"

// Connect builds the client that consumers and senders share. It opens no
// connection to SQS. region may be "" where AWS's own settings name one;
// connections is how many idle ones are kept to the endpoint.
//
// The SDK retries nothing: each loop of this package has a retry of its own that
// repeats only the entries that failed, while the SDK's would repeat a whole
// batch, hide throttling, and put receives to sleep once its tokens are spent.
func Connect(ctx context.Context, region string, connections int) (*sqs.Client, error) {
	// A plain *http.Client would make LoadDefaultConfig fail where AWS_CA_BUNDLE is set.
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = max(connections, awshttp.DefaultHTTPTransportMaxIdleConnsPerHost)
		t.MaxIdleConns = max(t.MaxIdleConns, t.MaxIdleConnsPerHost)
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region), config.WithAppID(appID),
		config.WithHTTPClient(client), config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration for SQS: %w", err)
	}
	if cfg.Region == "" {
		return nil, fmt.Errorf("load AWS configuration for SQS: no region; set region in the configuration or AWS_REGION")
	}
	return Client(cfg), nil
}

// Client is what Connect builds, on top of settings that are there already.
func Client(cfg aws.Config) *sqs.Client {
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	cfg.HTTPClient = plainBodies{cfg.HTTPClient}
	return sqs.NewFromConfig(cfg)
}

// plainBodies sends request bodies as readers and nothing more. The SDK closes a
// body as soon as the answer begins; its WriteTo then returns io.EOF, which
// net/http, still looking whether the body goes on, takes for a failed write: it
// cuts the connection in the midst of the answer. Of a receive that is lost
// messages, until their visibility timeout. It happened to one in a thousand on
// loopback, where answers are quicker than that look.
type plainBodies struct{ aws.HTTPClient }

func (c plainBodies) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.HTTPClient.Do(r)
}
