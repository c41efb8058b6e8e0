package syncrequest

import (
	"fmt"
	"strings"
)

const upperHex = "0123456789ABCDEF"

// EscapeKey percent-encodes a key as RFC 3986 has it: everything but the
// unreserved characters (letters, digits, '-', '.', '_', '~') and '/' becomes
// %XX. All 256 byte values come back from UnescapeKey.
func EscapeKey(key string) string { return escape(key, "/") }

// UnescapeKey is the inverse of EscapeKey. It also takes escapes of characters
// that need none, small hex digits, and the further characters that RFC 3986
// allows in a path. '+' is a plus sign. The error names the offset.
func UnescapeKey(s string) (string, error) {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' {
			if i+2 >= len(s) || unhex(s[i+1]) > 15 || unhex(s[i+2]) > 15 {
				return "", fmt.Errorf("bad escape at byte %d", i)
			}
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		} else if !isUnreserved(c) && strings.IndexByte("/!$&'()*+,;=:@", c) < 0 {
			return "", fmt.Errorf("byte %#02x at %d must be escaped", c, i)
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

func escape(s, keep string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/2)
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isUnreserved(c) || strings.IndexByte(keep, c) >= 0 {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(upperHex[c>>4])
		b.WriteByte(upperHex[c&15])
	}
	return b.String()
}

func isUnreserved(c byte) bool {
	return isAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

func isAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// unhex returns the value of a hex digit, or 255.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 255
}
