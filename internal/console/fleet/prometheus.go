package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

// prometheus asks a Prometheus by its HTTP API.
type prometheus struct {
	get  getter
	base *url.URL

	mu    sync.Mutex
	share []sample // of the last answer
	asked time.Time
}

func newPrometheus(get getter, base string) *prometheus {
	u, _ := url.Parse(base) // Validate has parsed it
	return &prometheus{get: get, base: u}
}

// maxSeries bounds what one query may answer.
const maxSeries = 50_000

// series is one line of an answer: a value now, or values over time.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  *point            `json:"value"`
	Values []point           `json:"values"`
}

// point is [seconds, "value"].
type point struct {
	at    time.Time
	value float64
}

func (p *point) UnmarshalJSON(text []byte) error {
	var pair [2]any
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	seconds, ok1 := pair[0].(float64)
	value, ok2 := pair[1].(string)
	if !ok1 || !ok2 {
		return errors.New("a point is not [seconds, \"value\"]")
	}
	v, err := strconv.ParseFloat(value, 64)
	p.at, p.value = unixTime(seconds), v
	return err
}

// ask runs one query at path, "query" or "query_range".
func (p *prometheus) ask(ctx context.Context, path string, form url.Values) ([]series, error) {
	body, err := p.get.page(ctx, p.base.JoinPath("api/v1", path).String()+"?"+form.Encode(), "application/json")
	var out struct {
		Status, Error string
		Data          struct {
			ResultType string
			Result     []series
		}
	}
	if e := json.Unmarshal(body, &out); e == nil && out.Error != "" {
		return nil, fmt.Errorf("Prometheus refuses the query: %s", out.Error) //nolint:staticcheck // a name
	} else if err != nil {
		return nil, fmt.Errorf("ask Prometheus: %w", short(err))
	} else if e != nil || out.Status != "success" {
		return nil, errors.New("ask Prometheus: the answer is not one of its API")
	}
	if len(out.Data.Result) > maxSeries {
		return nil, fmt.Errorf("ask Prometheus: more than %d series", maxSeries)
	}
	return out.Data.Result, nil
}

// short leaves the query out of an error: it is long, and the cause stands at the end.
func short(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		at, _, _ := strings.Cut(u.URL, "?")
		return fmt.Errorf("%s: %w", at, u.Err)
	}
	return err
}

// instant is the value of a query now.
func (p *prometheus) instant(ctx context.Context, query string) ([]sample, error) {
	list, err := p.ask(ctx, "query", url.Values{"query": {query}})
	if err != nil {
		return nil, err
	}
	var out []sample
	for _, s := range list {
		if s.Value != nil {
			out = append(out, sample{labels: s.Metric, value: s.Value.value})
		}
	}
	return out, nil
}
