package interop

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/s3store"
	"github.com/objectferry/objectferry/pkg/s3event"
)

var logRules = []rule{
	{"a log is read in ranges, cut to what is there", nil, logInRanges},
	{"a log that became another between two ranges is told as changed", nil, logChanges},
	{"a log is read as it is stored", nil, logAsStored},
	{"a log that is not there is told as absent", nil, logAbsent},
	{"an empty log is read", nil, emptyLog},
	{"logs are listed in order, page after page", nil, logsAreListed},
	{"a listing starts after any text", nil, listingStartsAfter},
	{"deleting a log twice is no error", nil, logIsDeleted},
	{"the reference of logs passes, and is refused where there is no bucket", nil, logReference},
	{"who may not list logs is told denied", lacks{"moto": "lets everybody do everything"}, logWithoutList},
	{"a new log is announced under its key", nil, logIsAnnounced},
	{"the time of an announcement has a zone", lacks{"moto": "leaves it out, which pkg/s3event bears"}, announcementHasZone},
}

// place is one bucket of logs.
type place struct {
	*shelf
	logs *s3store.LogStore
}

func newPlace(t *testing.T, c *cloud) place {
	t.Helper()
	s := newShelf(t, c)
	return place{s, s3store.NewLogs(c.client(nil), map[string]string{s.bucket: "access/"})}
}

// read reads a range to its end.
func (p place) read(key string, offset, length int64, pin string) (string, *object.Read, error) {
	r, err := p.logs.Read(p.Context(), p.bucket, key, object.Range{Offset: offset, Length: length}, pin)
	if err != nil {
		return "", nil, err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return string(b), r, err
}

func logInRanges(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	p.put("k", "0123456789")
	var etag string
	for _, tt := range []struct {
		offset, length int64
		want           string
	}{{0, 4, "0123"}, {4, 4, "4567"}, {8, 4, "89"}, {0, 100, "0123456789"}} {
		got, r, err := p.read("k", tt.offset, tt.length, etag)
		if err != nil || got != tt.want || r.Size != 10 {
			return fmt.Errorf("%d bytes from %d are %q, want %q: %w", tt.length, tt.offset, got, tt.want, err)
		}
		etag = r.ETag
	}
	return nil
}

func logChanges(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	p.put("k", "0123456789")
	_, r, err := p.read("k", 0, 4, "")
	if err != nil {
		return err
	}
	p.put("k", "9876543210")
	_, _, err = p.read("k", 4, 4, r.ETag)
	return class(err, object.Changed)
}

func logAsStored(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(bytes.Repeat([]byte("row\n"), 100)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := p.witness.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &p.bucket, Key: aws.String("k"), ContentEncoding: aws.String("gzip"), Body: bytes.NewReader(zipped.Bytes())})
	if err != nil {
		t.Fatalf("put: %v", err)
	}
	if got, _, err := p.read("k", 0, 1<<20, ""); err != nil || got != zipped.String() {
		return fmt.Errorf("read %d bytes of %d, or others: %w", len(got), zipped.Len(), err)
	}
	return nil
}

func logAbsent(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	_, _, err := p.read("k", 0, 4, "")
	return class(err, object.Absent)
}

func emptyLog(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	p.put("k", "")
	got, r, err := p.read("k", 0, 4, "")
	if err != nil || got != "" || r.Size != 0 {
		return fmt.Errorf("read %q: %w", got, err)
	}
	return nil
}

// list are the keys under access/ after startAfter.
func (p place) list(startAfter string) ([]string, error) {
	var keys []string
	for o, err := range p.logs.List(p.Context(), p.bucket, "access/", startAfter) {
		if err != nil {
			return keys, err
		}
		if age := time.Since(o.LastModified); age < -5*time.Second || age > 5*time.Minute {
			return keys, fmt.Errorf("%q was last modified %s ago", o.Key, age)
		}
		keys = append(keys, o.Key)
	}
	return keys, nil
}

