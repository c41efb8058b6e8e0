package s3event

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFormatIsWhatParseReads(t *testing.T) {
	for _, want := range []Record{
		{Bucket: "log-bucket", Key: "access/year=2026/a b+c/100%", Size: 2048, EventTime: time.Date(2026, 9, 4, 9, 0, 0, 0, time.UTC)},
		{Bucket: "log-bucket", Key: "a\"b\\c\x00\xff//..", Size: -1, EventTime: time.Date(2026, 9, 4, 9, 0, 0, 5e6, time.UTC)},
	} {
		got, err := Parse(Format(want))
		if err != nil {
			t.Fatalf("parse what Format wrote of %q: %v", want.Key, err)
		}
		if diff := cmp.Diff([]Record{want}, got); diff != "" {
			t.Errorf("key %q (-want +got):\n%s", want.Key, diff)
		}
	}
}
