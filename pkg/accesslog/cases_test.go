package accesslog

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type testCase struct {
	ID         int
	Line       string
	Want       map[string]any
	Verdict    Verdict
	Needs      string
	Note       string
	DontAssert []string `json:"dont_assert"`
}

// cases reads testdata/loglines.jsonl.
func cases(t testing.TB) []testCase {
	f, err := os.Open("testdata/loglines.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []testCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) != 71 {
		t.Fatalf("%d cases", len(all))
	}
	return all
}

// want is what the row's verdict is when it is judged alone.
func (c testCase) want() Verdict {
	if c.Needs != "" {
		return Miss
	}
	return c.Verdict
}

func TestEveryCaseGivesItsAnswer(t *testing.T) {
	var row Row // one for all, as a Scanner has
	for _, c := range cases(t) {
		t.Run(c.Note, func(t *testing.T) {
			row.Parse([]byte(c.Line))
			if row.Verdict != c.want() {
				t.Errorf("case %d: %s (%s), want %s (%s)", c.ID, row.Verdict, row.Why, c.want(), c.Verdict)
			}
			if c.Want["parse_error"] == true || c.Want["blank"] == true {
				if diff := cmp.Diff(Fields{}, row.Fields()); diff != "" {
					t.Error(diff)
				}
				return
			}
			printed, err := json.Marshal(row.Fields())
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := json.Unmarshal(printed, &got); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.DontAssert {
				delete(got, name)
				delete(c.Want, name)
			}
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("case %d: %s", c.ID, diff)
			}
		})
	}
}
