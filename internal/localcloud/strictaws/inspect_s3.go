package strictaws

import (
	"crypto/md5"
	"encoding/hex"
	"net/http"
	"slices"
	"time"
)

// PutObject stores an object without a request, so without a log row and whatever
// stands there, and announces it. body is kept, not copied.
func (c *Cloud) PutObject(bucketName, key string, body []byte, h http.Header) error {
	sum := md5.Sum(body)
	crc := algCRC64NVME.new()
	crc.Write(body)
	v := &version{header: http.Header{"Content-Type": {"binary/octet-stream"}, headerSSE: {"AES256"}},
		etag: `"` + hex.EncodeToString(sum[:]) + `"`, body: blob{parts: [][]byte{body}, size: int64(len(body))},
		sum: checksum{algCRC64NVME, encodeSum(crc.Sum(nil)), fullObject}}
	for name, values := range h {
		v.header[http.CanonicalHeaderKey(name)] = values
	}
	c.store.mu.Lock()
	b := c.store.buckets[bucketName]
	if b == nil {
		c.store.mu.Unlock()
		return noSuchBucket()
	}
	v.id, v.modified = c.versionID(), c.cfg.Now()
	b.put(key, v)
	c.store.mu.Unlock()
	c.announce(bucketName, key, v, "ObjectCreated:Put", nil)
	return nil
}

// Object is an object as it stands in a bucket.
type Object struct {
	Body         []byte      // not to be changed; nil when it was discarded
	Header       http.Header // what a GET would give back, user metadata included
	ETag         string      // with quotes
	Size         int64
	CRC64NVME    string // base64; "" when the object has another checksum
	VersionID    string
	DeleteMarker bool
	Modified     time.Time
}

// Object returns what stands under exactly this key: the current version, which
// may be a delete marker. ok is false when there is nothing.
func (c *Cloud) Object(bucketName, key string) (o Object, ok bool) {
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	b := c.store.buckets[bucketName]
	if b == nil {
		return o, false
	}
	v := b.current(key)
	if v == nil {
		return o, false
	}
	o = Object{Header: v.header.Clone(), ETag: v.etag, Size: v.body.size, VersionID: v.id, DeleteMarker: v.marker, Modified: v.modified}
	if !v.body.gone {
		o.Body = v.body.bytes()
	}
	if v.sum.alg == algCRC64NVME {
		o.CRC64NVME = v.sum.value
	}
	return o, true
}

// Keys returns the keys of the bucket's objects in byte order, without those
// under a delete marker.
func (c *Cloud) Keys(bucketName string) []string {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	b := c.store.buckets[bucketName]
	if b == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.keys()), func(k string) bool { return b.live(k) == nil })
}

// Uploads returns how many multipart uploads are open in the bucket.
func (c *Cloud) Uploads(bucketName string) int {
	c.store.mu.RLock()
	defer c.store.mu.RUnlock()
	if b := c.store.buckets[bucketName]; b != nil {
		return len(b.uploads)
	}
	return 0
}

// DeleteObject deletes as the API does: in a bucket with versions it leaves a
// delete marker.
func (c *Cloud) DeleteObject(bucketName, key string) error {
	if _, _, err := c.deleteKey(bucketName, key, ""); err != nil {
		return err
	}
	return nil
}
