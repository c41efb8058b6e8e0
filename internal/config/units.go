package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Duration is a time.Duration that is written as "72h", "45s" or "100ms" in YAML,
// JSON and text.
type Duration time.Duration

// String is the form that UnmarshalText reads.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText is String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a number with its unit; a number alone is refused.
func (d *Duration) UnmarshalText(text []byte) error {
	t, err := time.ParseDuration(string(text))
	if err != nil {
		return errors.New(`must be a time with its unit, such as "72h", "45s" or "100ms" (there are no days: write 7 days as "168h")`)
	}
	*d = Duration(t)
	return nil
}

// Size is a number of bytes. It is written as "16MiB", "500KB" or as a plain
// number in YAML, JSON and text.
type Size int64

// sizeUnits, largest first of each kind, so that String finds the shortest form.
var sizeUnits = [...]struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1},
}

var errSize = errors.New(`must be a whole number of bytes with a unit, such as "16MiB", "1GiB" or "500KB", or without one`)

// String is a form that UnmarshalText reads back to the same number.
func (s Size) String() string {
	for _, u := range sizeUnits {
		if s != 0 && int64(s)%u.bytes == 0 {
			return fmt.Sprintf("%d%s", int64(s)/u.bytes, u.name)
		}
	}
	return "0B"
}

// MarshalText is String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads digits and a unit: KiB, MiB, GiB, TiB (powers of 1024), KB,
// MB, GB, TB (powers of 1000), B or none. Other spellings are refused, because
// "16M" and "16mb" mean different things to different people.
func (s *Size) UnmarshalText(text []byte) error {
	digits := strings.TrimRight(string(text), "BKMGTi")
	unit := string(text[len(digits):])
	n, err := strconv.ParseUint(digits, 10, 63)
	if errors.Is(err, strconv.ErrRange) {
		return errors.New("is too large")
	}
	if err != nil {
		return errSize
	}
	if unit == "" {
		unit = "B"
	}
	for _, u := range sizeUnits {
		if u.name != unit {
			continue
		}
		if int64(n) > math.MaxInt64/u.bytes {
			return errors.New("is too large")
		}
		*s = Size(int64(n) * u.bytes)
		return nil
	}
	return errSize
}

// UnmarshalJSON reads a string as UnmarshalText does, or a plain number.
func (s *Size) UnmarshalJSON(data []byte) error {
	text := string(data)
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	return s.UnmarshalText([]byte(text))
}
