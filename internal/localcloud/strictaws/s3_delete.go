package strictaws

import (
	"encoding/xml"
	"io"
	"net/http"
)

func (q *s3Request) deleteObject() *apiError {
	v, marker, err := q.c.deleteKey(q.bucket, q.key, q.query.Get("versionId"))
	if err != nil {
		return err
	}
	if marker {
		q.w.Header().Set("X-Amz-Delete-Marker", "true")
	}
	if v != "" {
		q.versionID = v
		q.w.Header().Set("X-Amz-Version-Id", v)
	}
	return q.ok(http.StatusNoContent, nil)
}

// deleteKey takes one version away, or the object; in a bucket with versions the
// latter only puts a marker there. Deleting what does not exist succeeds.
func (c *Cloud) deleteKey(bucket, key, id string) (versionID string, marker bool, err *apiError) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	b := c.store.buckets[bucket]
	if b == nil {
		return "", false, noSuchBucket()
	}
	if id != "" {
		v := b.find(key, id)
		b.remove(key, id)
		return id, v != nil && v.marker, nil
	}
	if b.versioning == "" {
		b.remove(key, "null")
		return "", false, nil
	}
	m := &version{id: c.versionID(), marker: true, modified: c.cfg.Now()}
	b.put(key, m)
	return m.id, true, nil
}

type deleteRequest struct {
	XMLName xml.Name `xml:"Delete"`
	Quiet   bool
	Objects []struct {
		Key       string
		VersionID string `xml:"VersionId"`
	} `xml:"Object"`
}

type deleteResult struct {
	XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ DeleteResult"`
	Deleted []deletedKey
	Errors  []deleteError `xml:"Error"`
}

type deletedKey struct {
	Key                   string
	VersionID             string `xml:"VersionId,omitempty"`
	DeleteMarker          bool   `xml:",omitempty"`
	DeleteMarkerVersionID string `xml:"DeleteMarkerVersionId,omitempty"`
}

type deleteError struct{ Key, Code, Message string }

func (q *s3Request) deleteObjects() *apiError {
	var in deleteRequest
	if err := q.readXML(&in, true); err != nil {
		return err
	}
	if len(in.Objects) == 0 || len(in.Objects) > 1000 {
		return malformedXML()
	}
	var out deleteResult
	for _, o := range in.Objects {
		row := logEntry{operation: "BATCH.DELETE.OBJECT", key: o.Key, status: http.StatusNoContent, once: true}
		if q.c.policy.denies(q.who, "s3:DeleteObject", q.bucket+"/"+o.Key) || q.who == anonymous {
			out.Errors = append(out.Errors, deleteError{o.Key, "AccessDenied", "Access Denied"})
			row.status, row.errCode = http.StatusForbidden, "AccessDenied"
			q.extra = append(q.extra, row)
			continue
		}
		v, marker, err := q.c.deleteKey(q.bucket, o.Key, o.VersionID)
		if err != nil {
			return err
		}
		row.version = v
		q.extra = append(q.extra, row)
		d := deletedKey{Key: o.Key, VersionID: o.VersionID, DeleteMarker: marker}
		if marker {
			d.DeleteMarkerVersionID = v
		}
		if !in.Quiet {
			out.Deleted = append(out.Deleted, d)
		}
	}
	return q.ok(http.StatusOK, out)
}

// readXML reads the request's body into v. Where S3 insists on a digest of the
// body, mustSum is set.
func (q *s3Request) readXML(v any, mustSum bool) *apiError {
	p, err := q.payload(algCRC64NVME)
	if err != nil {
		return err
	}
	if p.size > 2<<20 {
		return malformedXML()
	}
	got, err := p.receive()
	if err != nil {
		return err
	}
	if mustSum && !got.sent && p.md5 == nil {
		return badRequest("InvalidRequest", "Missing required header for this request: Content-MD5")
	}
	if e := xml.Unmarshal(got.bytes(), v); e != nil && e != io.EOF {
		return malformedXML()
	}
	return nil
}

func malformedXML() *apiError {
	return badRequest("MalformedXML", "The XML you provided was not well-formed or did not validate against our published schema")
}
