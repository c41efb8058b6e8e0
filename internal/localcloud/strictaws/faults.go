package strictaws

import (
	"slices"
	"sync"
	"time"
)

// The services of a Call.
const (
	ServiceS3  = "s3"
	ServiceSQS = "sqs"
)

// Call is one request, as faults and counters see it.
type Call struct {
	Service string // ServiceS3 or ServiceSQS
	Action  string // the API's name, such as "PutObject" or "SendMessageBatch"
	Target  string // bucket or queue name
	Key     string // object key, exact bytes; "" in SQS
	// Principal is the requester as it claims to be; faults strike before the
	// signature is verified.
	Principal string
}

// Fault says which calls go wrong and how. Empty selectors match everything.
type Fault struct {
	Service string
	Action  string // may hold * and ?
	Target  string // may hold * and ?
	Key     string // may hold * and ?
	// Match decides last. It may take notes of the calls it sees; it must not call
	// the Faults.
	Match func(Call) bool

	After int // let this many matching calls pass first
	Times int // strike this often, then be spent; 0 strikes until removed

	Do Effect
}

// Effect is what a fault does: one of the types in this package that say so.
type Effect interface{ effect() }

// Active is a fault that was added.
type Active struct {
	fault Fault
	seen  int
	hits  int
	rate  *bucketOfTokens
	freed chan struct{}
	once  sync.Once
	owner *Faults
}

// Faults is the set of active faults. A call meets each effect at most once: of
// several faults with the same kind of effect the one added first strikes.
type Faults struct {
	mu     sync.Mutex
	active []*Active
}

func newFaults() *Faults { return &Faults{} }

// Add makes f active.
func (f *Faults) Add(fault Fault) *Active {
	a := &Active{fault: fault, owner: f, freed: make(chan struct{})}
	if r, ok := fault.Do.(RateLimit); ok {
		a.rate = newBucketOfTokens(r)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = append(f.active, a)
	return a
}

// Clear removes all faults and releases what hangs.
func (f *Faults) Clear() {
	f.releaseAll()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = nil
}

func (f *Faults) releaseAll() {
	f.mu.Lock()
	all := slices.Clone(f.active)
	f.mu.Unlock()
	for _, a := range all {
		a.release()
	}
}

// Remove ends the fault and releases what hangs in it.
func (a *Active) Remove() {
	a.owner.mu.Lock()
	a.owner.active = slices.DeleteFunc(a.owner.active, func(b *Active) bool { return a == b })
	a.owner.mu.Unlock()
	a.release()
}

// Hits returns how often the fault has struck.
func (a *Active) Hits() int {
	a.owner.mu.Lock()
	defer a.owner.mu.Unlock()
	return a.hits
}

func (a *Active) release() { a.once.Do(func() { close(a.freed) }) }

// strike returns the first active fault whose effect is of type E and that
// applies to c, and counts the hit. pick, if given, decides last.
func strike[E Effect](f *Faults, c Call, pick func(*Active, E) bool) (e E, a *Active, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.active {
		e, is := a.fault.Do.(E)
		if !is || !a.fault.matches(c) || (a.fault.Times > 0 && a.hits >= a.fault.Times) {
			continue
		}
		if pick != nil && !pick(a, e) {
			continue
		}
		if a.seen++; a.seen <= a.fault.After {
			continue
		}
		a.hits++
		return e, a, true
	}
	return e, nil, false
}

func (f *Fault) matches(c Call) bool {
	return (f.Service == "" || f.Service == c.Service) &&
		(f.Action == "" || glob(f.Action, c.Action)) &&
		(f.Target == "" || glob(f.Target, c.Target)) &&
		(f.Key == "" || glob(f.Key, c.Key)) &&
		(f.Match == nil || f.Match(c))
}

// bucketOfTokens limits a rate; guarded by Faults.mu.
type bucketOfTokens struct {
	perSecond, burst, tokens float64
	last                     time.Time
}

func newBucketOfTokens(r RateLimit) *bucketOfTokens {
	burst := max(float64(r.Burst), 1)
	return &bucketOfTokens{perSecond: r.PerSecond, burst: burst, tokens: burst, last: time.Now()}
}

func (b *bucketOfTokens) take() bool {
	now := time.Now()
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.perSecond)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
