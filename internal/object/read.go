package object

import "io"

// Read is an open ranged read of one object. Attributes.Size is the size of the
// whole object, Range the span that Body yields.
type Read struct {
	Attributes
	Range Range
	// Body yields exactly Range.Length bytes; a body that is shorter or longer
	// ends with an *Error of class Corrupt (wrong) or Unavailable (cut). Close it.
	Body io.ReadCloser
}

// Found is what stands at the destination under a key.
type Found struct {
	Attributes
	Exists  bool
	Deleted bool   // a delete marker stands there: deleted overseas on purpose
	CopyID  string // the random id of the copy that wrote it; "" when it was not objectferry
	// SourceETag and SourceCRC64 name the source's version that the copy carried; ""
	// when they are not known.
	SourceETag, SourceCRC64 string
}

// Provenance is kept in the metadata of what we write: where it came from.
type Provenance struct {
	CopyID       string // random, one a copy attempt; settles ambiguous writes
	ETag         string // the source's
	CRC64        string // the source's CRC-64/ECMA in decimal, "" when it has none
	LastModified string // the source's, RFC 3339
}
