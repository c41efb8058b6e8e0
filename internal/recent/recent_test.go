package recent

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestGetReturnsWhatWasPutLast(t *testing.T) {
	table := New[string](10, time.Minute)
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	table.Put("b", "k", "one", first)
	table.Put("b", "k", "two", second)
	table.Put("b2", "k", "other bucket", first)

	if v, at, ok := table.Get("b", "k"); !ok || v != "two" || !at.Equal(second) {
		t.Errorf("Get = %q, %v, %v", v, at, ok)
	}
	if v, _, ok := table.Get("b2", "k"); !ok || v != "other bucket" {
		t.Errorf("Get of the other bucket = %q, %v", v, ok)
	}
	if _, _, ok := table.Get("b", "k2"); ok {
		t.Error("a key that was never put is known")
	}
	if n := table.Len(); n != 2 {
		t.Errorf("%d entries for two keys", n)
	}
}

func TestFullTableForgetsTheOldestPut(t *testing.T) {
	table := New[int](2, time.Minute)
	table.Put("b", "1", 1, time.Time{})
	table.Put("b", "2", 2, time.Time{})
	table.Put("b", "1", 1, time.Time{}) // put again: now "2" is the oldest
	table.Put("b", "3", 3, time.Time{})

	for key, want := range map[string]bool{"1": true, "2": false, "3": true} {
		if _, _, ok := table.Get("b", key); ok != want {
			t.Errorf("key %q known: %v, want %v", key, ok, want)
		}
	}
}

func TestEntriesEndWithTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New[int](10, time.Minute)
		table.Put("b", "1", 1, time.Time{})
		time.Sleep(time.Minute - 1)
		if _, _, ok := table.Get("b", "1"); !ok {
			t.Error("forgotten too soon")
		}
		time.Sleep(time.Nanosecond)
		if _, _, ok := table.Get("b", "1"); ok {
			t.Error("known after its time")
		}

		table.Put("b", "2", 1, time.Time{})
		time.Sleep(time.Hour)
		table.Put("b", "3", 1, time.Time{})
		if n := table.Len(); n != 1 {
			t.Errorf("%d entries held, the old one takes room", n)
		}
	})
}

func TestLongKeysDoNotTakeMoreRoom(t *testing.T) {
	table := New[int](100, time.Minute)
	for i := range 1000 {
		table.Put("b", fmt.Sprint(i)+strings.Repeat("x", 1000), i, time.Time{})
	}
	if table.bytes > 100*keyBytes {
		t.Errorf("keys take %d bytes", table.bytes)
	}
	table.Put("b", strings.Repeat("x", 1<<20), 0, time.Time{}) // more than the whole table's room
	if table.Len() != 0 || table.bytes != 0 {
		t.Errorf("%d entries, %d bytes after a key that does not fit", table.Len(), table.bytes)
	}
	table.Put("b", "k", 7, time.Time{})
	if v, _, ok := table.Get("b", "k"); !ok || v != 7 {
		t.Error("the table is unusable after a key that does not fit")
	}
}

func TestTableOfNothingRemembersNothing(t *testing.T) {
	for _, table := range []*Table[int]{New[int](0, time.Minute), New[int](10, 0)} {
		table.Put("b", "k", 1, time.Time{})
		if _, _, ok := table.Get("b", "k"); ok {
			t.Error("remembered")
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	table := New[int](50, time.Minute)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 500 {
				key := fmt.Sprint(i % 70)
				table.Put("b", key, g, time.Time{})
				table.Get("b", key)
			}
		})
	}
	wg.Wait()
	if n := table.Len(); n > 50 {
		t.Errorf("%d entries in a table of 50", n)
	}
}
