package object

import "time"

// Listed is one entry of a listing.
type Listed struct {
	Key          string // decoded; any bytes
	Size         int64
	ETag         string // with its quotes
	LastModified time.Time
	Archived     bool // its storage class is one whose objects must be restored to be read
}

// Page is one answer of a listing.
type Page struct {
	Objects []Listed
	// Next is where the next page begins, "" after the last. It means something to
	// the store that gave it only.
	Next string
}
