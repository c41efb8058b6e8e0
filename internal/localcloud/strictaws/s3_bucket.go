package strictaws

import (
	"encoding/xml"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

const s3Namespace = "http://s3.amazonaws.com/doc/2006-03-01/"

func noSuchBucket() *apiError {
	return refuse(http.StatusNotFound, "NoSuchBucket", "The specified bucket does not exist")
}

// CreateBucket makes a bucket; one that exists is set up anew and keeps its
// objects.
func (c *Cloud) CreateBucket(name string, opts Bucket) {
	if opts.Owner == "" {
		opts.Owner = c.cfg.Account
	}
	c.store.mu.Lock()
	b := c.store.buckets[name]
	if b == nil {
		b = &bucket{name: name, objects: map[string]*object{}, uploads: map[string]*upload{}}
		c.store.buckets[name] = b
	}
	b.opts = opts
	if opts.Versioned {
		b.versioning = "Enabled"
	}
	c.store.mu.Unlock()
	c.announceTest(name, opts.Notify)
}

func (q *s3Request) createBucket() *apiError {
	valid := regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	if !valid.MatchString(q.bucket) || strings.Contains(q.bucket, "..") {
		return badRequest("InvalidBucketName", "The specified bucket is not valid.")
	}
	q.c.store.mu.RLock()
	_, exists := q.c.store.buckets[q.bucket]
	q.c.store.mu.RUnlock()
	if exists {
		return refuse(http.StatusConflict, "BucketAlreadyOwnedByYou", "Your previous request to create the named bucket succeeded and you already own it.")
	}
	q.c.CreateBucket(q.bucket, Bucket{})
	q.w.Header().Set("Location", "/"+q.bucket)
	return q.ok(http.StatusOK, nil)
}

func (q *s3Request) headBucket() *apiError {
	q.w.Header().Set("X-Amz-Bucket-Region", q.c.cfg.Region)
	return q.ok(http.StatusOK, nil)
}

func (q *s3Request) deleteBucket() *apiError {
	s := q.c.store
	s.mu.Lock()
	b := s.buckets[q.bucket]
	switch {
	case b == nil:
		s.mu.Unlock()
		return noSuchBucket()
	case len(b.objects) > 0:
		s.mu.Unlock()
		return refuse(http.StatusConflict, "BucketNotEmpty", "The bucket you tried to delete is not empty")
	}
	delete(s.buckets, q.bucket)
	s.mu.Unlock()
	return q.ok(http.StatusNoContent, nil)
}

func (q *s3Request) listBuckets() *apiError {
	type entry struct{ Name string }
	var out struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListAllMyBucketsResult"`
		Buckets []entry  `xml:"Buckets>Bucket"`
	}
	q.c.store.mu.RLock()
	for name := range q.c.store.buckets {
		out.Buckets = append(out.Buckets, entry{name})
	}
	q.c.store.mu.RUnlock()
	slices.SortFunc(out.Buckets, func(a, b entry) int { return strings.Compare(a.Name, b.Name) })
	return q.ok(http.StatusOK, out)
}

func (q *s3Request) getLocation() *apiError {
	type location struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ LocationConstraint"`
		Region  string   `xml:",chardata"`
	}
	return q.ok(http.StatusOK, location{Region: q.c.cfg.Region})
}

type versioningXML struct {
	XMLName xml.Name `xml:"VersioningConfiguration"`
	Xmlns   string   `xml:"xmlns,attr,omitempty"`
	Status  string   `xml:",omitempty"`
}

func (q *s3Request) getVersioning() *apiError {
	q.c.store.mu.RLock()
	defer q.c.store.mu.RUnlock()
	out := versioningXML{Xmlns: s3Namespace}
	if b := q.c.store.buckets[q.bucket]; b != nil {
		out.Status = b.versioning
	}
	return q.ok(http.StatusOK, out)
}

func (q *s3Request) putVersioning() *apiError {
	var in versioningXML
	if err := q.readXML(&in, false); err != nil {
		return err
	}
	if in.Status != "Enabled" && in.Status != "Suspended" {
		return malformedXML()
	}
	return q.configure(func(b *bucket) { b.versioning = in.Status })
}

// configure changes the bucket under the store's lock and answers 200.
func (q *s3Request) configure(change func(*bucket)) *apiError {
	q.c.store.mu.Lock()
	b := q.c.store.buckets[q.bucket]
	if b != nil {
		change(b)
	}
	q.c.store.mu.Unlock()
	if b == nil {
		return noSuchBucket()
	}
	return q.ok(http.StatusOK, nil)
}

type loggingXML struct {
	XMLName xml.Name   `xml:"BucketLoggingStatus"`
	Xmlns   string     `xml:"xmlns,attr,omitempty"`
	Enabled *loggingOn `xml:"LoggingEnabled"`
}

type loggingOn struct{ TargetBucket, TargetPrefix string }

func (q *s3Request) getLogging() *apiError {
	q.c.store.mu.RLock()
	defer q.c.store.mu.RUnlock()
	out := loggingXML{Xmlns: s3Namespace}
	if b := q.c.store.buckets[q.bucket]; b != nil && b.opts.LogBucket != "" {
		out.Enabled = &loggingOn{b.opts.LogBucket, b.opts.LogPrefix}
	}
	return q.ok(http.StatusOK, out)
}

func (q *s3Request) putLogging() *apiError {
	var in loggingXML
	if err := q.readXML(&in, false); err != nil {
		return err
	}
	to := loggingOn{}
	if in.Enabled != nil {
		to = *in.Enabled
		q.c.store.mu.RLock()
		_, exists := q.c.store.buckets[to.TargetBucket]
		q.c.store.mu.RUnlock()
		if !exists {
			return badRequest("InvalidTargetBucketForLogging", "The target bucket for logging does not exist")
		}
	}
	return q.configure(func(b *bucket) { b.opts.LogBucket, b.opts.LogPrefix = to.TargetBucket, to.TargetPrefix })
}
