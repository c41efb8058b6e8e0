package edge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud/cfn"
)

// CloudFront keeps these statuses for 10 s unless it is told otherwise.
const defaultErrorTTL = 10 * time.Second

var keptByDefault = []int{404, 410, 414, 500, 501, 502, 503, 504}

// FromStack reads the one CloudFront distribution of a stack. Origins are named
// after their ids. A property that changes what visitors get and that the edge
// does not serve is an error.
func FromStack(s *cfn.Stack) (Distribution, error) {
	var found []string
	for name, r := range s.Resources {
		if r.Type == "AWS::CloudFront::Distribution" {
			found = append(found, name)
		}
	}
	if len(found) != 1 {
		return Distribution{}, fmt.Errorf("read template: it has %d distributions, must have one", len(found))
	}
	var problems []string
	t := template{stack: s, origins: map[string]Origin{}, groups: map[string]group{}}
	d := t.distribution(of(found[0], s.Resources[found[0]].Properties, &problems).in("DistributionConfig"))
	if len(problems) > 0 {
		return Distribution{}, errors.New("read template: " + strings.Join(problems, "\n"))
	}
	return d, nil
}

// template is what behaviours refer to.
type template struct {
	stack   *cfn.Stack
	origins map[string]Origin
	groups  map[string]group
}

type group struct {
	members  []Origin
	failover []int
}

func (t *template) distribution(f fields) Distribution {
	for _, o := range f.each("Origins") {
		t.origin(o)
	}
	if f.has("OriginGroups") {
		groups := f.in("OriginGroups")
		for _, g := range groups.each("Items") {
			t.group(g)
		}
		groups.done("Quantity")
	}
	d := Distribution{ErrorTTL: map[int]time.Duration{}}
	if f.has("DefaultRootObject") {
		d.Root = f.text("DefaultRootObject")
	}
	for _, b := range f.each("CacheBehaviors") {
		pattern := b.text("PathPattern")
		d.Behaviours = append(d.Behaviours, t.behaviour(pattern, b))
	}
	d.Behaviours = append(d.Behaviours, t.behaviour("*", f.in("DefaultCacheBehavior")))
	for _, status := range keptByDefault {
		d.ErrorTTL[status] = defaultErrorTTL
	}
	for _, e := range f.each("CustomErrorResponses") {
		d.ErrorTTL[e.number("ErrorCode")] = e.seconds("ErrorCachingMinTTL")
		e.done()
	}
	f.must("Enabled", true)
	f.done("Aliases", "Comment", "HttpVersion", "IPV6Enabled", "Logging", "PriceClass", "ViewerCertificate")
	return d
}

func (t *template) origin(f fields) {
	o := Origin{Name: f.text("Id"), URL: "https://" + f.text("DomainName")}
	if f.has("OriginPath") {
		o.URL += f.text("OriginPath")
	}
	if f.has("OriginAccessControlId") {
		id, _, _ := strings.Cut(f.text("OriginAccessControlId"), ".")
		access := t.policy(f, id, "OriginAccessControl")
		access.must("OriginAccessControlOriginType", "s3")
		access.must("SigningBehavior", "always")
		access.must("SigningProtocol", "sigv4")
		access.done("Name", "Description")
		o.Signed = true
	}
	if f.has("CustomOriginConfig") {
		custom := f.in("CustomOriginConfig")
		custom.must("OriginProtocolPolicy", "https-only")
		custom.done("OriginSSLProtocols", "OriginReadTimeout", "OriginKeepaliveTimeout")
	}
	f.done("S3OriginConfig", "ConnectionAttempts", "ConnectionTimeout")
	t.origins[o.Name] = o
}

func (t *template) group(f fields) {
	var g group
	id := f.text("Id")
	criteria := f.in("FailoverCriteria")
	statuses := criteria.in("StatusCodes")
	g.failover = statuses.numbers("Items")
	members := f.in("Members")
	for _, m := range members.each("Items") {
		g.members = append(g.members, t.origins[m.text("OriginId")])
		m.done()
	}
	for _, part := range []fields{statuses, members} {
		part.done("Quantity")
	}
	criteria.done()
	f.done()
	t.groups[id] = g
}

