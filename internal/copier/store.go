package copier

import (
	"context"

	"github.com/objectferry/objectferry/internal/object"
)

// Source is where objects come from; internal/cos implements it. All errors are
// *object.Error with Side object.Source.
type Source interface {
	// Get opens one ranged read. pin is the ETag that must match, "" on the first
	// read. A range that begins at 0 and reaches past the end is cut to what is
	// there; an empty object answers with a Read of length 0. The answer is
	// authentically the vendor's or it is an error of class Unavailable.
	Get(ctx context.Context, key string, r object.Range, pin string) (*object.Read, error)
	// Reference reads one byte of key, which need not exist, and returns nil when
	// it is let through: an object's answer or an authentic "no such key". It
	// takes the answer's body along, so the code of a refusal is known.
	Reference(ctx context.Context, key string) error
}

// Destination is where objects go; internal/s3store implements it. All errors
// are *object.Error with Side object.Destination. Writes are create-only.
type Destination interface {
	// Head says what stands under key. A missing key is not an error; Denied is one
	// that is refused and not listed either.
	Head(ctx context.Context, key string) (object.Found, error)
	// Put writes a whole object of at most 5 GiB from memory; S3 verifies a
	// checksum of body on the way in. Class Exists on 412; Ambiguous when it is
	// not known whether the write was committed (timeout, reset, 409, a 200
	// without an ETag); Mangled when it was, and S3 names another checksum.
	Put(ctx context.Context, key string, body []byte, a object.Attributes, p object.Provenance) error
	// Begin starts a multipart upload with the attributes that the object will have.
	Begin(ctx context.Context, key string, a object.Attributes, p object.Provenance) (Upload, error)
	// ReadReference asks for a key that does not exist: nil when S3 says NoSuchKey
	// (we may list), an error when it says 403.
	ReadReference(ctx context.Context) error
	// WriteReference starts a multipart upload and aborts it, which needs the same
	// permissions and key grants as a write and leaves nothing visible.
	WriteReference(ctx context.Context, key string) error
}

// Upload is one multipart upload. It stands in package object because the
// adapters, which return it, know no other package of ours.
type Upload = object.Upload
