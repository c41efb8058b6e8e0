package strictaws_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
)

// rows flushes and returns all log rows delivered so far.
func (r *rig) rows(t *testing.T) []string {
	t.Helper()
	r.FlushLogs()
	var all strings.Builder
	for _, k := range r.Keys("logs") {
		o, _ := r.Object("logs", k)
		all.Write(o.Body)
	}
	return strings.Split(strings.TrimSuffix(all.String(), "\n"), "\n")
}

func loggedRig(t *testing.T, cfg strictaws.Config) *rig {
	r := newRig(t, cfg)
	r.CreateBucket("logs", strictaws.Bucket{})
	r.CreateBucket("media", strictaws.Bucket{PublicRead: true, PublicList: true, LogBucket: "logs", LogPrefix: "access/"})
	return r
}

// rowFields splits a row whose quoted fields hold no quotes.
func rowFields(row string) []string {
	return regexp.MustCompile(`\[[^]]*\]|"[^"]*"|\S+`).FindAllString(row, -1)
}

func TestLogRowHas27Fields(t *testing.T) {
	at := time.Date(2026, 9, 4, 8, 3, 42, 0, time.UTC)
	r := loggedRig(t, strictaws.Config{Now: func() time.Time { return at }})
	if err := r.PutObject("media", "k", []byte("0123456789"), nil); err != nil {
		t.Fatal(err)
	}
	header := http.Header{"User-Agent": {"Mozilla/5.0 (X11)"}, "Referer": {"https://www.example.com/"}, "Range": {"bytes=0-3"}}
	r.request(t, "GET", "/media/k?a=1", "", header)
	rows := r.rows(t)
	if len(rows) != 1 {
		t.Fatalf("%d rows: %q", len(rows), rows)
	}
	got := rowFields(rows[0])
	if len(got) != 27 {
		t.Fatalf("%d fields: %q", len(got), rows[0])
	}
	for _, i := range []int{0, 5, 13, 14, 18} { // owner, request id, times, host id
		got[i] = ""
	}
	host := strings.TrimPrefix(r.S3URL, "http://")
	want := []string{"", "media", "[04/Sep/2026:08:03:42 +0000]", "127.0.0.1", "-", "", "REST.GET.OBJECT", "k", `"GET /media/k?a=1 HTTP/1.1"`,
		"206", "-", "4", "10", "", "", `"https://www.example.com/"`, `"Mozilla/5.0 (X11)"`, "-", "", "-", "-", "-", host, "-", "-", "-", "us-west-2"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("row (-want +got):\n%s", d)
	}
	if k := r.Keys("logs"); len(k) != 1 || !regexp.MustCompile(`^access/2026-09-04-08-03-42-[0-9A-F]{16}$`).MatchString(k[0]) {
		t.Errorf("log objects %q", k)
	}
}

func TestLogRowsOfEachOperation(t *testing.T) {
	r := loggedRig(t, strictaws.Config{})
	b := aws.String("media")
	r.put(t, "a b/测%", "x")
	_, _ = r.s3.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: b, Key: aws.String("none")})
	r.request(t, "GET", "/media/%2e%2E/a+b(1).jpg", "", nil)
	r.Deny("*", "s3:GetObject", "media/private")
	r.request(t, "GET", "/media/private", "", nil)
	_, _ = r.s3.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: b})
	_, _ = r.s3.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: b, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("a b/测%")}}}})
	r.Faults().Add(strictaws.Fault{Action: "GetObject", Do: strictaws.Fail{Status: 503, Code: "SlowDown"}})
	r.request(t, "GET", "/media/k", "", nil)
	up := r.begin(t, "big", nil)
	r.complete(t, up, r.part(t, up, 1, "x"))

	type row struct{ Requester, Operation, Key, Status, Code, SigVersion, AuthType string }
	var got []row
	for _, text := range r.rows(t) {
		f := rowFields(text)
		got = append(got, row{f[4], f[6], f[7], f[9], f[10], f[19], f[21]})
	}
	stranger := func(op, key, status, code string) row { return row{"-", op, key, status, code, "-", "-"} }
	ours := func(op, key, status, code string) row {
		return row{roleARN, op, key, status, code, "SigV4", "AuthHeader"}
	}
	want := []row{
		ours("REST.PUT.OBJECT", "a%2520b/%25E6%25B5%258B%2525", "200", "-"),
		ours("REST.HEAD.OBJECT", "none", "404", "NoSuchKey"),
		stranger("REST.GET.OBJECT", "../a%252Bb%25281%2529.jpg", "404", "NoSuchKey"),
		stranger("REST.GET.OBJECT", "private", "403", "AccessDenied"),
		ours("REST.GET.BUCKET", "-", "200", "-"),
		ours("REST.POST.MULTI_OBJECT_DELETE", "-", "200", "-"),
		ours("BATCH.DELETE.OBJECT", "a%20b/%E6%B5%8B%25", "204", "-"),
		stranger("REST.GET.OBJECT", "k", "503", "SlowDown"),
		ours("REST.POST.UPLOADS", "big", "200", "-"),
		ours("REST.PUT.PART", "big", "200", "-"),
		ours("REST.POST.UPLOAD", "big", "200", "-"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
}

func TestLoggingIsConfiguredByAPI(t *testing.T) {
	r := newRig(t, strictaws.Config{})
	on := &s3.PutBucketLoggingInput{Bucket: aws.String("media"), BucketLoggingStatus: &types.BucketLoggingStatus{
		LoggingEnabled: &types.LoggingEnabled{TargetBucket: aws.String("logs"), TargetPrefix: aws.String("p/")}}}
	_, err := r.s3.PutBucketLogging(t.Context(), on)
	wantCode(t, err, "InvalidTargetBucketForLogging")
	r.CreateBucket("logs", strictaws.Bucket{})
	if _, err := r.s3.PutBucketLogging(t.Context(), on); err != nil {
		t.Fatal(err)
	}
	got, err := r.s3.GetBucketLogging(t.Context(), &s3.GetBucketLoggingInput{Bucket: on.Bucket})
	if err != nil || got.LoggingEnabled == nil || *got.LoggingEnabled.TargetPrefix != "p/" {
		t.Errorf("GetBucketLogging = %+v, %v", got, err)
	}
	if rows := r.rows(t); !strings.Contains(rows[len(rows)-1], " REST.GET.LOGGING_STATUS - ") {
		t.Errorf("rows = %q", rows)
	}
	if n := r.FlushLogs(); n != 0 {
		t.Errorf("nothing to deliver, but %d log objects", n)
	}
}

func TestLogsAreDeliveredWhileServing(t *testing.T) {
	cloud := strictaws.New(strictaws.Config{LogInterval: 10 * time.Millisecond})
	cloud.CreateBucket("logs", strictaws.Bucket{})
	cloud.CreateBucket("media", strictaws.Bucket{LogBucket: "logs"})
	server, err := cloud.Serve()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	resp, err := http.Get(server.S3URL + "/media/k")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for deadline := time.Now().Add(5 * time.Second); len(cloud.Keys("logs")) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no log object")
		}
	}
}
