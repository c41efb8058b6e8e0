package deadletter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// save writes letters to w, a JSON line each. All are durable when it returns;
// when it fails, none of them may be deleted, and a file is as it was before, so
// that what comes next does not continue half a line.
func save(w io.Writer, letters []*Letter) error {
	var lines bytes.Buffer
	for _, l := range letters {
		line, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("write %s: %w", l, err)
		}
		lines.Write(append(line, '\n'))
	}
	takeBack := func() error { return nil }
	if f, ok := w.(interface {
		Stat() (fs.FileInfo, error)
		Truncate(int64) error
	}); ok {
		info, err := f.Stat()
		if err != nil {
			return fmt.Errorf("write dead letters: %w", err)
		}
		if info.Mode().IsRegular() {
			takeBack = func() error { return f.Truncate(info.Size()) }
		}
	}
	_, err := w.Write(lines.Bytes())
	if f, ok := w.(interface{ Sync() error }); ok && err == nil {
		err = f.Sync()
	}
	if err != nil {
		return fmt.Errorf("write dead letters: %w", errors.Join(err, takeBack()))
	}
	return nil
}
