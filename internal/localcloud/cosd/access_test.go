package cosd

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	cos "github.com/tencentyun/cos-go-sdk-v5"
)

// sdkCode reads key through the SDK and returns status and COS error code.
func sdkCode(t *testing.T, c *cos.Client, key string) (int, string) {
	t.Helper()
	resp, err := c.Object.Get(t.Context(), key, nil)
	if err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode, ""
	}
	var e *cos.ErrorResponse
	if !errors.As(err, &e) {
		t.Fatalf("get %q: %v", key, err)
	}
	if e.Response.Header.Get("x-cos-request-id") != e.RequestID || e.RequestID == "" || e.TraceID == "" {
		t.Errorf("get %q: request id %q in the body, %q in the header; trace id %q", key, e.RequestID,
			e.Response.Header.Get("x-cos-request-id"), e.TraceID)
	}
	return e.Response.StatusCode, e.Code
}

func TestSignedReadNeedsAValidSignature(t *testing.T) {
	s := start(t, Behaviour{})
	temporary := Principal{ID: "AKIDtemporary", Key: "k", Token: "token"}
	s.SetPrincipals(owner, temporary)
	s.Put("a.txt", []byte("hello"), Attributes{})
	for _, tc := range []struct {
		name string
		p    Principal
		code string
	}{
		{"owner", owner, ""},
		{"temporary", temporary, ""},
		{"wrong key", Principal{ID: owner.ID, Key: "other"}, "SignatureDoesNotMatch"},
		{"unknown id", Principal{ID: "AKIDnobody", Key: owner.Key}, "InvalidAccessKeyId"},
		{"temporary without its token", Principal{ID: temporary.ID, Key: "k"}, "InvalidAccessKeyId"},
		{"anonymous", Principal{}, "AccessDenied"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, code := sdkCode(t, sdk(t, s, tc.p), "a.txt")
			if want := map[bool]int{true: 200, false: 403}[tc.code == ""]; code != tc.code || status != want {
				t.Errorf("got %d %q, want %d %q", status, code, want, tc.code)
			}
		})
	}
}

// A signature covers method, key, listed headers and its time span.
func TestSignatureCoversTheRequest(t *testing.T) {
	s := start(t, Behaviour{})
	s.Put("a b.txt", []byte("hello"), Attributes{})
	s.Put("other", []byte("hello"), Attributes{})
	sign := func(at *cos.AuthTime) string {
		req, err := http.NewRequest("GET", s.URL()+"/a%20b.txt?x=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", "bytes=0-1")
		cos.AddAuthorizationHeader(owner.ID, owner.Key, "", req, at)
		return req.Header.Get("Authorization")
	}
	good := sign(cos.NewAuthTime(time.Hour))
	shorter := cos.NewAuthTime(time.Hour) // a key's time may be longer than its signature's
	shorter.KeyEndTime = shorter.KeyEndTime.Add(time.Hour)
	for _, tc := range []struct {
		name, method, path, rng, auth, code string
		status                              int
	}{
		{"as signed", "GET", "/a%20b.txt?x=1", "bytes=0-1", good, "", 206},
		{"with a longer key time", "GET", "/a%20b.txt?x=1", "bytes=0-1", sign(shorter), "", 206},
		{"another method", "HEAD", "/a%20b.txt?x=1", "bytes=0-1", good, "", 403},
		{"another key", "GET", "/other?x=1", "bytes=0-1", good, "SignatureDoesNotMatch", 403},
		{"another range", "GET", "/a%20b.txt?x=1", "bytes=0-2", good, "SignatureDoesNotMatch", 403},
		{"another parameter", "GET", "/a%20b.txt?x=2", "bytes=0-1", good, "SignatureDoesNotMatch", 403},
		{"a signed parameter missing", "GET", "/a%20b.txt", "bytes=0-1", good, "SignatureDoesNotMatch", 403},
		{"expired", "GET", "/a%20b.txt?x=1", "bytes=0-1", sign(cos.NewAuthTime(-time.Hour)), "AccessDenied", 403},
		{"another algorithm", "GET", "/a%20b.txt?x=1", "bytes=0-1", strings.Replace(good, "sha1", "sha256", 1), "SignatureDoesNotMatch", 403},
		{"a header listed that is not sent", "GET", "/a%20b.txt?x=1", "", good, "SignatureDoesNotMatch", 403},
		{"another scheme", "GET", "/a%20b.txt?x=1", "bytes=0-1", "AWS4-HMAC-SHA256 x", "SignatureDoesNotMatch", 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := ask(t, s, tc.method, tc.path, "Range", tc.rng, "Authorization", tc.auth)
			if r.StatusCode != tc.status || r.code() != tc.code {
				t.Errorf("got %d %q, want %d %q", r.StatusCode, r.code(), tc.status, tc.code)
			}
		})
	}
}

