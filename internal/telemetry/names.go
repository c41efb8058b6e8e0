package telemetry

// Labels of metrics. Their values come from closed sets or from the
// configuration, never from a log, a message or an object.
const (
	LabelAnswer  = "answer"
	LabelBucket  = "bucket"
	LabelCall    = "call"
	LabelCause   = "cause"
	LabelClass   = "class"
	LabelDetail  = "detail"
	LabelEnd     = "end"
	LabelGuard   = "guard"
	LabelHour    = "hour"
	LabelOp      = "op"
	LabelQueue   = "queue"
	LabelReason  = "reason"
	LabelResult  = "result"
	LabelState   = "state"
	LabelVerdict = "verdict"
	LabelWhy     = "why"
)

// Attributes of spans that OpenTelemetry's conventions have no name for.
const (
	AttrEnd      = "objectferry.end"
	AttrDetail   = "objectferry.detail"
	AttrReceives = "objectferry.receives"
	AttrClass    = "objectferry.class"
	AttrGuard    = "objectferry.guard"
	AttrRows     = "objectferry.rows"
	AttrMisses   = "objectferry.misses"
	AttrSize     = "objectferry.size"
)

// Names of spans.
const (
	SpanParse = "parse log object"
	SpanCopy  = "copy object"
)
