package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// tick is how often a loop that has nothing to do shows that it lives.
const tick = 15 * time.Second

// Consumer consumes one queue. The flow of a message:
//
//	poll.go: reserve room, receive ─▶ pending ─▶ work.go: dispatch, work ─▶ ack.go: delete or give back
//	                    └──────────── heartbeat.go: extend until settled ────────────┘
//
// One mutex guards what the pollers and the workers share: who runs, what waits,
// how much room there is. No call is made while it is held.
type Consumer struct {
	api     sqsAPI
	gate    Gate
	handle  Handler
	cfg     Config
	tel     *telemetry.Telemetry
	letters *Sender // to the dead-letter queue; set by Open
	beat    *heartbeat
	deletes *batcher[ack]
	backs   *batcher[ack]

	workCtx context.Context // of the handlers; set by Run
	last    context.Context // of acknowledgements; outlives workCtx by Config.Drain
	workers sync.WaitGroup

	ticks       []atomic.Int64 // unix nanoseconds: gate, heartbeat, then the pollers
	lastReceive atomic.Int64
	left        atomic.Int64  // acknowledgements that the drain had to give up
	wake        chan struct{} // a token: there may be room for a poll
	progress    chan struct{} // a token: something ended; read by the drain

	mu        sync.Mutex
	limit     int // slots that the gate admits
	pending   []*lease
	suspects  []*lease // in an order of chance
	running   map[*lease]struct{}
	solo      bool      // a suspect runs, or is being acknowledged
	acquitted *lease    // the suspect that last ran too long to keep the others away
	unsettled int       // handed to the acknowledgers, not accepted yet
	polls     int       // receives in flight
	asked     int       // messages they may bring
	pollsEnd  time.Time // when the last of them is over, if it answers in time
	width     int       // receives allowed at once
	failures  int       // receives that failed in a row
	notBefore time.Time
	draining  bool
}

// NewConsumer wires a consumer; it opens no connection.
func NewConsumer(api sqsAPI, gate Gate, h Handler, cfg Config, tel *telemetry.Telemetry) (*Consumer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if api == nil || gate == nil || h == nil || tel == nil {
		return nil, fmt.Errorf("queue %q: it needs a client, a gate, a handler and telemetry", cfg.Name)
	}
	c := &Consumer{
		api: api, gate: gate, handle: h, cfg: cfg, tel: tel, beat: newHeartbeat(),
		ticks: make([]atomic.Int64, 2+pollers(cfg.Slots)),
		wake:  make(chan struct{}, 1), progress: make(chan struct{}, 1),
		running: map[*lease]struct{}{}, width: 1,
	}
	c.deletes, c.backs = c.newAcks(c.flushDeletes), c.newAcks(c.flushBacks)
	c.beat.extend, c.beat.onLost = c.extend, c.leaseLost
	c.beat.onTick = func() { c.tick(1) }
	for i := range c.ticks {
		c.tick(i)
	}
	return c, nil
}

// errSettings is in the chain of an error that the queue's own settings make.
var errSettings = errors.New("the queue's settings do not do")

// Permanent reports whether an error of Open stands until somebody changes the
// queue's settings, so that trying again is in vain.
func Permanent(err error) bool { return errors.Is(err, errSettings) }

// Open reads the queue's visibility timeout and finds its dead-letter queue. An
// error that is not Permanent is worth another try.
func (c *Consumer) Open(ctx context.Context) error {
	for i := range c.ticks { // a queue that cannot be opened yet is no loop that hangs
		c.tick(i)
	}
	attributes, err := c.attributes(ctx, types.QueueAttributeNameVisibilityTimeout, types.QueueAttributeNameRedrivePolicy)
	if err != nil {
		return fmt.Errorf("open queue %q: %w", c.cfg.Name, err)
	}
	if err := c.setVisibility(attributes); err != nil {
		return fmt.Errorf("open queue %q: %w", c.cfg.Name, err)
	}
	url, limit, err := c.deadLetterURL(ctx, attributes[string(types.QueueAttributeNameRedrivePolicy)])
	if err != nil {
		return fmt.Errorf("open queue %q: %w", c.cfg.Name, err)
	}
	if limit <= c.cfg.Receives {
		c.tel.Log.Warn().Str("queue", c.cfg.Name).Int("max_receive_count", limit).Int("receives", c.cfg.Receives).
			Msg("the redrive policy moves messages before they can end with a reason; raise its maxReceiveCount")
	}
	c.letters = NewSender(c.api, nil, SenderConfig{Name: c.cfg.Name + "-dead", URL: url}, c.tel)
	return nil
}

