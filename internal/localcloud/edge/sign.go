package edge

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// SigV4 signs for S3 as CloudFront's origin access control does, with an access
// key in its place.
func SigV4(accessKey, secret, region string) func(*http.Request) error {
	signer := v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	credentials := aws.Credentials{AccessKeyID: accessKey, SecretAccessKey: secret}
	return func(r *http.Request) error {
		path := r.URL.Opaque
		if path == "" {
			path = r.URL.EscapedPath()
		}
		key, err := url.PathUnescape(path)
		if err != nil {
			return fmt.Errorf("sign %q: %w", path, err)
		}
		// S3 verifies the path as it encodes it itself, which need not be how the
		// visitor did.
		u := *r.URL
		u.Opaque, u.Path, u.RawPath = "", key, syncrequest.EscapeKey(key)
		signed := r.WithContext(r.Context())
		signed.URL = &u
		const unsigned = "UNSIGNED-PAYLOAD"
		r.Header.Set("X-Amz-Content-Sha256", unsigned)
		return signer.SignHTTP(r.Context(), credentials, signed, unsigned, "s3", region, time.Now())
	}
}