func (t *template) behaviour(pattern string, f fields) Behaviour {
	b := Behaviour{Pattern: pattern, Methods: f.texts("AllowedMethods")}
	target := f.text("TargetOriginId")
	if g, ok := t.groups[target]; ok {
		b.Origins, b.Failover = g.members, g.failover
	} else if o, ok := t.origins[target]; ok {
		b.Origins = []Origin{o}
	} else {
		f.problem("TargetOriginId", "is %q, which is not there", target)
	}
	for _, cached := range f.texts("CachedMethods") {
		if cached != http.MethodGet && cached != http.MethodHead {
			f.problem("CachedMethods", "has %s; only GET and HEAD are kept here", cached)
		}
	}
	t.caching(&b, t.policy(f, f.text("CachePolicyId"), "CachePolicy"))
	if f.has("OriginRequestPolicyId") {
		t.forwarding(&b, t.policy(f, f.text("OriginRequestPolicyId"), "OriginRequestPolicy"))
	}
	if f.has("ResponseHeadersPolicyId") {
		t.answers(&b, t.policy(f, f.text("ResponseHeadersPolicyId"), "ResponseHeadersPolicy"))
	}
	f.done("ViewerProtocolPolicy", "Compress")
	return b
}

// policy is the configuration of a policy of the stack. One of AWS's own, by its
// id, is not known here.
func (t *template) policy(f fields, name, kind string) fields {
	r, ok := t.stack.Resources[name]
	if !ok || r.Type != "AWS::CloudFront::"+kind {
		f.problem(kind, "%q is not in the template", name)
	}
	return of(name, r.Properties, f.problems).in(kind + "Config")
}

func (t *template) caching(b *Behaviour, f fields) {
	b.TTL = TTL{f.seconds("MinTTL"), f.seconds("DefaultTTL"), f.seconds("MaxTTL")}
	in := f.in("ParametersInCacheKeyAndForwardedToOrigin")
	for _, e := range []struct{ name, encoding string }{{"EnableAcceptEncodingBrotli", "br"}, {"EnableAcceptEncodingGzip", "gzip"}} {
		if in.truth(e.name) {
			b.Encodings = append(b.Encodings, e.encoding)
		}
	}
	in.in("HeadersConfig").must("HeaderBehavior", "none") // else they would tell answers apart
	in.in("CookiesConfig").must("CookieBehavior", "none")
	q := in.in("QueryStringsConfig")
	if b.Query = q.m["QueryStringBehavior"] == "all"; !b.Query {
		q.must("QueryStringBehavior", "none")
	}
	in.done()
	f.done("Name", "Comment")
}

func (t *template) forwarding(b *Behaviour, f fields) {
	headers := f.in("HeadersConfig")
	headers.must("HeaderBehavior", "whitelist")
	b.Headers = headers.texts("Headers")
	headers.done()
	f.in("CookiesConfig").must("CookieBehavior", "none")
	f.in("QueryStringsConfig").must("QueryStringBehavior", "none")
	f.done("Name", "Comment")
}

func (t *template) answers(b *Behaviour, f fields) {
	security := f.in("SecurityHeadersConfig")
	options := security.in("ContentTypeOptions")
	options.must("Override", true)
	options.done()
	security.done()
	b.Answer.Header = http.Header{"X-Content-Type-Options": {"nosniff"}}

	cors := f.in("CorsConfig")
	items := func(name string) []string {
		in := cors.in(name)
		defer in.done()
		return in.texts("Items")
	}
	b.Answer.CORS = &CORS{Origins: items("AccessControlAllowOrigins"), Methods: items("AccessControlAllowMethods"),
		Headers: items("AccessControlAllowHeaders"), Expose: items("AccessControlExposeHeaders"), MaxAge: cors.text("AccessControlMaxAgeSec")}
	cors.must("AccessControlAllowCredentials", false)
	cors.must("OriginOverride", true)
	cors.done()
	f.done("Name", "Comment")
}
