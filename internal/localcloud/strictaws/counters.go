package strictaws

import "sync"

// Count is what was counted of one action on one target.
type Count struct {
	Calls   int   // requests, refused and faulty ones included
	Entries int   // messages received, or entries of a batch that were accepted
	Bytes   int64 // of object bodies taken in
}

type countKey struct{ service, action, target string }

type counters struct {
	mu sync.Mutex
	m  map[countKey]Count
}

func (c *counters) add(call Call, n Count) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = map[countKey]Count{}
	}
	k := countKey{call.Service, call.Action, call.Target}
	sum := c.m[k]
	sum.Calls += n.Calls
	sum.Entries += n.Entries
	sum.Bytes += n.Bytes
	c.m[k] = sum
}

// Count sums over the given service, action and bucket or queue; an empty word
// stands for all.
func (c *Cloud) Count(service, action, target string) Count {
	c.counters.mu.Lock()
	defer c.counters.mu.Unlock()
	var sum Count
	for k, n := range c.counters.m {
		if (service == "" || k.service == service) && (action == "" || k.action == action) && (target == "" || k.target == target) {
			sum.Calls += n.Calls
			sum.Entries += n.Entries
			sum.Bytes += n.Bytes
		}
	}
	return sum
}

// ResetCounts sets all counts to zero.
func (c *Cloud) ResetCounts() {
	c.counters.mu.Lock()
	defer c.counters.mu.Unlock()
	c.counters.m = nil
}
