package strictaws

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// store is S3's state. Bodies are read and written outside its lock; a version is
// never changed once it is in.
type store struct {
	mu      sync.RWMutex
	buckets map[string]*bucket
}

func newStore() *store { return &store{buckets: map[string]*bucket{}} }

type bucket struct {
	name       string
	opts       Bucket
	versioning string // "", Enabled or Suspended
	objects    map[string]*object
	sorted     []string // the keys in order; nil when it must be made again
	uploads    map[string]*upload
}

// object is the versions under one key, the current one last.
type object struct{ versions []*version }

func (o *object) current() *version { return o.versions[len(o.versions)-1] }

// version is one version of an object, or a delete marker.
type version struct {
	id       string // "null" where the bucket had no versioning
	marker   bool
	etag     string // with quotes
	header   http.Header
	modified time.Time
	sum      checksum
	body     blob
}

// Bucket is how a bucket is set up.
type Bucket struct {
	PublicRead bool   // strangers may s3:GetObject
	PublicList bool   // strangers may s3:ListBucket, so a missing key is 404 to them
	Versioned  bool   // deletes leave markers
	KMS        bool   // default encryption aws:kms: writes need kms:GenerateDataKey
	Owner      string // account id; default Config.Account
	LogBucket  string // where access logs go; "" keeps none
	LogPrefix  string
	Notify     []Notification
}

// Notification announces new objects on a queue.
type Notification struct {
	ID     string
	Queue  string // name
	Prefix string
	Suffix string
}

// keys returns the bucket's keys in byte order. The caller holds the write lock.
func (b *bucket) keys() []string {
	if b.sorted == nil {
		b.sorted = make([]string, 0, len(b.objects))
		for k := range b.objects {
			b.sorted = append(b.sorted, k)
		}
		slices.Sort(b.sorted)
	}
	return b.sorted
}

// current returns the newest version under key, nil when there is none; it may be
// a delete marker.
func (b *bucket) current(key string) *version {
	if o := b.objects[key]; o != nil {
		return o.current()
	}
	return nil
}

// live is current without markers.
func (b *bucket) live(key string) *version {
	if v := b.current(key); v != nil && !v.marker {
		return v
	}
	return nil
}

func (b *bucket) find(key, id string) *version {
	if o := b.objects[key]; o != nil {
		for _, v := range o.versions {
			if v.id == id {
				return v
			}
		}
	}
	return nil
}

// put makes v the current version under key.
func (b *bucket) put(key string, v *version) {
	o := b.objects[key]
	if o == nil {
		o = &object{}
		b.objects[key] = o
		b.sorted = nil
	}
	if b.versioning != "Enabled" {
		v.id = "null"
		o.versions = slices.DeleteFunc(o.versions, func(old *version) bool { return old.id == "null" })
	}
	o.versions = append(o.versions, v)
}

// remove takes one version away for good; without id the current one.
func (b *bucket) remove(key, id string) {
	o := b.objects[key]
	if o == nil {
		return
	}
	o.versions = slices.DeleteFunc(o.versions, func(v *version) bool { return v.id == id })
	if len(o.versions) == 0 {
		delete(b.objects, key)
		b.sorted = nil
	}
}
