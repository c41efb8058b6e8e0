package copier

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/objectferry/objectferry/internal/object"
)

// refused judges a 403 of the source or of a write. The request ends "denied"
// only when a reference is let through after it; otherwise the dependency refuses
// us as a whole, and neither a revoked permission nor a stranger who asks for
// private keys may settle the requests of others.
func (c *Copier) refused(ctx context.Context, l *lane, key string, cause error) (result, error) {
	g, r := l.DestinationGuard, reference{try: l.Destination.WriteReference, last: &l.lastWrite}
	if fromSource(cause) {
		g, r = l.SourceGuard, reference{try: l.Source.Reference, last: &l.lastRead, named: l.Route.Source.Reference}
	}
	r.refused, r.probe = key, l.Route.ProbeKey()
	if err := g.Refused(ctx, cause, r.ask); err != nil {
		return result{}, err
	}
	return result{End: object.EndDenied}, nil
}

// reference asks whether other keys than the refused one are let through.
type reference struct {
	try     func(ctx context.Context, key string) error
	last    *atomic.Pointer[string] // the key that was last let through
	named   string                  // the key that the configuration names, or ""
	probe   string                  // a key that need not exist
	refused string
	asked   atomic.Bool
}

// ask returns nil when one of its keys is let through, or to have a message tried
// in its stead.
//
// Keys that are known to exist and to have been let through say most. A store may
// tell of a missing key and yet refuse all that exist, so at first the probe key
// counts only when there is no other. A gate that has closed asks again and
// again; then the probe key counts too, or a last key that was made private since
// would hold the source up for ever.
//
// A private bucket may refuse missing keys as well. Where no key is known, the
// gate closed on a stranger's private key would then stay closed, and none would
// ever be learnt. So when it asks again it is let open: it starts with one message
// at once, which is the trial, and if that is refused the next is further off.
func (r *reference) ask(ctx context.Context) error {
	var keys []string
	if last := r.last.Load(); last != nil && *last != r.refused {
		keys = append(keys, *last)
	}
	if r.named != "" && r.named != r.refused {
		keys = append(keys, r.named)
	}
	known, again := len(keys) > 0, r.asked.Swap(true)
	if again || !known {
		keys = append(keys, r.probe)
	}
	var errs []error
	for _, key := range keys {
		err := r.try(ctx, key)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	err := errors.Join(errs...)
	if again && !known && object.ClassOf(err) == object.Denied {
		return nil
	}
	return err
}
