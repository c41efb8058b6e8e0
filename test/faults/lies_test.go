package faults

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash/crc64"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

// The sizes of objects that are lied about: one that is written by one PUT, and
// one of two parts.
const (
	smallSize = 6400
	firstPart = 5 << 20
	largeSize = firstPart + 64<<10
)

// The words of an end while a lie is told.
const (
	copiedEnd   = "copied"
	corrupt     = "failed corrupt"
	unavailable = "failed unavailable"
	changed     = "failed changed"
)

// lie is one way in which a source or a destination does not tell the truth.
type lie struct {
	name  string
	large bool
	tell  telling
	end   string // of the request for as long as it is told
	slow  bool   // noticed only by a timeout, so that not even a lasting one is told for ever
}

// telling makes a site lie about a key so many times, 0 for ever. told is how often
// it has.
type telling func(s *localcloud.Site, key string, times int) (told func() int)

// times is how often a lie is told that lasts, and one that passes before the
// request gives up. Four times is more than the tries that one receive has, where
// it has several.
func (l lie) times() (lasting, passing int) {
	switch {
	case l.slow:
		return 2, 1
	case l.end == unavailable:
		return 0, 4
	default:
		return 0, 2
	}
}

// source makes the source lie in all these ways at once.
func source(lies ...cosd.Lie) telling { return sourceWhen(cosd.When{}, lies...) }

// sourceWhen does the same about some of the key's requests.
func sourceWhen(when cosd.When, lies ...cosd.Lie) telling {
	return func(s *localcloud.Site, key string, times int) func() int {
		when.Key, when.Times = key, times
		var f *cosd.Fault
		for _, l := range lies {
			f = s.COS.Lie(when, l)
		}
		return f.Told
	}
}

// laterPart makes the source lie about all parts but the first.
func laterPart(l cosd.Lie) telling { return sourceWhen(cosd.When{Match: isLater}, l) }

func isLater(q cosd.Request) bool { return q.Range != fmt.Sprintf("bytes=0-%d", firstPart-1) }

// elsewhere is an object that nobody asks for.
const elsewhere = "elsewhere"

// redirected sends requests to the object elsewhere.
func redirected(status int, when cosd.When) telling {
	return func(s *localcloud.Site, key string, times int) func() int {
		return sourceWhen(when, cosd.Redirect(status, s.COS.URL()+"/"+elsewhere))(s, key, times)
	}
}

// destination makes S3 lie about one call.
func destination(action string, e strictaws.Effect) telling {
	return func(s *localcloud.Site, key string, times int) func() int {
		return s.Cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceS3, Action: action, Target: localcloud.Bucket, Key: key, Times: times, Do: e}).Hits
	}
}

// changing replaces the object at each request, by turns with the version that was
// there at first and with another; lies are told besides.
func changing(keepETag, keepCRC bool, lies ...cosd.Lie) telling {
	return func(s *localcloud.Site, key string, times int) func() int {
		both := versions(key, largeSize)
		all := slices.Clone(lies)
		if keepCRC {
			crc := crc64.Checksum(both[0].body, crc64.MakeTable(crc64.ECMA))
			all = append(all, cosd.With("x-cos-hash-crc64ecma", strconv.FormatUint(crc, 10)))
		}
		for turn, v := range both {
			if keepETag {
				v.at.ETag = `"of-both"`
			}
			requests := 0
			sourceWhen(cosd.When{Match: func(cosd.Request) bool { requests++; return requests%2 == turn }}, cosd.Become(v.body, v.at))(s, key, times)
		}
		source(all...)(s, key, 2*times)
		return func() int { return s.COS.Counts().ByKey[key] }
	}
}

const page = "<html><body>Please log in.</body></html>"

