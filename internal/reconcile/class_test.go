package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
)

// fill puts a key of each kind into a world.
func fill(w *world) {
	w.src.put("img/missing", 1, "e")
	w.src.put("img/\xff\n", 1, "e")
	w.src.put("img/same", 5, "e")
	w.dst.put("img/same", 5, "e")
	w.src.put("img/size", 5, "e")
	w.dst.put("img/size", 6, "e")
	w.src.put("img/no etag", 5, "")
	w.dst.put("img/no etag", 5, "")
	for _, key := range []string{"img/carried", "img/older", "img/theirs", "img/again"} {
		w.src.put(key, 5, "e")
		w.dst.put(key, 5, "x-2")
	}
	theirs := object.Found{Exists: true, Attributes: object.Attributes{Size: 5, ETag: `"x-2"`}}
	carried, older, again := theirs, theirs, theirs
	carried.SourceETag, older.SourceETag, again.SourceETag, again.SourceCRC64 = `"e"`, `"old"`, `"old"`, "7"
	w.heads["img/theirs"], w.heads["img/carried"], w.heads["img/older"], w.heads["img/again"] = theirs, carried, older, again
	w.dst.put("img/overseas", 1, "e")
	w.src.put("img/archived", 1, "e")
	w.src.put("img/restored", 1, "e")
	for _, key := range []string{"img/archived", "img/restored"} {
		o := w.src.objects[key]
		o.Archived = true
		w.src.objects[key] = o
	}
	w.refusals["img/archived"] = failure(object.Source, object.Archived)
	w.src.put("img/denied", 1, "e")
	w.refusals["img/denied"] = failure(object.Source, object.Denied)
	w.src.put("img/large", 1001, "e")
	w.src.put("img/"+strings.Repeat("x", 1021), 1, "e")
	w.src.put("img/deleted", 1, "e")
	w.heads["img/deleted"] = object.Found{Deleted: true}
	w.src.put("img/private/a", 1, "e")
	w.src.put("other/a", 1, "e")
	w.dst.put("other/b", 1, "e")
}

// TestClassByListings is what two listings tell, and no more is asked.
func TestClassByListings(t *testing.T) {
	w := newWorld(t, "img/**")
	fill(w)
	totals, err := w.run(Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Class{
		"img/missing": Missing, "img/\xff\n": Missing, "img/size": Different, "img/carried": Unsure, "img/older": Unsure, "img/theirs": Unsure, "img/no etag": Unsure,
		"img/again": Unsure, "img/overseas": Overseas, "other/b": Overseas, "img/archived": Archived, "img/restored": Archived, "img/denied": Missing,
		"img/large": Unfit, "img/" + strings.Repeat("x", 1021): Unfit, "img/deleted": Missing,
	}
	if diff := cmp.Diff(want, w.rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if totals.Keys != 19 || totals.Classes[Same] != 1 || totals.Classes[Filtered] != 2 || len(w.asked) > 0 {
		t.Errorf("%+v, asked for %q", totals, w.asked)
	}
}

// TestDeepAsksAboutWhatListingsDoNotTell and about nothing else.
func TestDeepAsksAboutWhatListingsDoNotTell(t *testing.T) {
	w := newWorld(t, "img/**")
	fill(w)
	if _, err := w.run(Config{Deep: true}); err != nil {
		t.Fatal(err)
	}
	want := map[string]Class{
		"img/missing": Missing, "img/\xff\n": Missing, "img/size": Different, "img/older": Different, "img/theirs": Unsure, "img/no etag": Unsure,
		"img/overseas": Overseas, "other/b": Overseas, "img/archived": Archived, "img/restored": Missing, "img/denied": Denied,
		"img/large": Unfit, "img/" + strings.Repeat("x", 1021): Unfit, "img/deleted": Deleted,
	}
	if diff := cmp.Diff(want, w.rows); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	slices.Sort(w.asked)
	asked := []string{"img/again", "img/archived", "img/carried", "img/denied", "img/missing", "img/no etag", "img/older", "img/restored", "img/theirs", "img/\xff\n"}
	if diff := cmp.Diff(asked, w.asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestEachKeyOfAListIsAskedFor(t *testing.T) {
	w := newWorld(t, "img/**")
	fill(w)
	w.refusals["img/same"] = failure(object.Source, object.Denied)
	w.headErrs["img/refused"] = failure(object.Destination, object.Denied)
	totals, err := w.run(Config{Keys: list("img/missing", "img/missing", "img/none", "img/same", "img/size", "img/overseas", "img/large",
		"img/"+strings.Repeat("x", 1021), "img/denied", "img/archived", "img/deleted", "img/refused", "img/private/a", "other/b")})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Class{
		"img/missing": Missing, "img/none": Absent, "img/same": Unsure, "img/size": Different, "img/overseas": Overseas, "img/large": Unfit,
		"img/" + strings.Repeat("x", 1021): Unfit, "img/denied": Denied, "img/archived": Archived, "img/deleted": Deleted, "img/refused": Failed,
	}
	if diff := cmp.Diff(want, w.rows); diff != "" || totals.Keys != 14 || totals.Classes[Filtered] != 2 || totals.Classes[Missing] != 2 {
		t.Errorf("%+v (-want +got):\n%s", totals, diff)
	}
}

// TestFilteredIsNeitherAskedForNorNamedNorRequested is rule 4: the route's filters
// hold for whoever looks, too.
func TestFilteredIsNeitherAskedForNorNamedNorRequested(t *testing.T) {
	keys := []string{"img/private/a", "other/a", "img/../secret/a", "img/a"}
	for name, c := range map[string]Config{"listed": {Deep: true}, "named": {Keys: list(keys...)}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "img/**")
			for _, key := range keys {
				w.src.put(key, 1, "e")
			}
			c.Request = true
			totals, err := w.run(c)
			if err != nil {
				t.Fatal(err)
			}
			only := []string{"img/a"}
			if len(w.told) != 1 || !slices.Equal(w.asked, only) || !slices.Equal(w.requested, only) || totals.Classes[Filtered] != 3 {
				t.Errorf("told %v, asked for %q, requested %q, %+v", w.told, w.asked, w.requested, totals)
			}
		})
	}
}
