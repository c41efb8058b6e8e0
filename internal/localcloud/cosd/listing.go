package cosd

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type listedObject struct {
	Key, LastModified, ETag string
	Size                    int64
	StorageClass            string
}

type listBucketResult struct {
	XMLName              xml.Name `xml:"ListBucketResult"`
	Name, Prefix, Marker string
	MaxKeys              int
	IsTruncated          bool
	NextMarker           string         `xml:",omitempty"`
	Contents             []listedObject `xml:"Contents"`
}

// listing is GET Bucket: the first keys in order, with prefix, marker and
// max-keys but without a delimiter.
func (s *Server) listing(q *Request) *answer {
	v := q.http.URL.Query()
	most, err := strconv.Atoi(v.Get("max-keys"))
	if err != nil || most < 0 || most > 1000 {
		most = 1000
	}
	list := listBucketResult{Name: s.bucket, Prefix: v.Get("prefix"), Marker: v.Get("marker"), MaxKeys: most}
	for _, key := range s.Keys() {
		o := s.store.get(key)
		if o == nil || !strings.HasPrefix(key, list.Prefix) || key <= list.Marker && list.Marker != "" {
			continue
		}
		if len(list.Contents) == most {
			list.IsTruncated = true
			break
		}
		class := o.StorageClass
		if class == "" {
			class = "STANDARD"
		}
		list.NextMarker = key
		list.Contents = append(list.Contents, listedObject{
			Key: key, ETag: o.ETag, Size: o.content.size(), StorageClass: class,
			LastModified: o.LastModified.UTC().Format(time.RFC3339),
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
