package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/objectferry/objectferry/internal/reconcile"
)

func TestProgressIsForTerminalsAlone(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, d := range map[string]*differences{"a pipe": newDifferences(&bytes.Buffer{}, w, false, false, 0),
		"/dev/null": newDifferences(&bytes.Buffer{}, null, false, false, 0), "a buffer": newDifferences(&bytes.Buffer{}, &bytes.Buffer{}, false, false, 0)} {
		if d.bar != nil {
			t.Errorf("%s is shown progress", name)
		}
		if err := d.page(nil, reconcile.Totals{}); err != nil {
			t.Error(err)
		}
	}
}

func TestProgressIsOneLineThatRowsDoNotMixWith(t *testing.T) {
	totals := func(keys, missing int64) reconcile.Totals {
		return reconcile.Totals{Keys: keys, Classes: map[reconcile.Class]int64{reconcile.Missing: missing}}
	}
	for _, tt := range []struct {
		keys int64 // in the list
		t    reconcile.Totals
		want string
	}{
		{0, totals(500, 7), "500 keys, 7 missing"},
		{1000, totals(500, 7), "[##########..........] 500 of 1000 keys, 7 missing"},
		{1000, totals(1500, 0), "[####################] 1500 of 1000 keys, 0 missing"}, // it has grown meanwhile
		{1000, totals(1000, 0), "[####################] 1000 of 1000 keys, 0 missing"},
	} {
		var terminal bytes.Buffer // both streams end there
		d := newDifferences(&terminal, &terminal, false, false, 0)
		d.bar = newProgress(&terminal, tt.keys)
		if err := d.page([]reconcile.Row{{Class: reconcile.Missing, Key: "a"}}, tt.t); err != nil {
			t.Fatal(err)
		}
		if _, got, _ := strings.Cut(terminal.String(), "\"a\"\n\r\x1b[K"); got != tt.want {
			t.Errorf("%d keys: %q, want %q after the row", tt.keys, terminal.String(), tt.want)
		}
		terminal.Reset()
		if err := d.end(tt.t, true); err != nil || !strings.HasPrefix(terminal.String(), "\r\x1b[K") {
			t.Errorf("at the end %q, %v", terminal.String(), err)
		}
	}
}

// TestEncodedListIsAnotherList: a state file of the one is none of the other's.
func TestEncodedListIsAnotherList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("a%20b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, encoded := range []bool{false, true} {
		f := reconcileFlags{from: path, encoded: encoded}
		closeKeys, err := f.openKeys(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		closeKeys()
		ids[f.compare.KeysID] = true
	}
	if len(ids) != 2 {
		t.Errorf("both are told by the same id, %v", ids)
	}
}
