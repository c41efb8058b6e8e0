package strictaws

import (
	"encoding/base64"
	"encoding/xml"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"
)

type listResult struct {
	XMLName               xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListBucketResult"`
	Name                  string
	Prefix                string
	Delimiter             string `xml:",omitempty"`
	StartAfter            string `xml:",omitempty"`
	EncodingType          string `xml:",omitempty"`
	ContinuationToken     string `xml:",omitempty"`
	NextContinuationToken string `xml:",omitempty"`
	KeyCount, MaxKeys     int
	IsTruncated           bool
	Contents              []listedKey
	CommonPrefixes        []listedPrefix
}

type listedKey struct {
	Key, LastModified, ETag string
	Size                    int64
	StorageClass            string
	ChecksumAlgorithm       algorithm
	ChecksumType            string
}

type listedPrefix struct{ Prefix string }

// listObjects answers ListObjectsV2. A continuation token is the last key or
// common prefix that was told.
func (q *s3Request) listObjects() *apiError {
	if q.query.Get("list-type") != "2" {
		return notImplemented("list-type")
	}
	prefix, delimiter := q.query.Get("prefix"), q.query.Get("delimiter")
	limit, err := maxKeys(q.query.Get("max-keys"))
	if err != nil {
		return err
	}
	after := q.query.Get("start-after")
	token := q.query.Get("continuation-token")
	if token != "" {
		b, bad := base64.URLEncoding.DecodeString(token)
		if bad != nil {
			return badRequest("InvalidArgument", "The continuation token provided is incorrect")
		}
		after = string(b)
	}
	encode := func(s string) string { return s }
	switch t := q.query.Get("encoding-type"); t {
	case "":
	case "url":
		encode = formEncode
	default:
		return badRequest("InvalidArgument", "Invalid Encoding Method specified in Request")
	}
	out := listResult{Name: q.bucket, Prefix: encode(prefix), Delimiter: encode(delimiter), MaxKeys: limit,
		EncodingType: q.query.Get("encoding-type"), ContinuationToken: token, StartAfter: encode(q.query.Get("start-after"))}

	q.c.store.mu.Lock()
	b := q.c.store.buckets[q.bucket]
	if b == nil {
		q.c.store.mu.Unlock()
		return noSuchBucket()
	}
	keys := b.keys()
	last := after
	for i := sort.SearchStrings(keys, prefix); i < len(keys) && strings.HasPrefix(keys[i], prefix); i++ {
		key := keys[i]
		v := b.live(key)
		told, common := listedAs(key, prefix, delimiter)
		if v == nil || told <= after || common && told == last {
			continue
		}
		if out.KeyCount == limit {
			out.IsTruncated = limit > 0
			break
		}
		out.KeyCount++
		last = told
		if common {
			out.CommonPrefixes = append(out.CommonPrefixes, listedPrefix{encode(told)})
			continue
		}
		out.Contents = append(out.Contents, listed(encode(key), v))
	}
	q.c.store.mu.Unlock()
	if out.IsTruncated {
		out.NextContinuationToken = base64.URLEncoding.EncodeToString([]byte(last))
	}
	return q.ok(http.StatusOK, out)
}

// listedAs returns the common prefix under which a key is told, or the key.
func listedAs(key, prefix, delimiter string) (string, bool) {
	if delimiter != "" {
		if i := strings.Index(key[len(prefix):], delimiter); i >= 0 {
			return key[:len(prefix)+i+len(delimiter)], true
		}
	}
	return key, false
}

func listed(name string, v *version) listedKey {
	class := v.header.Get("X-Amz-Storage-Class")
	if class == "" {
		class = "STANDARD"
	}
	return listedKey{Key: name, LastModified: iso(v.modified), ETag: v.etag, Size: v.body.size,
		StorageClass: class, ChecksumAlgorithm: v.sum.alg, ChecksumType: v.sum.kind}
}

// isoTime is how S3 writes times into XML and events.
const isoTime = "2006-01-02T15:04:05.000Z"

func iso(t time.Time) string { return t.UTC().Format(isoTime) }

func maxKeys(s string) (int, *apiError) {
	if s == "" {
		return 1000, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return 0, badRequest("InvalidArgument", "Provided max-keys not an integer or within integer range")
	}
	return min(n, 1000), nil
}
