package origin

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/accesslog"
)

// cases are the rules of the CDN side. Each is an error when its rule is broken.
var cases = map[string]func(*rig) error{
	"hit":                                     hit,
	"miss with fallback":                      miss,
	"what was carried is served from S3":      carried,
	"the first overseas only pattern":         func(r *rig) error { return overseasOnly(r, "us/a.jpg") },
	"the second overseas only pattern":        func(r *rig) error { return overseasOnly(r, "eu/deep/a.jpg") },
	"the third overseas only pattern":         func(r *rig) error { return overseasOnly(r, "img/a.local") },
	"both missing":                            bothMissing,
	"a late upload":                           lateUpload,
	"forbidden in S3":                         forbidden,
	"forbidden in both":                       forbiddenInBoth,
	"S3 fails":                                failing,
	"S3 does not answer":                      silent,
	"writes reach no origin":                  writes,
	"HEAD":                                    head,
	"ranges":                                  ranges,
	"the root is no listing":                  root,
	"queries, cookies and secrets stay here":  private,
	"each origin has its own host":            hosts,
	"headers of answers do not depend on who": answers,
	"the parser finds the miss":               logged,
}

// sees visits and compares "status origin [asked]".
func (r *rig) sees(want, method, path string, headers ...string) (seen, error) {
	got, err := r.visit(method, path, headers...)
	if err != nil {
		return got, err
	}
	if text := fmt.Sprintf("%d %s [%s]", got.status, got.origin, got.asked); text != want {
		return got, fmt.Errorf("%s %s: %s, want %s", method, path, text, want)
	}
	return got, nil
}

// all is the first error of steps.
func all(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// get is a step that sees a GET.
func (r *rig) get(want, path string, headers ...string) func() error {
	return func() error { _, err := r.sees(want, http.MethodGet, path, headers...); return err }
}

func (r *rig) later(d time.Duration) func() error {
	return func() error { r.wait(d); return nil }
}

func hit(r *rig) error {
	if err := r.overseas("img/a.jpg"); err != nil {
		return err
	}
	got, err := r.sees("200 s3 [s3]", http.MethodGet, "/img/a.jpg")
	if err == nil && got.body != "from s3: img/a.jpg" {
		err = fmt.Errorf("the body is %q", got.body)
	}
	return err
}

func miss(r *rig) error {
	_ = r.home("img/a b+.jpg")
	got, err := r.sees("200 cos [s3 cos]", http.MethodGet, "/img/a%20b%2B.jpg")
	if err == nil && got.body != "from cos: img/a b+.jpg" {
		err = fmt.Errorf("the body is %q", got.body)
	}
	return err
}

func carried(r *rig) error {
	_ = r.home("img/a.jpg")
	return all(r.get("200 cos [s3 cos]", "/img/a.jpg"),
		func() error { return r.overseas("img/a.jpg") },
		r.later(299*time.Second), r.get("200 cos []", "/img/a.jpg"), // DefaultTTL
		r.later(2*time.Second), r.get("200 s3 [s3]", "/img/a.jpg"))
}

func overseasOnly(r *rig, key string) error {
	_ = r.home(key)
	return all(r.get("404 s3 [s3]", "/"+key),
		r.get("404 s3 [s3]", "/"+strings.Replace(key, "/", "/x/%2E%2e/", 1)), // a way around the pattern
		func() error { return r.overseas(key) }, r.later(6*time.Second), r.get("200 s3 [s3]", "/"+key))
}

func bothMissing(r *rig) error {
	return all(r.get("404 cos [s3 cos]", "/img/none.jpg"),
		r.later(4*time.Second), r.get("404 cos []", "/img/none.jpg"),
		r.get("404 cos []", "/img/none.jpg", "Range", "bytes=0-1"),
		r.later(2*time.Second), r.get("404 cos [s3 cos]", "/img/none.jpg"))
}

func lateUpload(r *rig) error {
	return all(r.get("404 cos [s3 cos]", "/img/late.jpg"),
		func() error { return r.home("img/late.jpg") },
		r.get("404 cos []", "/img/late.jpg"),
		r.later(6*time.Second), r.get("200 cos [s3 cos]", "/img/late.jpg"))
}

func forbidden(r *rig) error {
	_ = r.home("img/archived.bin")
	r.cloud.Deny("*", "s3:GetObject", bucket+"/img/archived.bin")
	return errors.Join(r.overseas("img/archived.bin"), r.get("200 cos [s3 cos]", "/img/archived.bin")())
}

func forbiddenInBoth(r *rig) error {
	r.cos.Put("img/secret.bin", []byte("x"), cosd.Attributes{ACL: cosd.Private})
	r.cloud.Deny("*", "s3:GetObject", bucket+"/img/secret.bin")
	return all(r.get("403 cos [s3 cos]", "/img/secret.bin"),
		r.later(4*time.Second), r.get("403 cos []", "/img/secret.bin"),
		r.later(2*time.Second), r.get("403 cos [s3 cos]", "/img/secret.bin"))
}

func failing(r *rig) error {
	for _, status := range []int{500, 502, 503, 504} {
		key := fmt.Sprintf("img/%d.jpg", status)
		_ = r.home(key)
		f := r.cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceS3, Do: strictaws.Fail{Status: status, Code: "Injected"}})
		if err := r.get("200 cos [s3 cos]", "/"+key)(); err != nil {
			return err
		}
		if err := all(r.get(fmt.Sprintf("%d s3 [s3]", status), "/us/"+key), r.later(4*time.Second), r.get(fmt.Sprintf("%d s3 []", status), "/us/"+key),
			r.later(2*time.Second), r.get(fmt.Sprintf("%d s3 [s3]", status), "/us/"+key)); err != nil {
			return err
		}
		f.Remove()
	}
	return nil
}