func logsAreListed(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	want := make([]string, c.page+c.page/2)
	var writing sync.WaitGroup
	tokens := make(chan struct{}, 8)
	for i := range want {
		want[i] = fmt.Sprintf("access/2026-09-04-%04d a+b", i)
		writing.Go(func() {
			tokens <- struct{}{}
			defer func() { <-tokens }()
			if _, err := p.witness.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &p.bucket, Key: &want[i]}); err != nil {
				t.Errorf("put: %v", err)
			}
		})
	}
	writing.Wait()
	p.put("elsewhere", "")
	got, err := p.list("")
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		return fmt.Errorf("%w, keys (-written +listed):\n%s", err, diff)
	}
	return nil
}

func listingStartsAfter(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	for _, key := range []string{"access/1", "access/2", "access/3"} {
		p.put(key, "")
	}
	for after, want := range map[string][]string{"access/2": {"access/3"}, "access/1a": {"access/2", "access/3"}, "access/3": nil} {
		if got, err := p.list(after); err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("after %q come %q, want %q: %w", after, got, want, err)
		}
	}
	return nil
}

func logIsDeleted(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	p.put("k", "hello")
	for range 2 {
		if err := p.logs.Delete(t.Context(), p.bucket, "k"); err != nil {
			return err
		}
	}
	_, _, err := p.read("k", 0, 4, "")
	return class(err, object.Absent)
}

func logReference(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	return errors.Join(p.logs.Reference(t.Context(), p.bucket), class(p.logs.Reference(t.Context(), unique("no-bucket")), object.Refused))
}

func logWithoutList(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	if c.deny == nil {
		return errors.New("there is no way to take the permission away")
	}
	c.deny("s3:ListBucket", p.bucket)
	return class(p.logs.Reference(t.Context(), p.bucket), object.Denied)
}

// announced makes objects and returns what the queue was told of them.
func (p place) announced(c *cloud, keys ...string) (records []s3event.Record, bodies []string) {
	p.Helper()
	b := open(p.T, c, 60)
	_, err := p.witness.PutBucketNotificationConfiguration(p.Context(), &s3.PutBucketNotificationConfigurationInput{Bucket: &p.bucket,
		NotificationConfiguration: notifications(c.queueARN(b.url), "access/")})
	if err != nil {
		p.Fatalf("set notifications: %v", err)
	}
	p.put("elsewhere", "")
	for _, key := range keys {
		p.put(key, "hello")
	}
	for deadline := time.Now().Add(30 * time.Second); len(records) < len(keys) && time.Now().Before(deadline); {
		for _, m := range b.receive(2) {
			got, err := s3event.Parse(*m.Body)
			if err != nil {
				p.Fatalf("%v in %s", err, *m.Body)
			}
			if len(got) > 0 { // not the test event
				records, bodies = append(records, got...), append(bodies, *m.Body)
			}
		}
	}
	return records, bodies
}

// notifications announce each new object under prefix to one queue.
func notifications(queueARN, prefix string) *types.NotificationConfiguration {
	return &types.NotificationConfiguration{QueueConfigurations: []types.QueueConfiguration{{
		QueueArn: &queueARN, Events: []types.Event{"s3:ObjectCreated:*"},
		Filter: &types.NotificationConfigurationFilter{Key: &types.S3KeyFilter{FilterRules: []types.FilterRule{{Name: types.FilterRuleNamePrefix, Value: &prefix}}}},
	}}}
}

func logIsAnnounced(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	want := []string{"access/a b+c", "access/plain", "access/ü%2F&="}
	var got []string
	records, _ := p.announced(c, want...)
	for _, r := range records {
		if age := time.Since(r.EventTime); r.Bucket != p.bucket || r.Size != 5 || age < -5*time.Second || age > 5*time.Minute {
			return fmt.Errorf("announced was %+v", r)
		}
		got = append(got, r.Key)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		return fmt.Errorf("keys (-written +announced):\n%s", diff)
	}
	return nil
}

func announcementHasZone(t *testing.T, c *cloud) error {
	p := newPlace(t, c)
	_, bodies := p.announced(c, "access/plain")
	var event struct {
		Records []struct{ EventTime string }
	}
	if err := json.Unmarshal([]byte(bodies[0]), &event); err != nil {
		return err
	}
	_, err := time.Parse(time.RFC3339, event.Records[0].EventTime)
	return err
}