// lies are all of them. A lie that does no harm ends "copied".
func lies() []lie {
	return []lie{
		{name: "cut body", tell: source(cosd.Cut(100)), end: unavailable},
		{name: "cut body of a part", large: true, tell: laterPart(cosd.Cut(100)), end: unavailable},
		{name: "cut before the body", tell: source(cosd.Cut(0)), end: unavailable},
		{name: "cut body without a length", tell: source(cosd.CutUnframed(100)), end: corrupt},
		{name: "cut body of a part without a length", large: true, tell: laterPart(cosd.CutUnframed(100)), end: corrupt},
		{name: "no length", tell: source(cosd.Unframed()), end: corrupt},
		{name: "reset", tell: source(cosd.Reset()), end: unavailable},
		{name: "longer body", tell: source(cosd.Resize(5)), end: corrupt},
		{name: "shorter body", tell: source(cosd.Resize(-5)), end: corrupt},
		{name: "shorter body that claims to be all", tell: source(cosd.Resize(-5), cosd.WrongContentRange(contentRange(0, smallSize-5, smallSize-5))), end: corrupt},

		{name: "flipped byte, small", tell: source(cosd.Flip(10)), end: corrupt},
		{name: "flipped byte, first part", large: true, tell: source(cosd.Flip(10)), end: corrupt},
		{name: "flipped byte, later part", large: true, tell: source(cosd.Flip(firstPart + 10)), end: corrupt},

		{name: "200 for a range", tell: source(cosd.IgnoreRange()), end: corrupt},
		{name: "200 for a range, first part", large: true, tell: source(cosd.IgnoreRange()), end: corrupt},
		{name: "200 for a range, later part", large: true, tell: laterPart(cosd.IgnoreRange()), end: corrupt},
		{name: "Content-Range of another span", tell: source(cosd.WrongContentRange(contentRange(1, smallSize, smallSize+1))), end: corrupt},
		{name: "Content-Range of a larger object", tell: source(cosd.WrongContentRange(contentRange(0, smallSize, largeSize))), end: corrupt},
		{name: "Content-Range of a smaller object", large: true, tell: source(cosd.WrongContentRange(contentRange(0, firstPart, firstPart))), end: corrupt},
		{name: "Content-Range of the first part", large: true, tell: laterPart(cosd.WrongContentRange(contentRange(0, largeSize-firstPart, largeSize))), end: corrupt},
		{name: "Content-Range without a size", tell: source(cosd.WrongContentRange("bytes 0-6399/*")), end: corrupt},

		{name: "changing", large: true, tell: changing(false, false), end: changed},
		{name: "changing, If-Match ignored", large: true, tell: changing(false, false, cosd.IgnoreIfMatch()), end: changed},
		{name: "changing, ETag kept", large: true, tell: changing(true, false), end: changed},
		{name: "changing, ETag and CRC kept", large: true, tell: changing(true, true), end: corrupt},

		{name: "gzipped on the way", tell: source(cosd.Recompress()), end: corrupt},
		{name: "gzipped on the way, later part", large: true, tell: laterPart(cosd.Recompress()), end: corrupt},

		{name: "a listing", tell: source(cosd.List()), end: unavailable},
		{name: "a listing, later part", large: true, tell: laterPart(cosd.List()), end: unavailable},
		{name: "a page, 200", tell: source(cosd.Page(200)), end: unavailable},
		{name: "a page, 206", tell: source(cosd.Page(206)), end: unavailable},
		{name: "a page, 403", tell: source(cosd.Page(403)), end: unavailable},
		{name: "a page, 404", tell: source(cosd.Page(404)), end: unavailable},
		{name: "a page, 404, later part", large: true, tell: laterPart(cosd.Page(404)), end: unavailable},
		{name: "a page, 416", tell: source(cosd.Page(416)), end: unavailable},
		{name: "NoSuchKey without a request id", tell: source(cosd.Refuse(404, "NoSuchKey"), cosd.Without("x-cos-request-id")), end: unavailable},
		{name: "the object without a request id", tell: source(cosd.Without("x-cos-request-id")), end: unavailable},
		{name: "redirect, 301", tell: redirected(301, cosd.When{}), end: unavailable},
		{name: "redirect, 302", tell: redirected(302, cosd.When{}), end: unavailable},
		{name: "redirect, 307, later part", large: true, tell: redirected(307, cosd.When{Match: isLater}), end: unavailable},

		{name: "no CRC", tell: source(cosd.Without("x-cos-hash-crc64ecma")), end: copiedEnd},
		{name: "no CRC, parts", large: true, tell: source(cosd.Without("x-cos-hash-crc64ecma")), end: copiedEnd},
		{name: "no ETag", tell: source(cosd.Without("ETag")), end: copiedEnd}, // verified by its CRC
		{name: "no ETag, parts", large: true, tell: source(cosd.Without("ETag")), end: corrupt},
		{name: "no ETag and no CRC", tell: source(cosd.Without("ETag", "x-cos-hash-crc64ecma")), end: corrupt},
		{name: "a weak ETag, parts", large: true, tell: source(cosd.With("ETag", `W/"1"`)), end: corrupt},

		{name: "flipped byte to S3, PutObject", tell: destination("PutObject", strictaws.FlipByte{Offset: 10}), end: corrupt},
		{name: "flipped byte to S3, UploadPart", large: true, tell: destination("UploadPart", strictaws.FlipByte{Offset: 10}), end: corrupt},
		{name: "no ETag in a 200, PutObject", tell: destination("PutObject", strictaws.DropHeader{Name: "ETag"}), end: copiedEnd},
		{name: "no ETag in a 200, UploadPart", large: true, tell: destination("UploadPart", strictaws.DropHeader{Name: "ETag"}), end: unavailable},
		{name: "no ETag in a 200, Complete", large: true, tell: destination("CompleteMultipartUpload", strictaws.CommitThenAnswer{Status: 200}), end: copiedEnd},
		{name: "committed, then reset, PutObject", tell: destination("PutObject", strictaws.CommitThenReset{}), end: copiedEnd},
		{name: "committed, then reset, UploadPart", large: true, tell: destination("UploadPart", strictaws.CommitThenReset{}), end: unavailable},
		{name: "committed, then reset, Complete", large: true, tell: destination("CompleteMultipartUpload", strictaws.CommitThenReset{}), end: copiedEnd},
		{name: "committed, then hangs, PutObject", slow: true, tell: destination("PutObject", strictaws.CommitThenHang{}), end: copiedEnd},
		{name: "committed, then hangs, UploadPart", slow: true, large: true, tell: destination("UploadPart", strictaws.CommitThenHang{}), end: copiedEnd},
		{name: "committed, then hangs, Complete", slow: true, large: true, tell: destination("CompleteMultipartUpload", strictaws.CommitThenHang{}), end: copiedEnd},
		{name: "committed, then a page, PutObject", tell: destination("PutObject", strictaws.CommitThenAnswer{Status: 502, Body: page}), end: copiedEnd},
		{name: "a page in place of PutObject", tell: destination("PutObject", strictaws.Answer{Status: 200, Body: page}), end: unavailable},
		{name: "a page in place of CreateMultipartUpload", large: true, tell: destination("CreateMultipartUpload", strictaws.Answer{Status: 200, Body: page}), end: unavailable},
		{name: "a page in place of UploadPart", large: true, tell: destination("UploadPart", strictaws.Answer{Status: 200, Body: page}), end: unavailable},
		{name: "a page in place of Complete", large: true, tell: destination("CompleteMultipartUpload", strictaws.Answer{Status: 200, Body: page}), end: unavailable},
		{name: "an error in a 200, Complete", large: true, tell: destination("CompleteMultipartUpload", strictaws.Answer{Status: 200, Body: "<Error><Code>InternalError</Code></Error>"}), end: unavailable},
		{name: "a page in place of HeadObject", tell: destination("HeadObject", strictaws.Answer{Status: 200, Body: page}), end: unavailable},
		{name: "412 without anything there", tell: destination("PutObject", strictaws.Answer{Status: 412, Body: page}), end: unavailable},
		{name: "403 of a page, PutObject", tell: destination("PutObject", strictaws.Answer{Status: 403, Body: page}), end: unavailable},
	}
}

