package console

import (
	"strings"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/deadletter"
)

func TestWhatIsNotSeenIsMadeVisible(t *testing.T) {
	for in, want := range map[string]string{
		"img/a b.jpg":        "img/a b.jpg",
		"手册/第3版.pdf":         "手册/第3版.pdf",
		`say "<b>"`:          `say "<b>"`, // markup is for the templates to escape
		"a\x1b[31m\nb":       `a\x1b[31m\nb`,
		"gpj\u202e.exe":      `gpj\u202e.exe`,
		"bad \xff utf-8":     `bad \xff utf-8`,
		"zero\u200bwidth":    `zero\u200bwidth`,
		`back\slash`:         `back\\slash`,
		"":                   "",
		"non-breaking\u00a0": `non-breaking\u00a0`,
	} {
		if got := visible(in); got != want {
			t.Errorf("%q is shown as %s, want %s", in, got, want)
		}
	}
	long := visible(strings.Repeat("界", maxText))
	if len(long) > maxText+40 || !strings.Contains(long, "(6144 bytes in all)") || strings.Contains(long, `\x`) {
		t.Errorf("a long text is shown as %d bytes: …%s", len(long), long[len(long)-60:])
	}
}

func TestPlaceOfALetter(t *testing.T) {
	for want, l := range map[string]deadletter.Letter{
		"s3://b/手册 1%.pdf":       {Bucket: "b", Key: "%E6%89%8B%E5%86%8C%201%25.pdf"},
		`s3://b/\x1b[31m\xff`:    {Bucket: "b", Key: "%1B%5B31m%FF"},
		"s3://b/broken%zz":       {Bucket: "b", Key: "broken%zz"},
		"message 1234":           {ID: "1234"},
		`message \u202e<script>`: {ID: "\u202e<script>"},
	} {
		if got := place(&l); got != want {
			t.Errorf("%+v is at %s, want %s", l, got, want)
		}
	}
}

func TestNumbersAndTimes(t *testing.T) {
	now := time.Date(2026, 11, 30, 3, 4, 5, 0, time.UTC)
	for _, c := range [][2]string{
		{number(0), "0"}, {number(999), "999"}, {number(1000), "1,000"}, {number(1234567), "1,234,567"}, {number(-1234), "-1,234"},
		{count(1, "letter"), "1 letter"}, {count(0, "letter"), "0 letters"}, {count(5000, "letter"), "5,000 letters"},
		{span(-time.Second), "0 s"}, {span(59 * time.Second), "59 s"}, {span(61 * time.Minute), "1 h 1 min"}, {span(2 * time.Hour), "2 h"}, {span(50 * time.Hour), "2 d 2 h"}, {span(48 * time.Hour), "2 d"},
		{ago(now.Add(-59*time.Second), now), "just now"}, {ago(now.Add(-2*time.Minute), now), "2 min ago"},
		{clock(now, now), "03:04:05Z"}, {clock(now.Add(-4*time.Hour), now), "2026-11-29 23:04Z"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s, want %s", c[0], c[1])
		}
	}
}
