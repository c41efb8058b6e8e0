package deadletter

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

// reticent is an SQS that takes what is sent and leaves entries out of its answer.
type reticent struct {
	sqsAPI
	sends, deletes int // entries that an answer names at most
}

func (r reticent) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	out, err := r.sqsAPI.SendMessageBatch(ctx, in, o...)
	if err == nil {
		out.Successful = out.Successful[:min(r.sends, len(out.Successful))]
	}
	return out, err
}

func (r reticent) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	out, err := r.sqsAPI.DeleteMessageBatch(ctx, in, o...)
	if err == nil {
		out.Successful = out.Successful[:min(r.deletes, len(out.Successful))]
	}
	return out, err
}

func TestRedriveDeletesOnlyWhatTheAnswerNames(t *testing.T) {
	for named := range 3 {
		cloud, box := open(t)
		for i := range 3 {
			die(t, cloud, fmt.Sprint(i), "corrupt")
		}
		letters, err := box.Look(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		box.api = reticent{box.api, named, 3}
		done, err := box.Redrive(t.Context(), letters, 0)
		if done != named || err == nil || !strings.Contains(err.Error(), letters[2].ID) {
			t.Errorf("%d of 3 are named: %d redriven, %v", named, done, err)
		}
		if d := cloud.Depth("sync-dead"); d.Waiting != 3-named {
			t.Errorf("%d of 3 are named: %+v stand there, want the others handed back", named, d)
		}
	}
}

func TestOnlyDeletesThatTheAnswerNamesAreCounted(t *testing.T) {
	cloud, box := open(t)
	die(t, cloud, "a", "corrupt")
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	box.api = reticent{box.api, 1, 0}
	if done, err := box.Redrive(t.Context(), letters, 0); done != 0 || err == nil {
		t.Errorf("%d redriven, %v, although no delete was confirmed", done, err)
	}
}

// TestRedriveStaysWithinTheBytesOfABatch: SQS refuses a batch over 1 MiB as a
// whole, whoever tries again.
func TestRedriveStaysWithinTheBytesOfABatch(t *testing.T) {
	cloud, box := open(t)
	for range 5 {
		if err := cloud.Send("sync-dead", strings.Repeat("x", 400<<10), map[string]string{"end": "poison", "detail": "undecoded"}); err != nil {
			t.Fatal(err)
		}
	}
	letters, err := box.Look(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := box.Redrive(t.Context(), letters, 0); done != 5 || err != nil {
		t.Errorf("%d redriven, %v", done, err)
	}
	if n := cloud.Count(strictaws.ServiceSQS, "SendMessageBatch", "sync").Calls; n != 3 {
		t.Errorf("%d batches, want 3", n)
	}
}

// hanging answers nothing.
type hanging struct{ sqsAPI }

func (hanging) SendMessageBatch(ctx context.Context, _ *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) DeleteMessageBatch(ctx context.Context, _ *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (hanging) ChangeMessageVisibilityBatch(ctx context.Context, _ *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestNoCallOutlastsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := &Box{api: hanging{}, name: "sync"}
		letters := []*Letter{{ID: "1"}, {ID: "2"}}
		ctx, interrupt := context.WithCancel(t.Context())
		interrupt()
		for name, do := range map[string]func() error{
			"look":                 func() error { _, err := box.Look(t.Context(), all); return err },
			"redrive":              func() error { _, err := box.Redrive(t.Context(), letters, 0); return err },
			"drop":                 func() error { _, err := box.Drop(t.Context(), letters, &strings.Builder{}, 0); return err },
			"after an interrupt":   func() error { _, err := box.Redrive(ctx, letters, 0); return err },
			"hand back, all of it": func() error { return box.HandBack(context.WithoutCancel(ctx), letters) },
		} {
			start := time.Now()
			if err := do(); err == nil {
				t.Errorf("%s: no error", name)
			}
			if took := time.Since(start); took > 2*callTimeout {
				t.Errorf("%s took %s", name, took)
			}
		}
	})
}
