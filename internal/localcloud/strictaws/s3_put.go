package strictaws

import (
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// storedHeaders are kept with an object and given back with it.
func storedHeaders() []string {
	return []string{"Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control", "Expires",
		"X-Amz-Website-Redirect-Location", "X-Amz-Storage-Class", headerSSE, headerSSEKey, "X-Amz-Server-Side-Encryption-Bucket-Key-Enabled"}
}

const (
	headerSSE    = "X-Amz-Server-Side-Encryption"
	headerSSEKey = "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"
	maxMetadata  = 2 << 10
)

func (q *s3Request) putObject() *apiError {
	if q.r.Header.Get("X-Amz-Copy-Source") != "" {
		return notImplemented("x-amz-copy-source")
	}
	header, err := q.newHeader()
	if err != nil {
		return err
	}
	p, err := q.payload(algCRC64NVME)
	if err != nil {
		return err
	}
	// S3 looks before it takes the body, and again when it commits.
	if err := q.checkWritable(); err != nil {
		return err
	}
	got, err := p.receive()
	if err != nil {
		return err
	}
	q.c.counters.add(q.call, Count{Bytes: got.size})
	v := &version{header: header, body: got.blob, sum: got.sum, etag: q.etag(got, header)}
	if err := q.commit(v); err != nil {
		return err
	}
	q.c.announce(q.bucket, q.key, v, "ObjectCreated:Put", q)
	h := q.w.Header()
	h.Set(got.sum.alg.header(), got.sum.value)
	h.Set("X-Amz-Checksum-Type", fullObject)
	return q.written(v)
}

// written answers a write that was committed.
func (q *s3Request) written(v *version) *apiError {
	q.objectSize = v.body.size
	h := q.w.Header()
	h.Set("Etag", v.etag)
	for _, name := range []string{headerSSE, headerSSEKey} {
		if s := v.header.Get(name); s != "" {
			h.Set(name, s)
		}
	}
	q.nameVersion(v)
	return q.ok(http.StatusOK, nil)
}

// nameVersion tells the version's id where the bucket has versions.
func (q *s3Request) nameVersion(v *version) {
	if v.id == "null" {
		return
	}
	q.versionID = v.id
	q.w.Header().Set("X-Amz-Version-Id", v.id)
}

// newHeader takes from a request what is to be kept with the object, and refuses
// what S3 does not take.
func (q *s3Request) newHeader() (http.Header, *apiError) {
	out := http.Header{}
	for _, name := range storedHeaders() {
		if v := q.r.Header.Values(name); len(v) > 0 {
			out.Set(name, strings.Join(v, ","))
		}
	}
	if e := withoutAWSChunked(out.Get("Content-Encoding")); e != "" {
		out.Set("Content-Encoding", e)
	} else {
		out.Del("Content-Encoding")
	}
	if out.Get("Content-Type") == "" {
		out.Set("Content-Type", "binary/octet-stream")
	}
	size := 0
	for name, values := range q.r.Header {
		if meta, ok := strings.CutPrefix(name, metaPrefix); ok {
			v := strings.Join(values, ",")
			size += len(meta) + len(v)
			out[name] = []string{v}
		}
	}
	if size > maxMetadata {
		e := badRequest("MetadataTooLarge", "Your metadata headers exceed the maximum allowed metadata size")
		e.Fields = map[string]string{"Size": strconv.Itoa(size), "MaxSizeAllowed": strconv.Itoa(maxMetadata)}
		return nil, e
	}
	if !asciiHeaders(q.r.Header) {
		return nil, signatureDoesNotMatch()
	}
	if err := storageClass(out); err != nil {
		return nil, err
	}
	return out, q.encryption(out)
}

func withoutAWSChunked(v string) string {
	var kept []string
	for s := range strings.SplitSeq(v, ",") {
		if s = strings.TrimSpace(s); s != "" && s != "aws-chunked" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, ",")
}

func storageClass(h http.Header) *apiError {
	known := []string{"STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "GLACIER", "DEEP_ARCHIVE"}
	class := h.Get("X-Amz-Storage-Class")
	if class == "" || class == "STANDARD" {
		h.Del("X-Amz-Storage-Class") // S3 does not name the default
		return nil
	}
	if !slices.Contains(known, class) {
		return badRequest("InvalidStorageClass", "The storage class you specified is not valid")
	}
	return nil
}

// encryption settles how the object is encrypted; with a KMS key the requester
// needs that key's grant.
func (q *s3Request) encryption(h http.Header) *apiError {
	q.c.store.mu.RLock()
	b := q.c.store.buckets[q.bucket]
	q.c.store.mu.RUnlock()
	if b == nil {
		return noSuchBucket()
	}
	if h.Get(headerSSE) == "" {
		h.Set(headerSSE, "AES256")
		if b.opts.KMS {
			h.Set(headerSSE, "aws:kms")
		}
	}
	switch h.Get(headerSSE) {
	case "AES256":
		return nil
	case "aws:kms", "aws:kms:dsse":
	default:
		return badRequest("InvalidEncryptionAlgorithmError", "The encryption request you specified is not valid.")
	}
	if h.Get(headerSSEKey) == "" {
		h.Set(headerSSEKey, "arn:aws:kms:"+q.c.cfg.Region+":"+q.c.cfg.Account+":key/aws/s3")
	}
	return q.permit("kms:GenerateDataKey")
}

func usesKMS(h http.Header) bool { return strings.HasPrefix(h.Get(headerSSE), "aws:kms") }

// etag is the body's MD5, but not where S3's is none.
func (q *s3Request) etag(got received, h http.Header) string {
	sum := got.md5
	if sum == nil || usesKMS(h) {
		sum = hmacSHA256([]byte(q.id), encodeSum(got.md5)+strconv.FormatUint(got.crc, 16))[:16]
	}
	return `"` + hex.EncodeToString(sum) + `"`
}

// checkWritable evaluates the preconditions of a write against what stands there.
func (q *s3Request) checkWritable() *apiError {
	q.c.store.mu.RLock()
	defer q.c.store.mu.RUnlock()
	b := q.c.store.buckets[q.bucket]
	if b == nil {
		return noSuchBucket()
	}
	return q.writePreconditions(b.live(q.key))
}

func (q *s3Request) writePreconditions(now *version) *apiError {
	none, match := q.r.Header.Get("If-None-Match"), q.r.Header.Get("If-Match")
	if none != "" && none != "*" {
		return notImplemented("If-None-Match")
	}
	if none == "*" && now != nil {
		return preconditionFailed("If-None-Match")
	}
	if match != "" {
		if now == nil {
			return q.missing()
		}
		if !etagIn(match, now.etag) {
			return preconditionFailed("If-Match")
		}
	}
	return nil
}

func preconditionFailed(condition string) *apiError {
	e := refuse(http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
	e.Fields = map[string]string{"Condition": condition}
	return e
}

// commit makes v visible if the preconditions still hold.
func (q *s3Request) commit(v *version) *apiError {
	s := q.c.store
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[q.bucket]
	if b == nil {
		return noSuchBucket()
	}
	if err := q.writePreconditions(b.live(q.key)); err != nil {
		return err
	}
	v.id, v.modified = q.c.versionID(), q.c.cfg.Now()
	b.put(q.key, v)
	return nil
}
