package object

import (
	"hash/crc64"
	"math/rand/v2"
	"testing"

	"github.com/minio/crc64nvme"
)

// nvme is the reversed polynomial of CRC64NVME.
const nvme = 0x9a6c9329ac4bc9b5

func TestCombinedCRCIsTheWholesCRC(t *testing.T) {
	random := rand.NewChaCha8([32]byte{1})
	data := make([]byte, 70_000)
	random.Read(data)
	table := crc64.MakeTable(crc64.ECMA)
	for _, size := range []int{0, 1, 2, 7, 8, 255, 4096, 65_537, len(data)} {
		for _, cut := range []int{0, 1, size / 3, size - 1, size} {
			if cut < 0 || cut > size {
				continue
			}
			whole, a, b := data[:size], data[:cut], data[cut:size]
			if got, want := CombineCRC64(crc64.ECMA, crc64.Checksum(a, table), crc64.Checksum(b, table), int64(len(b))), crc64.Checksum(whole, table); got != want {
				t.Errorf("ECMA of %d+%d bytes: %x, want %x", len(a), len(b), got, want)
			}
			if got, want := CombineCRC64(nvme, crc64nvme.Checksum(a), crc64nvme.Checksum(b), int64(len(b))), crc64nvme.Checksum(whole); got != want {
				t.Errorf("NVME of %d+%d bytes: %x, want %x", len(a), len(b), got, want)
			}
		}
	}
}

func BenchmarkCombineCRC64(b *testing.B) {
	for b.Loop() {
		CombineCRC64(crc64.ECMA, 1, 2, 16<<20)
	}
}
