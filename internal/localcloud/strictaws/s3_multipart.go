package strictaws

import (
	"crypto/md5"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

const maxParts = 10_000

// upload is a multipart upload that is not complete. Guarded by store.mu; a part
// is never changed once it is in.
type upload struct {
	id, key   string
	header    http.Header
	sum       checksum // the algorithm and the type that were asked for
	parts     map[int]*part
	initiated time.Time
}

type part struct {
	received
	etag     string
	modified time.Time
}

type initiateResult struct {
	XMLName  xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ InitiateMultipartUploadResult"`
	Bucket   string
	Key      string
	UploadID string `xml:"UploadId"`
}

func (q *s3Request) createUpload() *apiError {
	header, err := q.newHeader()
	if err != nil {
		return err
	}
	sum := checksum{alg: algCRC64NVME, kind: fullObject}
	if name := q.r.Header.Get("X-Amz-Checksum-Algorithm"); name != "" {
		if sum.alg, err = parseAlgorithm(name); err != nil {
			return err
		}
		if sum.alg != algCRC64NVME {
			sum.kind = composite
		}
	}
	if kind := q.r.Header.Get("X-Amz-Checksum-Type"); kind != "" {
		sum.kind = strings.ToUpper(kind)
	}
	if !sum.alg.valid(sum.kind) {
		return badRequest("InvalidRequest", fmt.Sprintf("The %s checksum type cannot be used with the %s checksum algorithm.", sum.kind, sum.alg))
	}
	u := &upload{id: q.c.versionID(), key: q.key, header: header, sum: sum, parts: map[int]*part{}, initiated: q.c.cfg.Now()}
	q.c.store.mu.Lock()
	b := q.c.store.buckets[q.bucket]
	if b != nil {
		b.uploads[u.id] = u
	}
	q.c.store.mu.Unlock()
	if b == nil {
		return noSuchBucket()
	}
	h := q.w.Header()
	h.Set("X-Amz-Checksum-Algorithm", string(sum.alg))
	h.Set("X-Amz-Checksum-Type", sum.kind)
	h.Set(headerSSE, header.Get(headerSSE))
	return q.ok(http.StatusOK, initiateResult{Bucket: q.bucket, Key: q.key, UploadID: u.id})
}

// upload finds the upload that is asked for. The caller holds the store's lock.
func (q *s3Request) upload() (*bucket, *upload, *apiError) {
	b := q.c.store.buckets[q.bucket]
	if b == nil {
		return nil, nil, noSuchBucket()
	}
	u := b.uploads[q.query.Get("uploadId")]
	if u == nil || u.key != q.key {
		return b, nil, refuse(http.StatusNotFound, "NoSuchUpload", "The specified upload does not exist. The upload ID may be invalid, or the upload may have been aborted or completed.")
	}
	return b, u, nil
}

func (q *s3Request) uploadPart() *apiError {
	n, bad := strconv.Atoi(q.query.Get("partNumber"))
	if bad != nil || n < 1 || n > maxParts {
		return badRequest("InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive")
	}
	if q.r.Header.Get("X-Amz-Copy-Source") != "" {
		return notImplemented("x-amz-copy-source")
	}
	q.c.store.mu.RLock()
	_, u, err := q.upload()
	q.c.store.mu.RUnlock()
	if err != nil {
		return err
	}
	if usesKMS(u.header) {
		if err := q.permit("kms:GenerateDataKey"); err != nil {
			return err
		}
	}
	p, err := q.payload(u.sum.alg)
	if err != nil {
		return err
	}
	if p.sent.alg != u.sum.alg {
		return badRequest("InvalidRequest", fmt.Sprintf("Checksum Type mismatch occurred, expected checksum Type: %s, actual checksum Type: %s",
			strings.ToLower(string(u.sum.alg)), strings.ToLower(string(p.sent.alg))))
	}
	got, err := p.receive()
	if err != nil {
		return err
	}
	q.c.counters.add(q.call, Count{Bytes: got.size})
	done := &part{received: got, etag: q.etag(got, u.header), modified: q.c.cfg.Now()}
	q.c.store.mu.Lock()
	_, u, err = q.upload() // it may have ended meanwhile
	if err == nil {
		u.parts[n] = done
	}
	q.c.store.mu.Unlock()
	if err != nil {
		return err
	}
	h := q.w.Header()
	h.Set("Etag", done.etag)
	h.Set(got.sum.alg.header(), got.sum.value)
	h.Set(headerSSE, u.header.Get(headerSSE))
	return q.ok(http.StatusOK, nil)
}

func (q *s3Request) abortUpload() *apiError {
	q.c.store.mu.Lock()
	b, u, err := q.upload()
	if err == nil {
		delete(b.uploads, u.id)
	}
	q.c.store.mu.Unlock()
	if err != nil {
		return err
	}
	return q.ok(http.StatusNoContent, nil)
}

type listPartsResult struct {
	XMLName              xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListPartsResult"`
	Bucket, Key          string
	UploadID             string `xml:"UploadId"`
	MaxParts             int
	PartNumberMarker     int
	NextPartNumberMarker int
	IsTruncated          bool
	Parts                []listedPart `xml:"Part"`
}

type listedPart struct {
	PartNumber         int
	LastModified, ETag string
	Size               int64
}

func (q *s3Request) listParts() *apiError {
	limit, err := maxKeys(q.query.Get("max-parts"))
	if err != nil {
		return err
	}
	after, _ := strconv.Atoi(q.query.Get("part-number-marker"))
	out := listPartsResult{Bucket: q.bucket, Key: q.key, UploadID: q.query.Get("uploadId"), MaxParts: limit, PartNumberMarker: after}
	q.c.store.mu.RLock()
	_, u, err := q.upload()
	if err == nil {
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			if n <= after {
				continue
			}
			if len(out.Parts) == limit {
				out.IsTruncated = true
				break
			}
			p := u.parts[n]
			out.NextPartNumberMarker = n
			out.Parts = append(out.Parts, listedPart{n, iso(p.modified), p.etag, p.size})
		}
	}
	q.c.store.mu.RUnlock()
	if err != nil {
		return err
	}
	return q.ok(http.StatusOK, out)
}

