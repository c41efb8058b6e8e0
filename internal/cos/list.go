package cos

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/tencentyun/cos-go-sdk-v5"

	"github.com/objectferry/objectferry/internal/object"
)

const opList = "GetBucket"

// maxListing bounds a page in bytes: a thousand keys of 850 bytes, each written
// as three characters and with what is told of it, take a quarter of it.
const maxListing = 16 << 20

// listed is a page as COS writes it. What it always writes are pointers, so that
// a page of something else is not taken for an empty listing.
type listed struct {
	XMLName      xml.Name `xml:"ListBucketResult"`
	EncodingType string
	IsTruncated  *bool
	NextMarker   string
	Contents     []struct {
		Key          string
		Size         *int64
		ETag         string
		LastModified string
		StorageClass string
	}
}

// List returns a page of the keys that begin with prefix, in the order in which
// COS lists them: the first page is of the keys after the key after, a further
// one begins at next, the Next of the page before. It takes cos:GetBucket, and of
// a bucket that is read anonymously that strangers may list it.
func (s *Source) List(ctx context.Context, prefix, after, next string) (object.Page, error) {
	if next == "" {
		next = after
	}
	// The SDK's own call takes an empty body, or any other XML, for an empty bucket.
	query := url.Values{"encoding-type": {"url"}, "max-keys": {"1000"}}
	for name, value := range map[string]string{"prefix": prefix, "marker": next} {
		if value != "" {
			query.Set(name, value)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.base.String()+"/?"+query.Encode(), nil)
	if err != nil {
		return object.Page{}, fmt.Errorf("list COS: %w", err)
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := s.http.Do(req)
	if err != nil {
		return object.Page{}, classify(ctx, opList, prefix, nil, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return object.Page{}, s.unlisted(classify(ctx, opList, prefix, resp, told(resp)))
	}
	fail := func(class object.Class, format string, args ...any) (object.Page, error) {
		return object.Page{}, &object.Error{Side: object.Source, Op: opList, Key: prefix, Class: class, Code: status(resp.StatusCode), Err: fmt.Errorf(format, args...)}
	}
	if !authentic(resp.Header) {
		return object.Page{}, notCOS(opList, prefix, resp)
	}
	var list listed
	if err := xml.NewDecoder(io.LimitReader(resp.Body, maxListing)).Decode(&list); err != nil {
		if class, interrupted := object.Interrupted(ctx); interrupted {
			return fail(class, "%w", err)
		}
		return fail(object.Unavailable, "the answer is not a whole listing: %w", err)
	}
	if list.IsTruncated == nil {
		return fail(object.Corrupt, "the listing does not say whether it goes on")
	}
	page, err := list.page()
	if err != nil {
		return fail(object.Corrupt, "%w", err)
	}
	if *list.IsTruncated && page.Next == "" {
		return fail(object.Corrupt, "the listing goes on, but says not where")
	}
	return page, nil
}

// page decodes what was listed. Keys come percent-encoded, because that was asked
// for, unless the listing does not say so.
func (l *listed) page() (object.Page, error) {
	decode := func(s string) (string, error) { return s, nil }
	if l.EncodingType == "url" {
		decode = sdk.DecodeURIComponent
	}
	var page object.Page
	var err error
	if *l.IsTruncated {
		if page.Next, err = decode(l.NextMarker); err != nil {
			return page, fmt.Errorf("read NextMarker: %w", err)
		}
	}
	page.Objects = make([]object.Listed, len(l.Contents))
	for i, c := range l.Contents {
		key, err := decode(c.Key)
		switch {
		case err != nil:
			return page, fmt.Errorf("read a listed key: %w", err)
		case key == "" || c.Size == nil || *c.Size < 0:
			return page, fmt.Errorf("entry %d has no key or no size", i+1)
		}
		modified, _ := time.Parse(time.RFC3339, c.LastModified) // zero when it is not told
		page.Objects[i] = object.Listed{Key: key, Size: *c.Size, ETag: c.ETag, LastModified: modified, Archived: archived(c.StorageClass)}
	}
	return page, nil
}

// told reads what an answer says is wrong, in the SDK's form.
func told(resp *http.Response) error {
	e := &sdk.ErrorResponse{Response: resp}
	if err := xml.NewDecoder(resp.Body).Decode(e); err != nil {
		e.Code = "" // a status is all that is known
	}
	return e
}

// unlisted adds to a refused listing what to do.
func (s *Source) unlisted(err error) error {
	var e *object.Error
	if errors.As(err, &e) && e.Class == object.Denied {
		e.Hint = "the credentials need cos:GetBucket on the bucket to list it; or name the keys in a file"
		if !s.signed {
			e.Hint = "strangers may not list this bucket; name the keys in a file, or read the source signed"
		}
	}
	return err
}

// archived reports whether objects of a storage class must be restored to be read.
// A listing does not tell of one that has been.
func archived(class string) bool { return strings.HasSuffix(class, "ARCHIVE") }
