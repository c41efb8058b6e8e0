package copier

import (
	"context"
	"errors"

	"github.com/objectferry/objectferry/internal/guard"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/queue"
)

// result is the end that a request has come to; its End is "" while it has none.
type result struct {
	End        object.End
	Detail     object.Detail
	size       int64 // bytes, where they are known
	unverified bool  // copied although the source has no CRC for it
}

// outcome is the one map from what became of a request to what is done with its
// message.
func outcome(ctx context.Context, r result, err error) queue.Outcome {
	if err == nil {
		return settled(r)
	}
	class := object.ClassOf(err)
	switch {
	case class == object.Mangled: // the next delivery would take it for present
		return queue.Outcome{Verb: queue.Bury, End: string(object.EndFailed), Detail: string(object.DetailOf(class)), Note: note(err)}
	case ctx.Err() != nil:
		return handedBack(context.Cause(ctx))
	case errors.Is(err, guard.ErrClosed), class == object.Canceled:
		return handedBack(err)
	case (class == object.Absent || class == object.Archived) && !fromSource(err):
		return again(err) // only the source can say so
	}
	if end, ok := object.EndOf(class); ok && class != object.Denied {
		return settled(result{End: end})
	}
	return again(err)
}

func fromSource(err error) bool {
	var e *object.Error
	return errors.As(err, &e) && e.Side == object.Source
}

func settled(r result) queue.Outcome {
	return queue.Outcome{Verb: queue.Settle, End: string(r.End), Detail: string(r.Detail)}
}

func again(err error) queue.Outcome {
	return queue.Outcome{Verb: queue.Retry, Detail: string(object.DetailOf(object.ClassOf(err))), Note: note(err)}
}

func handedBack(err error) queue.Outcome {
	return queue.Outcome{Verb: queue.HandBack, Note: note(err)}
}

// rollout is how many receives a slow rollout is given. Handed back, they lie
// further and further apart: hours in all, where failures would be over in minutes.
const rollout = 12

// unrouted is for what an older configuration or version cannot know: another
// process of a rolling deploy may.
func unrouted(d *queue.Delivery, err error) queue.Outcome {
	out := queue.Outcome{Verb: queue.HandBack, Detail: string(object.DetailUnrouted), Note: note(err)}
	if d.Receives >= rollout {
		out.Verb = queue.Retry
	}
	return out
}

func buried(err error) queue.Outcome {
	return queue.Outcome{Verb: queue.Bury, End: string(object.EndPoison), Detail: string(object.DetailUndecoded), Note: note(err)}
}

// note is err for a log line. A key of 1,024 strange bytes would make it long: it
// stands near the beginning, what to do at the end.
func note(err error) string {
	const each = 200
	text := []rune(err.Error())
	if len(text) <= 2*each {
		return string(text)
	}
	return string(text[:each]) + "…" + string(text[len(text)-each:])
}

// look settles a request by what stands at the destination under its key. copyID
// is that of our own write, "" before there was one. The result has no end when
// nothing is there.
func (c *Copier) look(ctx context.Context, l *lane, key, copyID string) (result, error) {
	var found object.Found
	err := l.DestinationGuard.Do(ctx, "HeadObject", 0, func(ctx context.Context) (err error) {
		found, err = l.Destination.Head(ctx, key)
		return err
	})
	switch {
	case object.ClassOf(err) == object.Denied:
		// Whether it is there is not known: Head found it in no listing.
		if err := l.DestinationGuard.Refused(ctx, err, l.Destination.ReadReference); err != nil {
			return result{}, err
		}
		return result{End: object.EndDenied}, nil
	case err != nil:
		return result{}, err
	case found.Exists && copyID != "" && found.CopyID == copyID:
		return result{End: object.EndCopied}, nil
	case found.Exists:
		return result{End: object.EndPresent, size: found.Size}, nil
	case found.Deleted:
		return result{End: object.EndFiltered, Detail: object.DetailDeleted}, nil
	}
	return result{}, nil
}

// commitTries is how often a write is tried whose answers leave it unclear.
const commitTries = 3

// commit makes an object visible by write, and settles an unclear answer by
// looking: a write may have happened although its answer was lost, and somebody
// else may have come first.
func (c *Copier) commit(ctx context.Context, l *lane, key, copyID string, write func(context.Context) error) (result, error) {
	var err error
	for try := range commitTries {
		if try > 0 {
			if err := pause(ctx, try); err != nil {
				return result{}, err
			}
		}
		err = write(ctx)
		switch object.ClassOf(err) {
		case "":
			l.lastWrite.Store(&key)
			return result{End: object.EndCopied}, nil
		case object.Exists, object.Ambiguous:
			if r, err := c.look(ctx, l, key, copyID); err != nil || r.End != "" {
				return r, err
			}
		case object.Mangled: // said here, too, in case the delivery is cut before its letter is sent
			c.tel.Log.Error().Ctx(ctx).Str("bucket", l.Route.Bucket).Str("note", note(err)).Msg("object is visible but stored wrongly")
			return result{}, err
		default:
			return result{}, err
		}
	}
	// Told that it exists, or told nothing, and yet nothing is there.
	return result{}, &object.Error{Side: object.Destination, Op: "commit", Key: key, Class: object.Ambiguous, Err: err}
}
