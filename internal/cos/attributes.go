package cos

import (
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/objectferry/objectferry/internal/object"
)

const metaPrefix = "X-Cos-Meta-"

// attributes reads an object's headers. The size is the caller's to fill in. A
// weak ETag cannot be pinned and counts as none. Content-Disposition is not
// taken when COS's default domain forced it: it is not the object's then.
func attributes(h http.Header) object.Attributes {
	a := object.Attributes{
		ContentType:     h.Get("Content-Type"),
		ContentEncoding: list(h, "Content-Encoding"),
		ContentLanguage: list(h, "Content-Language"),
		CacheControl:    list(h, "Cache-Control"),
		Expires:         h.Get("Expires"),
		StorageClass:    h.Get("X-Cos-Storage-Class"),
	}
	if tag := h.Get("Etag"); strings.HasPrefix(tag, `"`) {
		a.ETag = tag
	}
	a.LastModified, _ = http.ParseTime(h.Get("Last-Modified"))
	if crc, err := strconv.ParseUint(h.Get("X-Cos-Hash-Crc64ecma"), 10, 64); err == nil {
		a.CRC64, a.HasCRC64 = crc, true
	}
	if _, forced := h["X-Cos-Force-Download"]; !forced {
		a.ContentDisposition = h.Get("Content-Disposition")
	}
	for name, values := range h {
		if len(name) > len(metaPrefix) && strings.EqualFold(name[:len(metaPrefix)], metaPrefix) {
			if a.Metadata == nil {
				a.Metadata = make(map[string]string)
			}
			a.Metadata[strings.ToLower(name[len(metaPrefix):])] = decode(strings.Join(values, ", "))
		}
	}
	return a
}

// list joins a header that may be given in several lines.
func list(h http.Header, name string) string { return strings.Join(h.Values(name), ", ") }

// decode reads a metadata value as UTF-8. Non-ASCII text is stored raw, as
// RFC 2047 words, or percent-encoded, which is how COS's own tools write it; a
// percent-encoded value that holds only ASCII is left alone, as it may be meant
// so. Bytes that are not UTF-8 are read as Latin-1, the old charset of headers.
func decode(value string) string {
	if !utf8.ValidString(value) {
		var b strings.Builder
		for i := range len(value) {
			b.WriteRune(rune(value[i]))
		}
		return b.String()
	}
	if strings.Contains(value, "=?") {
		if text, err := new(mime.WordDecoder).DecodeHeader(value); err == nil {
			return text
		}
	}
	if strings.Contains(value, "%") {
		if text, err := url.PathUnescape(value); err == nil && utf8.ValidString(text) && !isASCII(text) {
			return text
		}
	}
	return value
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
