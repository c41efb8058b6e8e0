package strictaws

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxMessage    = 1 << 20 // bytes of a message, and of all messages of a batch
	maxAttributes = 10
)

var (
	attributeName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)
	attributeType = regexp.MustCompile(`^(String|Number|Binary)(\..+)?$`)
	entryID       = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`) // a queue's name, too
)

// messageAttribute is one as the JSON protocol carries it.
type messageAttribute struct {
	DataType    string
	StringValue *string `json:",omitempty"`
	BinaryValue []byte  `json:",omitempty"`
}

func (a messageAttribute) binary() bool { return strings.HasPrefix(a.DataType, "Binary") }

func (a messageAttribute) size() int {
	n := len(a.DataType) + len(a.BinaryValue)
	if a.StringValue != nil {
		n += len(*a.StringValue)
	}
	return n
}

// sizeOf is what SQS counts of a message: body and attributes.
func sizeOf(body string, attributes map[string]messageAttribute) int {
	n := len(body)
	for name, a := range attributes {
		n += len(name) + a.size()
	}
	return n
}

// checkMessage refuses what SQS does not carry.
func checkMessage(body string, attributes map[string]messageAttribute) *apiError {
	if body == "" {
		return badRequest("MissingParameter", "The request must contain the parameter MessageBody.")
	}
	if !carriable(body) {
		return badRequest("InvalidMessageContents", "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | #x20 to #xD7FF | #xE000 to #xFFFD | #x10000 to #x10FFFF")
	}
	if len(attributes) > maxAttributes {
		return badRequest("InvalidParameterValue", "Number of message attributes exceeds the allowed maximum (10).")
	}
	for name, a := range attributes {
		if err := checkAttribute(name, a); err != nil {
			return err
		}
	}
	return nil
}

func checkAttribute(name string, a messageAttribute) *apiError {
	invalid := func(why string) *apiError {
		return badRequest("InvalidParameterValue", "The message attribute '"+name+"' "+why)
	}
	lower := strings.ToLower(name)
	switch {
	case len(name) > 256 || !attributeName.MatchString(name) || strings.HasPrefix(lower, "aws.") || strings.HasPrefix(lower, "amazon."):
		return invalid("has an invalid name.")
	case len(a.DataType) > 256 || !attributeType.MatchString(a.DataType):
		return invalid("has an invalid message attribute type, the set of supported type prefixes is Binary, Number, and String.")
	case a.binary() && len(a.BinaryValue) == 0, !a.binary() && (a.StringValue == nil || *a.StringValue == ""):
		return invalid("must contain a non-empty message attribute value.")
	case !a.binary() && !carriable(*a.StringValue):
		return badRequest("InvalidMessageContents", "Invalid characters found in a message attribute.")
	}
	return nil
}

// carriable says whether s holds only characters that SQS takes.
func carriable(s string) bool {
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			return false
		case r == 0x9, r == 0xA, r == 0xD, 0x20 <= r && r <= 0xD7FF, 0xE000 <= r && r <= 0xFFFD, r >= 0x10000:
		default:
			return false
		}
	}
	return true
}

func hexMD5(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}

// attributesMD5 is SQS's digest of message attributes: sorted by name, each as
// length and bytes of name and type, a byte for the kind, length and value.
func attributesMD5(attributes map[string]messageAttribute) string {
	if len(attributes) == 0 {
		return ""
	}
	h := md5.New()
	field := func(b []byte) {
		_ = binary.Write(h, binary.BigEndian, uint32(len(b)))
		h.Write(b)
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		a := attributes[name]
		field([]byte(name))
		field([]byte(a.DataType))
		if a.binary() {
			h.Write([]byte{2})
			field(a.BinaryValue)
		} else {
			h.Write([]byte{1})
			field([]byte(*a.StringValue))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// newReceipt is a new receipt handle of a copy of a message; each receive has
// its own.
func newReceipt(copyID string) string {
	return base64.StdEncoding.EncodeToString([]byte(copyID + " " + hex.EncodeToString(random(16))))
}

// receiptCopy returns the copy of a message that a receipt handle belongs to.
func receiptCopy(handle string) (string, *apiError) {
	b, err := base64.StdEncoding.DecodeString(handle)
	id, rest, ok := strings.Cut(string(b), " ")
	if err != nil || !ok || len(id) != 36 || len(rest) != 32 {
		return "", badRequest("ReceiptHandleIsInvalid", "The input receipt handle is invalid.")
	}
	return id, nil
}
