package accesslog

import "bytes"

// Key returns the object's key, decoded, or nil when there is none or it cannot
// be decoded. It is arbitrary bytes: it may hold spaces, line feeds, slashes at
// either end and bytes that are not UTF-8.
//
// S3 percent-encodes the key in the log twice for most operations, once for
// batch deletes and its own, as an HTML form does: a space may stand as "+" below
// the outer encoding. A key that shows no sign of a second encoding is decoded
// once. Where the two readings differ and the request-URI agrees with one of them,
// it decides; it is never the source of the key, as index documents and query
// strings make it differ.
func (r *Row) Key() []byte {
	if !r.decoded {
		r.decoded = true
		r.key = r.decodeKey()
	}
	return r.key
}

func (r *Row) decodeKey() []byte {
	raw := r.KeyRaw
	if bytes.IndexByte(raw, '%') < 0 && bytes.IndexByte(raw, '+') < 0 {
		return raw
	}
	once, ok := unescape(r.scratch[0][:0], raw)
	if !ok {
		return nil // then there is no second reading either
	}
	r.scratch[0] = once
	if isSingleEncoded(r.Operation) {
		return once
	}
	twice, ok := unescape(r.scratch[1][:0], once)
	if ok {
		r.scratch[1] = twice
	} else {
		twice = nil
	}
	isOnce, isTwice := r.uriNames(once), twice != nil && r.uriNames(twice)
	switch {
	case isOnce != isTwice && isOnce:
		return once
	case isOnce != isTwice || looksTwice(raw):
		return twice
	}
	return once
}

func isSingleEncoded(op []byte) bool {
	return string(op) == "BATCH.DELETE.OBJECT" || bytes.HasPrefix(op, []byte("S3."))
}

// looksTwice reports whether raw can be the outcome of a second encoding: that
// leaves no other escapes than those of '%' and '+', and no bare '+'.
func looksTwice(raw []byte) bool {
	for i, c := range raw {
		if c == '+' {
			return false
		}
		if c == '%' {
			rest := raw[i+1:]
			if !bytes.HasPrefix(rest, []byte("25")) && !bytes.HasPrefix(rest, []byte("2B")) && !bytes.HasPrefix(rest, []byte("2b")) {
				return false
			}
		}
	}
	return true
}

// uriNames reports whether the path of the request-URI, decoded once, is key. A
// '+' in it is taken for itself and for a space, as S3 is known for both.
func (r *Row) uriNames(key []byte) bool {
	path := uriPath(r.RequestURI)
	if len(path) == 0 || path[0] != '/' {
		return false
	}
	path = path[1:]
	if matches(path, key) {
		return true
	}
	// Path-style: the bucket comes first.
	rest, ok := bytes.CutPrefix(path, r.Bucket)
	return ok && len(rest) > 0 && rest[0] == '/' && matches(rest[1:], key)
}

// uriPath returns the path of a request line such as "GET /a/b?c HTTP/1.1"; the
// version may be missing.
func uriPath(line []byte) []byte {
	_, target, _ := bytes.Cut(line, []byte(" "))
	if i := bytes.LastIndex(target, []byte(" HTTP/")); i >= 0 {
		target = target[:i]
	}
	path, _, _ := bytes.Cut(target, []byte("?"))
	if i := bytes.Index(path, []byte("://")); i >= 0 && path[0] != '/' { // absolute form
		path = path[i+3:]
		path = path[max(bytes.IndexByte(path, '/'), 0):]
	}
	return path
}

// matches reports whether path, percent-decoded, is key.
func matches(path, key []byte) bool {
	n := 0
	for i := 0; i < len(path); i++ {
		c := path[i]
		if c == '%' {
			v, ok := escaped(path[i:])
			if !ok {
				return false
			}
			c = v
			i += 2
		} else if c == '+' && n < len(key) && key[n] == ' ' {
			c = ' '
		}
		if n == len(key) || key[n] != c {
			return false
		}
		n++
	}
	return n == len(key)
}

// unescape appends b to to, decoded as an HTML form; it reports false where an
// escape is broken.
func unescape(to, b []byte) ([]byte, bool) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case c == '%':
			v, ok := escaped(b[i:])
			if !ok {
				return to, false
			}
			c = v
			i += 2
		case c == '+':
			c = ' '
		}
		to = append(to, c)
	}
	return to, true
}

// escaped reads the escape that b begins with.
func escaped(b []byte) (byte, bool) {
	if len(b) < 3 {
		return 0, false
	}
	hi, lo := unhex(b[1]), unhex(b[2])
	return hi<<4 | lo, hi < 16 && lo < 16
}

// unhex returns the value of a hex digit, or 255.
func unhex(c byte) byte {
	switch {
	case isDigit(c):
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 255
}
