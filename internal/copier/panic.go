package copier

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/objectferry/objectferry/internal/object"
)

// catch runs do, and makes a panic of it an error of this object. It is for the
// copier's own goroutines: above a delivery's stands the queue, above these
// nothing, and a panic would end the process and all other copies with it. Only
// its type is told, for its value may quote a body.
func (c *Copier) catch(ctx context.Context, op, key string, do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			c.tel.Log.Error().Ctx(ctx).Str("op", op).Str("panic", fmt.Sprintf("%T", r)).Bytes("stack", debug.Stack()).Msg("copy panicked")
			err = &object.Error{Side: "copier", Op: op, Key: key, Class: object.Unknown, Err: fmt.Errorf("panic of type %T", r)}
		}
	}()
	return do()
}
