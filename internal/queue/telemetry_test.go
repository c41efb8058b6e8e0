package queue

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/objectferry/objectferry/internal/telemetry"
)

func TestATraceIsLinkedFromTheSenderToTheConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		spans := tracetest.NewSpanRecorder()
		r.tel.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
		s := NewSender(r.fakeSQS, nil, SenderConfig{Name: "main", URL: mainURL}, r.tel)
		ctx, parse := r.tel.Tracer.Start(t.Context(), "parse")
		if errs := s.Send(ctx, []Entry{{Body: "a"}, {Body: "b", Attributes: map[string]string{"k": "v"}}}); errs[0] != nil || errs[1] != nil {
			t.Fatal(errs)
		}
		parse.End()
		s.Close(t.Context())
		var inHandler []trace.SpanContext
		r.cfg.Slots = 1
		r.start(func(ctx context.Context, _ *Delivery) Outcome {
			inHandler = append(inHandler, trace.SpanContextFromContext(ctx))
			return copied
		})
		r.until(time.Minute, "both are settled", r.deleted(r.queues[mainURL].all...))
		r.mustStop()

		ended := spans.Ended()
		send := ended[0]
		if send.SpanKind() != trace.SpanKindProducer || send.Parent().SpanID() != parse.SpanContext().SpanID() {
			t.Errorf("send span: kind %s, parent %s", send.SpanKind(), send.Parent().SpanID())
		}
		processed := 0
		for _, span := range ended {
			if span.SpanKind() != trace.SpanKindConsumer {
				continue
			}
			links := span.Links()
			if len(links) != 1 || links[0].SpanContext.SpanID() != send.SpanContext().SpanID() || span.Parent().IsValid() {
				t.Errorf("%s: links %v, parent %s; want a link to the send span and no parent", span.Name(), links, span.Parent().SpanID())
			}
			if span.SpanContext().SpanID() != inHandler[processed].SpanID() {
				t.Error("the handler's context does not carry the consumer span")
			}
			got := map[string]string{}
			for _, kv := range span.Attributes() {
				got[string(kv.Key)] = kv.Value.String()
			}
			want := map[string]string{"messaging.system": "aws_sqs", "messaging.destination.name": "main", "messaging.operation.type": "process",
				"messaging.operation.name": "process", "messaging.message.id": got["messaging.message.id"],
				telemetry.AttrEnd: "copied", telemetry.AttrDetail: "", telemetry.AttrReceives: "1"}
			if diff := cmp.Diff(want, got); diff != "" || got["messaging.message.id"] == "" {
				t.Error(diff)
			}
			processed++
		}
		if processed != 2 {
			t.Errorf("%d consumer spans", processed)
		}
	})
}

func TestCallsAgeAndDepthAreMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		m := r.put(mainURL, "a", 0, nil)
		time.Sleep(10 * time.Second)
		r.start(settle)
		r.until(time.Minute, "it is settled", r.deleted(m))
		time.Sleep(time.Minute)
		for line, want := range map[string]string{
			`objectferry_sqs_calls_total{call="DeleteMessageBatch",queue="main",result="ok"}`: "1",
			`objectferry_receive_age_seconds_sum{queue="main"}`:                               "10",
			`objectferry_messages_waiting{queue="main",state="visible"}`:                      "3",
			`objectferry_messages_held{queue="main"}`:                                         "0",
		} {
			if got := r.metric(line); got != want {
				t.Errorf("%s is %q, want %q", line, got, want)
			}
		}
		if n := r.count("GetQueueAttributes"); n > 7 {
			t.Errorf("%d calls to measure the queue in a minute, want one each 15 s", n)
		}
		r.mustStop()
	})
}
