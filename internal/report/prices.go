package report

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/goccy/go-yaml"
)

// Prices are what the operator's contracts say; there are no defaults, and what
// has no price has no cost. A GB is 10^9 bytes.
type Prices struct {
	Currency         string   `yaml:"currency"`
	SourceEgressGB   *float64 `yaml:"source_egress_gb"`
	SourceRequests   *float64 `yaml:"source_requests_10000"`
	S3Writes         *float64 `yaml:"s3_writes_1000"`
	S3Reads          *float64 `yaml:"s3_reads_1000"`
	S3StorageGBMonth *float64 `yaml:"s3_storage_gb_month"`
	QueueRequests    *float64 `yaml:"queue_requests_1000000"`
}

// maxPrices bounds the file.
const maxPrices = 64 << 10

// ReadPrices reads YAML. Unknown fields, and prices that are none, are errors.
func ReadPrices(r io.Reader) (Prices, error) {
	var p Prices
	data, err := io.ReadAll(io.LimitReader(r, maxPrices+1))
	if err != nil {
		return p, fmt.Errorf("read prices: %w", err)
	}
	if len(data) > maxPrices {
		return p, errors.New("read prices: larger than 64 KiB; are these the prices?")
	}
	if err := yaml.UnmarshalWithOptions(data, &p, yaml.Strict()); err != nil {
		return p, fmt.Errorf("read prices: %w", err)
	}
	for _, price := range []*float64{p.SourceEgressGB, p.SourceRequests, p.S3Writes, p.S3Reads, p.S3StorageGBMonth, p.QueueRequests} {
		if price != nil && (!(*price >= 0) || math.IsInf(*price, 0)) {
			return p, fmt.Errorf("read prices: %v is no price", *price)
		}
	}
	return p, nil
}

// Cost is one thing that would be used, and what it would cost.
type Cost struct {
	What     string    `json:"what"`
	Quantity *Estimate `json:"quantity"` // null where it is not known
	Unit     string    `json:"unit"`
	Cost     *Estimate `json:"cost"` // null where the quantity or the price is not known
	Currency string    `json:"currency,omitempty"`
	Note     string    `json:"note,omitempty"`
}

// queueRequests are those of one message at most: it is sent, received and deleted,
// in batches of ten when there are many.
const queueRequests = 3

// Price fills in what would have been used for the period of the logs, and what of
// it the prices know.
func (b *Bucket) Price(p Prices) {
	b.Costs = nil
	add := func(what string, quantity *Estimate, unit string, per float64, price *float64, note string) {
		c := Cost{What: what, Quantity: quantity, Unit: unit, Note: note}
		if quantity != nil && price != nil {
			c.Cost, c.Currency = ptr(quantity.times(*price/per)), p.Currency
		}
		b.Costs = append(b.Costs, c)
	}
	if b.Mode == "" { // nothing is carried
		return
	}
	reads, writes, note := b.Keys, b.Keys, "if each key is there, in one part"
	var gigabytes *Estimate
	if s := b.Sizes; s != nil {
		// Of a key that is not there, one request tells.
		reads = b.Keys.times(float64(s.Asked-s.There+s.single+s.parts) / float64(s.Asked))
		writes = b.Keys.times(float64(s.single+s.parts+2*s.multi) / float64(s.Asked))
		gigabytes, note = ptr(s.Bytes.times(1e-9)), "by the sample"
	}
	add("read from the source", gigabytes, "GB", 1, p.SourceEgressGB, unknownBytes(gigabytes))
	add("requests to the source", &reads, "requests", 10_000, p.SourceRequests, note)
	add("writes to S3", &writes, "requests", 1000, p.S3Writes, note)
	add("looks at S3", ptr(b.Still), "requests", 1000, p.S3Reads, "at most: one a request for a key")
	add("kept in S3", gigabytes, "GB", 1, p.S3StorageGBMonth, "each month; "+unknownBytes(gigabytes))
	add("requests to SQS", ptr(b.Still.times(queueRequests)), "requests", 1e6, p.QueueRequests, "at most: three a request for a key")
}

func unknownBytes(known *Estimate) string {
	if known == nil {
		return "rows of misses carry no size: ask the source for a sample"
	}
	return "by the sample"
}

// times is the estimate in another unit.
func (e Estimate) times(f float64) Estimate {
	return Estimate{Value: e.Value * f, PlusMinus: e.PlusMinus * f}
}

func ptr[T any](v T) *T { return &v }
