package copier

import (
	"context"
	"math/bits"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// memory is the budget for object bytes and the buffers in it.
//
// A read or a write that holds a block never waits for more memory, so it ends
// and frees the block whatever the others do; who waits is served in the order in
// which they came. A copy waits with no block of its own but those of parts that
// are under way. Nobody waits while holding a slot of a guard, or one full budget
// would stop all reads.
type memory struct {
	budget *semaphore.Weighted
	part   int64
	held   atomic.Int64
	report func(int64)
	pools  sync.Map // from a capacity to the *sync.Pool of its buffers
}

func newMemory(budget, part int64, report func(int64)) *memory {
	return &memory{budget: semaphore.NewWeighted(budget), part: part, report: report}
}

// block is a span of the budget and, once bytes was called, the buffer in it. It
// has one owner at a time.
type block struct {
	m        *memory
	reserved int64
	length   int64
	buffer   []byte
}

// wait reserves n bytes as soon as they are free.
func (m *memory) wait(ctx context.Context, n int64) (*block, error) {
	reserved := m.round(n)
	if err := m.budget.Acquire(ctx, reserved); err != nil {
		return nil, err
	}
	m.count(reserved)
	return &block{m: m, reserved: reserved, length: n}, nil
}

// resize makes the block n bytes long if that needs no waiting. What is in its
// buffer may be lost.
func (b *block) resize(n int64) bool {
	reserved := b.m.round(n)
	more := reserved - b.reserved
	if more > 0 && !b.m.budget.TryAcquire(more) {
		return false
	}
	if more != 0 {
		b.buffer = nil
	}
	if more > 0 {
		b.m.count(more)
	} else {
		b.m.release(-more)
	}
	b.reserved, b.length = reserved, n
	return true
}

// bytes is the block's buffer, as long as the block. What is in it at first is
// not zeroed.
func (b *block) bytes() []byte {
	if b.buffer == nil {
		b.buffer = b.m.take(b.reserved)
	}
	return b.buffer[:b.length]
}

// spoil gives the buffer up to the garbage collector. An HTTP client may still
// read from it after a write has failed, so nobody else may write into it.
func (b *block) spoil() { b.buffer = nil }

// free ends the block; a second call does nothing.
func (b *block) free() {
	if buffer := b.buffer; buffer != nil && b.reserved <= b.m.part {
		b.m.pool(b.reserved).Put(&buffer)
	}
	b.buffer = nil
	b.m.release(b.reserved)
	b.reserved, b.length = 0, 0
}

// release counts first, so that the budget is never seen exceeded.
func (m *memory) release(n int64) {
	m.count(-n)
	m.budget.Release(n)
}

func (m *memory) count(n int64) {
	if n != 0 {
		m.report(m.held.Add(n))
	}
}

// take returns a buffer. Those of grown parts are not pooled: their sizes are as
// many as the objects'.
func (m *memory) take(capacity int64) []byte {
	if capacity > m.part {
		return make([]byte, capacity)
	}
	if b, ok := m.pool(capacity).Get().(*[]byte); ok {
		return *b
	}
	return make([]byte, capacity)
}

func (m *memory) pool(capacity int64) *sync.Pool {
	if p, ok := m.pools.Load(capacity); ok {
		return p.(*sync.Pool)
	}
	p, _ := m.pools.LoadOrStore(capacity, new(sync.Pool))
	return p.(*sync.Pool)
}

// smallest is the least that a block that is not empty reserves.
const smallest = 4 << 10

// round returns what a block of n bytes reserves: up to an eighth more than n, so
// that buffers of nearly one size can take each other's place, and exactly n from
// a whole part on.
func (m *memory) round(n int64) int64 {
	if n <= 0 || n >= m.part {
		return max(n, 0)
	}
	step := int64(smallest)
	if l := bits.Len64(uint64(n - 1)); l > 4 {
		step = max(step, 1<<(l-4))
	}
	return min((n+step-1)/step*step, m.part)
}
