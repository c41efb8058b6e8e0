package visitors

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
)

// Object is one object of a catalogue: what a team would upload to COS.
type Object struct {
	Key  string
	Body []byte // as stored: gzip-encoded where ContentEncoding says so

	ContentType        string
	ContentEncoding    string
	ContentLanguage    string
	ContentDisposition string
	CacheControl       string
	Expires            string
	Meta               map[string]string // values are UTF-8
}

// awkward are the forms of keys that others' copiers got wrong; %d is a number.
var awkward = []string{
	"img/%d.jpg",
	"img/with space %d.png",
	"img/a+b %d.webp",
	"models/100%%/part %d.bin",
	"x[1]/%d.glb",
	"素材/测试 %d.jpg",
	"2026/1//%d",
	"Artik & ASTI $1/%d.wav",
	"münchen/%d?v=1#top.css",
	"a/../b/%d.js",
	"dir/%d/",
	"percent%%2Fencoded/%d.txt",
	"quote\"and'tick/%d.html",
}

// leading is a key that begins with a slash.
const leading = "/img/%d.jpg"

var types = []string{"image/jpeg", "image/png", "model/gltf-binary", "text/css; charset=utf-8", "application/json", "audio/wav"}

// Catalogue makes n objects out of seed, the most popular first: keys of every
// awkward form, bodies of 1 byte to 200 KiB, of several types, some encoded,
// with headers and metadata. Keys with a leading slash only if leadingSlash,
// because not every emulator keeps them.
func Catalogue(seed uint64, n int, leadingSlash bool) []Object {
	r := rand.New(rand.NewPCG(seed, 1))
	forms := awkward
	if leadingSlash {
		forms = append(forms[:len(forms):len(forms)], leading)
	}
	objects := make([]Object, n)
	for i := range objects {
		o := Object{
			Key:         fmt.Sprintf(forms[i%len(forms)], i),
			Body:        text(r, size(r)),
			ContentType: types[r.IntN(len(types))],
			Meta:        map[string]string{"uploaded-by": fmt.Sprintf("team-%d", r.IntN(5))},
		}
		if r.IntN(2) == 0 {
			o.CacheControl = fmt.Sprintf("public, max-age=%d", 60*(1+r.IntN(1440)))
		}
		switch r.IntN(6) {
		case 0:
			o.Body, o.ContentEncoding = packed(o.Body), "gzip"
		case 1:
			o.Meta["title"] = fmt.Sprintf("素材 %d – über", i)
		case 2:
			o.ContentLanguage = "zh-CN"
			o.ContentDisposition = fmt.Sprintf(`inline; filename="%d.bin"`, i)
		case 3:
			o.Expires = "Thu, 01 Dec 2033 16:00:00 GMT"
		}
		objects[i] = o
	}
	return objects
}

// size is 1 byte to 200 KiB, small ones as likely as big ones.
func size(r *rand.Rand) int {
	const least, most = 1, 200 << 10
	limit := least << r.IntN(19) // up to 256 KiB, cut below
	return min(limit+r.IntN(limit), most)
}

// text is n bytes that compress, as assets do.
func text(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.Uint64()&15)
	}
	return b
}

func packed(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b) // to memory: cannot fail
	z.Close()
	return out.Bytes()
}
