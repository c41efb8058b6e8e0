package deadletter

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/objectferry/objectferry/internal/glob"
	"github.com/objectferry/objectferry/internal/object"
)

// Filter says which letters are meant; its zero value means all.
type Filter struct {
	End    string
	Detail string
	Match  string // a glob on the decoded key

	set glob.Set
}

// Validate compiles the filter and names every wrong field.
func (f *Filter) Validate() error {
	var problems []error
	if f.End != "" && f.End != string(object.EndPoison) && f.End != string(object.EndFailed) {
		problems = append(problems, fmt.Errorf("end %q: dead letters end %s or %s", f.End, object.EndPoison, object.EndFailed))
	}
	if f.Match != "" {
		var err error
		if f.set, err = glob.Compile(f.Match); err != nil {
			problems = append(problems, fmt.Errorf("match: %w", err))
		}
	}
	return errors.Join(problems...)
}

// Wants reports whether l is meant. A letter without a readable key is not meant
// by a glob.
func (f *Filter) Wants(l *Letter) bool {
	return (f.End == "" || f.End == l.End) && (f.Detail == "" || f.Detail == l.Detail) &&
		(f.Match == "" || l.Bucket != "" && f.set.Match(l.key))
}

// Group is the letters of one queue with one reason.
type Group struct {
	Queue   string    `json:"queue"`
	End     string    `json:"end"`
	Detail  string    `json:"detail"`
	Letters int       `json:"letters"`
	Oldest  time.Time `json:"oldest"`
	Example Letter    `json:"example"`
}

// Groups collects letters by queue and reason.
type Groups map[[3]string]*Group

// Add counts l; the oldest letter is the example.
func (g Groups) Add(l *Letter) {
	key := [3]string{l.Queue, l.End, l.Detail}
	group := g[key]
	if group == nil {
		group = &Group{Queue: l.Queue, End: l.End, Detail: l.Detail, Oldest: l.Sent, Example: *l}
		g[key] = group
	}
	group.Letters++
	if l.Sent.Before(group.Oldest) {
		group.Oldest, group.Example = l.Sent, *l
	}
}

// Sorted lists the groups, the largest first.
func (g Groups) Sorted() []*Group {
	return slices.SortedFunc(maps.Values(g), func(a, b *Group) int {
		return cmp.Or(cmp.Compare(b.Letters, a.Letters), cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.End, b.End), cmp.Compare(a.Detail, b.Detail))
	})
}
