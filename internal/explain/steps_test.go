package explain

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/glob"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// explainer has a route and asks nobody.
func explainer(t *testing.T, file string) (*Explainer, *route.Route) {
	t.Helper()
	c := config.Default()
	c.Routes = []config.Route{{Bucket: "media", Source: config.Source{COS: "https://media-1250000000.cos.ap-shanghai.myqcloud.com", Read: config.ReadAnonymous}}}
	x, err := New(c, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return x, x.routes.Routes()[0]
}

func (x *Explainer) stepsOf(r *route.Route, key string, o Outcome) []Step {
	size := int64(1)
	return x.steps(&Explanation{Bucket: "media", key: key, Route: &Route{}, Request: o,
		Destination: &Answer{State: Present, Size: &size}, Source: &Answer{State: Present, Size: &size}}, r)
}

// words is a command as a shell reads it.
func words(t *testing.T, command string) []string {
	t.Helper()
	program, _, _ := strings.Cut(command, " ")
	out, err := exec.Command("sh", "-c", program+"() { printf '%s\\0' \"$@\"; }\n"+command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestCommandsAreSafeForAShellWhateverTheKey(t *testing.T) {
	for _, key := range []string{"img/a.jpg", "it's", "$(id)", "`id`", "a b", `a\b"c`, "-rf", "*?[{", "~", "#x", "!!", "=", "/lead", "//", "测试.jpg", "a\nb", "\x1b[31m", "\xff\xfe", "\x00", strange} {
		x, r := explainer(t, "it's mine.yaml")
		for _, o := range []Outcome{{Then: Settled, End: object.EndCopied}, {Then: Settled, End: object.EndArchived}, {Then: Again, End: object.EndFailed},
			{Then: Settled, End: object.EndFiltered, Detail: object.DetailDeleted}, {Then: Waits}} {
			for _, s := range x.stepsOf(r, key, o) {
				if strings.ContainsFunc(s.Command, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) {
					t.Errorf("%q: %q is not one line that can be shown", key, s.Command)
				}
				if s.Command == "" {
					continue
				}
				got := words(t, s.Command)
				last := got[len(got)-1]
				switch got[0] {
				case "request":
					if strings.Contains(s.Command, " --encoded ") {
						last, _ = syncrequest.UnescapeKey(last)
					}
					if diff := cmp.Diff([]string{"request", "--config", "it's mine.yaml", "--bucket", "media"}, got[:5]); diff != "" || last != key {
						t.Errorf("%q: %q is read as %q", key, s.Command, got)
					}
				case "deadletter":
					if set, err := glob.Compile(last); err != nil || !set.Match(key) {
						t.Errorf("%q: %q does not match it: %v", key, last, err)
					}
				case "restore":
					if got[1] != "cos://media-1250000000/"+key {
						t.Errorf("%q: %q is read as %q", key, s.Command, got)
					}
				case "s3api":
					if last != key {
						t.Errorf("%q: %q is read as %q", key, s.Command, got)
					}
				}
			}
		}
	}
}

// TestNoWordIsAPathForZsh: it takes "=ls" for the path of ls.
func TestNoWordIsAPathForZsh(t *testing.T) {
	x, r := explainer(t, "objectferry.yaml")
	for _, s := range x.stepsOf(r, "=ls", Outcome{Then: Settled, End: object.EndCopied}) {
		if s.Command != "" && !strings.HasSuffix(s.Command, " '=ls'") {
			t.Errorf("%s", s.Command)
		}
	}
}

func TestEachEndHasItsCommand(t *testing.T) {
	x, r := explainer(t, "objectferry.yaml")
	const show = "objectferry deadletter show --queue sync --match a.jpg"
	for name, tt := range map[string]struct {
		outcome Outcome
		want    []string // commands, "" where there is none
	}{
		"copied":   {Outcome{Then: Settled, End: object.EndCopied}, []string{"objectferry request --bucket media -- a.jpg", show}},
		"present":  {Outcome{Then: Settled, End: object.EndPresent}, []string{"", show}},
		"absent":   {Outcome{Then: Settled, End: object.EndAbsent}, []string{"objectferry request --bucket media -- a.jpg", show}},
		"denied":   {Outcome{Then: Settled, End: object.EndDenied}, []string{"objectferry request --bucket media -- a.jpg", show}},
		"archived": {Outcome{Then: Settled, End: object.EndArchived}, []string{"coscli restore cos://media-1250000000/a.jpg --endpoint cos.ap-shanghai.myqcloud.com --days 3", "objectferry request --bucket media -- a.jpg", show}},
		"unfit":    {Outcome{Then: Settled, End: object.EndUnfit}, []string{"", show}},
		"filtered": {Outcome{Then: Settled, End: object.EndFiltered}, []string{"objectferry check", show}},
		"observed": {Outcome{Then: Settled, End: object.EndFiltered, Detail: object.DetailObserved}, []string{"objectferry request --bucket media -- a.jpg", show}},
		"deleted":  {Outcome{Then: Settled, End: object.EndFiltered, Detail: object.DetailDeleted}, []string{"aws s3api list-object-versions --bucket media --prefix a.jpg", show}},
		"failed":   {Outcome{Then: Again, End: object.EndFailed, Detail: object.DetailCorrupt}, []string{"objectferry deadletter redrive --queue sync --match a.jpg", show}},
		"waiting":  {Outcome{Then: Waits}, []string{"objectferry check --live --role copy", show}},
	} {
		var got []string
		for _, s := range x.stepsOf(r, "a.jpg", tt.outcome) {
			got = append(got, s.Command)
			if s.Text == "" {
				t.Errorf("%s: a step says nothing", name)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
	none := x.steps(&Explanation{Bucket: "other", key: "a.jpg"}, nil)
	if len(none) != 1 || none[0].Command != "objectferry deadletter redrive --detail unrouted" {
		t.Errorf("without a route: %+v", none)
	}
}
