package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/objectferry/objectferry/internal/deadletter"
	"github.com/objectferry/objectferry/internal/telemetry"
)

// maxText is how much of one text from outside is shown, in bytes.
const maxText = 2048

// visible shows what a reader would not see, or see in another order than it
// stands: control characters, bytes that are not UTF-8, marks of direction. It
// escapes no markup, the templates do.
func visible(s string) string {
	cut := ""
	if len(s) > maxText {
		end := maxText
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		cut = fmt.Sprintf(" … (%d bytes in all)", len(s))
		s = s[:end]
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`) + cut
}

// place names what a letter is about.
func place(l *deadletter.Letter) string {
	if l.Bucket == "" {
		return "message " + visible(l.ID)
	}
	key, err := url.PathUnescape(l.Key)
	if err != nil {
		key = l.Key
	}
	return visible("s3://" + l.Bucket + "/" + key)
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// number groups thousands.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// span is a time in the two largest units at most: a page that is read at night
// needs no seconds of a day.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 24*time.Hour:
		if m := int(d.Minutes()) % 60; m != 0 {
			return fmt.Sprintf("%d h %d min", int(d.Hours()), m)
		}
		return fmt.Sprintf("%d h", int(d.Hours()))
	default:
		days, h := int(d.Hours())/24, int(d.Hours())%24
		if h != 0 {
			return fmt.Sprintf("%d d %d h", days, h)
		}
		return fmt.Sprintf("%d d", days)
	}
}

// clock is a time of the day, with the day when it is another one than now's.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05Z")
	}
	return t.Format("2006-01-02 15:04Z")
}

// hour is an hour of the log, with its day when it is another one than now's.
func hour(h telemetry.Hour, now time.Time) string {
	t := time.Unix(int64(h)*3600, 0).UTC()
	if h/24 == telemetry.HourOf(now)/24 {
		return t.Format("15:04Z")
	}
	return t.Format("Jan 2 15:04Z")
}

// ago is how long before now t was, in steps that do not change at each look.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	if d < time.Minute {
		return "just now"
	}
	return span(d) + " ago"
}
