package strictaws

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"
)

// queueAttributes are those of a queue that can be set.
type queueAttributes struct {
	visibility time.Duration
	retention  time.Duration
	delay      time.Duration
	wait       time.Duration
	maxSize    int
	redrive    redrive
	other      map[string]string // kept and told, without effect
}

type redrive struct {
	target string // queue name; "" without a policy
	max    int
}

func defaultAttributes() queueAttributes {
	return queueAttributes{visibility: 30 * time.Second, retention: 4 * 24 * time.Hour, maxSize: maxMessage, other: map[string]string{}}
}

// quietAttributes are those that a queue has only once they were set.
func quietAttributes() []string {
	return []string{"RedrivePolicy", "RedriveAllowPolicy", "Policy", "KmsMasterKeyId", "KmsDataKeyReusePeriodSeconds", "SqsManagedSseEnabled"}
}

// with returns a with the given attributes set. exists says whether a queue does.
func (a queueAttributes) with(in map[string]string, exists func(string) bool) (queueAttributes, *apiError) {
	a.other = maps.Clone(a.other)
	seconds := map[string]struct {
		to       *time.Duration
		min, max int
	}{
		"VisibilityTimeout":             {&a.visibility, 0, 43200},
		"MessageRetentionPeriod":        {&a.retention, 60, 1209600},
		"DelaySeconds":                  {&a.delay, 0, 900},
		"ReceiveMessageWaitTimeSeconds": {&a.wait, 0, 20},
	}
	for name, value := range in {
		s, timed := seconds[name]
		n, err := strconv.Atoi(value)
		switch {
		case timed:
			if err != nil || n < s.min || n > s.max {
				return a, invalidAttribute(name)
			}
			*s.to = time.Duration(n) * time.Second
		case name == "MaximumMessageSize":
			if err != nil || n < 1024 || n > maxMessage {
				return a, invalidAttribute(name)
			}
			a.maxSize = n
		case name == "RedrivePolicy":
			var bad *apiError
			if a.redrive, bad = parseRedrive(value, exists); bad != nil {
				return a, bad
			}
		case slices.Contains(quietAttributes(), name):
			a.other[name] = value
		default:
			return a, badRequest("InvalidAttributeName", "Unknown Attribute "+name+".")
		}
	}
	return a, nil
}

func (a queueAttributes) equal(b queueAttributes) bool {
	return a.visibility == b.visibility && a.retention == b.retention && a.delay == b.delay && a.wait == b.wait &&
		a.maxSize == b.maxSize && a.redrive == b.redrive && maps.Equal(a.other, b.other)
}

func invalidAttribute(name string) *apiError {
	return badRequest("InvalidAttributeValue", "Invalid value for the parameter "+name+".")
}

// parseRedrive reads a RedrivePolicy, whose maxReceiveCount may be a number or text.
func parseRedrive(value string, exists func(string) bool) (redrive, *apiError) {
	if value == "" {
		return redrive{}, nil
	}
	var p struct {
		DeadLetterTargetArn string      `json:"deadLetterTargetArn"`
		MaxReceiveCount     json.Number `json:"maxReceiveCount"`
	}
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return redrive{}, invalidAttribute("RedrivePolicy")
	}
	n, err := strconv.Atoi(p.MaxReceiveCount.String())
	r := redrive{target: bareResource(p.DeadLetterTargetArn), max: n}
	if err != nil || n < 1 || n > 1000 || !exists(r.target) {
		return redrive{}, invalidAttribute("RedrivePolicy")
	}
	return r, nil
}

// attributes tells everything that GetQueueAttributes can ask for. The caller
// holds the lock and has called advance.
func (s *queues) attributes(q *queue) map[string]string {
	seconds := func(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }
	out := map[string]string{
		"ApproximateNumberOfMessages":           strconv.Itoa(q.waiting),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(q.inFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(q.delayed),
		"CreatedTimestamp":                      strconv.FormatInt(q.created.Unix(), 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.modified.Unix(), 10),
		"QueueArn":                              s.arn(q.name),
		"VisibilityTimeout":                     seconds(q.attrs.visibility),
		"MessageRetentionPeriod":                seconds(q.attrs.retention),
		"DelaySeconds":                          seconds(q.attrs.delay),
		"ReceiveMessageWaitTimeSeconds":         seconds(q.attrs.wait),
		"MaximumMessageSize":                    strconv.Itoa(q.attrs.maxSize),
		"SqsManagedSseEnabled":                  "true",
	}
	maps.Copy(out, q.attrs.other)
	if r := q.attrs.redrive; r.target != "" {
		policy, _ := json.Marshal(map[string]any{"deadLetterTargetArn": s.arn(r.target), "maxReceiveCount": r.max})
		out["RedrivePolicy"] = string(policy)
	}
	return out
}