type listUploadsResult struct {
	XMLName     xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ ListMultipartUploadsResult"`
	Bucket      string
	Prefix      string
	MaxUploads  int
	IsTruncated bool
	Uploads     []listedUpload `xml:"Upload"`
}

type listedUpload struct {
	Key       string
	UploadID  string `xml:"UploadId"`
	Initiated string
}

func (q *s3Request) listUploads() *apiError {
	out := listUploadsResult{Bucket: q.bucket, Prefix: q.query.Get("prefix"), MaxUploads: 1000}
	q.c.store.mu.RLock()
	if b := q.c.store.buckets[q.bucket]; b != nil {
		for _, u := range b.uploads {
			if strings.HasPrefix(u.key, out.Prefix) {
				out.Uploads = append(out.Uploads, listedUpload{u.key, u.id, iso(u.initiated)})
			}
		}
	}
	q.c.store.mu.RUnlock()
	slices.SortFunc(out.Uploads, func(a, b listedUpload) int {
		return strings.Compare(a.Key+"\x00"+a.Initiated+a.UploadID, b.Key+"\x00"+b.Initiated+b.UploadID)
	})
	return q.ok(http.StatusOK, out)
}

// multipartETag is the MD5 of the parts' MD5s, dash, their number.
func multipartETag(parts []*part) string {
	h := md5.New()
	for _, p := range parts {
		b, _ := hex.DecodeString(strings.Trim(p.etag, `"`))
		h.Write(b)
	}
	return fmt.Sprintf(`"%x-%d"`, h.Sum(nil), len(parts))
}
