package config

import (
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

var (
	// <bucket>-<appid>.cos.<region>.myqcloud.com; also over the internal network
	// ("cos-internal"), the accelerated name, and the newer domain.
	cosForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*-[0-9]{5,}\.cos(-internal)?\.[a-z0-9-]+\.(myqcloud\.com|tencentcos\.cn)$`)
	// sqs.<region>.amazonaws.com
	sqsHost   = regexp.MustCompile(`^sqs(-fips)?\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$`)
	queuePath = regexp.MustCompile(`^/[0-9]{12}/[A-Za-z0-9_-]{1,80}$`)
)

func (c *Config) checkRoutes(e *Errors) {
	if len(c.Routes) == 0 {
		e.add("routes", "is missing; name at least one bucket and its source")
	}
	for i := range c.Routes {
		r, field := &c.Routes[i], fmt.Sprintf("routes[%d]", i)
		e.bucket(field+".bucket", r.Bucket)
		for j := range i {
			if r.Bucket != "" && c.Routes[j].Bucket == r.Bucket {
				e.add(field+".bucket", "is the same bucket as routes[%d].bucket; a bucket has one route", j)
			}
		}
		e.oneOf(field+".mode", r.Mode, "", ModeCopy, ModeObserve)
		if r.MaxAge <= 0 {
			e.add(field+".max_age", "must be longer than nothing")
		}
		r.Source.check(e, field+".source")
		r.checkKeys(e, field)
		r.Destination.check(e, field+".destination")
	}
}

func (s *Source) check(e *Errors, field string) {
	if s.COS == "" {
		e.add(field+".cos", "is missing; give the bucket's address, such as https://media-1250000000.cos.ap-shanghai.myqcloud.com")
	} else if u := e.address(field+".cos", s.COS); u != nil {
		cos := cosForm.MatchString(u.Host)
		switch {
		case u.Path != "" && u.Path != "/":
			e.add(field+".cos", "must end with the host: a path would be dropped")
		case !cos && !s.CustomDomain && !loopback(u.Hostname()): // an emulator needs no saying
			e.add(field+".cos", "must be COS's own https://<bucket>-<appid>.cos.<region>.myqcloud.com; for another host say custom_domain: true")
		case cos && s.CustomDomain:
			e.add(field+".custom_domain", "is true, but the host of cos is COS's own; remove it")
		}
	}
	e.oneOf(field+".read", s.Read, "there is no default, because it decides what may become public", ReadAnonymous, ReadSigned)
	if s.Read == ReadSigned && s.CredentialsFile == "" {
		e.add(field+".credentials_file", "is missing; a signed source needs a JSON file with id, key and, for temporary ones, token")
	}
	if s.Read == ReadAnonymous && s.CredentialsFile != "" {
		e.add(field+".credentials_file", "is given, but the source is read anonymously; remove it, or say read: signed")
	}
}

// checkKeys is rule 4: what is read with our signature becomes public, so it must
// be named.
func (r *Route) checkKeys(e *Errors, field string) {
	e.globs(field+".exclude", r.Exclude)
	include, good := e.globs(field+".include", r.Include)
	if !good || r.Source.Read != ReadSigned {
		return
	}
	switch {
	case include.Empty():
		e.add(field+".include", "is missing; a signed source must name what may become public, such as [\"img/**\"]")
	case include.Everything() && !r.Source.AllPublic:
		e.add(field+".include", "matches everything, so everything in the source could become public; name what may, or say source.all_public: true")
	}
}

func (d *Destination) check(e *Errors, field string) {
	if d.Region != "" && !regionForm.MatchString(d.Region) {
		e.add(field+".region", "is not the name of an AWS region, such as us-west-2")
	}
	if d.ExpectedOwner != "" && !ownerForm.MatchString(d.ExpectedOwner) {
		e.add(field+".expected_owner", "must be an account number of 12 digits, in quotes")
	}
	e.oneOf(field+".sse", d.SSE, "", SSENone, SSEAES256, SSEKMS)
	switch {
	case d.SSE == SSEKMS && d.KMSKey == "":
		e.add(field+".kms_key", `is missing; sse aws:kms needs a key, or "default" for the account's aws/s3 key`)
	case d.SSE != SSEKMS && d.KMSKey != "":
		e.add(field+".kms_key", "is given, but sse is not aws:kms; remove it, or say sse: aws:kms")
	case d.KMSKey != "" && !kmsForm.MatchString(d.KMSKey):
		e.add(field+".kms_key", `must be the id, ARN or alias/… of a KMS key, or "default"`)
	}
	if d.StorageClass == "GLACIER" || d.StorageClass == "DEEP_ARCHIVE" {
		e.add(field+".storage_class", "is an archive, which visitors cannot read from; GLACIER_IR can be read at once")
		return
	}
	e.oneOf(field+".storage_class", d.StorageClass, "", "STANDARD", "STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR", "REDUCED_REDUNDANCY")
}

func (c *Config) checkQueueURL(e *Errors, field, text string) {
	u := e.address(field, text)
	if u == nil {
		return
	}
	name := u.Path[strings.LastIndexByte(u.Path, '/')+1:]
	region := sqsHost.FindStringSubmatch(u.Host)
	switch {
	case strings.HasSuffix(name, ".fifo"):
		e.add(field, "is a FIFO queue; standard queues are needed, because a FIFO queue stops behind a message that is tried again")
	case !queuePath.MatchString(u.Path):
		e.add(field, "must be a queue's URL, https://sqs.<region>.amazonaws.com/<12 digits>/<name>")
	case region != nil && regionForm.MatchString(c.Region) && region[2] != c.Region:
		e.add(field, "is in another region than the configuration's region; requests to it would be signed for the wrong one")
	}
}

// address parses an https URL, or an http one to this machine, without anything
// but host and path. It returns nil after adding a problem. Problems never quote
// it: a URL may hold a password.
func (e *Errors) address(field, text string) *url.URL {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Hostname() == "" {
		e.add(field, "is not a URL; write https://host…")
		return nil
	}
	switch {
	case u.User != nil:
		e.add(field, "holds a user name or password; credentials do not belong into a URL")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(text, "#"):
		e.add(field, "holds a query or fragment; remove it")
	case u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())):
		e.add(field, "must begin with https:// (http:// is for this machine only: localhost, 127.0.0.1, [::1])")
	default:
		return u
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
