package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/s3store"
)

// logPlace tries what reading logs needs.
func (l *live) logPlace(ctx context.Context, place config.Log) []Item {
	bucket := "arn:" + partition(l.config.Region) + ":s3:::" + place.Bucket
	objects := bucket + "/" + place.Prefix + "*"
	reader := l.deps.Logs(place)
	// S3 says of a missing key that it is missing only to those who may list.
	items := []Item{tried("s3:ListBucket", bucket, reader.Reference(ctx, place.Bucket))}

	const get = "s3:GetObject"
	found, err := reader.First(ctx, place.Bucket, place.Prefix)
	switch {
	case err != nil:
		items = append(items, tried(get, objects, err))
	case found:
		items = append(items, tried(get, objects, nil))
	default:
		items = append(items, notTried(get, objects, "there is no log object yet to read a byte of"))
	}
	if place.WhenDone == config.WhenDoneDelete {
		items = append(items, notTried("s3:DeleteObject", objects, "would change something"))
	}
	return items
}

// source tries to read from COS as the copier will.
func (l *live) source(ctx context.Context, r *route.Route) []Item {
	const needs = "cos:GetObject"
	s, err := l.deps.Sources(r)
	if err != nil {
		return []Item{tried(needs, r.Source.COS, err)}
	}
	key := r.Source.Reference
	if key == "" {
		key = r.ProbeKey()
	}
	err = s.Reference(ctx, key)
	if c := object.ClassOf(err); r.Source.Reference == "" && (c == object.Denied || c == object.Refused) {
		err = fmt.Errorf("%w (a key that does not exist was asked for; where only some may be read, name one as source.reference)", err)
	}
	return []Item{tried(needs, r.Source.COS+"/"+key, err)}
}

// destination tries what looking and writing need. The write is begun and thrown
// away: a multipart upload asks for the same permissions and key grants as any
// write and leaves nothing visible.
func (l *live) destination(ctx context.Context, r *route.Route) []Item {
	bucket := "arn:" + partition(r.Destination.Region) + ":s3:::" + r.Bucket
	d := l.deps.Destinations(r)
	needs := []string{"s3:PutObject", "s3:AbortMultipartUpload"}
	if r.Destination.SSE == config.SSEKMS {
		needs = append(needs, "kms:GenerateDataKey")
	}
	return []Item{
		tried("s3:ListBucket, s3:GetObject", bucket, d.ReadReference(ctx)),
		tried(strings.Join(needs, ", "), bucket+"/*", d.WriteReference(ctx, r.ProbeKey())),
	}
}

// logReader adds to the service's reader what only a check asks.
type logReader struct{ *s3store.LogStore }

func (l logReader) First(ctx context.Context, bucket, prefix string) (bool, error) {
	for o, err := range l.List(ctx, bucket, prefix, "") {
		if err != nil {
			return false, err
		}
		read, err := l.Read(ctx, bucket, o.Key, object.Range{Length: 1}, "")
		if err != nil {
			return false, err
		}
		return true, read.Body.Close()
	}
	return false, nil
}
