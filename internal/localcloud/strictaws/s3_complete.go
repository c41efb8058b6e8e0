package strictaws

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
)

type completeRequest struct {
	XMLName xml.Name       `xml:"CompleteMultipartUpload"`
	Parts   []completePart `xml:"Part"`
}

type completePart struct {
	PartNumber        int
	ETag              string
	ChecksumCRC32     string
	ChecksumCRC32C    string
	ChecksumCRC64NVME string
	ChecksumSHA1      string
	ChecksumSHA256    string
}

func (p completePart) checksum(a algorithm) string {
	switch a {
	case algCRC32:
		return p.ChecksumCRC32
	case algCRC32C:
		return p.ChecksumCRC32C
	case algSHA1:
		return p.ChecksumSHA1
	case algSHA256:
		return p.ChecksumSHA256
	default:
		return p.ChecksumCRC64NVME
	}
}

type completeResult struct {
	XMLName           xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUploadResult"`
	Location          string
	Bucket, Key, ETag string
	ChecksumCRC32     string `xml:",omitempty"`
	ChecksumCRC32C    string `xml:",omitempty"`
	ChecksumCRC64NVME string `xml:",omitempty"`
	ChecksumSHA1      string `xml:",omitempty"`
	ChecksumSHA256    string `xml:",omitempty"`
	ChecksumType      string
}

// completeUpload makes the object of an upload's parts. Its checksum header is of
// the object, not of the request's body.
func (q *s3Request) completeUpload() *apiError {
	want, err := sentChecksum(q.r.Header)
	if err != nil {
		return err
	}
	for _, a := range algorithms() {
		q.r.Header.Del(a.header())
	}
	var in completeRequest
	if err := q.readXML(&in, false); err != nil {
		return err
	}
	s := q.c.store
	s.mu.Lock()
	v, err := q.complete(in, want)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	q.c.announce(q.bucket, q.key, v, "ObjectCreated:CompleteMultipartUpload", q)
	q.objectSize = v.body.size
	q.nameVersion(v)
	q.w.Header().Set(headerSSE, v.header.Get(headerSSE))
	out := completeResult{Location: "http://" + q.r.Host + "/" + q.bucket + "/" + escape(q.key, "/"),
		Bucket: q.bucket, Key: q.key, ETag: v.etag, ChecksumType: v.sum.kind}
	switch v.sum.alg {
	case algCRC32:
		out.ChecksumCRC32 = v.sum.value
	case algCRC32C:
		out.ChecksumCRC32C = v.sum.value
	case algCRC64NVME:
		out.ChecksumCRC64NVME = v.sum.value
	case algSHA1:
		out.ChecksumSHA1 = v.sum.value
	case algSHA256:
		out.ChecksumSHA256 = v.sum.value
	}
	return q.ok(http.StatusOK, out)
}

// complete checks everything and commits, under the store's lock.
func (q *s3Request) complete(in completeRequest, want checksum) (*version, *apiError) {
	b, u, err := q.upload()
	if err != nil {
		return nil, err
	}
	if usesKMS(u.header) && q.c.policy.denies(q.who, "kms:Decrypt", q.bucket+"/"+q.key) {
		return nil, accessDenied()
	}
	parts, err := q.chosenParts(in, u)
	if err != nil {
		return nil, err
	}
	if err := q.writePreconditions(b.live(q.key)); err != nil {
		return nil, err
	}
	v := &version{header: u.header, etag: multipartETag(parts), id: q.c.versionID(), modified: q.c.cfg.Now()}
	for _, p := range parts {
		v.body.size += p.size
		v.body.gone = v.body.gone || p.gone
		v.body.parts = append(v.body.parts, p.blob.parts...)
	}
	v.sum = partsChecksum(u.sum, parts)
	if want.value != "" && (want.alg != v.sum.alg || want.value != v.sum.value) {
		return nil, badRequest("BadDigest", "The "+string(want.alg)+" you specified did not match the calculated checksum.")
	}
	if n := q.r.Header.Get("X-Amz-Mp-Object-Size"); n != "" && n != strconv.FormatInt(v.body.size, 10) {
		return nil, badRequest("InvalidRequest", "The provided 'x-amz-mp-object-size' header does not match what was computed.")
	}
	if v.body.gone {
		v.body.parts = nil
	}
	b.put(q.key, v)
	delete(b.uploads, u.id)
	return v, nil
}

func (q *s3Request) chosenParts(in completeRequest, u *upload) ([]*part, *apiError) {
	if len(in.Parts) == 0 || len(in.Parts) > maxParts {
		return nil, malformedXML()
	}
	var parts []*part
	for i, c := range in.Parts {
		if i > 0 && c.PartNumber <= in.Parts[i-1].PartNumber {
			return nil, badRequest("InvalidPartOrder", "The list of parts was not in ascending order. Parts must be ordered by part number.")
		}
		p := u.parts[c.PartNumber]
		sum := c.checksum(u.sum.alg)
		if p == nil || !etagIn(c.ETag, p.etag) || sum != "" && sum != p.sum.value {
			return nil, badRequest("InvalidPart", "One or more of the specified parts could not be found. The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.")
		}
		if u.sum.kind == composite && sum == "" && p.sent {
			return nil, badRequest("InvalidRequest", "The upload was created using a "+string(u.sum.alg)+" checksum. The complete request must include the checksum for each part.")
		}
		if i < len(in.Parts)-1 && p.size < q.c.cfg.MinPartSize {
			e := badRequest("EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
			e.Fields = map[string]string{"PartNumber": strconv.Itoa(c.PartNumber), "ProposedSize": strconv.FormatInt(p.size, 10),
				"MinSizeAllowed": strconv.FormatInt(q.c.cfg.MinPartSize, 10)}
			return nil, e
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// partsChecksum is the object's checksum out of those of its parts.
func partsChecksum(c checksum, parts []*part) checksum {
	if c.kind == composite {
		h := c.alg.new()
		for _, p := range parts {
			b, _ := base64.StdEncoding.DecodeString(p.sum.value)
			h.Write(b)
		}
		c.value = fmt.Sprintf("%s-%d", encodeSum(h.Sum(nil)), len(parts))
		return c
	}
	var crc uint64
	width := c.alg.size() * 8
	for i, p := range parts {
		if i == 0 {
			crc = p.raw
		} else {
			crc = combineCRC(c.alg.poly(), width, crc, p.raw, p.size)
		}
	}
	sum := binary.BigEndian.AppendUint64(nil, crc)
	c.value = encodeSum(sum[8-c.alg.size():])
	return c
}
