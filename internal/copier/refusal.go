package copier

import (
	"context"
	"errors"
	"fmt"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
)

// refused judges a 403 of the source or of a write. The request ends "denied"
// only when a reference is let through after it; otherwise the dependency refuses
// us as a whole, and neither a revoked permission nor a stranger who asks for
// private keys may settle the requests of others.
func (c *Copier) refused(ctx context.Context, l *lane, key string, cause error) (result, error) {
	var err error
	if fromSource(cause) {
		err = judge(ctx, l.SourceGuard, cause, func(ctx context.Context) error { return l.readReference(ctx, key) })
	} else {
		err = judge(ctx, l.DestinationGuard, cause, func(ctx context.Context) error { return l.writeReference(ctx, key) })
	}
	if err != nil {
		return result{}, err
	}
	return result{End: object.EndDenied}, nil
}

// judge returns nil when cause is about one object alone, and an error of
// guard.ErrClosed when it is about the whole dependency.
func judge(ctx context.Context, g Guard, cause error, reference func(context.Context) error) error {
	whole, err := g.Refused(ctx, cause, reference)
	switch {
	case whole:
		return fmt.Errorf("%w: %w", guard.ErrClosed, cause)
	case err != nil:
		return fmt.Errorf("read a reference: %w", err)
	}
	return nil
}

// readReference is let through when another object of the source is. Keys that
// are known to be readable say most. A key that does not exist says less, because
// a source may tell of a missing key and yet refuse all that exist, so it is
// asked for only when no other is known.
func (l *lane) readReference(ctx context.Context, refused string) error {
	var keys []string
	if last := l.lastRead.Load(); last != nil && *last != refused {
		keys = append(keys, *last)
	}
	if named := l.route.Source.Reference; named != "" && named != refused {
		keys = append(keys, named)
	}
	if len(keys) == 0 {
		keys = append(keys, l.route.ProbeKey())
	}
	var errs []error
	for _, key := range keys {
		err := l.Source.Reference(ctx, key)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// writeReference is let through when a write of another key would be.
func (l *lane) writeReference(ctx context.Context, refused string) error {
	if last := l.lastWrite.Load(); last != nil && *last != refused {
		return l.Destination.WriteReference(ctx, *last)
	}
	return l.Destination.WriteReference(ctx, l.route.ProbeKey())
}
