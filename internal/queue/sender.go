package queue

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/telemetry"
)

const opSend = "SendMessageBatch"

// Caller makes the calls of one queue; its guard implements it. bytes is the
// size of the batch. An error of call, or of Do itself, is an *object.Error.
type Caller interface {
	Do(ctx context.Context, op string, bytes int64, call func(context.Context) error) error
}

// SenderConfig says where and how messages are sent. What is 0 has the default.
type SenderConfig struct {
	Name       string        // label of the queue
	URL        string        // of the queue
	Linger     time.Duration // how long an entry waits for others; default 5ms
	InFlight   int           // batches at once; default 8
	Attempts   int           // calls made for one entry; default 4
	BackoffMin time.Duration // after the first failed attempt; default 200ms
	BackoffMax time.Duration // default 5s
	Timeout    time.Duration // of one call; default 10s
}

func (c SenderConfig) withDefaults() SenderConfig {
	d := func(v *time.Duration, or time.Duration) {
		if *v == 0 {
			*v = or
		}
	}
	d(&c.Linger, 5*time.Millisecond)
	d(&c.BackoffMin, 200*time.Millisecond)
	d(&c.BackoffMax, 5*time.Second)
	d(&c.Timeout, 10*time.Second)
	if c.InFlight == 0 {
		c.InFlight = 8
	}
	if c.Attempts == 0 {
		c.Attempts = 4
	}
	return c
}

// Entry is one message to be sent.
type Entry struct {
	Body       string
	Attributes map[string]string // of type String; the trace is added
	Delay      time.Duration     // rounded up to seconds, at most 15 minutes
}

// Sender sends to one queue. Callers share batches; of a batch only the entries
// that failed are sent again. It is safe for concurrent use until Close.
type Sender struct {
	api     sqsAPI
	caller  Caller
	cfg     SenderConfig
	tel     *telemetry.Telemetry
	parcels *batcher[*parcel]
	tokens  chan struct{}   // one a call in flight; not held while backing off
	ctx     context.Context // of the calls: a batch outlives any one of its callers
	cancel  context.CancelFunc
}

// parcel is an entry on its way; its answer goes to at of a sending.
type parcel struct {
	entry types.SendMessageBatchRequestEntry
	size  int
	to    *sending
	at    int
	err   error // of the last attempt
}

// sending is one caller's wait for its parcels.
type sending struct {
	mu   sync.Mutex
	errs []error
	left int
	done chan struct{}
}

func (s *sending) settle(at int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs[at] = err
	if s.left--; s.left == 0 {
		close(s.done)
	}
}

