package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/test/ferry"
)

// TestOddRowsAreParsed: what programs that read access logs failed on. Each log has
// the odd rows between two good ones; all are parsed, and the misses among them are
// carried. Where a row stands among the cases of package accesslog it is named by
// its id.
func TestOddRowsAreParsed(t *testing.T) {
	t.Parallel()
	cases := map[int]logCase{}
	for _, c := range logCases(t) {
		cases[c.ID] = c
	}
	agent := func(key, userAgent string) string {
		return strings.Replace(missOf(key), `"visitor"`, `"`+userAgent+`"`, 1)
	}
	uri := func(key, path string) string {
		return strings.Replace(missOf(key), `"GET /`+key, `"GET /`+path, 1)
	}
	logs := []struct {
		name   string // and the public report
		ids    []int
		rows   []string
		misses []string // of rows
	}{
		// cocoonlife/s3-log-parse#1
		{"a quote in the URL", []int{58}, []string{uri("quote1", `quote1?a="b`), uri("quote2", `quote2?"`)}, []string{"quote1", "quote2"}},
		// aws-samples/siem-on-amazon-opensearch-service PR 34, catalystneuro/dandi_s3_log_parser#18
		{"a user agent that starts or ends with quotes", []int{54}, []string{agent("agent1", `""Mozilla/5.0`), agent("agent2", `Mozilla/5.0""`), agent("agent3", `""`)}, []string{"agent1", "agent2", "agent3"}},
		{"exploit text in the URI", []int{52}, []string{uri("exploit", `exploit?x="><script>alert(1)</script>&y=\" 200 - 1 1`)}, []string{"exploit"}},
		// elastic/integrations#20417, #20443, elastic/beats#26913, #13592
		{"a requester with spaces", []int{17}, nil, nil},
		{"a four-part operation and a UUID for an id", []int{41}, nil, nil},
		{"a dash for an IP, bare dashes", []int{37, 39}, nil, nil},
		// DataBiosphere/azul#5582
		{"bytes that are not ASCII in the URI", []int{64}, []string{uri("bytes1", "bytes1?q=\xff\xfe\x80"), uri("bytes2", "bytes2?q=測試")}, []string{"bytes1", "bytes2"}},
		// kuanbutts.com, 2020-12
		{"a copy row with a bare dash for a URI", []int{32}, nil, nil},
	}

	s := calmSite(t, localcloud.Config{})
	p := ferry.Start(t, s, ferry.Options{YAML: s.YAML([]localcloud.Route{{Lines: []string{"max_age: 876000h"}}}, scaled...)})
	misses := make([][]string, len(logs))
	for i, l := range logs {
		good := []string{fmt.Sprintf("before%d", i), fmt.Sprintf("after%d", i)}
		misses[i] = append(l.misses, good...)
		rows := append([]string{missOf(good[0])}, l.rows...)
		for _, id := range l.ids {
			c := cases[id]
			rows = append(rows, c.Line+"\n")
			if c.Verdict == "miss" && strings.Trim(c.Want.Key, "/") != "" {
				misses[i] = append(misses[i], c.Want.Key)
			}
		}
		for _, key := range misses[i] {
			s.COS.Put(key, body(key), cosd.Attributes{})
		}
		putLog(t, s, fmt.Sprint("report", i), slices.Concat(rows, []string{missOf(good[1])})...)
	}
	settled(t, s, localcloud.LogsQueue, time.Minute)
	settled(t, s, localcloud.SyncQueue, time.Minute)
	for i, l := range logs {
		t.Run(l.name, func(t *testing.T) {
			copied(t, s, localcloud.Bucket, misses[i])
			want := fmt.Sprintf(`access/report%d\"","rows":%d,`, i, len(l.ids)+len(l.rows)+2)
			if !strings.Contains(p.Log(), want) {
				t.Errorf("the log does not say %s", want)
			}
		})
	}
	if n := metric(t, p, "objectferry_rows_total", `verdict="unparsed"`); n != 0 {
		t.Errorf("%v rows are counted as unparsed", n)
	}
}
