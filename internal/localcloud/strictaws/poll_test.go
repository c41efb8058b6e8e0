package strictaws

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// call makes an SQS call without a socket, so that it may run on synctest's clock.
func call(ctx context.Context, c *Cloud, action string, in, out any) int {
	body, _ := json.Marshal(in)
	r := httptest.NewRequestWithContext(ctx, "POST", "/", bytes.NewReader(body))
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	w := httptest.NewRecorder()
	c.SQS().ServeHTTP(w, r)
	if out != nil {
		_ = json.Unmarshal(w.Body.Bytes(), out)
	}
	return w.Code
}

type polledMessages struct {
	Messages []struct {
		Body, ReceiptHandle string
		Attributes          map[string]string
	}
}

func longPoll(ctx context.Context, c *Cloud, seconds int) (p polledMessages) {
	call(ctx, c, "ReceiveMessage", map[string]any{"QueueUrl": "q", "WaitTimeSeconds": seconds, "AttributeNames": []string{"All"}}, &p)
	return p
}

func pollCloud(t *testing.T, visibility string) *Cloud {
	c := New(Config{})
	if err := c.CreateQueue("q", map[string]string{"VisibilityTimeout": visibility}); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExpireMakesWhatIsInFlightVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pollCloud(t, "300")
		for _, body := range []string{"a", "b"} {
			if err := c.Send("q", body, nil); err != nil {
				t.Fatal(err)
			}
			longPoll(t.Context(), c, 0)
		}
		began := time.Now()
		time.AfterFunc(time.Second, func() { c.Expire("q") })
		first, second := longPoll(t.Context(), c, 20), longPoll(t.Context(), c, 20)
		if len(first.Messages)+len(second.Messages) != 2 || time.Since(began) != time.Second {
			t.Errorf("after Expire %d and %d messages came within %v", len(first.Messages), len(second.Messages), time.Since(began))
		}
		if d := c.Depth("q"); d != (Depth{InFlight: 2}) {
			t.Errorf("depth %+v", d)
		}
	})
}

func TestLongPollWaitsForTheFirstMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pollCloud(t, "30")
		began := time.Now()
		if got := longPoll(t.Context(), c, 20); len(got.Messages) != 0 || time.Since(began) != 20*time.Second {
			t.Errorf("nothing there: %d messages after %v", len(got.Messages), time.Since(began))
		}
		began = time.Now()
		time.AfterFunc(3*time.Second, func() { _ = c.Send("q", "x", nil) })
		if got := longPoll(t.Context(), c, 20); len(got.Messages) != 1 || time.Since(began) != 3*time.Second {
			t.Errorf("sent after 3 s: %d messages after %v", len(got.Messages), time.Since(began))
		}
		// it comes back at its timeout, within one long poll
		if got := longPoll(t.Context(), c, 20); len(got.Messages) != 0 {
			t.Errorf("received while in flight")
		}
		if got := longPoll(t.Context(), c, 20); len(got.Messages) != 1 || time.Since(began) != 33*time.Second || got.Messages[0].Attributes["ApproximateReceiveCount"] != "2" {
			t.Errorf("after its timeout: %+v after %v", got, time.Since(began))
		}
	})
}

func TestLongPollSeesAnEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pollCloud(t, "30")
		_ = c.Send("q", "x", nil)
		m := longPoll(t.Context(), c, 0).Messages[0]
		began := time.Now()
		time.AfterFunc(time.Second, func() {
			call(t.Context(), c, "ChangeMessageVisibility", map[string]any{"QueueUrl": "q", "ReceiptHandle": m.ReceiptHandle, "VisibilityTimeout": 4}, nil)
		})
		if got := longPoll(t.Context(), c, 20); len(got.Messages) != 1 || time.Since(began) != 5*time.Second {
			t.Errorf("%d messages after %v, want one after 5 s", len(got.Messages), time.Since(began))
		}
	})
}

func TestAbandonedLongPollTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pollCloud(t, "30")
		ctx, cancel := context.WithCancel(t.Context())
		go longPoll(ctx, c, 20)
		synctest.Wait()
		cancel()
		synctest.Wait()
		_ = c.Send("q", "x", nil)
		synctest.Wait()
		if d := c.Depth("q"); d.Waiting != 1 || d.InFlight != 0 {
			t.Errorf("Depth = %+v", d)
		}
	})
}

func TestRetentionDropsOldMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := pollCloud(t, "30")
		_ = c.Send("q", "old", nil)
		time.Sleep(5 * 24 * time.Hour)
		_ = c.Send("q", "new", nil)
		if got := longPoll(t.Context(), c, 0); len(got.Messages) != 1 || got.Messages[0].Body != "new" {
			t.Errorf("received %+v, want only the new one", got)
		}
		if n := c.Depth("q").Total(); n != 1 {
			t.Errorf("%d messages", n)
		}
	})
}

// backlog is a queue with n messages waiting.
func backlog(t *testing.T, n int) *Cloud {
	c := pollCloud(t, "30")
	for i := range n {
		if err := c.Send("q", fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// cycle returns what a receive of ten and their delete cost, at best of twenty.
func cycle(t *testing.T, c *Cloud) time.Duration {
	best := time.Hour
	for range 20 {
		began := time.Now()
		var got polledMessages
		call(t.Context(), c, "ReceiveMessage", map[string]any{"QueueUrl": "q", "MaxNumberOfMessages": 10}, &got)
		var del []map[string]string
		for i, m := range got.Messages {
			del = append(del, map[string]string{"Id": fmt.Sprint(i), "ReceiptHandle": m.ReceiptHandle})
		}
		if status := call(t.Context(), c, "DeleteMessageBatch", map[string]any{"QueueUrl": "q", "Entries": del}, nil); status != 200 || len(del) != 10 {
			t.Fatalf("%d deleted: %d", len(del), status)
		}
		best = min(best, time.Since(began))
	}
	return best
}

// A single scan of 100,000 messages takes longer than the whole cycle, and there
// would be a dozen; so the bound is wide enough for a busy machine.
func TestBacklogCostsNothing(t *testing.T) {
	few, many := backlog(t, 2_000), backlog(t, 100_000)
	fast, slow := cycle(t, few), cycle(t, many)
	for range 4 {
		fast, slow = min(fast, cycle(t, few)), min(slow, cycle(t, many))
	}
	t.Logf("receive and delete of ten: %v with 2,000 waiting, %v with 100,000", fast, slow)
	if slow > 2*fast {
		t.Errorf("receive and delete of ten: %v with 2,000 waiting, %v with 100,000", fast, slow)
	}
}
