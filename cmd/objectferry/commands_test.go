package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/objectferry/objectferry/internal/config"
)

func TestExitCodesComeFromOneTable(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		err    error
		code   int
		stderr string
	}{
		{nil, 0, ""},
		{boom, 1, "objectferry: boom\n"},
		{fmt.Errorf("look: %w", context.Canceled), 1, "objectferry: interrupted\n"},
		{fmt.Errorf("run: %w", usageError{boom}), 2, "objectferry: run: boom\n"},
		{config.Errors{{Source: "f.yaml", Line: 3, Field: "region", Text: "is missing"}, {Text: "more"}}, 2, "f.yaml:3: region: is missing\nmore\n"},
		{fmt.Errorf("redrive: %w", partlyError{boom}), 3, "objectferry: redrive: boom\n"},
		{partlyError{context.Canceled}, 3, "objectferry: context canceled\n"}, // what was done counts
	} {
		var stderr bytes.Buffer
		if code := exitCode(tt.err, &stderr); code != tt.code || stderr.String() != tt.stderr {
			t.Errorf("%v is %d with %q, want %d with %q", tt.err, code, stderr.String(), tt.code, tt.stderr)
		}
	}
}

// At 3 a.m. an example is what one reads of a help text.
func TestEveryCommandHasAnExampleOfItself(t *testing.T) {
	seen := 0
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		seen++
		if c.Short == "" || !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s: short %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		for line := range strings.Lines(c.Example) {
			path := strings.Fields(line[strings.Index(line, "objectferry"):])
			if _, _, err := c.Root().Find(path[1:2]); err != nil && path[0] == "objectferry" {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
			}
		}
		for _, sub := range c.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand())
	if seen < 10 {
		t.Errorf("only %d commands", seen)
	}
}

func TestJSONIsPrintedInASCII(t *testing.T) {
	var out bytes.Buffer
	if err := printJSON(&out, map[string]string{"k": "a\x1b\u007f\u009b\u202e界🎉\xff<\n"}); err != nil {
		t.Fatal(err)
	}
	want := `{"k":"a\u001b\u007f\u009b\u202e\u754c\ud83c\udf89\ufffd\u003c\n"}` + "\n"
	if out.String() != want {
		t.Errorf("printed %q\nwant    %q", out.String(), want)
	}
}
