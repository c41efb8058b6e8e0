// Package localcloud is all that objectferry talks to, on this machine's
// loopback: an S3 and SQS (strictaws), one COS bucket a source (cosd), and an edge
// before them that fails over as a CDN's origin group does. The demo and the
// tests run the real service on it.
package localcloud

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/edge"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

// The names of what every site has.
const (
	Bucket    = "overseas-media" // what visitors read; its access log goes to LogBucket
	LogBucket = "log-bucket"
	LogPrefix = "access/"
	LogsQueue = "objectferry-logs"
	SyncQueue = "objectferry-sync"
	// DeadSuffix makes a queue's name that of its dead-letter queue.
	DeadSuffix = "-dead"

	// The service's own AWS identity, which strictaws verifies.
	AccessKey = "AKIAOBJECTFERRYLOCAL"
	SecretKey = "local-secret-of-the-embedded-cloud"
	RoleARN   = "arn:aws:sts::111122223333:assumed-role/objectferry-copy"
)

// Config is how a site differs from the usual.
type Config struct {
	AWS        strictaws.Config
	Bucket     strictaws.Bucket // of the bucket that visitors read; logging is added
	COS        cosd.Config
	Visibility time.Duration // of the queues; default 60 s
	MaxReceive int           // of their redrive policies; default 30
}

// Site is a running cloud.
type Site struct {
	Cloud *strictaws.Cloud
	COS   *cosd.Server
	Edge  *edge.Edge

	EdgeURL, S3URL, SQSURL string

	visibility time.Duration
	maxReceive int
	aws        *strictaws.Server
	edge       *httptest.Server
	more       []*cosd.Server
}

// Start opens the sockets and creates buckets and queues. Close the site.
func Start(c Config) (*Site, error) {
	if c.Visibility == 0 {
		c.Visibility = 60 * time.Second
	}
	if c.MaxReceive == 0 {
		c.MaxReceive = 30
	}
	if c.AWS.Credentials == nil {
		c.AWS.Credentials = map[string]strictaws.Credential{AccessKey: {Secret: SecretKey, ARN: RoleARN + "/local"}}
	}
	s := &Site{Cloud: strictaws.New(c.AWS), COS: cosd.New(c.COS), visibility: c.Visibility, maxReceive: c.MaxReceive}
	var err error
	if s.aws, err = s.Cloud.Serve(); err != nil {
		return nil, err
	}
	s.S3URL, s.SQSURL = s.aws.S3URL, s.aws.SQSURL
	if err := s.COS.Start(); err != nil {
		s.Close()
		return nil, fmt.Errorf("start the embedded COS: %w", err)
	}
	for _, name := range []string{LogsQueue, SyncQueue} {
		if err := s.AddQueue(name); err != nil {
			s.Close()
			return nil, err
		}
	}
	s.Cloud.CreateBucket(LogBucket, strictaws.Bucket{Notify: []strictaws.Notification{{ID: "logs", Queue: LogsQueue, Prefix: LogPrefix}}})
	s.AddBucket(Bucket, c.Bucket)

	s.Edge, err = edge.New(nil, edge.Config{Distribution: edge.Fallback(s.S3URL+"/"+Bucket, s.COS.URL())})
	if err != nil {
		s.Close()
		return nil, err
	}
	s.edge = httptest.NewServer(http.HandlerFunc(s.Edge.ServeHTTP))
	s.EdgeURL = s.edge.URL
	return s, nil
}

// AddQueue creates a queue and its dead-letter queue.
func (s *Site) AddQueue(name string) error {
	if err := s.Cloud.CreateQueue(name+DeadSuffix, map[string]string{"MessageRetentionPeriod": "1209600"}); err != nil {
		return fmt.Errorf("create queue %s: %w", name+DeadSuffix, err)
	}
	err := s.Cloud.CreateQueue(name, map[string]string{
		"VisibilityTimeout":      strconv.Itoa(int(s.visibility.Seconds())),
		"MessageRetentionPeriod": "604800",
		"RedrivePolicy":          fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, s.Cloud.QueueARN(name+DeadSuffix), s.maxReceive),
	})
	if err != nil {
		return fmt.Errorf("create queue %s: %w", name, err)
	}
	return nil
}

// AddBucket creates one more bucket that visitors read and whose accesses are logged.
func (s *Site) AddBucket(name string, b strictaws.Bucket) {
	b.PublicRead, b.PublicList = true, true
	b.LogBucket, b.LogPrefix = LogBucket, LogPrefix
	s.Cloud.CreateBucket(name, b)
}

// AddCOS starts one more COS bucket; it is closed with the site.
func (s *Site) AddCOS(c cosd.Config) (*cosd.Server, error) {
	server := cosd.New(c)
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("start the embedded COS: %w", err)
	}
	s.more = append(s.more, server)
	return server, nil
}

// QueueURL is the URL of a queue.
func (s *Site) QueueURL(name string) string { return s.SQSURL + s.Cloud.QueuePath(name) }

// Environ is what the AWS SDK needs to find the site, as environment variables.
func (s *Site) Environ() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_S3":         s.S3URL,
		"AWS_ENDPOINT_URL_SQS":        s.SQSURL,
		"AWS_ACCESS_KEY_ID":           AccessKey,
		"AWS_SECRET_ACCESS_KEY":       SecretKey,
		"AWS_REGION":                  "us-west-2",
		"AWS_EC2_METADATA_DISABLED":   "true",
		"AWS_CONFIG_FILE":             "/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
	}
}

// Route is one route of a configuration file.
type Route struct {
	Bucket string   // default Bucket
	COS    string   // URL; default the site's
	Queue  string   // name of a queue of its own; "" is SyncQueue
	Lines  []string // more lines of YAML, indented as fields of the route
}

// YAML is a configuration of the service for this site. more are lines of YAML at
// the top level.
func (s *Site) YAML(routes []Route, more ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "region: us-west-2\nqueues:\n  logs: %s\n  sync: %s\n", s.QueueURL(LogsQueue), s.QueueURL(SyncQueue))
	fmt.Fprintf(&b, "logs:\n  - {bucket: %s, prefix: %s, when_done: keep}\nown_role: %s\ns3: {path_style: true}\nroutes:\n", LogBucket, LogPrefix, RoleARN)
	for _, r := range routes {
		bucket, cos := r.Bucket, r.COS
		if bucket == "" {
			bucket = Bucket
		}
		if cos == "" {
			cos = s.COS.URL()
		}
		fmt.Fprintf(&b, "  - bucket: %s\n    source:\n      cos: %s\n      custom_domain: true\n", bucket, cos)
		if r.Queue != "" {
			fmt.Fprintf(&b, "      queue: %s\n", s.QueueURL(r.Queue))
		}
		read := true
		for _, line := range r.Lines {
			read = read && !strings.Contains(line, "read:")
		}
		if read {
			b.WriteString("      read: anonymous\n")
		}
		for _, line := range r.Lines {
			fmt.Fprintf(&b, "    %s\n", line)
		}
	}
	for _, line := range more {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Close ends all that Start and the Adds started.
func (s *Site) Close() {
	if s.edge != nil {
		s.edge.CloseClientConnections()
		s.edge.Close()
	}
	for _, c := range s.more {
		c.Close()
	}
	s.COS.Close()
	s.aws.Close()
}
