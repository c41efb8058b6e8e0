package strictaws

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

type queueURL struct {
	QueueURL string `json:"QueueUrl"`
}

type queueURLs struct {
	QueueURLs []string `json:"QueueUrls,omitempty"`
}

// url is a queue's URL at the endpoint that the client talks to.
func (q *sqsRequest) url(name string) string {
	return "http://" + q.r.Host + "/" + q.c.cfg.Account + "/" + name
}

func (q *sqsRequest) createQueue() (any, *apiError) {
	var in struct{ Attributes map[string]string }
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	if !entryID.MatchString(q.queue) {
		return nil, badRequest("InvalidParameterValue", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if err := q.c.queues.create(q.queue, in.Attributes); err != nil {
		return nil, err
	}
	return queueURL{q.url(q.queue)}, nil
}

func (q *sqsRequest) deleteQueue() (any, *apiError) {
	return struct{}{}, q.c.queues.with(q.queue, func(in *queue) {
		delete(q.c.queues.byName, in.name)
		in.wake()
	})
}

func (q *sqsRequest) getQueueURL() (any, *apiError) {
	if err := q.mustExist(); err != nil {
		return nil, err
	}
	return queueURL{q.url(q.queue)}, nil
}

func (q *sqsRequest) getQueueAttributes() (any, *apiError) {
	var in struct{ AttributeNames []string }
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	var all map[string]string
	if err := q.c.queues.with(q.queue, func(in *queue) { all = q.c.queues.attributes(in) }); err != nil {
		return nil, err
	}
	for _, name := range in.AttributeNames {
		if _, ok := all[name]; !ok && !slices.Contains(quietAttributes(), name) && name != "All" {
			return nil, badRequest("InvalidAttributeName", "Unknown Attribute "+name+".")
		}
	}
	if !slices.Contains(in.AttributeNames, "All") {
		maps.DeleteFunc(all, func(name, _ string) bool { return !slices.Contains(in.AttributeNames, name) })
	}
	return map[string]any{"Attributes": all}, nil
}

func (q *sqsRequest) setQueueAttributes() (any, *apiError) {
	var in struct{ Attributes map[string]string }
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	var bad *apiError
	err := q.c.queues.with(q.queue, func(to *queue) {
		var attrs queueAttributes
		if attrs, bad = to.attrs.with(in.Attributes, q.c.queues.existsLocked); bad == nil {
			to.attrs, to.modified = attrs, time.Now()
		}
	})
	if err == nil {
		err = bad
	}
	return struct{}{}, err
}

func (q *sqsRequest) listQueues() (any, *apiError) {
	var in struct{ QueueNamePrefix string }
	if err := q.decode(&in); err != nil {
		return nil, err
	}
	return q.urls(func(one *queue) bool { return strings.HasPrefix(one.name, in.QueueNamePrefix) }), nil
}

func (q *sqsRequest) listDeadLetterSources() (any, *apiError) {
	if err := q.mustExist(); err != nil {
		return nil, err
	}
	// the wire name differs from ListQueues' by its first letter
	return map[string][]string{"queueUrls": q.urls(func(one *queue) bool { return one.attrs.redrive.target == q.queue }).QueueURLs}, nil
}

func (q *sqsRequest) urls(which func(*queue) bool) (out queueURLs) {
	s := q.c.queues
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		if which(s.byName[name]) {
			out.QueueURLs = append(out.QueueURLs, q.url(name))
		}
	}
	return out
}

func (q *sqsRequest) purgeQueue() (any, *apiError) {
	var bad *apiError
	err := q.c.queues.with(q.queue, func(in *queue) {
		if time.Since(in.purged) < time.Minute {
			bad = refuse(http.StatusForbidden, "PurgeQueueInProgress", "Only one PurgeQueue operation on "+in.name+" is allowed every 60 seconds.")
			return
		}
		in.purged = time.Now()
		in.purge()
	})
	if err == nil {
		err = bad
	}
	return struct{}{}, err
}
