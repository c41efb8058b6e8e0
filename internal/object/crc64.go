package object

// CombineCRC64 returns the CRC-64 of two runs of bytes from the CRCs a and b of
// each and the length of the second. poly is the reversed polynomial, as
// hash/crc64 has it; the CRC inverts its register before and after, as
// hash/crc64 and the CRC64NVME of S3 do.
//
// Feeding a zero bit is linear over GF(2), so it is a 64x64 matrix, and feeding
// lenB bytes of zeros is that matrix to the power of 8 x lenB: squared once a bit
// of lenB. The inversions cancel out, and b is added at the end.
func CombineCRC64(poly uint64, a, b uint64, lenB int64) uint64 {
	if lenB <= 0 {
		return a
	}
	var zeros matrix // of one zero bit: shift right, and subtract poly on a carry
	zeros[0] = poly
	for i := 1; i < len(zeros); i++ {
		zeros[i] = 1 << (i - 1)
	}
	for range 3 { // of one zero byte
		zeros = zeros.square()
	}
	for n := lenB; ; {
		if n&1 != 0 {
			a = zeros.times(a)
		}
		if n >>= 1; n == 0 {
			return a ^ b
		}
		zeros = zeros.square()
	}
}

// matrix is a 64x64 matrix over GF(2), a column a word.
type matrix [64]uint64

func (m *matrix) times(vector uint64) (product uint64) {
	for i := 0; vector != 0; i, vector = i+1, vector>>1 {
		if vector&1 != 0 {
			product ^= m[i]
		}
	}
	return product
}

func (m *matrix) square() (product matrix) {
	for i, column := range m {
		product[i] = m.times(column)
	}
	return product
}
