package strictaws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	sigAlgorithm = "AWS4-HMAC-SHA256"
	sigTime      = "20060102T150405Z"
	maxSkew      = 15 * time.Minute
)

// signature is what a request claims about who sent it.
type signature struct {
	authType  string // AuthHeader or QueryString, as in access logs; "" when unsigned
	accessKey string
	scope     string // date/region/service/aws4_request
	headers   []string
	value     string
	at        string
	expires   time.Duration
}

// claim reads the signature of a request without verifying it.
func claim(r *http.Request, query url.Values) (signature, *apiError) {
	malformed := badRequest("AuthorizationHeaderMalformed", "The authorization header is malformed.")
	var s signature
	var credential, signed string
	if auth := r.Header.Get("Authorization"); auth != "" {
		rest, ok := strings.CutPrefix(auth, sigAlgorithm)
		if !ok {
			return s, badRequest("InvalidRequest", "The authorization mechanism you have provided is not supported. Please use "+sigAlgorithm+".")
		}
		s.authType, s.at = "AuthHeader", r.Header.Get("X-Amz-Date")
		for field := range strings.SplitSeq(rest, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
			switch name {
			case "Credential":
				credential = value
			case "SignedHeaders":
				signed = value
			case "Signature":
				s.value = value
			}
		}
	} else if query.Get("X-Amz-Algorithm") == sigAlgorithm {
		s.authType, s.at = "QueryString", query.Get("X-Amz-Date")
		credential, signed = query.Get("X-Amz-Credential"), query.Get("X-Amz-SignedHeaders")
		s.value = query.Get("X-Amz-Signature")
		seconds, err := strconv.Atoi(query.Get("X-Amz-Expires"))
		if err != nil || seconds <= 0 || seconds > 7*24*3600 {
			return s, badRequest("AuthorizationQueryParametersError", "X-Amz-Expires must be between 1 and 604800 seconds")
		}
		s.expires = time.Duration(seconds) * time.Second
	} else {
		return s, nil
	}
	key, scope, ok := strings.Cut(credential, "/")
	if !ok || signed == "" || s.value == "" || strings.Count(scope, "/") != 3 || !strings.HasSuffix(scope, "/aws4_request") {
		return s, malformed
	}
	s.accessKey, s.scope, s.headers = key, scope, strings.Split(signed, ";")
	return s, nil
}

// principal is the requester that an access key stands for.
func (c *Cloud) principal(s signature) string {
	if s.authType == "" {
		return anonymous
	}
	if cred, ok := c.cfg.Credentials[s.accessKey]; ok {
		return cred.ARN
	}
	return "arn:aws:iam::" + c.cfg.Account + ":user/" + s.accessKey
}

// verify checks the signature of a request whose payload hash is given. It
// returns the signer of the body's chunks, nil where nothing is verified.
func (c *Cloud) verify(s signature, r *http.Request, path string, query url.Values, service, payloadHash string) (*chunkSigner, *apiError) {
	if s.authType == "" || len(c.cfg.Credentials) == 0 {
		return nil, nil
	}
	cred, ok := c.cfg.Credentials[s.accessKey]
	if !ok {
		return nil, refuse(http.StatusForbidden, "InvalidAccessKeyId", "The AWS Access Key Id you provided does not exist in our records.")
	}
	at, err := time.Parse(sigTime, s.at)
	scope := strings.Split(s.scope, "/")
	if err != nil || !strings.HasPrefix(s.at, scope[0]) || scope[2] != service {
		return nil, badRequest("AuthorizationHeaderMalformed", "The credential scope does not fit the request.")
	}
	if scope[1] != c.cfg.Region {
		return nil, badRequest("AuthorizationHeaderMalformed", "The authorization header is malformed; the region '"+scope[1]+"' is wrong; expecting '"+c.cfg.Region+"'")
	}
	age := time.Since(at)
	if s.authType == "QueryString" {
		if age > s.expires {
			return nil, refuse(http.StatusForbidden, "AccessDenied", "Request has expired")
		}
	} else if age > maxSkew || age < -maxSkew {
		return nil, refuse(http.StatusForbidden, "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.")
	}
	key := []byte("AWS4" + cred.Secret)
	for _, part := range scope {
		key = hmacSHA256(key, part)
	}
	canonical := canonicalRequest(s, r, path, query, payloadHash)
	want := hex.EncodeToString(hmacSHA256(key, strings.Join([]string{sigAlgorithm, s.at, s.scope, hexSHA256([]byte(canonical))}, "\n")))
	if !hmac.Equal([]byte(want), []byte(s.value)) || !asciiHeaders(r.Header) || !slices.Contains(s.headers, "host") {
		return nil, signatureDoesNotMatch()
	}
	return &chunkSigner{key: key, at: s.at, scope: s.scope, previous: s.value}, nil
}

func signatureDoesNotMatch() *apiError {
	return refuse(http.StatusForbidden, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided. Check your key and signing method.")
}

// asciiHeaders is false for raw UTF-8 in metadata: clients sign its bytes, S3
// signs what it makes of them, and the two never agree.
func asciiHeaders(h http.Header) bool {
	for name, values := range h {
		if !strings.HasPrefix(name, metaPrefix) {
			continue
		}
		for _, v := range values {
			for i := range len(v) {
				if v[i] >= 0x80 {
					return false
				}
			}
		}
	}
	return true
}

func canonicalRequest(s signature, r *http.Request, path string, query url.Values, payloadHash string) string {
	var b strings.Builder
	b.WriteString(r.Method + "\n" + escape(path, "/") + "\n")
	var pairs []string
	for name, values := range query {
		if name == "X-Amz-Signature" {
			continue
		}
		for _, v := range values {
			pairs = append(pairs, escape(name, "")+"="+escape(v, ""))
		}
	}
	slices.Sort(pairs)
	b.WriteString(strings.Join(pairs, "&") + "\n")
	for _, name := range s.headers {
		b.WriteString(name + ":" + signedHeader(r, name) + "\n")
	}
	b.WriteString("\n" + strings.Join(s.headers, ";") + "\n" + payloadHash)
	return b.String()
}

func signedHeader(r *http.Request, name string) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return strconv.FormatInt(r.ContentLength, 10)
	case "transfer-encoding":
		return strings.Join(r.TransferEncoding, ",")
	}
	values := slices.Clone(r.Header.Values(name))
	for i, v := range values {
		values[i] = strings.Join(strings.Fields(v), " ")
	}
	return strings.Join(values, ",")
}

// chunkSigner verifies the chain of signatures in an aws-chunked body.
type chunkSigner struct {
	key                 []byte
	at, scope, previous string
}

var emptySHA256 = hexSHA256(nil)

func (c *chunkSigner) chunk(sum []byte, got string) bool {
	return c.link(sigAlgorithm+"-PAYLOAD", emptySHA256+"\n"+hex.EncodeToString(sum), got)
}

func (c *chunkSigner) trailer(canonical, got string) bool {
	return c.link(sigAlgorithm+"-TRAILER", hexSHA256([]byte(canonical)), got)
}

func (c *chunkSigner) link(algorithm, hashes, got string) bool {
	want := hex.EncodeToString(hmacSHA256(c.key, strings.Join([]string{algorithm, c.at, c.scope, c.previous, hashes}, "\n")))
	c.previous = want
	return hmac.Equal([]byte(want), []byte(got))
}

func hmacSHA256(key []byte, s string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(s))
	return h.Sum(nil)
}

func hexSHA256(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
