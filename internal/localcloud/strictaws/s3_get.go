package strictaws

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// getObject answers GetObject and HeadObject.
func (q *s3Request) getObject() *apiError {
	v, err := q.lookUp()
	if err != nil {
		return err
	}
	q.objectSize = v.body.size
	if usesKMS(v.header) {
		if err := q.permit("kms:Decrypt"); err != nil {
			return err
		}
	}
	head := q.r.Method == http.MethodHead
	if class := v.header.Get("X-Amz-Storage-Class"); !head && (class == "GLACIER" || class == "DEEP_ARCHIVE") {
		return refuse(http.StatusForbidden, "InvalidObjectState", "The operation is not valid for the object's storage class")
	}
	if err := q.readPreconditions(v); err != nil {
		return err
	}
	off, n, ranged, err := byteRange(q.r.Header.Get("Range"), v.body.size)
	if err != nil {
		return err
	}
	if v.body.gone && !head {
		return refuse(http.StatusNotImplemented, "NotImplemented", "the body was discarded (Config.DiscardOver)")
	}
	q.objectHeaders(v)
	h := q.w.Header()
	h.Set("Content-Length", strconv.FormatInt(n, 10))
	status := http.StatusOK
	if ranged {
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", off, off+n-1, v.body.size))
		status = http.StatusPartialContent
	} else if strings.EqualFold(q.r.Header.Get("X-Amz-Checksum-Mode"), "ENABLED") {
		h.Set(v.sum.alg.header(), v.sum.value)
		h.Set("X-Amz-Checksum-Type", v.sum.kind)
	}
	q.identify()
	q.w.WriteHeader(status)
	if !head && n > 0 {
		v.body.writeRange(q.w, off, n)
	}
	return nil
}

func (q *s3Request) objectHeaders(v *version) {
	h := q.w.Header()
	for name, values := range v.header {
		if strings.HasPrefix(name, metaPrefix) {
			name = strings.ToLower(name) // as S3 writes it, and some clients show it
		}
		h[name] = values
	}
	h.Set("Etag", v.etag)
	h.Set("Last-Modified", v.modified.UTC().Format(http.TimeFormat))
	h.Set("Accept-Ranges", "bytes")
	q.nameVersion(v)
}

// lookUp finds the version that is asked for.
func (q *s3Request) lookUp() (*version, *apiError) {
	q.c.store.mu.RLock()
	defer q.c.store.mu.RUnlock()
	b := q.c.store.buckets[q.bucket]
	var v *version
	id := q.query.Get("versionId")
	if b != nil && id != "" {
		v = b.find(q.key, id)
	} else if b != nil {
		v = b.current(q.key)
	}
	switch {
	case b == nil:
		return nil, noSuchBucket()
	case v == nil && id != "":
		return nil, refuse(http.StatusNotFound, "NoSuchVersion", "The specified version does not exist.")
	case v == nil:
		return nil, q.missing()
	case v.marker:
		return nil, q.deleted(v, id != "")
	}
	return v, nil
}

// missing is 404 only to those who may list the bucket. The caller holds the
// store's lock.
func (q *s3Request) missing() *apiError {
	if !q.mayList() {
		return accessDenied()
	}
	e := refuse(http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
	e.Fields = map[string]string{"Key": q.key}
	return e
}

func (q *s3Request) mayList() bool {
	if q.c.policy.denies(q.who, "s3:ListBucket", q.bucket) {
		return false
	}
	b := q.c.store.buckets[q.bucket]
	return q.who != anonymous || b != nil && b.opts.PublicList
}

func (q *s3Request) deleted(marker *version, byID bool) *apiError {
	e := q.missing()
	if e.Status != http.StatusNotFound {
		return e
	}
	if byID {
		e = refuse(http.StatusMethodNotAllowed, "MethodNotAllowed", "The specified method is not allowed against this resource.")
	}
	e.Header = http.Header{"X-Amz-Delete-Marker": {"true"}}
	q.versionID = marker.id
	e.Header.Set("X-Amz-Version-Id", marker.id)
	return e
}

// readPreconditions evaluates them in RFC 9110's order.
func (q *s3Request) readPreconditions(v *version) *apiError {
	h := q.r.Header
	modified := v.modified.Truncate(time.Second)
	since := func(name string) (time.Time, bool) {
		t, err := http.ParseTime(h.Get(name))
		return t, err == nil
	}
	if m := h.Get("If-Match"); m != "" {
		if !etagIn(m, v.etag) {
			return preconditionFailed("If-Match")
		}
	} else if t, ok := since("If-Unmodified-Since"); ok && modified.After(t) {
		return preconditionFailed("If-Unmodified-Since")
	}
	notModified := &apiError{Status: http.StatusNotModified, Code: "NotModified"}
	if n := h.Get("If-None-Match"); n != "" {
		if etagIn(n, v.etag) {
			q.objectHeaders(v)
			return notModified
		}
	} else if t, ok := since("If-Modified-Since"); ok && !modified.After(t) {
		q.objectHeaders(v)
		return notModified
	}
	return nil
}

func etagIn(list, etag string) bool {
	for t := range strings.SplitSeq(list, ",") {
		t = strings.TrimPrefix(strings.TrimSpace(t), "W/")
		if t == "*" || strings.Trim(t, `"`) == strings.Trim(etag, `"`) {
			return true
		}
	}
	return false
}

// byteRange reads a Range header for a body of size bytes. What is not one well
// formed range of bytes is ignored, as S3 does.
func byteRange(header string, size int64) (off, n int64, ranged bool, err *apiError) {
	spec, ok := strings.CutPrefix(header, "bytes=")
	first, last, dash := strings.Cut(spec, "-")
	if !ok || !dash {
		return 0, size, false, nil
	}
	unsatisfiable := refuse(http.StatusRequestedRangeNotSatisfiable, "InvalidRange", "The requested range is not satisfiable")
	unsatisfiable.Header = http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}}
	if first == "" {
		suffix, bad := strconv.ParseInt(last, 10, 64)
		if bad != nil || suffix < 0 {
			return 0, size, false, nil
		}
		if suffix == 0 || size == 0 {
			return 0, 0, false, unsatisfiable
		}
		suffix = min(suffix, size)
		return size - suffix, suffix, true, nil
	}
	from, bad := strconv.ParseInt(first, 10, 64)
	to := size - 1
	if last != "" && bad == nil {
		to, bad = strconv.ParseInt(last, 10, 64)
	}
	if bad != nil || from < 0 || last != "" && to < from {
		return 0, size, false, nil
	}
	if from >= size {
		return 0, 0, false, unsatisfiable
	}
	return from, min(to, size-1) - from + 1, true, nil
}
