package object

import (
	"fmt"
	"time"
)

// MaxKey is the longest key that S3 holds, in bytes.
const MaxKey = 1024

// Attributes are what an object carries besides its bytes. Header values are as
// the store sent them.
type Attributes struct {
	Size         int64
	ETag         string // with its quotes, as sent; pins one version
	LastModified time.Time
	CRC64        uint64 // COS's CRC-64/ECMA of the whole object
	HasCRC64     bool   // some old objects have none: unknown, not wrong
	StorageClass string // as the store calls it, "" is its standard class; it does not travel

	ContentType        string
	ContentEncoding    string
	ContentLanguage    string
	ContentDisposition string
	CacheControl       string
	Expires            string            // as sent; S3 keeps it as text
	Metadata           map[string]string // user metadata, keys lower-case without vendor prefix, values decoded (UTF-8)
}

// Range is a span of bytes: Length bytes from Offset.
type Range struct{ Offset, Length int64 }

// Header is the value of an HTTP Range header.
func (r Range) Header() string {
	return fmt.Sprintf("bytes=%d-%d", r.Offset, r.Offset+r.Length-1)
}