// NewSender returns a sender whose attempts each go through caller; nil calls
// straight away. It opens no connection.
func NewSender(api sqsAPI, caller Caller, cfg SenderConfig, tel *telemetry.Telemetry) *Sender {
	cfg = cfg.withDefaults()
	s := &Sender{api: api, caller: caller, cfg: cfg, tel: tel, tokens: make(chan struct{}, cfg.InFlight)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.parcels = &batcher[*parcel]{linger: cfg.Linger, limit: MaxBytes, size: func(p *parcel) int { return p.size }, flush: s.deliver}
	return s
}

// Send returns when each entry is accepted by SQS or has failed for good. The
// errors are aligned with the entries, nil is accepted, class object.Unfit is an
// entry that no attempt can send. When ctx ends first, what is not known yet is
// of class object.Canceled or object.Unavailable and may still be sent.
func (s *Sender) Send(ctx context.Context, entries []Entry) []error {
	if len(entries) == 0 {
		return nil
	}
	ctx, span := s.tel.Tracer.Start(ctx, "send "+s.cfg.Name, trace.WithSpanKind(trace.SpanKindProducer),
		trace.WithAttributes(semconv.MessagingSystemAWSSQS, semconv.MessagingDestinationName(Name(s.cfg.URL)),
			semconv.MessagingOperationTypeSend, semconv.MessagingOperationName("send"),
			semconv.MessagingBatchMessageCount(len(entries))))
	defer span.End()
	origin := telemetry.Inject(ctx)
	sends := make([]types.SendMessageBatchRequestEntry, len(entries))
	for i, e := range entries {
		sends[i] = request(e, origin)
	}
	errs := s.send(ctx, sends)
	for _, err := range errs {
		if err != nil {
			span.SetStatus(codes.Error, string(object.ClassOf(err)))
			break
		}
	}
	return errs
}

// send is Send without a span, for entries with attributes of any type.
func (s *Sender) send(ctx context.Context, entries []types.SendMessageBatchRequestEntry) []error {
	wait := &sending{errs: make([]error, len(entries)), left: len(entries), done: make(chan struct{})}
	parcels := make([]*parcel, 0, len(entries))
	for i, e := range entries {
		p := &parcel{entry: e, size: SizeOf(e), to: wait, at: i}
		if err := check(e, p.size); err != nil {
			wait.settle(i, err)
			continue
		}
		wait.errs[i] = errPending // read by nobody before it is settled or ctx has ended
		parcels = append(parcels, p)
	}
	s.parcels.add(false, parcels...)
	select {
	case <-wait.done:
		return wait.errs
	case <-ctx.Done():
	}
	wait.mu.Lock()
	defer wait.mu.Unlock()
	errs := append([]error(nil), wait.errs...)
	for i, err := range errs {
		if err == errPending {
			errs[i] = Classify(context.Cause(ctx), opSend)
		}
	}
	return errs
}

// errPending stands for an answer that nobody has given yet.
var errPending = &object.Error{Side: object.Queue, Op: opSend, Class: object.Canceled}

// deliver owns one batch until each of its parcels is settled.
func (s *Sender) deliver(batch []*parcel) {
	for attempt := 1; ; attempt++ {
		var asked bool
		if batch, asked = s.attempt(batch); len(batch) == 0 {
			return
		}
		// A guard that did not even ask SQS has a reason that outlasts our back-off.
		if !asked || attempt == s.cfg.Attempts || !pause(s.ctx, backoff(attempt, s.cfg.BackoffMin, s.cfg.BackoffMax)) {
			break
		}
	}
	for _, p := range batch {
		p.to.settle(p.at, p.err)
	}
}

// attempt asks SQS once, or as often as the guard retries, and returns what is
// still to be sent and whether SQS was asked at all.
func (s *Sender) attempt(batch []*parcel) (left []*parcel, asked bool) {
	select {
	case s.tokens <- struct{}{}:
		defer func() { <-s.tokens }()
	case <-s.ctx.Done():
	}
	left = batch
	call := func(ctx context.Context) error {
		asked = true
		var err error
		left, err = s.call(ctx, left)
		return err
	}
	var err error
	if s.caller == nil {
		err = call(s.ctx)
	} else {
		err = s.caller.Do(s.ctx, opSend, int64(bytesOf(batch)), call)
	}
	if !asked {
		if err == nil { // never take an entry for sent that nobody sent
			err = errPending
		}
		for _, p := range left {
			p.err = err
		}
	}
	return left, asked
}

// call makes one call, settles the entries that SQS took or will never take, and
// returns the others. It is an error only when SQS took none, so that a guard
// does not hold single entries against the queue.
func (s *Sender) call(ctx context.Context, batch []*parcel) ([]*parcel, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	in := &sqs.SendMessageBatchInput{QueueUrl: &s.cfg.URL, Entries: make([]types.SendMessageBatchRequestEntry, len(batch))}
	for i, p := range batch {
		in.Entries[i] = p.entry
		in.Entries[i].Id = EntryID(i)
	}
	out, err := s.api.SendMessageBatch(ctx, in)
	errs := SendErrors(len(batch), out, err)
	s.tel.SQSCall(s.cfg.Name, opSend, result(err, errs))
	var left []*parcel
	for i, p := range batch {
		if errs[i] == nil || object.ClassOf(errs[i]) == object.Unfit {
			p.to.settle(p.at, errs[i])
			continue
		}
		p.err = errs[i]
		left = append(left, p)
	}
	if len(left) == len(batch) {
		return left, left[0].err
	}
	return left, nil
}

// Close sends what lingers, waits for the batches in flight until ctx ends, and
// then gives them up; each Send tells its caller what became of the entries.
// Nothing may be sent meanwhile.
func (s *Sender) Close(ctx context.Context) {
	defer context.AfterFunc(ctx, s.cancel)()
	s.parcels.wait()
	s.cancel()
}
