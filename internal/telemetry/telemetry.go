// Package telemetry is what objectferry tells about itself: zerolog lines,
// OpenTelemetry spans and Prometheus metrics. Every instrument and attribute
// name stands in names.go and instruments.go. Keys and secrets are never a
// label. Spans and metrics go out by OTLP where the standard OTEL_* variables
// ask for it; with none set, nothing is exported. It remembers what /statusz
// shows: who answered by hour, and the latest failures. Safe for concurrent use.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"github.com/rs/zerolog"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel/codes"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope is the instrumentation scope of every span and instrument.
const scope = "github.com/objectferry/objectferry"

// Config says where the process's own telemetry goes.
type Config struct {
	Service string    // service.name unless OTEL_SERVICE_NAME says otherwise
	Version string    // service.version
	Level   string    // zerolog level; "" is info
	Writer  io.Writer // of log lines; nil is stderr
}

// Telemetry is handed to every package that has something to say. It is safe for
// concurrent use.
type Telemetry struct {
	Log    zerolog.Logger
	Tracer trace.Tracer
	*Instruments

	failures failures
	metrics  http.Handler
	provider trace.TracerProvider
	stop     []func(context.Context) error
}

// propagator writes and reads traceparent and tracestate.
var propagator = propagation.TraceContext{}

// New wires logs, metrics and traces. It opens no connection by itself: an OTLP
// exporter connects when it first has something to send.
func New(ctx context.Context, cfg Config) (*Telemetry, error) {
	w := cfg.Writer
	if w == nil {
		w = os.Stderr
	}
	level := zerolog.InfoLevel
	if cfg.Level != "" {
		l, err := zerolog.ParseLevel(cfg.Level)
		if err != nil {
			return nil, fmt.Errorf("parse log level: %w", err)
		}
		level = l
	}
	t := &Telemetry{Log: zerolog.New(w).Level(level).With().Timestamp().Logger().Hook(traceHook{})}

	res, err := resource.New(ctx, resource.WithAttributes(
		semconv.ServiceName(cfg.Service), semconv.ServiceVersion(cfg.Version)),
		resource.WithFromEnv(), resource.WithTelemetrySDK())
	if err != nil {
		return nil, fmt.Errorf("describe the process to OpenTelemetry: %w", err)
	}

	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(reg), otelprom.WithoutScopeInfo(), otelprom.WithoutTargetInfo(),
		otelprom.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes))
	if err != nil {
		return nil, fmt.Errorf("open the Prometheus exporter: %w", err)
	}
	// Labels are bounded by themselves; the SDK's own limit would silently fold what
	// many buckets have in many hours into one series.
	options := []metric.Option{metric.WithReader(exporter), metric.WithResource(res), metric.WithCardinalityLimit(0)}
	if asked("METRICS") {
		reader, err := autoexport.NewMetricReader(ctx)
		if err != nil {
			return nil, fmt.Errorf("open the OTLP metric exporter: %w", err)
		}
		options = append(options, metric.WithReader(reader))
	}
	meters := metric.NewMeterProvider(options...)
	t.stop = append(t.stop, meters.Shutdown)
	t.metrics = promhttp.HandlerFor(reg, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
	if t.Instruments, err = newInstruments(meters.Meter(scope)); err != nil {
		return nil, err
	}

	t.provider = noop.NewTracerProvider()
	if asked("TRACES") {
		spans, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("open the OTLP trace exporter: %w", err)
		}
		p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(res))
		t.provider = p
		t.stop = append(t.stop, p.Shutdown)
	}
	t.Tracer = t.provider.Tracer(scope)
	return t, nil
}

// asked reports whether the standard variables ask for a signal to be exported.
func asked(signal string) bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if e := os.Getenv("OTEL_" + signal + "_EXPORTER"); e != "" {
		return e != "none"
	}
	return os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") != ""
}

// Nop says nothing and measures into the void; for tests and offline commands.
func Nop() *Telemetry {
	i, err := newInstruments(metric.NewMeterProvider().Meter(scope))
	if err != nil {
		panic(err) // the instruments' names are constants
	}
	p := noop.NewTracerProvider()
	return &Telemetry{Log: zerolog.Nop(), Tracer: p.Tracer(scope), provider: p, Instruments: i, metrics: http.NotFoundHandler()}
}

// MetricsHandler serves the Prometheus page.
func (t *Telemetry) MetricsHandler() http.Handler { return t.metrics }

// TracerProvider is for otelhttp.
func (t *Telemetry) TracerProvider() trace.TracerProvider { return t.provider }

// Tracing reports whether spans go anywhere.
func (t *Telemetry) Tracing() bool { return len(t.stop) > 1 }

// Shutdown sends what is still held and ends the exporters.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	for _, stop := range t.stop {
		errs = append(errs, stop(ctx))
	}
	return errors.Join(errs...)
}

// Inject returns the message attributes that carry ctx's span: traceparent and,
// where there is one, tracestate. Nil when ctx has no span.
func Inject(ctx context.Context) map[string]string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagator.Inject(ctx, carrier)
	return carrier
}

// Extract returns the span context that message attributes carry; it is invalid
// when they carry none. Consumers link to it, they do not continue it.
func Extract(attributes map[string]string) trace.SpanContext {
	return trace.SpanContextFromContext(propagator.Extract(context.Background(), propagation.MapCarrier(attributes)))
}

// traceHook puts the ids of the event's context into the line.
type traceHook struct{}

func (traceHook) Run(e *zerolog.Event, _ zerolog.Level, _ string) {
	if sc := trace.SpanContextFromContext(e.GetCtx()); sc.IsValid() {
		e.Str("trace_id", sc.TraceID().String()).Str("span_id", sc.SpanID().String())
	}
}

// EndSpan ends span, marked as failed when err is not nil.
func EndSpan(span trace.Span, err error) {
	if err != nil {
		span.RecordError(err)
		span.SetStatus(codes.Error, "")
	}
	span.End()
}
