package cos

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

const listingHead = "200 OK\nx-cos-request-id: R\nContent-Type: application/xml"

const listingPage = `<?xml version="1.0"?><ListBucketResult><Name>media-1250000000</Name><EncodingType>url</EncodingType><Prefix>img%2F</Prefix>
<IsTruncated>true</IsTruncated><NextMarker>img%2F%FFb</NextMarker>
<Contents><Key>img%2Fa%20b%2Bc+d%0A</Key><LastModified>2026-09-04T08:03:42.000Z</LastModified><ETag>&quot;e1&quot;</ETag><Size>7</Size><StorageClass>STANDARD</StorageClass></Contents>
<Contents><Key>img%2F%FFb</Key><LastModified>when?</LastModified><ETag>"e2"</ETag><Size>0</Size><StorageClass>DEEP_ARCHIVE</StorageClass></Contents>
</ListBucketResult>`

func TestListedPageIsReadAsItIsWritten(t *testing.T) {
	s := serve(t, always(reply(listingHead, listingPage)))
	source := anonymous(t, s.URL)
	got, err := source.List(t.Context(), "img/", "img/\x01&?", "")
	if err != nil {
		t.Fatal(err)
	}
	want := object.Page{Next: "img/\xffb", Objects: []object.Listed{
		{Key: "img/a b+c d\n", Size: 7, ETag: `"e1"`, LastModified: time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC)},
		{Key: "img/\xffb", ETag: `"e2"`, Archived: true},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	if _, err := source.List(t.Context(), "img/", "img/\x01&?", got.Next); err != nil {
		t.Fatal(err)
	}
	for i, marker := range []string{"img/\x01&?", "img/\xffb"} {
		q := s.asked()[i].URL.Query()
		if q.Get("prefix") != "img/" || q.Get("marker") != marker || q.Get("encoding-type") != "url" {
			t.Errorf("request %d asked %q", i, q)
		}
	}
}

// A page that is not encoded says so by not saying that it is.
func TestListedKeyThatIsNotEncodedIsTakenAsItIs(t *testing.T) {
	page := strings.Replace(listingPage, "<EncodingType>url</EncodingType>", "", 1)
	got, err := anonymous(t, serve(t, always(reply(listingHead, page))).URL).List(t.Context(), "", "", "")
	if err != nil || got.Objects[0].Key != "img%2Fa%20b%2Bc+d%0A" || got.Next != "img%2F%FFb" {
		t.Errorf("%+v, %v", got, err)
	}
}

// Rule 3: what is not authentically a whole listing is never an empty one.
func TestWhatIsNotAListingIsNeverAnEmptyOne(t *testing.T) {
	without := func(text string) string { return strings.Replace(listingPage, text, "", 1) }
	for name, tt := range map[string]struct {
		answer string
		want   object.Class
		says   string
	}{
		"a page of something between": {reply("200 OK\nContent-Type: text/html", "<html><body>Please log in.</body></html>"), object.Unavailable, "not COS's"},
		"a page with COS's id":        {reply(listingHead, "<html><body>Hello.</body></html>"), object.Unavailable, "not a whole listing"},
		"an empty body":               {reply(listingHead, ""), object.Unavailable, "not a whole listing"},
		"truncated XML":               {reply(listingHead, listingPage[:len(listingPage)-30]), object.Unavailable, "not a whole listing"},
		"an object":                   {reply(listingHead+"\nETag: \"e\"", "picture"), object.Unavailable, "not a whole listing"},
		"it does not say if it ends":  {reply(listingHead, without("<IsTruncated>true</IsTruncated>")), object.Corrupt, "whether it goes on"},
		"it goes on nowhere":          {reply(listingHead, without("<NextMarker>img%2F%FFb</NextMarker>")), object.Corrupt, "not where"},
		"an entry without a key":      {reply(listingHead, without("<Key>img%2F%FFb</Key>")), object.Corrupt, "entry 2"},
		"an entry without a size":     {reply(listingHead, without("<Size>7</Size>")), object.Corrupt, "entry 1"},
		"a bad escape":                {reply(listingHead, strings.Replace(listingPage, "%FFb</Key>", "%zz</Key>", 1)), object.Corrupt, "listed key"},
		"a redirect":                  {reply("302 Found\nx-cos-request-id: R\nLocation: /elsewhere", ""), object.Unavailable, "redirects"},
		"no content":                  {reply("204 No Content\nx-cos-request-id: R", ""), object.Unavailable, "http 204"},
		"a 404 that is not COS's":     {reply("404 Not Found\nContent-Length: 0", ""), object.Unavailable, "not COS's"},
		"no such bucket":              {reply("404 Not Found\nx-cos-request-id: R", "<Error><Code>NoSuchBucket</Code></Error>"), object.Refused, "NoSuchBucket"},
		"slow down":                   {reply("503 Slow Down\nx-cos-request-id: R", "<Error><Code>SlowDown</Code></Error>"), object.Throttled, "SlowDown"},
		"a cut connection":            {"", object.Unavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			page, err := anonymous(t, serve(t, always(tt.answer)).URL).List(t.Context(), "img/", "", "")
			if object.ClassOf(err) != tt.want || !strings.Contains(err.Error(), tt.says) || len(page.Objects) > 0 {
				t.Errorf("%+v, %v; want class %s and %q", page, err, tt.want, tt.says)
			}
		})
	}
}

func TestRefusedListingSaysWhatToDo(t *testing.T) {
	denied := reply("403 Forbidden\nx-cos-request-id: R", "<Error><Code>AccessDenied</Code></Error>")
	source := anonymous(t, serve(t, always(denied)).URL)
	_, err := source.List(t.Context(), "", "", "")
	var e *object.Error
	if !errors.As(err, &e) || e.Class != object.Denied || !strings.Contains(e.Hint, "strangers may not list") {
		t.Errorf("anonymous: %v", err)
	}
	source.signed = true
	if _, err = source.List(t.Context(), "", "", ""); !errors.As(err, &e) || !strings.Contains(e.Hint, "cos:GetBucket") {
		t.Errorf("signed: %v", err)
	}
}

func TestInterruptedListingIsOurOwnDoing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(*http.Request) string { cancel(); return reply(listingHead, listingPage[:50]) })
	if _, err := anonymous(t, s.URL).List(ctx, "", "", ""); object.ClassOf(err) != object.Canceled {
		t.Errorf("%v", err)
	}
}
