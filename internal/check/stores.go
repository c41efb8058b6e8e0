package check

import (
	"context"
	"fmt"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/internal/s3store"
)

const (
	list = "s3:ListBucket"
	get  = "s3:GetObject"

	// unlisted is why reading cannot be tried without a list permission.
	unlisted = "S3 refuses every missing key to those who may not list"
)

// logPlace tries what reading logs needs, and deleting them.
func (l *live) logPlace(ctx context.Context, place config.Log, deletes bool) []Item {
	bucket := l.bucketARN(place)
	objects := bucket + "/" + place.Prefix + "*"
	reader := l.deps.Logs(place)
	first, err := firstKey(ctx, reader, place)
	items := []Item{tried(list, bucket, err)}
	if err != nil {
		items = append(items, notTried(get, objects, unlisted))
	} else {
		err := reader.Reference(ctx, place.Bucket)
		if err == nil && first != "" { // its owner or its key may have something against us
			err = readByte(ctx, reader, place.Bucket, first)
		}
		items = append(items, tried(get, objects, err))
	}
	if deletes {
		items = append(items, tried("s3:DeleteObject", objects, reader.DeleteReference(ctx, place.Bucket)))
	}
	return items
}

func (l *live) bucketARN(place config.Log) string {
	return "arn:" + partition(l.config.Region) + ":s3:::" + place.Bucket
}

// firstKey is a key that a listing of the place tells, "" of an empty one.
func firstKey(ctx context.Context, reader logs, place config.Log) (string, error) {
	for o, err := range reader.List(ctx, place.Bucket, place.Prefix, "") {
		return o.Key, err
	}
	return "", nil
}

func readByte(ctx context.Context, reader logs, bucket, key string) error {
	read, err := reader.Read(ctx, bucket, key, object.Range{Length: 1}, "")
	if object.ClassOf(err) == object.Absent { // it was read and deleted meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	return read.Body.Close()
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

// destination tries what looking needs, and writing. Last, a write is begun and
// thrown away: a multipart upload asks for the same key grants as any write and
// leaves nothing visible. It is not begun by who may not throw it away.
func (l *live) destination(ctx context.Context, r *route.Route, writes bool) []Item {
	bucket := "arn:" + partition(r.Destination.Region) + ":s3:::" + r.Bucket
	objects := bucket + "/*"
	d := l.deps.Destinations(r)
	_, err := d.List(ctx, r.ProbeKey(), "", "")
	items := []Item{tried(list, bucket, err)}
	if err != nil {
		items = append(items, notTried(get, objects, unlisted))
	} else {
		items = append(items, tried(get, objects, d.ReadReference(ctx)))
	}
	if !writes {
		return items
	}
	const put, encrypt = "s3:PutObject", "kms:GenerateDataKey"
	abort, write := d.AbortReference(ctx, r.ProbeKey()), d.PartReference(ctx, r.ProbeKey())
	if abort == nil && object.ClassOf(write) != object.Denied {
		write = d.WriteReference(ctx, r.ProbeKey())
	}
	items = append(items, tried("s3:AbortMultipartUpload", objects, abort))
	switch {
	case s3store.RefusedByKey(write): // so S3 has let us in
		return append(items, tried(put, objects, nil), tried(encrypt, r.Destination.KMSKey, write))
	case abort != nil && write != nil && object.ClassOf(write) != object.Denied: // an emulator may not know what a part of nothing is
		return append(items, notTried(put, objects, "what is begun could not be thrown away"))
	}
	items = append(items, tried(put, objects, write))
	if r.Destination.SSE == config.SSEKMS && abort == nil && write == nil {
		items = append(items, tried(encrypt, r.Destination.KMSKey, nil),
			notTried("kms:Decrypt", r.Destination.KMSKey, "is asked for when the parts of an upload are put together"))
	}
	return items
}