func silent(r *rig) error {
	_ = r.home("img/a.jpg")
	r.mu.Lock()
	delete(r.local, bucket+".s3.us-west-2.amazonaws.com")
	r.mu.Unlock()
	return r.get("200 cos [s3 cos]", "/img/a.jpg")()
}

func writes(r *rig) error {
	_ = r.home("img/a.jpg")
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if _, err := r.sees("403 edge []", method, "/img/a.jpg"); err != nil {
			return err
		}
	}
	return r.get("200 cos [s3 cos]", "/img/a.jpg")()
}

func head(r *rig) error {
	_ = r.home("img/a.jpg")
	got, err := r.sees("200 cos [s3 cos]", http.MethodHead, "/img/a.jpg")
	if err == nil && (got.body != "" || got.header.Get("Content-Length") != "19") {
		err = fmt.Errorf("body %q, Content-Length %q", got.body, got.header.Get("Content-Length"))
	}
	return err
}

func ranges(r *rig) error {
	_ = r.home("img/a.jpg")
	for _, want := range []string{"206 cos [s3 cos]", "206 s3 [s3]"} {
		got, err := r.sees(want, http.MethodGet, "/img/a.jpg", "Range", "bytes=5-7")
		if err != nil {
			return err
		}
		if n := len(got.body); n != 3 || !strings.HasPrefix(got.header.Get("Content-Range"), "bytes 5-7/") {
			return fmt.Errorf("%s: %d bytes, Content-Range %q", want, n, got.header.Get("Content-Range"))
		}
		if err := r.overseas("img/a.jpg"); err != nil {
			return err
		}
	}
	return nil
}

func root(r *rig) error {
	_ = r.home("index.html")
	for _, path := range []string{"/", "/?list-type=2"} {
		got, err := r.visit(http.MethodGet, path)
		if err != nil {
			return err
		}
		if got.body != "from cos: index.html" {
			return fmt.Errorf("GET %s: %d %q", path, got.status, got.body)
		}
	}
	return nil
}

// toOrigins are the requests of a miss, which reaches both.
func toOrigins(r *rig, path string, headers ...string) ([]*http.Request, error) {
	got, err := r.visit(http.MethodGet, path, headers...)
	if err == nil && got.asked != "s3 cos" {
		err = fmt.Errorf("asked %s", got.asked)
	}
	return got.sent, err
}

func private(r *rig) error {
	sent, err := toOrigins(r, "/img/a.jpg?tagging&imageMogr2/thumbnail/!50p", "Cookie", "session=1", "Authorization", "Bearer visitor", "X-Token", "t")
	for _, q := range sent {
		if q.URL.RawQuery != "" || q.Header.Get("Cookie") != "" || q.Header.Get("X-Token") != "" || strings.Contains(q.Header.Get("Authorization"), "visitor") {
			err = errors.Join(err, fmt.Errorf("%s got %q, %v", q.URL.Host, q.URL.RawQuery, q.Header))
		}
	}
	if len(sent) == 2 && (sent[0].Header.Get("Authorization") == "" || sent[1].Header.Get("Authorization") != "") {
		err = errors.Join(err, errors.New("requests are to be signed for S3, and only for S3"))
	}
	return errors.Join(err, r.get("404 cos []", "/img/a.jpg?other")()) // it is the same object
}

func hosts(r *rig) error {
	sent, err := toOrigins(r, "/img/a.jpg")
	for i, want := range []string{bucket + ".s3.us-west-2.amazonaws.com", cosHost} {
		if err == nil && sent[i].Host != want {
			err = fmt.Errorf("the host toward %s is %s", want, sent[i].Host)
		}
	}
	return err
}

func answers(r *rig) error {
	_ = r.home("img/cos.jpg")
	if err := r.overseas("img/s3.jpg"); err != nil {
		return err
	}
	for _, path := range []string{"/img/cos.jpg", "/img/s3.jpg", "/img/s3.jpg", "/img/none.jpg"} {
		for origin, want := range map[string]string{"https://a.example.com": "*", "": ""} {
			got, err := r.visit(http.MethodGet, path, "Origin", origin)
			if err != nil {
				return err
			}
			if allow := got.header.Get("Access-Control-Allow-Origin"); allow != want || got.header.Get("X-Content-Type-Options") != "nosniff" {
				return fmt.Errorf("%s for %q: %v", path, origin, got.header)
			}
		}
	}
	return nil
}

// logged: what S3 writes of the edge's requests is what the parser takes for
// misses, once for each time S3 was asked, and under the right verdict.
func logged(r *rig) error {
	_ = r.home("img//ü+%.jpg")
	if err := r.overseas("img/hit.jpg"); err != nil {
		return err
	}
	err := all(r.get("200 cos [s3 cos]", "/img//%C3%BC%2B%25.jpg"), r.get("200 cos []", "/img//%C3%BC%2B%25.jpg"),
		r.get("200 s3 [s3]", "/img/hit.jpg"), r.get("404 s3 [s3]", "/us/gone.jpg"))
	if err != nil {
		return err
	}
	r.cloud.FlushLogs()
	got := map[string]int{}
	for _, key := range r.cloud.Keys(logBucket) {
		o, _ := r.cloud.Object(logBucket, key)
		rows := accesslog.NewScanner(bytes.NewReader(o.Body))
		for rows.Next() {
			row := rows.Row()
			got[fmt.Sprintf("%s %s own %t", row.Verdict, row.Key(), row.IsOwn())]++
		}
	}
	want := map[string]int{"miss img//ü+%.jpg own false": 1, "skip img/hit.jpg own false": 1, "miss us/gone.jpg own false": 1}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("the log reads %v, want %v", got, want)
	}
	return nil
}
