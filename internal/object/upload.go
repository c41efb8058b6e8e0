package object

import "context"

// Upload is one multipart upload. Parts may be written concurrently.
type Upload interface {
	// Part writes part n, from 1. A part may be written again under its number.
	Part(ctx context.Context, n int, body []byte) error
	// Complete makes the object visible, create-only; errors as for a whole
	// write. All parts from 1 on must have been written.
	Complete(ctx context.Context) error
	// Abort throws the parts away; an upload that is gone is no error.
	Abort(ctx context.Context) error
}