func contentRange(from, length, size int) string {
	return fmt.Sprintf("bytes %d-%d/%d", from, from+length-1, size)
}

// versions are the one that an object has at first, and another of the same size.
func versions(key string, size int) []version {
	both := make([]version, 2)
	for i := range both {
		block := make([]byte, 4093) // a prime, so that no span of the body equals another
		_, _ = rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, i, key))).Read(block)
		both[i] = version{bytes.Repeat(block, size/len(block)+1)[:size], cosd.Attributes{ContentType: fmt.Sprintf("image/x-%d", i), CacheControl: fmt.Sprintf("max-age=%d", i),
			ContentLanguage: "de", ContentDisposition: `inline; filename="a.bin"`, Expires: "Thu, 01 Dec 2033 16:00:00 GMT",
			Meta: map[string]string{"key": key, "version": strconv.Itoa(i)}}}
	}
	return both
}

// TestLiesNeverBecomeVisible is rule 3: whatever source and destination lie about,
// no wrong byte or header becomes visible, even for a moment, and no end is
// recorded that is not true. Each lie is told for ever about one object, whose
// request then ends as a dead letter that says why, and for a while about another,
// which is copied in the end. Others beside them are not held up.
//
// A guard takes eight sick keys in a row for a sick source. So the lies are told in
// groups, each on a site and to a process of its own, of which no more than three
// are noticed by what the bytes are.
//
// Scale: as in the package's comment, but for a timeout of 3 s (30 s), as several
// groups are at work at once.
func TestLiesNeverBecomeVisible(t *testing.T) {
	const groups = 9
	told, of := make([][]lie, groups), map[string]int{}
	for _, l := range lies() {
		g := of[l.end] % groups
		of[l.end]++
		told[g] = append(told[g], l)
	}
	var rows []report
	for i, group := range told {
		rows = append(rows, report{fmt.Sprint("group ", i), func(t *testing.T) { tellAll(t, group) }})
	}
	sideBySide(t, rows)
}

