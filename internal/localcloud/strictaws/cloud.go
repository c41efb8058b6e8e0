package strictaws

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// Credential is what belongs to an access key.
type Credential struct {
	Secret string
	ARN    string // the requester in access logs and the principal in policies
}

// Config is how a Cloud behaves. The zero value is usable.
type Config struct {
	Region  string // default us-west-2
	Account string // 12 digits, the owner of everything; default 111122223333

	// Credentials by access key. When set, the signature of every signed request
	// is verified and SQS refuses unsigned ones; when empty, any access key passes
	// unverified. Unsigned S3 requests are those of a stranger (anonymous).
	Credentials map[string]Credential

	// MinPartSize in bytes of every part but the last; default 5 MiB. Tests lower it.
	MinPartSize int64
	// DiscardOver makes bodies of more than this many bytes leave only their
	// length and CRCs behind, for benchmarks; 0 keeps everything. Such a body is
	// verified by its x-amz-checksum alone and its ETag is not an MD5.
	DiscardOver int64

	// Now is S3's clock for log rows, Last-Modified and events; default time.Now.
	// SQS and signature ages always use the real clock.
	Now func() time.Time
	// LogInterval is how often access logs are delivered while serving; default
	// 1 s, below 0 only FlushLogs delivers.
	LogInterval time.Duration

	// MaxInFlight is how many messages of a queue may be in flight; default 120,000.
	MaxInFlight int
}

func (c Config) withDefaults() Config {
	if c.Region == "" {
		c.Region = "us-west-2"
	}
	if c.Account == "" {
		c.Account = "111122223333"
	}
	if c.MinPartSize == 0 {
		c.MinPartSize = 5 << 20
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.LogInterval == 0 {
		c.LogInterval = time.Second
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 120_000
	}
	return c
}

// Cloud is one S3 and one SQS that know each other.
type Cloud struct {
	cfg      Config
	faults   *Faults
	policy   policy
	counters counters
	store    *store
	logs     logBook
	queues   *queues
	serial   atomic.Uint64 // makes event sequencers ascend

	operations []operation
	actions    map[string]func(*sqsRequest) (any, *apiError)
}

// New returns an empty cloud. It opens no socket and starts nothing.
func New(cfg Config) *Cloud {
	cfg = cfg.withDefaults()
	return &Cloud{
		cfg:    cfg,
		faults: newFaults(),
		store:  newStore(),
		queues: newQueues(cfg),

		operations: s3Operations(),
		actions:    sqsActions(),
	}
}

// Faults is how the cloud misbehaves.
func (c *Cloud) Faults() *Faults { return c.faults }

// S3 is the S3 endpoint.
func (c *Cloud) S3() http.Handler { return http.HandlerFunc(c.serveS3) }

// SQS is the SQS endpoint.
func (c *Cloud) SQS() http.Handler { return http.HandlerFunc(c.serveSQS) }

// Run delivers access logs every Config.LogInterval until ctx ends.
func (c *Cloud) Run(ctx context.Context) {
	if c.cfg.LogInterval < 0 {
		return
	}
	tick := time.NewTicker(c.cfg.LogInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			c.FlushLogs()
		}
	}
}