// attributes reads the queue's own.
func (c *Consumer) attributes(ctx context.Context, names ...types.QueueAttributeName) (map[string]string, error) {
	const op = "GetQueueAttributes"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := c.api.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &c.cfg.URL, AttributeNames: names})
	c.tel.SQSCall(c.cfg.Name, op, result(err, nil))
	if err != nil {
		return nil, Classify(err, op)
	}
	if out == nil {
		return nil, nil
	}
	return out.Attributes, nil
}

func (c *Consumer) setVisibility(attributes map[string]string) error {
	s := attributes[string(types.QueueAttributeNameVisibilityTimeout)]
	v, err := strconv.Atoi(s)
	if err != nil || v < 1 {
		return &object.Error{Side: object.Queue, Op: "GetQueueAttributes", Class: object.Refused, Code: "VisibilityTimeout",
			Err: fmt.Errorf("%w: visibility timeout %q, need at least 1 second", errSettings, s), Hint: "set the queue's visibility timeout, 60 s is good"}
	}
	c.beat.visibility.Store(int64(time.Duration(v) * time.Second))
	return nil
}

// deadLetterURL finds the dead-letter queue of a redrive policy.
func (c *Consumer) deadLetterURL(ctx context.Context, policy string) (url string, limit int, err error) {
	p, err := RedrivePolicy(policy)
	if err != nil {
		return "", 0, &object.Error{Side: object.Queue, Op: "GetQueueAttributes", Class: object.Refused, Code: "RedrivePolicy", Err: fmt.Errorf("%w: the queue %w", errSettings, err),
			Hint: "give the queue a redrive policy with a dead-letter queue; maxReceiveCount 30 is good"}
	}
	const op = "GetQueueUrl"
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := c.api.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &p.Name, QueueOwnerAWSAccountId: &p.Account})
	c.tel.SQSCall(c.cfg.Name, op, result(err, nil))
	if err != nil {
		return "", 0, fmt.Errorf("find its dead-letter queue %q: %w", p.Name, Classify(err, op))
	}
	if out == nil || deref(out.QueueUrl) == "" {
		return "", 0, &object.Error{Side: object.Queue, Op: op, Class: object.Unavailable, Err: errors.New("an answer without a URL")}
	}
	return *out.QueueUrl, p.Max, nil
}

// Status is what /healthz and /statusz show.
type Status struct {
	Name        string    `json:"name"`
	Tick        time.Time `json:"tick"`         // of the loop that has been quiet longest
	LastReceive time.Time `json:"last_receive"` // that answered well, empty or not; zero is never
	Held        int       `json:"held"`         // received and not settled
	Running     int       `json:"running"`
	Limit       int       `json:"limit"`    // slots that the gate admits; 0 is closed
	Failures    int       `json:"failures"` // receives that failed in a row
}

// Status may be asked for at any time.
func (c *Consumer) Status() Status {
	oldest := c.ticks[0].Load()
	for i := range c.ticks {
		oldest = min(oldest, c.ticks[i].Load())
	}
	s := Status{Name: c.cfg.Name, Tick: time.Unix(0, oldest)}
	if n := c.lastReceive.Load(); n != 0 {
		s.LastReceive = time.Unix(0, n)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Held, s.Running, s.Limit, s.Failures = c.held(), len(c.running), c.limit, c.failures
	return s
}

// held needs mu.
func (c *Consumer) held() int {
	return len(c.pending) + len(c.suspects) + len(c.running) + c.unsettled
}

func (c *Consumer) tick(loop int) { c.ticks[loop].Store(time.Now().UnixNano()) }
