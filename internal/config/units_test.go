package config

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"16MiB": 16 << 20, "1GiB": 1 << 30, "2TiB": 2 << 40, "64KiB": 64 << 10,
		"500KB": 500_000, "3MB": 3_000_000, "1GB": 1e9, "50TB": 50e12, "12B": 12, "12": 12, "0": 0,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q = %d, %v, want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "MiB", "16M", "16mb", "16 MiB", "1.5GiB", "-1", "+1", "0x10", "1e3", "16MiBB", "iB", "1_000", "9223372036854775808", "9007199254740993TiB"} {
		s := Size(7)
		if err := s.UnmarshalText([]byte(text)); err == nil || s != 7 {
			t.Errorf("%q was read as %d", text, s)
		}
	}
}

func TestDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{"72h": 72 * time.Hour, "100ms": 100 * time.Millisecond, "1h30m": 90 * time.Minute, "0": 0} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err != nil || time.Duration(d) != want {
			t.Errorf("%q = %v, %v, want %v", text, d, err, want)
		}
	}
	for _, text := range []string{"", "45", "7d", "soon", "1 h"} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), `"72h"`) {
			t.Errorf("%q: %v, want an error that shows how", text, err)
		}
	}
}

func TestUnitsSurviveTextYAMLAndJSON(t *testing.T) {
	type both struct {
		D Duration `yaml:"d" json:"d"`
		S Size     `yaml:"s" json:"s"`
	}
	rapid.Check(t, func(t *rapid.T) {
		in := both{
			Duration(rapid.Int64().Draw(t, "d")),
			Size(rapid.OneOf(rapid.Int64Min(0), rapid.Map(rapid.Int64Range(0, 1<<20), func(n int64) int64 { return n << 20 })).Draw(t, "s")),
		}
		var fromJSON, fromYAML both
		if text, err := json.Marshal(in); err != nil || json.Unmarshal(text, &fromJSON) != nil || fromJSON != in {
			t.Fatalf("JSON %s: %+v from %+v, %v", text, fromJSON, in, err)
		}
		if text, err := yaml.Marshal(in); err != nil || yaml.Unmarshal(text, &fromYAML) != nil || fromYAML != in {
			t.Fatalf("YAML %s: %+v from %+v, %v", text, fromYAML, in, err)
		}
	})
	var s both
	if err := json.Unmarshal([]byte(`{"s": 1024}`), &s); err != nil || s.S != 1024 {
		t.Errorf("a plain JSON number: %d, %v", s.S, err)
	}
}
