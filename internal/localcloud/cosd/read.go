package cosd

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// read answers a GET or HEAD of an object that the requester may read.
func (s *Server) read(q *Request, o *stored, forceDownload bool) *answer {
	if o.archived() && q.Method == http.MethodGet {
		return s.refuse(q, errInvalidState)
	}
	if q.ifMatch != "" && !matches(q.ifMatch, o.ETag) {
		return s.refuse(q, errPrecondition)
	}
	a := newAnswer(http.StatusOK)
	s.describe(a.header, o)
	if forceDownload {
		a.header.Set("x-cos-force-download", "true")
		a.header.Set("Content-Disposition", "attachment")
	}
	if q.ifNoneMatch != "" && matches(q.ifNoneMatch, o.ETag) {
		a.status = http.StatusNotModified
		return a
	}
	size := o.content.size()
	offset, length := int64(0), size
	if first, n, ranged := parseRange(q.Range, size); ranged {
		if n == 0 {
			return s.refuse(q, errInvalidRange)
		}
		offset, length = first, n
		a.status = http.StatusPartialContent
		a.header.Set("Content-Range", contentRange(offset, length, size))
	}
	a.offset, a.length = offset, length
	a.body = io.NewSectionReader(o.content, offset, length)
	return a
}

// describe sets the headers that an object's answers share.
func (s *Server) describe(h http.Header, o *stored) {
	request, _ := s.ids()
	h.Set("Server", "tencent-cos")
	h.Set("x-cos-request-id", request)
	h.Set("Accept-Ranges", "bytes")
	h.Set("ETag", o.ETag)
	h.Set("Last-Modified", o.LastModified.UTC().Format(http.TimeFormat))
	h.Set("Content-Type", "application/octet-stream")
	if !o.NoCRC {
		h.Set("x-cos-hash-crc64ecma", strconv.FormatUint(o.content.crc(), 10))
	}
	for name, value := range map[string]string{
		"Content-Type":        o.ContentType,
		"Content-Encoding":    o.ContentEncoding,
		"Content-Language":    o.ContentLanguage,
		"Content-Disposition": o.ContentDisposition,
		"Cache-Control":       o.CacheControl,
		"Expires":             o.Expires,
		"x-cos-version-id":    o.VersionID,
	} {
		if value != "" {
			h.Set(name, value)
		}
	}
	if o.StorageClass != "" && o.StorageClass != "STANDARD" {
		h.Set("x-cos-storage-class", o.StorageClass)
	}
	if o.Restored {
		until := o.LastModified.UTC().Add(7 * 24 * time.Hour).Format(http.TimeFormat)
		h.Set("x-cos-restore", fmt.Sprintf(`ongoing-request="false", expiry-date="%s"`, until))
	}
	for name, value := range o.Meta {
		h.Set("x-cos-meta-"+name, value)
	}
}

// matches reports whether a condition's list of ETags holds etag.
func matches(list, etag string) bool {
	for want := range strings.SplitSeq(list, ",") {
		if want = strings.TrimSpace(want); want == "*" || strings.Trim(want, `"`) == strings.Trim(etag, `"`) {
			return true
		}
	}
	return false
}

// parseRange reads a single byte range and cuts it to what is there; length 0
// means that nothing is. A header that is no single byte range is ignored
// (ranged is false), as RFC 9110 allows and COS does.
func parseRange(header string, size int64) (offset, length int64, ranged bool) {
	spec, ok := strings.CutPrefix(header, "bytes=")
	if !ok {
		return 0, 0, false
	}
	from, to, ok := strings.Cut(spec, "-")
	if !ok {
		return 0, 0, false
	}
	if from == "" { // the last n bytes
		n, err := strconv.ParseInt(to, 10, 64)
		if err != nil || n < 0 {
			return 0, 0, false
		}
		n = min(n, size)
		return size - n, n, true
	}
	first, err := strconv.ParseInt(from, 10, 64)
	if err != nil || first < 0 {
		return 0, 0, false
	}
	last := size - 1
	if to != "" {
		end, err := strconv.ParseInt(to, 10, 64)
		if err != nil || end < first {
			return 0, 0, false
		}
		last = min(end, last)
	}
	return first, max(last-first+1, 0), true
}

func contentRange(offset, length, size int64) string {
	return fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, size)
}
