// Package origin serves infra/aws/cdn.yaml: the edge of the embedded cloud reads
// the template and does what it says, before the embedded S3 and COS. Each rule
// of the CDN side is a case, and each case fails when the template is changed to
// break its rule.
package origin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/edge"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

const (
	bucket    = "overseas-media"
	cosHost   = "media-origin.example.com"
	logBucket = "log-bucket"
	accessKey = "AKIACDN"
	secret    = "secret-of-the-cdn"
	// requester is how S3's log names CloudFront; how it really does is of no
	// matter, as long as it is not the ferry.
	requester = "svc:cloudfront.amazonaws.com"
)

// parameters are those of every case.
var parameters = map[string]string{
	"Bucket": bucket, "CosDomain": cosHost, "ErrorTTL": "5", "DefaultTTL": "300", "MaxTTL": "600",
	"OverseasOnly1": "us/*", "OverseasOnly2": "/eu/*", "OverseasOnly3": "*.local",
}

func template(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../infra/aws/cdn.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rig is the distribution of a template between its visitors and its origins.
type rig struct {
	cloud *strictaws.Cloud
	cos   *cosd.Server
	url   string // of the edge

	mu    sync.Mutex
	now   time.Time // by which the edge keeps answers; set by wait
	local map[string]*url.URL
	asked []*http.Request // by the edge, since the last visit
}

// newRig is an error when the edge cannot read the template.
func newRig(t *testing.T, text string) (*rig, error) {
	t.Helper()
	stack, err := cfn.Resolve([]byte(text), parameters)
	if err != nil {
		return nil, err
	}
	distribution, err := edge.FromStack(stack)
	if err != nil {
		return nil, err
	}
	r := &rig{now: time.Now(), local: map[string]*url.URL{}}
	r.cloud = strictaws.New(strictaws.Config{LogInterval: -1,
		Credentials: map[string]strictaws.Credential{accessKey: {Secret: secret, ARN: requester}}})
	r.cloud.CreateBucket(logBucket, strictaws.Bucket{})
	r.cloud.CreateBucket(bucket, strictaws.Bucket{LogBucket: logBucket})
	for action, resource := range map[string]string{"s3:GetObject": bucket + "/*", "s3:ListBucket": bucket} {
		if !allowed(stack, action, "arn:aws:s3:::"+resource) {
			r.cloud.Deny(requester, action, resource)
		}
	}
	aws, err := r.cloud.Serve()
	if err != nil {
		return nil, err
	}
	t.Cleanup(aws.Close)
	r.cos = cosd.New(cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}})
	cos := httptest.NewServer(http.HandlerFunc(r.serveCOS))
	t.Cleanup(cos.Close)
	for host, at := range map[string]string{bucket + ".s3.us-west-2.amazonaws.com": aws.S3URL, cosHost: cos.URL} {
		if r.local[host], err = url.Parse(at); err != nil {
			return nil, err
		}
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	e, err := edge.New(&http.Client{Transport: r.origins(transport)}, edge.Config{Distribution: distribution, Now: r.clock, Sign: edge.SigV4(accessKey, secret, "us-west-2")})
	if err != nil {
		return nil, err
	}
	front := httptest.NewServer(e)
	t.Cleanup(front.Close)
	r.url = front.URL
	return r, nil
}

// allowed is whether the template's bucket policy lets the distribution, and just
// this one, do action.
func allowed(stack *cfn.Stack, action, resource string) bool {
	policy, ok := stack.Resources["ReadPolicy"]
	if !ok {
		return false
	}
	document, _ := policy.Properties["PolicyDocument"].(map[string]any)
	statements, _ := document["Statement"].([]any)
	for _, s := range statements {
		m, _ := s.(map[string]any)
		actions, _ := m["Action"].([]any)
		resources, _ := m["Resource"].([]any)
		principal, condition := fmt.Sprint(m["Principal"]), fmt.Sprint(m["Condition"])
		if m["Effect"] == "Allow" && slices.Contains(actions, any(action)) && slices.Contains(resources, any(resource)) &&
			principal == "map[Service:cloudfront.amazonaws.com]" &&
			condition == "map[StringEquals:map[AWS:SourceArn:[arn:aws:cloudfront::111122223333:distribution/Distribution]]]" {
			return true
		}
	}
	return false
}

// serveCOS answers under the CDN's own name only, as every CDN does.
func (r *rig) serveCOS(w http.ResponseWriter, q *http.Request) {
	if q.Host != cosHost {
		http.Error(w, "no such domain here", http.StatusForbidden)
		return
	}
	r.cos.ServeHTTP(w, q)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// origins finds the hosts of the template on this machine; an origin that local
// does not have cannot be reached.
func (r *rig) origins(transport http.RoundTripper) http.RoundTripper {
	return roundTripper(func(q *http.Request) (*http.Response, error) {
		r.mu.Lock()
		to := r.local[q.URL.Host]
		r.asked = append(r.asked, q.Clone(q.Context()))
		r.mu.Unlock()
		if q.URL.Scheme != "https" {
			return nil, fmt.Errorf("an origin was asked by %s", q.URL.Scheme)
		}
		if to == nil {
			return nil, errors.New("connection refused")
		}
		q = q.Clone(q.Context())
		q.URL.Scheme, q.URL.Host = "http", to.Host
		return transport.RoundTrip(q)
	})
}

func (r *rig) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *rig) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// seen is what a visitor got, and for whom the edge asked.
type seen struct {
	status int
	origin string
	body   string
	header http.Header
	asked  string // "s3", "s3 cos", or "" from what was kept
	sent   []*http.Request
}

// visit sends a request; headers are pairs. The path goes out as it is written.
func (r *rig) visit(method, path string, headers ...string) (seen, error) {
	r.mu.Lock()
	r.asked = nil
	r.mu.Unlock()
	req, err := http.NewRequest(method, r.url, nil)
	if err != nil {
		return seen{}, err
	}
	req.URL.Opaque = path
	req.Host = "www.example.com"
	req.Header.Set("Accept-Encoding", "identity")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return seen{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	var asked []string
	for _, q := range r.asked {
		name, _, _ := strings.Cut(q.URL.Host, ".")
		asked = append(asked, map[string]string{bucket: edge.S3, "media-origin": edge.COS}[name])
	}
	return seen{resp.StatusCode, resp.Header.Get(edge.OriginHeader), string(body), resp.Header, strings.Join(asked, " "), r.asked}, err
}

// overseas and home put an object into S3 and into COS, with different bytes so
// that they can be told apart.
func (r *rig) overseas(key string) error {
	return r.cloud.PutObject(bucket, key, []byte("from s3: "+key), nil)
}

func (r *rig) home(key string) error {
	r.cos.Put(key, []byte("from cos: "+key), cosd.Attributes{})
	return nil
}
