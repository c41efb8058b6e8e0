package deadletter

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

func anyLetter(*Letter) bool { return true }

// openLater opens the box after the letters that a test puts there.
func openLater(t *testing.T) (*strictaws.Cloud, *Box) {
	t.Helper()
	cloud, box := open(t)
	box.opened = time.Now().Add(time.Hour)
	return cloud, box
}

func redriveFrom(box *Box) func(context.Context, []*Letter) (int, error) {
	return func(ctx context.Context, letters []*Letter) (int, error) { return box.Redrive(ctx, letters, 0) }
}

// TestAllHoldsABatchAtATime: memory, and what a kill leaves to come back by
// itself, do not grow with the letters.
func TestAllHoldsABatchAtATime(t *testing.T) {
	cloud, box := openLater(t)
	for i := range 123 {
		die(t, cloud, fmt.Sprint(i), "unavailable")
	}
	most := 0
	done, wanted, err := box.All(t.Context(), anyLetter, func(ctx context.Context, letters []*Letter) (int, error) {
		most = max(most, cloud.Depth("sync-dead").InFlight)
		return box.Redrive(ctx, letters, 0)
	})
	if err != nil || done != 123 || wanted != 123 || most > 10 {
		t.Errorf("%d of %d moved, %v; at most %d were held", done, wanted, err, most)
	}
	if n := cloud.Depth("sync-dead").Total(); n != 0 || len(cloud.Messages("sync")) != 123 {
		t.Errorf("%d letters are left, %d messages sent", n, len(cloud.Messages("sync")))
	}
}

func TestAllHandsBackWhatIsNotWanted(t *testing.T) {
	cloud, box := openLater(t)
	for i := range 45 {
		die(t, cloud, fmt.Sprint(i), []string{"unavailable", "corrupt", "corrupt"}[i%3])
	}
	done, wanted, err := box.All(t.Context(), (&Filter{Detail: "unavailable"}).Wants, redriveFrom(box))
	if err != nil || done != 15 || wanted != 15 {
		t.Errorf("%d of %d moved, %v", done, wanted, err)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 30 || d.InFlight != 0 {
		t.Errorf("%+v, want the other 30 handed back", d)
	}
}

// TestAllEndsAlthoughLettersDieAgain: each letter that is redriven is a dead
// letter again before the next is received.
func TestAllEndsAlthoughLettersDieAgain(t *testing.T) {
	cloud, box := openLater(t)
	for i := range 30 {
		die(t, cloud, fmt.Sprint(i), "corrupt")
	}
	time.Sleep(2 * time.Millisecond) // SQS's times are in milliseconds
	box.opened = time.Now()
	done, _, err := box.All(t.Context(), anyLetter, func(ctx context.Context, letters []*Letter) (int, error) {
		time.Sleep(2 * time.Millisecond)
		for _, l := range letters {
			die(t, cloud, l.key, "corrupt")
		}
		return box.Redrive(ctx, letters, 0)
	})
	if err != nil || done != 30 {
		t.Errorf("%d moved, %v; want 30", done, err)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 30 {
		t.Errorf("%+v, want the 30 that died meanwhile", d)
	}
}

// TestABoxIsOpenedByTheClockOfSQS: an operator's clock that is wrong neither hides
// letters nor makes a redrive endless.
func TestABoxIsOpenedByTheClockOfSQS(t *testing.T) {
	theirs := time.Date(2026, 9, 4, 8, 0, 0, 0, time.UTC)
	for ours, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 300 * time.Millisecond: 300 * time.Millisecond, time.Hour: time.Second,
	} {
		if got := clamp(theirs.Add(ours), theirs, theirs.Add(time.Second)).Sub(theirs); got != want {
			t.Errorf("ours is %s off: opened %s after theirs, want %s", ours, got, want)
		}
	}
	_, box := open(t)
	if off := time.Since(box.opened).Abs(); off > time.Minute {
		t.Errorf("opened %s ago", off)
	}
}

// TestOneLetterThatCannotBeMovedHoldsUpNoOther: the first entry of each of two
// batches is refused.
func TestOneLetterThatCannotBeMovedHoldsUpNoOther(t *testing.T) {
	cloud, box := openLater(t)
	for i := range 50 {
		die(t, cloud, fmt.Sprint(i), "unavailable")
	}
	cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: "SendMessageBatch", Target: "sync", Times: 2, Do: strictaws.FailEntry{Indexes: []int{0}}})
	done, wanted, err := box.All(t.Context(), anyLetter, redriveFrom(box))
	if err == nil || done != 48 || wanted != 50 {
		t.Errorf("%d of %d moved, %v; want 48 of 50 and an error", done, wanted, err)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 2 || d.InFlight != 0 {
		t.Errorf("%+v, want the two handed back", d)
	}
}

func TestAllGivesUpWhenNothingCanBeMoved(t *testing.T) {
	cloud, box := openLater(t)
	for i := range 100 {
		die(t, cloud, fmt.Sprint(i), "unavailable")
	}
	cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: "SendMessageBatch", Do: strictaws.Fail{Status: 503, Code: "ServiceUnavailable"}})
	done, _, err := box.All(t.Context(), anyLetter, redriveFrom(box))
	if err == nil || done != 0 {
		t.Errorf("%d moved, %v", done, err)
	}
	if n := cloud.Count(strictaws.ServiceSQS, "SendMessageBatch", "sync").Calls; n != failuresInARow {
		t.Errorf("%d batches were tried, want %d", n, failuresInARow)
	}
	if d := cloud.Depth("sync-dead"); d.Waiting != 100 {
		t.Errorf("%+v, want all 100 handed back", d)
	}
}

// TestHeldLettersAreCounted: after a kill, on-call is told that there are more.
func TestHeldLettersAreCounted(t *testing.T) {
	cloud, box := openLater(t)
	for i := range 7 {
		die(t, cloud, fmt.Sprint(i), "unavailable")
	}
	if _, err := box.Look(t.Context(), all); err != nil { // and gone
		t.Fatal(err)
	}
	if n, err := box.Held(t.Context()); n != 7 || err != nil {
		t.Errorf("%d are held, %v; want 7", n, err)
	}
}
