package object

// CombineCRC64 returns the CRC-64 of two runs of bytes from the CRCs a and b of
// each and the length of the second. poly is the reversed polynomial, as
// hash/crc64 has it; the CRC inverts its register before and after, as
// hash/crc64 and the CRC64NVME of S3 do.
//
// A CRC is a remainder of polynomials over GF(2), so the first run, which stands
// 8 x lenB bits further up, is multiplied by that power of x, and the second is
// added. The inversions cancel out.
func CombineCRC64(poly uint64, a, b uint64, lenB int64) uint64 {
	power, square := uint64(1)<<63, uint64(1)<<(63-8) // x^0 and x^8: bits are reversed
	for n := lenB; n > 0; n >>= 1 {
		if n&1 != 0 {
			power = multiply(poly, power, square)
		}
		square = multiply(poly, square, square)
	}
	return multiply(poly, a, power) ^ b
}

// multiply is a times b modulo the polynomial, coefficient by coefficient of a.
func multiply(poly, a, b uint64) (product uint64) {
	for ; a != 0; a <<= 1 {
		if a>>63 != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= poly
		}
	}
	return product
}