func TestAStrangerReadsWhatTheACLSays(t *testing.T) {
	s := start(t, Behaviour{})
	for key, acl := range map[string]ACL{"inherits": Inherit, "private": Private, "public": PublicRead} {
		s.Put(key, []byte("x"), Attributes{ACL: acl})
	}
	for _, tc := range []struct {
		public bool
		path   string
		code   string
	}{
		{false, "/inherits", "AccessDenied"}, {false, "/private", "AccessDenied"}, {false, "/public", ""},
		{false, "/missing", "AccessDenied"}, {false, "/", "AccessDenied"},
		{true, "/inherits", ""}, {true, "/private", "AccessDenied"}, {true, "/public", ""},
		{true, "/missing", "NoSuchKey"}, {true, "/", ""},
	} {
		s.Change(func(b *Behaviour) { b.PublicRead = tc.public })
		if r := ask(t, s, "GET", tc.path); r.code() != tc.code {
			t.Errorf("bucket public %v, GET %s: %d %q, want %q", tc.public, tc.path, r.StatusCode, r.code(), tc.code)
		}
	}
}

func TestARevokedPolicyRefusesTheSignedOnly(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("img/a", []byte("x"), Attributes{})
	s.Put("doc/a", []byte("x"), Attributes{})
	c := sdk(t, s, owner)
	check := func(when, key, want string) {
		t.Helper()
		if _, code := sdkCode(t, c, key); code != want {
			t.Errorf("%s: %s: %q, want %q", when, key, code, want)
		}
	}
	s.Revoke("img/")
	check("img/ revoked", "img/a", "AccessDenied")
	check("img/ revoked", "img/missing", "AccessDenied")
	check("img/ revoked", "doc/a", "")
	if r := ask(t, s, "GET", "/img/a"); r.StatusCode != 200 {
		t.Errorf("img/ revoked: a stranger gets %d", r.StatusCode)
	}
	s.Revoke("")
	check("all revoked", "doc/a", "AccessDenied")
	s.Restore()
	check("restored", "img/a", "")
	check("restored", "img/missing", "NoSuchKey")
}

func TestModesOfTheWholeBucket(t *testing.T) {
	s := start(t, Behaviour{PublicRead: true})
	s.Put("a", []byte("x"), Attributes{ContentDisposition: "inline"})
	c := sdk(t, s, owner)

	s.Change(func(b *Behaviour) { b.NoSuchBucket = true })
	if status, code := sdkCode(t, c, "a"); status != 404 || code != "NoSuchBucket" {
		t.Errorf("NoSuchBucket: %d %q", status, code)
	}
	s.Change(func(b *Behaviour) { *b = Behaviour{PathStyleForbidden: true} })
	if status, code := sdkCode(t, c, "a"); status != 403 || code != "PathStyleDomainForbidden" {
		t.Errorf("PathStyleForbidden: %d %q", status, code)
	}
	s.Change(func(b *Behaviour) { *b = Behaviour{PublicRead: true, ForceDownload: true} })
	r := ask(t, s, "GET", "/a")
	if r.Header.Get("x-cos-force-download") != "true" || r.Header.Get("Content-Disposition") != "attachment" {
		t.Errorf("ForceDownload: %v", r.Header)
	}
}
