package strictaws

import (
	"slices"
	"strings"
	"sync"
)

// anonymous is the requester of unsigned requests, as access logs write it.
const anonymous = "-"

type denial struct{ principal, action, resource string }

// policy is a list of explicit denials; whoever signs may do all else.
type policy struct {
	mu      sync.RWMutex
	denials []denial
}

// Deny forbids action to principal on resource; each may hold * and ?. A
// principal is an ARN, or "*" for everybody, strangers included. Actions are
// IAM's, such as "s3:ListBucket", "kms:GenerateDataKey" or "sqs:SendMessage". A
// resource is "bucket" for what is done to buckets, "bucket/key" for what is done
// to objects (kms: too), a queue's name, or the ARN of one of them.
func (c *Cloud) Deny(principal, action, resource string) {
	c.policy.mu.Lock()
	defer c.policy.mu.Unlock()
	c.policy.denials = append(c.policy.denials, denial{principal, action, bareResource(resource)})
}

// Allow lifts what Deny forbade with the same three words.
func (c *Cloud) Allow(principal, action, resource string) {
	c.policy.mu.Lock()
	defer c.policy.mu.Unlock()
	gone := denial{principal, action, bareResource(resource)}
	c.policy.denials = slices.DeleteFunc(c.policy.denials, func(d denial) bool { return d == gone })
}

func (p *policy) denies(principal, action, resource string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	for _, d := range p.denials {
		if glob(d.principal, principal) && glob(d.action, action) && glob(d.resource, resource) {
			return true
		}
	}
	return false
}

// bareResource takes the ARN's first five fields off.
func bareResource(r string) string {
	if strings.HasPrefix(r, "arn:") {
		if f := strings.SplitN(r, ":", 6); len(f) == 6 {
			return f[5]
		}
	}
	return r
}

// glob matches s bytewise; * stands for any bytes, slashes included, ? for one.
func glob(pattern, s string) bool {
	star, mark := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, i
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == s[i]):
			p, i = p+1, i+1
		case star >= 0:
			mark++
			p, i = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
