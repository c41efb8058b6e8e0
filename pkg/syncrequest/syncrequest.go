// Package syncrequest is the codec of the messages between the parser and the
// copier: "this key was missed in this bucket, carry it over". It is public so
// that other programs can ask for objects, too.
//
// A message is one JSON object:
//
//	{"v":1,"bucket":"overseas-media","key":"m%C3%BCnchen%20a.jpg",
//	 "seen":"2026-09-04T08:03:42Z","cause":"NoSuchKey",
//	 "log":"s3://log-bucket/access/2026-09-04-09-00-00-0123456789ABCDEF"}
//
// A key is a row of bytes that strangers choose. JSON cannot carry one that is
// not UTF-8, and SQS refuses some characters, so keys travel percent-encoded and
// a message is printable ASCII whatever the key is.
//
// Messages of one version only ever gain fields that a reader may ignore; a
// change that a reader must understand is a new version. All functions are safe
// for concurrent use.
package syncrequest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Version is the version of the messages that Encode writes and Decode reads.
const Version = 1

// MaxSize is the largest message in bytes. S3's own keys need at most 3 KiB; ten
// messages of this size fit into one SQS batch.
const MaxSize = 64 << 10

const (
	maxBucket = 255 // the oldest buckets have longer names than the 63 of today
	maxCause  = 64
)

var (
	// ErrNewer is returned for a message of a later version: it is sound, but this
	// program is too old for it. Hand it back for one that is not.
	ErrNewer = errors.New("message version is newer than this program")
	// ErrMalformed is returned for a body that is no message of any version.
	ErrMalformed = errors.New("not a sync request")
	// ErrUnfit is returned by Encode for a request that no message can carry.
	ErrUnfit = errors.New("sync request cannot be encoded")
)

// Request asks for one object.
type Request struct {
	Bucket string    // the S3 bucket that the visitor asked
	Key    string    // the object's key: decoded, any bytes, not empty
	Seen   time.Time // when the visitor asked; UTC when decoded
	Cause  string    // the error code that makes it a miss, such as "NoSuchKey"; may be empty
	Log    string    // the log object that told, as s3://bucket/key, decoded; may be empty
}

// message is the wire form of version 1, in the order in which it is written.
type message struct {
	V      int    `json:"v"`
	Bucket string `json:"bucket"`
	Key    string `json:"key"`
	Seen   string `json:"seen"`
	Cause  string `json:"cause,omitempty"`
	Log    string `json:"log,omitempty"`
}

// Encode returns the message for r, at most MaxSize bytes of printable ASCII. The
// error wraps ErrUnfit and names the field.
func Encode(r Request) (string, error) {
	if err := r.validate(); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	body, err := json.Marshal(message{
		V:      Version,
		Bucket: r.Bucket,
		Key:    EscapeKey(r.Key),
		Seen:   r.Seen.UTC().Format(time.RFC3339Nano),
		Cause:  r.Cause,
		Log:    escape(r.Log, "/:"),
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnfit, err)
	}
	if len(body) > MaxSize {
		return "", fmt.Errorf("%w: %d bytes are more than %d", ErrUnfit, len(body), MaxSize)
	}
	return string(body), nil
}

// Decode reads a message. The error wraps ErrNewer or ErrMalformed, names the
// field at fault and never quotes the body.
func Decode(body string) (Request, error) {
	r, err := decode(body)
	if err != nil {
		if !errors.Is(err, ErrNewer) {
			err = fmt.Errorf("%w: %w", ErrMalformed, err)
		}
		return Request{}, err
	}
	return r, nil
}

func decode(body string) (Request, error) {
	var r Request
	if len(body) > MaxSize {
		return r, fmt.Errorf("%d bytes are more than %d", len(body), MaxSize)
	}
	fields, err := members(body)
	if err != nil {
		return r, err
	}
	var v int
	if err := fields.read("v", &v); err != nil {
		return r, err
	}
	// Before anything else: what the other fields of a later version mean, only a
	// later program knows.
	if v > Version {
		return r, fmt.Errorf("%w: version %d", ErrNewer, v)
	}
	if v != Version {
		return r, fmt.Errorf("v: version %d does not exist", v)
	}
	var key, log, seen string
	err = errors.Join(
		fields.read("bucket", &r.Bucket), fields.read("key", &key), fields.read("seen", &seen),
		fields.readOptional("cause", &r.Cause), fields.readOptional("log", &log))
	if err != nil {
		return r, err
	}
	if r.Key, err = UnescapeKey(key); err != nil {
		return r, fmt.Errorf("key: %w", err)
	}
	if r.Log, err = UnescapeKey(log); err != nil {
		return r, fmt.Errorf("log: %w", err)
	}
	// UnmarshalText holds to RFC 3339 where time.Parse lets things pass.
	if err := r.Seen.UnmarshalText([]byte(seen)); err != nil {
		return r, errors.New("seen: not a time as in RFC 3339")
	}
	r.Seen = r.Seen.UTC()
	return r, r.validate()
}

// validate holds for what is written and for what is read.
func (r Request) validate() error {
	switch {
	case r.Bucket == "":
		return errors.New("bucket: empty")
	case len(r.Bucket) > maxBucket || !isWord(r.Bucket):
		return errors.New("bucket: not a bucket name")
	case r.Key == "":
		return errors.New("key: empty")
	case r.Seen.IsZero() || r.Seen.UTC().Year() < 1 || r.Seen.UTC().Year() > 9999:
		return errors.New("seen: not a time between the years 1 and 9999")
	case len(r.Cause) > maxCause || !isWord(r.Cause):
		return errors.New("cause: not an error code")
	}
	return nil
}

// isWord reports whether s has only letters, digits, '.', '_' and '-'.
func isWord(s string) bool {
	return strings.IndexFunc(s, func(c rune) bool {
		return c > 0x7f || (!isAlphanumeric(byte(c)) && c != '.' && c != '_' && c != '-')
	}) < 0
}

// object is the members of one JSON object by their exact names.
type object map[string]json.RawMessage

// members splits body. encoding/json alone would take a member's last
// appearance and ignore the case of its name, so that two readers could see two
// different requests in one message.
func members(body string) (object, error) {
	dec := json.NewDecoder(strings.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	fields := object{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, errors.New("broken JSON")
		}
		name, _ := t.(string) // a member's name is always a string
		if _, twice := fields[name]; twice {
			return nil, givenTwice(name)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, errors.New("broken JSON")
		}
		fields[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, errors.New("broken JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("text after the JSON object")
	}
	return fields, nil
}

// givenTwice names a member only where the name is ours: any other is the body's.
func givenTwice(name string) error {
	switch name {
	case "v", "bucket", "key", "seen", "cause", "log":
		return fmt.Errorf("%q: given twice", name)
	}
	return errors.New("a member is given twice")
}

func (o object) read(name string, to any) error {
	if len(o[name]) == 0 {
		return fmt.Errorf("%s: missing", name)
	}
	return o.readOptional(name, to)
}

func (o object) readOptional(name string, to any) error {
	value := o[name]
	if len(value) == 0 {
		return nil
	}
	// null would leave the field as it was.
	if string(value) == "null" || json.Unmarshal(value, to) != nil {
		return fmt.Errorf("%s: not of the type it must have", name)
	}
	return nil
}
