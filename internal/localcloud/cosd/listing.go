package cosd

import (
	"encoding/xml"
	"net/http"
	"strconv"
)

type listedObject struct {
	Key, LastModified, ETag string
	Size                    int64
	StorageClass            string
}

type listBucketResult struct {
	XMLName              xml.Name `xml:"ListBucketResult"`
	EncodingType         string   `xml:",omitempty"`
	Name, Prefix, Marker string
	MaxKeys              int
	IsTruncated          bool
	NextMarker           string         `xml:",omitempty"`
	Contents             []listedObject `xml:"Contents"`
}

// listing is GET Bucket: the keys after marker in the order of their bytes, with
// prefix, max-keys and encoding-type, but without a delimiter. NextMarker is the
// last key that was told.
func (s *Server) listing(q *Request) *answer {
	v := q.http.URL.Query()
	most, err := strconv.Atoi(v.Get("max-keys"))
	if err != nil || most < 0 || most > 1000 {
		most = 1000
	}
	text := func(s string) string { return s }
	if v.Get("encoding-type") == "url" {
		text = encode
	}
	prefix, marker := v.Get("prefix"), v.Get("marker")
	list := listBucketResult{EncodingType: v.Get("encoding-type"), Name: s.bucket, Prefix: text(prefix), Marker: text(marker), MaxKeys: most}
	for key, o := range s.store.after(prefix, marker) {
		if len(list.Contents) == most {
			list.IsTruncated = most > 0
			break
		}
		class := o.StorageClass
		if class == "" {
			class = "STANDARD"
		}
		list.NextMarker = text(key)
		list.Contents = append(list.Contents, listedObject{
			Key: text(key), ETag: o.ETag, Size: o.content.size(), StorageClass: class,
			LastModified: o.LastModified.UTC().Format("2006-01-02T15:04:05.000Z"),
		})
	}
	if !list.IsTruncated {
		list.NextMarker = ""
	}
	body, err := xml.Marshal(list)
	if err != nil { // only strings and numbers: cannot happen
		panic(err)
	}
	request, _ := s.ids()
	a := newAnswer(http.StatusOK)
	a.header.Set("Server", "tencent-cos")
	a.header.Set("x-cos-request-id", request)
	a.header.Set("Content-Type", "application/xml")
	a.set(append([]byte(xml.Header), body...))
	return a
}
