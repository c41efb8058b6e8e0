package accesslog

import (
	"strings"
	"testing"
	"time"
)

// Nothing hangs on where the referer ends; what is displayed is likely.
func TestRefererAndUserAgentAreSplitAsIsLikely(t *testing.T) {
	tests := map[string]struct {
		tail           string
		referer, agent string
		present        int
	}{
		"both":                {`"r" "a" - h=`, "r", "a", 19},
		"dashes":              {`"-" "-" - h=`, "", "", 19},
		"bare dashes":         {`- - - h=`, "", "", 19},
		"bare referer":        {`- "a b" - h=`, "", "a b", 19},
		"bare agent":          {`"r s" - - h=`, "r s", "", 19},
		"quotes in the agent": {`"r" "a "b" c" - h=`, "r", `a "b" c`, 19},
		"agent that ends so":  {`"r" "a"" - h=`, "r", `a"`, 19},
		"agent that is empty": {`"r" "" - h=`, "r", "", 19},
		"referer with quotes": {`"r "s"" "a" - h=`, `r "s"`, "a", 19},
		"later quoted field":  {`"r" "a" - h= - - - - - - - - "x y"`, "r", "a", 28},
		"cut in the referer":  {`"r s`, "", "", 15},
		"cut in the agent":    {`"r" "a b`, "r", "", 16},
		"cut behind both":     {`"r" "a"`, "r", "", 16},
		"cut behind a dash":   {`-`, "", "", 16},
	}
	var row Row
	for name, test := range tests {
		row.Parse([]byte(origin + ` - ID REST.GET.OBJECT a "GET /a HTTP/1.1" 404 NoSuchKey 1 - 2 - ` + test.tail))
		f := row.Fields()
		if row.Verdict != Miss || deref(f.Referer) != test.referer || deref(f.UserAgent) != test.agent || f.FieldsPresent != test.present {
			t.Errorf("%s: %s, %q, %q, %d fields", name, row.Verdict, deref(f.Referer), deref(f.UserAgent), f.FieldsPresent)
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestFieldsOutliveTheRow(t *testing.T) {
	line := []byte(missOf("a%2520b", "GET /a%20b HTTP/1.1"))
	var row Row
	row.Parse(line)
	f := row.Fields()
	for i := range line {
		line[i] = 'x'
	}
	row.Parse([]byte(missOf("c%2520d", "-")))
	if *f.Key != "a b" || *f.Bucket != "overseas-media" || *f.HostHeader != "overseas-media.s3.amazonaws.com" {
		t.Errorf("%q in %q at %q", *f.Key, *f.Bucket, *f.HostHeader)
	}
}

func TestQuotesWithoutEndCostLittle(t *testing.T) {
	var row Row
	for _, tail := range []string{strings.Repeat(`"" `, MaxLine/4) + `x"`, strings.Repeat(`" "`, MaxLine/4), strings.Repeat("- ", MaxLine/3)} {
		start := time.Now()
		row.Parse([]byte(origin + ` - ID REST.GET.OBJECT a "GET /a HTTP/1.1" 404 NoSuchKey 1 - 2 - "r" ` + tail))
		row.Fields()
		row.Parse([]byte(origin + " " + tail))
		row.Fields()
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%.20q took %v", tail, d)
		}
	}
}
