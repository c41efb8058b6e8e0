package fleet

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/objectferry/objectferry/internal/telemetry"
)

// sample is one value of a metric.
type sample struct {
	labels map[string]string
	value  float64
}

// metrics are samples by the name that Prometheus gives them.
type metrics map[string][]sample

// parseMetrics reads a metrics page.
func parseMetrics(r io.Reader) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(r)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	all := metrics{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			switch family.GetType() {
			case dto.MetricType_HISTOGRAM:
				for _, b := range m.GetHistogram().GetBucket() {
					all.add(name+"_bucket", m, float64(b.GetCumulativeCount()), "le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
				}
			case dto.MetricType_COUNTER:
				all.add(name, m, m.GetCounter().GetValue())
			case dto.MetricType_GAUGE:
				all.add(name, m, m.GetGauge().GetValue())
			}
		}
	}
	return all, nil
}

func (all metrics) add(name string, m *dto.Metric, value float64, more ...string) {
	s := sample{labels: map[string]string{}, value: value}
	for _, l := range m.GetLabel() {
		s.labels[l.GetName()] = l.GetValue()
	}
	for i := 0; i < len(more); i += 2 {
		s.labels[more[i]] = more[i+1]
	}
	all[name] = append(all[name], s)
}

// ages reads buckets of receive ages, of several processes or none.
func ages(buckets []sample) []Age {
	sum := map[string]map[float64]float64{} // by queue, by upper bound
	for _, b := range buckets {
		bound, err := strconv.ParseFloat(b.labels["le"], 64)
		if err != nil {
			continue // no bucket of ours
		}
		q := b.labels[telemetry.LabelQueue]
		if sum[q] == nil {
			sum[q] = map[float64]float64{}
		}
		sum[q][bound] += b.value
	}
	var list []Age
	for q, counts := range sum {
		a := Age{Queue: q, Received: math.Round(counts[math.Inf(1)])}
		if a.Received == 0 {
			continue
		}
		// The oldest lies in the first bucket that already counts them all.
		a.Beyond = true
		for _, bound := range slices.Sorted(maps.Keys(counts)) {
			if !math.IsInf(bound, 1) && counts[bound] >= counts[math.Inf(1)] {
				a.Oldest, a.Beyond = time.Duration(bound*float64(time.Second)), false
				break
			}
			if !math.IsInf(bound, 1) {
				a.Oldest = time.Duration(bound * float64(time.Second))
			}
		}
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Age) int { return cmp.Compare(a.Queue, b.Queue) })
	return list
}

// rows reads the newest timestamp of each bucket.
func rows(samples []sample) []Row {
	newest := map[string]float64{}
	for _, s := range samples {
		b := s.labels[telemetry.LabelBucket]
		newest[b] = max(newest[b], s.value)
	}
	var list []Row
	for b, t := range newest {
		list = append(list, Row{Bucket: b, Newest: unixTime(t)})
	}
	slices.SortFunc(list, func(a, b Row) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return list
}
