package reconcile

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// errForeignState says that a state file is that of another comparison.
var errForeignState = errors.New("the state file is of another comparison")

const stateVersion = 1

// state is what a run needs to go on: all keys up to After are done on both sides.
type state struct {
	After  string
	Totals Totals
	Held   []string // missing keys that wait for the end to be requested
}

// identity is what must be equal for a run to go on with another's state.
type identity struct {
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix"` // percent-encoded, as all keys here
	Keys     string `json:"keys,omitempty"`
	Settings string `json:"settings"` // a digest of the route and of what is done
}

func identify(r *route.Route, c Config) identity {
	text, err := json.Marshal(struct {
		Route                 config.Route
		MaxSize               int64
		Deep, Request, Listed bool
		AtMost                int // of the missing ones beyond it, only their number is kept
	}{r.Route, c.MaxSize, c.Deep, c.Request, c.Keys == nil, c.AtMost})
	if err != nil { // text and numbers: cannot happen
		panic(err)
	}
	return identity{r.Bucket, syncrequest.EscapeKey(c.Prefix), c.KeysID, fmt.Sprintf("%x", sha256.Sum256(text))}
}

// stateFile is the state as it is written.
type stateFile struct {
	Version int `json:"v"`
	identity
	After  string   `json:"after"`
	Totals Totals   `json:"totals"`
	Held   []string `json:"held,omitempty"`
}

// notes keeps the state in a file; without a path it keeps nothing.
type notes struct {
	path    string
	of      identity
	last    state
	resumed bool
}

func openNotes(path string, of identity) (*notes, error) {
	n := &notes{path: path, of: of}
	if path == "" {
		return n, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return n, n.save(state{}) // a place that cannot be written is known before the work
	}
	if err != nil {
		return nil, fmt.Errorf("read state: %w", err)
	}
	var f stateFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("read state %s: %w", path, err)
	}
	if f.Version != stateVersion || f.identity != of {
		return nil, fmt.Errorf("%w (bucket %q, prefix %q): repeat that one's command line, or remove %s", errForeignState, f.Bucket, f.Prefix, path)
	}
	n.last = state{Totals: f.Totals}
	if n.last.After, err = syncrequest.UnescapeKey(f.After); err != nil {
		return nil, fmt.Errorf("read state %s: after: %w", path, err)
	}
	for _, escaped := range f.Held {
		key, err := syncrequest.UnescapeKey(escaped)
		if err != nil {
			return nil, fmt.Errorf("read state %s: held: %w", path, err)
		}
		n.last.Held = append(n.last.Held, key)
	}
	n.resumed = f.Totals.Keys > 0
	return n, nil
}

// save replaces the file at once: whoever reads it, after a kill or a power cut,
// reads this state or the one before.
func (n *notes) save(s state) error {
	if n.path == "" {
		return nil
	}
	f := stateFile{Version: stateVersion, identity: n.of, After: syncrequest.EscapeKey(s.After), Totals: s.Totals}
	for _, key := range s.Held {
		f.Held = append(f.Held, syncrequest.EscapeKey(key))
	}
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	if err := replace(n.path, append(text, '\n')); err != nil {
		return fmt.Errorf("write state: %w", err)
	}
	return nil
}

func replace(path string, text []byte) error {
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func (n *notes) remove() error {
	if n.path == "" {
		return nil
	}
	if err := os.Remove(n.path); err != nil {
		return fmt.Errorf("remove state: %w", err)
	}
	return nil
}
