package copier

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/crc64"
	"strconv"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

// putWhole writes an object that one part holds, and that was verified as it was
// read. One PUT keeps the ETag equal to the source's, so a CDN's revalidation still
// answers 304 when its origin changes.
func (c *Copier) putWhole(ctx context.Context, l *lane, key string, o *opened, p object.Provenance) (result, error) {
	body := o.block.bytes()
	r, err := c.commit(ctx, l, key, p.CopyID, func(ctx context.Context) error {
		err := l.DestinationGuard.Do(ctx, "PutObject", o.Size, func(ctx context.Context) error {
			return l.Destination.Put(ctx, key, body, o.Attributes, p)
		})
		if err != nil {
			o.block.spoil()
		}
		return err
	})
	return r.of(o.Attributes), err
}

// of adds what is known of the source to a result.
func (r result) of(a object.Attributes) result {
	r.size, r.unverified = a.Size, r.End == object.EndCopied && !a.HasCRC64
	return r
}

// newProvenance says where a copy comes from, with an id of its own.
func newProvenance(a object.Attributes) object.Provenance {
	p := object.Provenance{CopyID: rand.Text(), ETag: a.ETag}
	if a.HasCRC64 {
		p.CRC64 = strconv.FormatUint(a.CRC64, 10)
	}
	if !a.LastModified.IsZero() {
		p.LastModified = a.LastModified.UTC().Format(time.RFC3339)
	}
	return p
}

// sum is the CRC-64/ECMA of b, as COS computes it.
func sum(b []byte) uint64 { return crc64.Checksum(b, crc64.MakeTable(crc64.ECMA)) }

// verify holds the bytes' sum against the source's. Some old objects have none.
func verify(key string, a object.Attributes, got uint64) error {
	if a.HasCRC64 && got != a.CRC64 {
		return corrupt(key, fmt.Errorf("CRC-64 is %d, the source says %d", got, a.CRC64))
	}
	return nil
}
