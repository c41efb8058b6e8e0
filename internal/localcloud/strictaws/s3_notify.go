package strictaws

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strings"
)

type notificationXML struct {
	XMLName xml.Name   `xml:"NotificationConfiguration"`
	Xmlns   string     `xml:"xmlns,attr,omitempty"`
	Queues  []queueXML `xml:"QueueConfiguration"`
	Topics  []struct{} `xml:"TopicConfiguration"`
	Lambdas []struct{} `xml:"CloudFunctionConfiguration"`
}

type queueXML struct {
	ID     string      `xml:"Id"`
	Queue  string      // ARN
	Events []string    `xml:"Event"`
	Rules  []filterXML `xml:"Filter>S3Key>FilterRule"`
}

type filterXML struct{ Name, Value string }

const createdEvents = "s3:ObjectCreated:*"

func (q *s3Request) putNotification() *apiError {
	var in notificationXML
	if err := q.readXML(&in, false); err != nil {
		return err
	}
	if len(in.Topics)+len(in.Lambdas) > 0 {
		return notImplemented("TopicConfiguration")
	}
	var all []Notification
	for _, x := range in.Queues {
		n := Notification{ID: x.ID, Queue: bareResource(x.Queue)}
		if !q.c.queues.exists(n.Queue) {
			return badRequest("InvalidArgument", "Unable to validate the following destination configurations")
		}
		for _, e := range x.Events {
			if e != createdEvents {
				return notImplemented(e)
			}
		}
		for _, r := range x.Rules {
			switch strings.ToLower(r.Name) {
			case "prefix":
				n.Prefix = r.Value
			case "suffix":
				n.Suffix = r.Value
			default:
				return badRequest("InvalidArgument", "filter rule name must be either prefix or suffix")
			}
		}
		if n.ID == "" {
			n.ID = uuid()
		}
		all = append(all, n)
	}
	if err := q.configure(func(b *bucket) { b.opts.Notify = all }); err != nil {
		return err
	}
	q.c.announceTest(q.bucket, all)
	return nil
}

func (q *s3Request) getNotification() *apiError {
	out := notificationXML{Xmlns: s3Namespace}
	q.c.store.mu.RLock()
	var all []Notification
	if b := q.c.store.buckets[q.bucket]; b != nil {
		all = b.opts.Notify
	}
	q.c.store.mu.RUnlock()
	for _, n := range all {
		x := queueXML{ID: n.ID, Queue: q.c.queues.arn(n.Queue), Events: []string{createdEvents}}
		for _, f := range []filterXML{{"Prefix", n.Prefix}, {"Suffix", n.Suffix}} {
			if f.Value != "" {
				x.Rules = append(x.Rules, f)
			}
		}
		out.Queues = append(out.Queues, x)
	}
	return q.ok(http.StatusOK, out)
}

// announceTest sends what S3 sends to a queue when notifications are switched on.
func (c *Cloud) announceTest(bucket string, all []Notification) {
	for _, n := range all {
		body, _ := json.Marshal(map[string]string{"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": iso(c.cfg.Now()),
			"Bucket": bucket, "RequestId": c.requestID(), "HostId": c.hostID()})
		c.queues.sendPlain(n.Queue, string(body))
	}
}

type event struct {
	EventVersion      string            `json:"eventVersion"`
	EventSource       string            `json:"eventSource"`
	AWSRegion         string            `json:"awsRegion"`
	EventTime         string            `json:"eventTime"`
	EventName         string            `json:"eventName"`
	UserIdentity      map[string]string `json:"userIdentity"`
	RequestParameters map[string]string `json:"requestParameters"`
	ResponseElements  map[string]string `json:"responseElements"`
	S3                eventS3           `json:"s3"`
}

type eventS3 struct {
	SchemaVersion   string      `json:"s3SchemaVersion"`
	ConfigurationID string      `json:"configurationId"`
	Bucket          eventBucket `json:"bucket"`
	Object          eventObject `json:"object"`
}

type eventBucket struct {
	Name          string            `json:"name"`
	OwnerIdentity map[string]string `json:"ownerIdentity"`
	ARN           string            `json:"arn"`
}

type eventObject struct {
	Key       string `json:"key"` // form-encoded once, slashes kept
	Size      int64  `json:"size"`
	ETag      string `json:"eTag"`
	VersionID string `json:"versionId,omitempty"`
	Sequencer string `json:"sequencer"`
}

// announce tells the bucket's queues of a new object. q is nil for what S3 itself
// writes.
func (c *Cloud) announce(bucket, key string, v *version, name string, q *s3Request) {
	c.store.mu.RLock()
	var all []Notification
	var owner string
	if b := c.store.buckets[bucket]; b != nil {
		all, owner = b.opts.Notify, b.opts.Owner
	}
	c.store.mu.RUnlock()
	who, ip, id, host := "s3.amazonaws.com", "127.0.0.1", c.requestID(), c.hostID()
	if q != nil {
		who, ip, id, host = q.who, q.remoteIP(), q.id, q.hostID
	}
	for _, n := range all {
		if !strings.HasPrefix(key, n.Prefix) || !strings.HasSuffix(key, n.Suffix) {
			continue
		}
		e := event{EventVersion: "2.1", EventSource: "aws:s3", AWSRegion: c.cfg.Region, EventTime: iso(v.modified), EventName: name,
			UserIdentity:      map[string]string{"principalId": "AWS:" + who},
			RequestParameters: map[string]string{"sourceIPAddress": ip},
			ResponseElements:  map[string]string{"x-amz-request-id": id, "x-amz-id-2": host},
			S3: eventS3{SchemaVersion: "1.0", ConfigurationID: n.ID,
				Bucket: eventBucket{bucket, map[string]string{"principalId": owner}, "arn:aws:s3:::" + bucket},
				Object: eventObject{Key: formEncode(key), Size: v.body.size, ETag: strings.Trim(v.etag, `"`),
					Sequencer: fmt.Sprintf("%018X", c.serial.Add(1))}}}
		if v.id != "null" {
			e.S3.Object.VersionID = v.id
		}
		body, _ := json.Marshal(map[string][]event{"Records": {e}})
		c.queues.sendPlain(n.Queue, string(body))
	}
}

// formEncode is how S3 writes keys into events and into listings with
// encoding-type=url.
func formEncode(s string) string { return strings.ReplaceAll(escape(s, "/ "), " ", "+") }
