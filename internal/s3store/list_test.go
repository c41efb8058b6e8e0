package s3store

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

const listingHead = "200 OK\nx-amz-request-id: R\nContent-Type: application/xml"

const listingPage = `<?xml version="1.0"?><ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>b</Name><EncodingType>url</EncodingType>
<KeyCount>2</KeyCount><IsTruncated>true</IsTruncated><NextContinuationToken>1/x=</NextContinuationToken>
<Contents><Key>img/a+b%2Bc%0A</Key><LastModified>2026-09-04T08:03:42.000Z</LastModified><ETag>&quot;e1&quot;</ETag><Size>7</Size></Contents>
<Contents><Key>img/%E6%B5%8B</Key><ETag>"e2"</ETag><Size>0</Size></Contents></ListBucketResult>`

func TestListedPageIsReadAsItIsWritten(t *testing.T) {
	s := serve(t, always(reply(listingHead, listingPage)))
	got, err := store(s).List(t.Context(), "img/", "img/&", "")
	if err != nil {
		t.Fatal(err)
	}
	want := object.Page{Next: "1/x=", Objects: []object.Listed{
		{Key: "img/a b+c\n", Size: 7, ETag: `"e1"`, LastModified: time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC)},
		{Key: "img/测", ETag: `"e2"`},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if q := s.last().URL.Query(); q.Get("prefix") != "img/" || q.Get("start-after") != "img/&" || q.Get("encoding-type") != "url" || q.Has("continuation-token") {
		t.Errorf("first page: asked %q", q)
	}
	if _, err := store(s).List(t.Context(), "img/", "img/&", got.Next); err != nil {
		t.Fatal(err)
	}
	if q := s.last().URL.Query(); q.Get("continuation-token") != "1/x=" || q.Has("start-after") {
		t.Errorf("second page: asked %q", q)
	}
}

// Rule 3: what is not authentically a whole listing is never an empty one, for
// then every key would be missing.
func TestWhatIsNotAListingIsNeverAnEmptyOne(t *testing.T) {
	without := func(text string) string { return strings.Replace(listingPage, text, "", 1) }
	for name, tt := range map[string]struct {
		answer string
		want   object.Class
		says   string
	}{
		"a page of something between": {page(200), object.Unavailable, "not S3's"},
		"a page with S3's id":         {reply(listingHead, "<html><body>Hello.</body></html>"), object.Corrupt, "not a listing"},
		"an empty body":               {reply(listingHead, ""), object.Corrupt, "not a listing"},
		"truncated XML":               {reply(listingHead, listingPage[:len(listingPage)-30]), object.Unavailable, ""},
		"it does not say if it ends":  {reply(listingHead, without("<IsTruncated>true</IsTruncated>")), object.Corrupt, "not a listing"},
		"it goes on nowhere":          {reply(listingHead, without("<NextContinuationToken>1/x=</NextContinuationToken>")), object.Corrupt, "not where"},
		"fewer keys than it says":     {reply(listingHead, strings.Replace(listingPage, "<KeyCount>2", "<KeyCount>3", 1)), object.Corrupt, "says 3"},
		"an entry without a key":      {reply(listingHead, without("<Key>img/%E6%B5%8B</Key>")), object.Corrupt, "entry 2"},
		"an entry without a size":     {reply(listingHead, without("<Size>7</Size>")), object.Corrupt, "entry 1"},
		"a bad escape":                {reply(listingHead, strings.Replace(listingPage, "%8B</Key>", "%zz</Key>", 1)), object.Corrupt, "listed key"},
		"no such bucket":              {coded(404, "NoSuchBucket", "m"), object.Refused, "NoSuchBucket"},
		"denied":                      {coded(403, "AccessDenied", "m"), object.Denied, hintPolicy},
		"slow down":                   {coded(503, "SlowDown", "m"), object.Throttled, "SlowDown"},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := store(serve(t, always(tt.answer))).List(t.Context(), "img/", "", "")
			if object.ClassOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) || len(page.Objects) > 0 {
				t.Errorf("%+v, %v; want class %s and %q", page, err, tt.want, tt.says)
			}
		})
	}
}
