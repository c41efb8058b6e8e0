// Package cos reads objects from Tencent COS and lists them; it is the copier's
// Source.
//
// What it promises: no answer that is not authentically COS's becomes an object
// or "absent"; a ranged read yields exactly the bytes of one version that were
// asked for, as they are stored; every key that COS can hold goes over the wire
// byte for byte; every error is an *object.Error, and the SDK's types end here.
// It never retries and follows no redirect: the guard owns retries.
//
// A Source is safe for concurrent use and starts no goroutine.
package cos

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	sdk "github.com/tencentyun/cos-go-sdk-v5"

	"github.com/objectferry/objectferry/internal/object"
)

// Config says which bucket is read, and how.
type Config struct {
	// URL is https://<bucket>-<appid>.cos.<region>.myqcloud.com, without a path.
	URL string
	// Signed reads with the credentials of CredentialsFile; otherwise as a
	// stranger would, without an Authorization header.
	Signed bool
	// CredentialsFile is JSON {"id", "key", "token"}; re-read when it changes.
	CredentialsFile string
	// CustomDomain allows a host that is not COS's own.
	CustomDomain bool
	// Report is told when a changed CredentialsFile cannot be used, once a
	// change; the credentials before it stay in use. It may be nil.
	Report func(error)
}

// ownHost matches the hosts of COS itself, the accelerated ones included.
var ownHost = regexp.MustCompile(`^[a-z0-9-]+-[0-9]+\.(cos|cos-internal)\.[a-z0-9-]+\.(myqcloud\.com|tencentcos\.cn)$`)

// Source reads one COS bucket.
type Source struct {
	client *sdk.Client  // reads objects
	http   *http.Client // lists; the SDK has changed its own
	base   *url.URL
	signed bool
}

// New wires a Source; it reads the credentials file and opens no socket.
// transport carries the requests; nil is NewTransport(64). It must neither
// follow redirects nor unpack bodies.
func New(cfg Config, transport http.RoundTripper) (*Source, error) {
	base, err := bucketURL(cfg)
	if err != nil {
		return nil, err
	}
	if transport == nil {
		transport = NewTransport(64)
	}
	transport = object.BoundErrors(transport)
	switch {
	case cfg.Signed && cfg.CredentialsFile == "":
		return nil, errors.New("read COS signed: credentials_file is missing")
	case !cfg.Signed && cfg.CredentialsFile != "":
		return nil, errors.New("read COS anonymously: credentials_file is set; choose read: signed or remove it")
	case cfg.Signed:
		c, err := openCredentials(cfg.CredentialsFile, cfg.Report)
		if err != nil {
			return nil, err
		}
		transport = signing{credentials: c, next: transport}
	}
	plain := func() *http.Client {
		return &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	// The SDK changes the client that it is given, so that one is nobody else's.
	client := sdk.NewClient(&sdk.BaseURL{BucketURL: base}, plain())
	client.Conf.RetryOpt = sdk.RetryOptions{Count: 1}
	client.UserAgent = userAgent
	return &Source{client: client, http: plain(), base: base, signed: cfg.Signed}, nil
}

const userAgent = "objectferry " + sdk.UserAgent

// bucketURL checks where objects are read from: https, or plain http on this
// machine; COS's own hosts unless a custom domain was asked for.
func bucketURL(cfg Config) (*url.URL, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, errors.New("parse COS URL: not a URL") // the cause would repeat a password in it
	}
	host := strings.ToLower(u.Hostname())
	loopback := host == "localhost" || net.ParseIP(host).IsLoopback()
	switch {
	case u.User != nil:
		return nil, errors.New("parse COS URL: it must not hold a user or password")
	case host == "":
		return nil, fmt.Errorf("parse COS URL %q: it has no host", cfg.URL)
	case (u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("parse COS URL %q: it must be a host alone, without path or query", cfg.URL)
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback):
		return nil, fmt.Errorf("parse COS URL %q: https is required (plain http only to this machine)", cfg.URL)
	case !cfg.CustomDomain && !loopback && !ownHost.MatchString(host):
		return nil, fmt.Errorf("parse COS URL %q: not one of COS's hosts (<bucket>-<appid>.cos.<region>.myqcloud.com); set custom_domain if it is meant", cfg.URL)
	}
	return &url.URL{Scheme: u.Scheme, Host: strings.ToLower(u.Host)}, nil
}

// Reference reads one byte of key and returns nil when it is let through: an
// object's answer or an authentic "no such key".
func (s *Source) Reference(ctx context.Context, key string) error {
	if !holdable(key) {
		return &object.Error{Side: object.Source, Op: op, Key: key, Class: object.Unknown,
			Err: errors.New("COS cannot hold this key, so it says nothing about the bucket"), Hint: "name another reference key"}
	}
	read, err := s.Get(ctx, key, object.Range{Length: 1}, "")
	switch object.ClassOf(err) {
	case "":
		return read.Body.Close()
	case object.Absent, object.Corrupt, object.Changed: // COS answered, and did not refuse
		return nil
	}
	return err
}

// holdable reports whether COS can hold key at all. What it cannot hold are the
// keys that shorten to the bucket itself: asked for, they list it.
func holdable(key string) bool { return key != "" && sdk.CheckObjectKeySimplify("/"+key) }