// tellAll tells a process lies and checks what comes of them.
func tellAll(t *testing.T, lies []lie) {
	s := calmSite(t, localcloud.Config{})
	s.COS.Put(elsewhere, bytes.Repeat([]byte("x"), largeSize), cosd.Attributes{})
	right, want, counts, told := map[string][]version{}, map[string]string{}, map[string]int{}, map[string]func() int{}
	expect := func(key string, size int, end string) {
		right[key], want[key] = versions(key, size), end
		counts[end]++
		s.COS.Put(key, right[key][0].body, right[key][0].at)
	}
	for _, l := range lies {
		size := smallSize
		if l.large {
			size = largeSize
		}
		lasting, passing := l.times()
		expect("lasting/"+l.name, size, l.end)
		told["lasting/"+l.name] = l.tell(s, "lasting/"+l.name, lasting)
		expect("passing/"+l.name, size, copiedEnd)
		told["passing/"+l.name] = l.tell(s, "passing/"+l.name, passing)
	}
	for i := range 10 {
		expect(fmt.Sprint("innocent/", i), smallSize, copiedEnd)
	}

	w := watch(t, s, right)
	p := serve(t, s, "copy", "guard: {probe_min: 100ms, probe_max: 1s, timeout: 3s, min_rate: 4MiB}", "copy: {part_size: 5MiB, memory: 256MiB}")
	ask(t, s, localcloud.SyncQueue, localcloud.Bucket, slices.Sorted(maps.Keys(want)))
	settled(t, s, localcloud.SyncQueue, 2*time.Minute)
	ended(t, p, localcloud.SyncQueue, nil, counts)
	visible, dead := w.saw(t), deadRequests(t, s)
	for key, end := range want {
		t.Run(key, func(t *testing.T) {
			got := dead[key]
			if visible[key] && got == "" {
				got = copiedEnd
			}
			if got != end {
				t.Errorf("the request ended %q (visible: %v), want %q", got, visible[key], end)
			}
			if f := told[key]; f != nil && f() == 0 {
				t.Error("no lie was told")
			}
		})
	}
	if n := s.COS.Counts().ByKey[elsewhere]; n > 0 {
		t.Errorf("%d redirects were followed", n)
	}
}
