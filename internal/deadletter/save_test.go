package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// full is a file on a disk that is full once: a write takes a part of it.
type full struct {
	*os.File
	writes, fails int // fails is the write that does not fit
	synced        int64
}

func (f *full) Write(p []byte) (int, error) {
	if f.writes++; f.writes == f.fails {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errors.New("no space left on device")
	}
	return f.File.Write(p)
}

func (f *full) Sync() error {
	info, err := f.Stat()
	f.synced = info.Size()
	return errors.Join(err, f.File.Sync())
}

// TestNoLetterIsDroppedThatIsNotOnTheDisk: a disk that is full costs the letters
// nothing, and no line of the others.
func TestNoLetterIsDroppedThatIsNotOnTheDisk(t *testing.T) {
	for fails := 1; fails <= 3; fails++ {
		cloud, box := open(t)
		for i := range 25 {
			die(t, cloud, fmt.Sprint(i), "corrupt")
		}
		letters, err := box.Look(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.OpenFile(filepath.Join(t.TempDir(), "dropped"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		w := &full{File: file, fails: fails}
		done, err := box.Drop(t.Context(), letters, w, 0)
		left := cloud.Depth("sync-dead").Total()
		if err == nil || done == 25 || done+left != 25 {
			t.Errorf("write %d fails: %d dropped, %d left, %v", fails, done, left, err)
		}
		text, err := os.ReadFile(file.Name())
		if err != nil || int64(len(text)) != w.synced {
			t.Errorf("write %d fails: %d bytes, of which %d are on the disk, %v", fails, len(text), w.synced, err)
		}
		saved := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		if len(saved) != done {
			t.Errorf("write %d fails: %d dropped, %d saved", fails, done, len(saved))
		}
		for _, line := range saved {
			if err := json.Unmarshal(line, new(Letter)); err != nil {
				t.Errorf("write %d fails: %v in %s", fails, err, line)
			}
		}
	}
}
