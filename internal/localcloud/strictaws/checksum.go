package strictaws

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"hash/crc32"
	"net/http"
	"strings"

	"github.com/minio/crc64nvme"
)

// algorithm is one of S3's additional checksums.
type algorithm string

const (
	algCRC32     algorithm = "CRC32"
	algCRC32C    algorithm = "CRC32C"
	algCRC64NVME algorithm = "CRC64NVME"
	algSHA1      algorithm = "SHA1"
	algSHA256    algorithm = "SHA256"
)

const (
	fullObject = "FULL_OBJECT"
	composite  = "COMPOSITE"
)

// algorithms lists them in the order in which S3's headers are looked for.
func algorithms() []algorithm {
	return []algorithm{algCRC32, algCRC32C, algCRC64NVME, algSHA1, algSHA256}
}

func (a algorithm) header() string { return "x-amz-checksum-" + strings.ToLower(string(a)) }

func (a algorithm) size() int { return a.new().Size() }

func (a algorithm) new() hash.Hash {
	switch a {
	case algCRC32:
		return crc32.NewIEEE()
	case algCRC32C:
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	case algSHA1:
		return sha1.New()
	case algSHA256:
		return sha256.New()
	default:
		return crc64nvme.New()
	}
}

// poly is a CRC's reversed polynomial, 0 for a hash that cannot be combined.
func (a algorithm) poly() uint64 {
	switch a {
	case algCRC32:
		return crc32.IEEE
	case algCRC32C:
		return crc32.Castagnoli
	case algCRC64NVME:
		return 0x9a6c9329ac4bc9b5
	default:
		return 0
	}
}

// valid says whether an object made of parts may have a checksum of this type.
func (a algorithm) valid(kind string) bool {
	if kind == fullObject {
		return a.poly() != 0
	}
	return kind == composite && a != algCRC64NVME
}

// checksum is the value that S3 keeps with an object or a part.
type checksum struct {
	alg   algorithm
	value string // base64, with "-N" when it is composite
	kind  string // fullObject or composite
}

// sentChecksum returns the checksum in a request's header; its value is "" when
// there is none. It must be the only one, and well formed.
func sentChecksum(h http.Header) (checksum, *apiError) {
	var found checksum
	for _, a := range algorithms() {
		v := h.Get(a.header())
		if v == "" {
			continue
		}
		if found.value != "" {
			return found, badRequest("InvalidRequest", "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.")
		}
		found = checksum{alg: a, value: v, kind: fullObject}
	}
	return found, nil
}

// wellFormed refuses what cannot be the value of a checksum of one body.
func (c checksum) wellFormed() *apiError {
	if b, err := base64.StdEncoding.DecodeString(c.value); err != nil || len(b) != c.alg.size() {
		return badRequest("InvalidRequest", "Value for "+c.alg.header()+" header is invalid.")
	}
	return nil
}

func parseAlgorithm(s string) (algorithm, *apiError) {
	for _, a := range algorithms() {
		if strings.EqualFold(string(a), s) {
			return a, nil
		}
	}
	return "", badRequest("InvalidRequest", "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, CRC64NVME, SHA1, SHA256]")
}

func encodeSum(sum []byte) string { return base64.StdEncoding.EncodeToString(sum) }

// combineCRC returns the CRC of a followed by b from theirs and b's length. A
// CRC is linear over GF(2): appending n zero bytes multiplies it by a matrix,
// and squaring that matrix doubles n.
func combineCRC(poly uint64, width int, a, b uint64, lenB int64) uint64 {
	var zero [64]uint64 // the operator for one zero bit
	zero[0] = poly
	for i := 1; i < width; i++ {
		zero[i] = 1 << (i - 1)
	}
	apply := func(m *[64]uint64, v uint64) (sum uint64) {
		for i := 0; v != 0; i, v = i+1, v>>1 {
			if v&1 != 0 {
				sum ^= m[i]
			}
		}
		return sum
	}
	square := func(m *[64]uint64) (s [64]uint64) {
		for i := range width {
			s[i] = apply(m, m[i])
		}
		return s
	}
	op := zero
	for range 3 { // one byte
		op = square(&op)
	}
	for ; lenB > 0; lenB >>= 1 {
		if lenB&1 != 0 {
			a = apply(&op, a)
		}
		op = square(&op)
	}
	return a ^ b
}
