package reconcile

import (
	"strings"

	"github.com/objectferry/objectferry/internal/object"
)

// Class is what a comparison finds of a key: a closed set.
type Class string

// The classes.
const (
	Same      Class = "same"
	Missing   Class = "missing"   // at the source, not overseas; a request can heal it
	Different Class = "different" // both have it, and not the same version of it
	Unsure    Class = "unsure"    // both have it, and cannot be compared by what is known
	Overseas  Class = "overseas"  // overseas only
	Denied    Class = "denied"    // not overseas, and the source refuses it
	Archived  Class = "archived"  // not overseas, and must be restored at the source first
	Unfit     Class = "unfit"     // not overseas, and cannot exist there
	Deleted   Class = "deleted"   // deleted overseas on purpose: a delete marker stands there
	Absent    Class = "absent"    // on neither side
	Filtered  Class = "filtered"  // the route does not carry it
	Failed    Class = "failed"    // it could not be asked for
)

// Classes are all classes, in the order in which they are told.
func Classes() []Class {
	return []Class{Same, Missing, Different, Unsure, Overseas, Denied, Archived, Unfit, Deleted, Absent, Filtered, Failed}
}

// atSource is the row of a key that only the source lists. Whether it may be read,
// or was deleted overseas, a listing does not tell.
func (c *Comparison) atSource(o object.Listed) item {
	row := Row{Class: Missing, Key: o.Key, Source: version(o)}
	switch {
	case !c.deps.Route.Carries(o.Key):
		return item{Row: Row{Class: Filtered, Key: o.Key}}
	case len(o.Key) > object.MaxKey || o.Size > c.cfg.MaxSize:
		row.Class = Unfit
		return item{Row: row}
	case o.Archived:
		row.Class, row.Why = Archived, "by its storage class"
	}
	return item{row, c.cfg.Deep}
}

// onBoth is the row of a key that both sides list. An ETag is the MD5 of what was
// put in one piece, without a KMS key: equal ones are the same bytes, different
// ones say little.
func (c *Comparison) onBoth(src, dst object.Listed) item {
	row := Row{Class: Unsure, Key: src.Key, Source: version(src), Destination: version(dst), Why: "the ETags cannot be compared"}
	switch {
	case !c.deps.Route.Carries(src.Key):
		return item{Row: Row{Class: Filtered, Key: src.Key}}
	case src.Size != dst.Size:
		row.Class, row.Why = Different, whySize
	case sameETag(src.ETag, dst.ETag):
		row.Class, row.Why = Same, ""
	default:
		return item{row, c.cfg.Deep}
	}
	return item{Row: row}
}

const whySize = "size"

func overseas(o object.Listed) item {
	return item{Row: Row{Class: Overseas, Key: o.Key, Destination: version(o)}}
}

func version(o object.Listed) *Version { return &Version{o.Size, o.ETag, o.LastModified} }

// sameETag compares ETags with and without quotes; none is like no other.
func sameETag(a, b string) bool {
	a, b = strings.Trim(a, `"`), strings.Trim(b, `"`)
	return a == b && a != ""
}
