// Package s3store is S3 as the ferry sees it: Store writes objects to one
// destination bucket, create-only, and LogStore reads the buckets that access
// logs are delivered to.
//
// What it promises: nothing that exists is overwritten; S3 checks a checksum of
// every byte before anything becomes visible; whatever does not prove a write is
// Ambiguous, never done; every error is an *object.Error, and the SDK's types end
// here. It never retries: the guard owns retries.
//
// Both are safe for concurrent use and start no goroutine.
package s3store

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/objectferry/objectferry/internal/object"
)

// AppID is in the user agent of every request, as app/objectferry: by it the
// ferry knows its own rows in the access logs.
const AppID = "objectferry"

// ClientConfig says how an S3 client connects.
type ClientConfig struct {
	Region      string // "" is the one of the AWS configuration
	PathStyle   bool   // for emulators
	Concurrency int    // requests at once, whose connections are kept; 0 is 64
	// Wrap decorates the transport, for traces; nil leaves it.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Connect wires an S3 client on top of cfg, as config.LoadDefaultConfig gives
// it; it opens no socket. The CA bundle that cfg carries stays in force.
func Connect(cfg aws.Config, c ClientConfig) *s3.Client {
	if c.Concurrency <= 0 {
		c.Concurrency = 64
	}
	client, ok := cfg.HTTPClient.(*awshttp.BuildableClient)
	if !ok {
		client = awshttp.NewBuildableClient()
	}
	var transport http.RoundTripper = client.WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConns = 0
		t.MaxIdleConnsPerHost = c.Concurrency
		t.TLSHandshakeTimeout = 10 * time.Second
		t.WriteBufferSize = 64 << 10
	}).GetTransport()
	if c.Wrap != nil {
		transport = c.Wrap(transport)
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		if c.Region != "" {
			o.Region = c.Region
		}
		o.UsePathStyle = c.PathStyle
		o.AppID = AppID
		o.Retryer = aws.NopRetryer{}
		// We supply CRC64NVME ourselves, so that bodies are not re-framed and
		// each is read once.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		o.HTTPClient = &http.Client{
			Transport:     object.BoundErrors(onlyS3{transport}),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	})
}

// Config says how objects are written to one bucket.
type Config struct {
	Bucket        string
	ExpectedOwner string // account id; "" does not check
	SSE           string // "" or "none" leaves it to the bucket; AES256, aws:kms
	KMSKey        string // with aws:kms; "" is the account's default key
	StorageClass  string // "" is STANDARD
	Probe         string // a key that we may ask for and that need not exist, as ReadReference does; "" is one of our own
}

// Store writes to one bucket.
type Store struct {
	client *s3.Client
	cfg    Config
	owner  *string
}

// New wires a Store on a client that Connect made.
func New(client *s3.Client, cfg Config) *Store {
	s := &Store{client: client, cfg: cfg}
	if cfg.ExpectedOwner != "" {
		s.owner = &cfg.ExpectedOwner
	}
	if s.cfg.Probe == "" {
		s.cfg.Probe = "objectferry-reference"
	}
	if s.cfg.SSE == "none" {
		s.cfg.SSE = ""
	}
	return s
}
