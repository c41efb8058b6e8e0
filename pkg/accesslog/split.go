package accesslog

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"time"
)

// split finds the fields up to the status block and keeps the rest as it is. It
// sets them all, or returns why it cannot.
func (r *Row) split(line []byte) Why {
	if line[0] == '{' {
		return JSONForm
	}
	rest, why := r.splitOrigin(line)
	if why != "" {
		return why
	}
	var ok bool
	if r.RemoteIP, rest, ok = cut(rest); !ok {
		return NotARow
	}
	r.RemoteIP = field(r.RemoteIP)

	// The first quote opens the request-URI, unless what stands before it is more
	// than requester, request id, operation and key: then the URI is a bare dash,
	// and the quote is one of the referer's or the user agent's.
	if q := bytes.IndexByte(rest, '"'); q >= 0 && r.splitHead(rest[:q]) {
		return r.splitQuoted(rest[q+1:])
	}
	return r.splitBare(rest)
}

// splitOrigin finds owner, bucket and time and returns what follows. Most rows
// begin as the row before, up to the clock; then there is little to look at.
func (r *Row) splitOrigin(line []byte) (rest []byte, why Why) {
	known := len(r.origin) > 0 && bytes.HasPrefix(line, r.origin)
	if known {
		bracket := len(r.origin) - dateLen - 1
		r.Owner, r.Bucket, rest = line[:r.ownerLen], line[r.ownerLen+1:bracket-1], line[bracket:]
	} else {
		var ok1, ok2 bool
		r.Owner, rest, ok1 = cut(line)
		r.Bucket, rest, ok2 = cut(rest)
		if !ok1 || !ok2 || len(rest) == 0 || rest[0] != '[' {
			return nil, NotARow
		}
	}
	const bracketed = 1 + timeLen + 2 // "[time] "
	if len(rest) < bracketed || rest[bracketed-2] != ']' || rest[bracketed-1] != ' ' {
		return nil, BadTime
	}
	r.time, rest = rest[1:1+timeLen], rest[bracketed:]
	if known && string(r.time[dateLen+clockLen:]) == utc {
		if _, ok := parseClock(r.time[dateLen:]); !ok {
			return nil, BadTime
		}
		return rest, ""
	}
	t, ok := parseTime(r.time)
	if !ok {
		return nil, BadTime
	}
	r.midnight = time.Time{}
	if string(r.time[dateLen+clockLen:]) == utc {
		inDay, _ := parseClock(r.time[dateLen:])
		r.midnight = t.Add(-inDay)
	}
	r.ownerLen = len(r.Owner)
	r.origin = append(r.origin[:0], line[:len(r.Owner)+1+len(r.Bucket)+2+dateLen]...)
	return rest, ""
}

// splitQuoted reads on behind the request-URI's opening quote.
func (r *Row) splitQuoted(rest []byte) Why {
	for end := 0; ; end++ {
		i := bytes.IndexByte(rest[end:], '"')
		if i < 0 {
			return NoStatus
		}
		end += i
		if end+2 < len(rest) && rest[end+1] == ' ' && r.splitBlock(rest[end+2:]) {
			r.RequestURI = field(rest[:end])
			return ""
		}
	}
}

// splitBare reads from behind the remote IP on where the request-URI is a bare
// dash, as in batch deletes and copies.
func (r *Row) splitBare(rest []byte) Why {
	for at := 0; ; at += 2 {
		i := bytes.Index(rest[at:], []byte(" - "))
		if i < 0 {
			return NotARow
		}
		at += i
		if r.splitBlock(rest[at+3:]) && r.splitHeadBackward(rest[:at+1]) {
			r.RequestURI = nil
			return ""
		}
	}
}

// splitHead splits requester, request id, operation and key, each followed by a
// space. Nearly all requesters hold no space, and searching forward is faster;
// with just four tokens both ways find the same.
func (r *Row) splitHead(head []byte) bool {
	requester, rest, ok1 := cut(head)
	id, rest, ok2 := cut(rest)
	op, rest, ok3 := cut(rest)
	key, rest, ok4 := cut(rest)
	if ok1 && ok2 && ok3 && ok4 && len(rest) == 0 {
		return r.setHead(requester, id, op, key)
	}
	return r.splitHeadBackward(head)
}

