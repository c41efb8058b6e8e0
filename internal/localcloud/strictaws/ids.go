package strictaws

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"fmt"
)

// requestID is 16 letters and digits, as S3's.
func (c *Cloud) requestID() string { return base32.StdEncoding.EncodeToString(random(10)) }

func (c *Cloud) hostID() string { return base64.StdEncoding.EncodeToString(random(48)) }

func (c *Cloud) versionID() string { return base64.RawURLEncoding.EncodeToString(random(24)) }

// uuid is a random one, as SQS's message ids.
func uuid() string {
	b := random(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return b
}
