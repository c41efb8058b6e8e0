package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Messages may hold anything: keys are chosen by strangers, and dead letters may
// come from other programs. What a terminal would obey, such as escape sequences
// and C1 controls, or show in another order than it stands, never reaches it.

// printJSON writes v as one line of JSON in ASCII.
func printJSON(w io.Writer, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	ascii := make([]byte, 0, len(line)+1)
	for _, r := range string(line) {
		switch high, low := utf16.EncodeRune(r); {
		case r < 0x7f: // json has escaped those below a space
			ascii = append(ascii, byte(r))
		case high != utf8.RuneError:
			ascii = fmt.Appendf(ascii, `\u%04x\u%04x`, high, low)
		default:
			ascii = fmt.Appendf(ascii, `\u%04x`, r)
		}
	}
	_, err = w.Write(append(ascii, '\n'))
	return err
}

// plain returns a word as it is, and quotes what is not a plain word.
func plain(s string) string {
	if quoted := strconv.QuoteToASCII(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