// splitHeadBackward takes the last three tokens and leaves all that is before
// them to the requester.
func (r *Row) splitHeadBackward(head []byte) bool {
	head, key, ok1 := cutLast(head)
	head, op, ok2 := cutLast(head)
	head, id, ok3 := cutLast(head)
	if !ok1 || !ok2 || !ok3 || len(head) < 2 || head[len(head)-1] != ' ' {
		return false
	}
	return r.setHead(head[:len(head)-1], id, op, key)
}

// setHead refuses what has no operation where one must be.
func (r *Row) setHead(requester, id, op, key []byte) bool {
	if r.kind = kindOf(op); r.kind == unknown {
		return false
	}
	r.Requester, r.RequestID, r.Operation, r.KeyRaw = field(requester), field(id), op, field(key)
	return true
}

// splitBlock reads status, error code, bytes sent, object size, total time and
// turn-around time, and wants a referer to begin behind them: a row that ends
// earlier was cut off.
func (r *Row) splitBlock(b []byte) bool {
	status, i := 0, 0
	switch {
	case len(b) < 4:
		return false
	case b[0] == '-' && b[1] == ' ':
		i = 2
	case isDigit(b[0]) && isDigit(b[1]) && isDigit(b[2]) && b[3] == ' ':
		status = int(b[0]-'0')*100 + int(b[1]-'0')*10 + int(b[2]-'0')
		i = 4
	default:
		return false
	}
	code := i
	if i = skipCode(b, i); i < 0 {
		return false
	}
	numbers := i
	for range 4 {
		if i = skipNumber(b, i); i < 0 {
			return false
		}
	}
	if i == len(b) || b[i] != '"' && b[i] != '-' {
		return false
	}
	r.Status = status
	r.ErrorCode = field(b[code : numbers-1])
	r.numbers = b[numbers : i-1]
	r.tail = b[i:]
	return true
}

const (
	maxCode   = 64
	maxDigits = 18 // what surely fits into an int64
)

// skipCode returns where the token behind the error code at i begins, or -1.
func skipCode(b []byte, i int) int {
	if i+1 < len(b) && b[i] == '-' && b[i+1] == ' ' {
		return i + 2
	}
	for n := 0; n <= maxCode && i+n < len(b); n++ {
		c := b[i+n]
		if c == ' ' && n > 0 {
			return i + n + 1
		}
		if !isLetter(c) && (n == 0 || !isDigit(c) && c != '.' && c != '_') {
			return -1
		}
	}
	return -1
}

// skipNumber returns where the token behind the number or dash at i begins, or
// -1.
func skipNumber(b []byte, i int) int {
	if i+1 < len(b) && b[i] == '-' && b[i+1] == ' ' {
		return i + 2
	}
	n := countDigits(b, i)
	if n == 0 || n > maxDigits || i+n >= len(b) || b[i+n] != ' ' {
		return -1
	}
	return i + n + 1
}

// countDigits returns how many digits stand at i. It looks at eight bytes at
// once, as numbers of varying length would mislead the branch predictor at each
// end.
func countDigits(b []byte, i int) int {
	n := 0
	for ; i+n+8 <= len(b); n += 8 {
		x := binary.LittleEndian.Uint64(b[i+n:]) ^ 0x3030303030303030 // digits become 0 to 9
		// The high bit of the first byte over 9 is set; those behind it may be wrong.
		if over := (x + 0x7676767676767676 | x) & 0x8080808080808080; over != 0 {
			return n + bits.TrailingZeros64(over)/8
		}
	}
	for i+n < len(b) && isDigit(b[i+n]) {
		n++
	}
	return n
}

// cut splits b behind its first space; the token must not be empty.
func cut(b []byte) (token, rest []byte, ok bool) {
	i := bytes.IndexByte(b, ' ')
	if i <= 0 {
		return nil, nil, false
	}
	return b[:i], b[i+1:], true
}

// cutLast splits off the last token of b, which ends with a space.
func cutLast(b []byte) (rest, token []byte, ok bool) {
	if len(b) < 2 || b[len(b)-1] != ' ' {
		return nil, nil, false
	}
	b = b[:len(b)-1]
	i := bytes.LastIndexByte(b, ' ')
	if i < 0 || i == len(b)-1 {
		return nil, nil, false
	}
	return b[:i+1], b[i+1:], true
}

// field returns nil for S3's sign of an empty field.
func field(b []byte) []byte {
	if len(b) == 1 && b[0] == '-' {
		return nil
	}
	return b
}

func isDigit(c byte) bool  { return c-'0' < 10 }
func isLetter(c byte) bool { return c|0x20-'a' < 26 }
