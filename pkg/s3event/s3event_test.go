package s3event

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type testCase struct {
	Note string
	Body string
	Want struct {
		Objects      [][2]string
		Acknowledged bool
		DeadLetter   string `json:"dead_letter"`
	}
}

// cases reads testdata/notifications.jsonl.
func cases(t testing.TB) []testCase {
	f, err := os.Open("testdata/notifications.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []testCase
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c testCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if len(all) < 19 {
		t.Fatalf("only %d cases", len(all))
	}
	return all
}

func TestEveryCaseGivesItsAnswer(t *testing.T) {
	for _, c := range cases(t) {
		t.Run(c.Note, func(t *testing.T) {
			records, err := Parse(c.Body)
			if c.Want.DeadLetter != "" {
				var typed *Error
				if !errors.As(err, &typed) || records != nil {
					t.Fatalf("got %v, %v", records, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got [][2]string
			for _, r := range records {
				got = append(got, [2]string{r.Bucket, r.Key})
			}
			if diff := cmp.Diff(c.Want.Objects, got); diff != "" {
				t.Error(diff)
			}
			if c.Want.Acknowledged != (len(records) == 0) {
				t.Errorf("%d records", len(records))
			}
		})
	}
}

// notification is a body with one record of the given fields.
func notification(version, name, when, object string) string {
	return fmt.Sprintf(`{"Records":[{"eventVersion":%q,"eventSource":"aws:s3","eventTime":%q,"eventName":%q,`+
		`"s3":{"bucket":{"name":"log-bucket"},"object":%s}}]}`, version, when, name, object)
}

const plain = `{"key":"access/a+b%2Bc","size":7,"sequencer":"0066D8"}`

func TestRecordHasAllItsFields(t *testing.T) {
	got, err := Parse(notification("2.6", "ObjectCreated:Put", "2026-09-04T09:00:00.500Z", plain))
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{{
		Bucket: "log-bucket", Key: "access/a b+c", Size: 7, Sequencer: "0066D8",
		EventTime: time.Date(2026, 9, 4, 9, 0, 0, 5e8, time.UTC),
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSizeAbsentIsNotZero(t *testing.T) {
	for object, want := range map[string]int64{
		`{"key":"k"}`: -1, `{"key":"k","size":null}`: -1, `{"key":"k","size":0}`: 0,
	} {
		got, err := Parse(notification("2.6", "ObjectCreated:Put", "", object))
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Size != want {
			t.Errorf("%s: size %d", object, got[0].Size)
		}
	}
}

func TestAnyVersion2IsRead(t *testing.T) {
	for _, v := range []string{"2.0", "2.1", "2.6", "2.17"} {
		if got, err := Parse(notification(v, "ObjectCreated:Copy", "", plain)); err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", v, got, err)
		}
	}
	for _, v := range []string{"", "1.0", "3.0", "20.1"} {
		if got, err := Parse(notification(v, "ObjectCreated:Copy", "", plain)); err == nil {
			t.Errorf("%s: %v", v, got)
		}
	}
}

func TestOtherEventsOfS3AreAcknowledged(t *testing.T) {
	for _, name := range []string{"ObjectRemoved:Delete", "s3:ObjectRemoved:DeleteMarkerCreated", "ObjectRestore:Completed", "LifecycleExpiration:Delete"} {
		if got, err := Parse(notification("2.6", name, "", `{"key":"bad%zz"}`)); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	deleted := `{"source":"aws.s3","detail-type":"Object Deleted","detail":{"bucket":{"name":"b"},"object":{"key":"k"}}}`
	if got, err := Parse(deleted); err != nil || len(got) != 0 {
		t.Errorf("EventBridge: %v, %v", got, err)
	}
}

func TestTimeWithoutAZoneIsUTC(t *testing.T) {
	want := time.Date(2026, 9, 4, 9, 0, 0, 123e6, time.UTC)
	for _, when := range []string{"2026-09-04T09:00:00.123", "2026-09-04T17:00:00.123+08:00"} {
		got, err := Parse(notification("2.1", "ObjectCreated:Put", when, plain))
		if err != nil {
			t.Fatal(err)
		}
		if got[0].EventTime != want {
			t.Errorf("%s: %v", when, got[0].EventTime)
		}
	}
}

func TestUnreadableTimeIsNoReasonToRefuse(t *testing.T) {
	got, err := Parse(notification("2.6", "ObjectCreated:Put", "noon", plain))
	if err != nil || len(got) != 1 || !got[0].EventTime.IsZero() {
		t.Errorf("%v, %v", got, err)
	}
}

// sns wraps a body as a topic does.
func sns(body string) string {
	message, _ := json.Marshal(body)
	return `{"Type":"Notification","MessageId":"63a3f6b6","Message":` + string(message) + `}`
}

func TestEnvelopesNest(t *testing.T) {
	bridge := `{"source":"aws.s3","detail-type":"Object Created","time":"2026-09-04T09:00:00Z",` +
		`"detail":{"bucket":{"name":"log-bucket"},"object":{"key":"a+b%20c"}}}`
	got, err := Parse(sns(bridge))
	if err != nil {
		t.Fatal(err)
	}
	want := []Record{{Bucket: "log-bucket", Key: "a+b%20c", Size: -1, EventTime: time.Date(2026, 9, 4, 9, 0, 0, 0, time.UTC)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestErrorNamesTheFieldAndNeverQuotesTheBody(t *testing.T) {
	const secret = "hunter2"
	pad := strings.Repeat(secret, MaxSize/len(secret)+1)
	good := notification("2.6", "ObjectCreated:Put", "", plain)
	second := strings.Replace(good, `]}`, `,{"eventVersion":"2.6","eventSource":"aws:s3","eventName":"ObjectCreated:Put",`+
		`"s3":{"bucket":{"name":"b"},"object":{"key":"hunter2%zz"}}}]}`, 1)
	tests := map[string]struct{ body, at, says string }{
		"text":               {secret, "", "broken JSON at byte 1"},
		"number":             {"17", "", "not a JSON object"},
		"text after":         {good + secret, "", "broken JSON"},
		"foreign":            {`{"foo":"hunter2"}`, "", "neither"},
		"second record":      {second, "Records[1].s3.object.key", "bad escape"},
		"records is text":    {`{"Records":"hunter2"}`, "Records", "type"},
		"no bucket":          {strings.Replace(good, "log-bucket", "", 1), "Records[0].s3.bucket.name", "missing"},
		"no key":             {strings.Replace(good, `"key"`, `"hunter2"`, 1), "Records[0].s3.object.key", "missing"},
		"no s3":              {strings.Replace(good, `"s3"`, `"hunter2"`, 1), "Records[0].s3", "missing"},
		"no name":            {strings.Replace(good, `"ObjectCreated:Put"`, `""`, 1), "Records[0].eventName", "missing"},
		"size is text":       {strings.Replace(good, "7", `"hunter2"`, 1), "Records.s3.object.size", "type"},
		"negative size":      {strings.Replace(good, "7", `-7`, 1), "Records[0].s3.object.size", "negative"},
		"too large":          {strings.Replace(good, "log-bucket", pad, 1), "", "are more than 65536"},
		"too large in SNS":   {sns(strings.Replace(good, "log-bucket", pad, 1)), "", "are more than 65536"},
		"too large envelope": {sns(pad + pad + pad), "", "are more than 139264"},
		"twice in SNS":       {sns(sns(good)), "", "neither"},
		"text in SNS":        {sns(secret), "", "broken JSON"},
		"subscription":       {`{"Type":"SubscriptionConfirmation","Message":"hunter2"}`, "Type", "confirmed"},
		"another source":     {`{"source":"hunter2","detail-type":"Object Created","detail":{}}`, "source", "not aws.s3"},
		"no detail type":     {`{"source":"aws.s3","detail":{}}`, "detail-type", "missing"},
		"empty detail":       {`{"source":"aws.s3","detail-type":"Object Created","detail":{}}`, "detail.bucket.name", "missing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			records, err := Parse(test.body)
			var typed *Error
			if !errors.As(err, &typed) || records != nil {
				t.Fatalf("got %v, %v", records, err)
			}
			if typed.At != test.at || !strings.Contains(typed.Reason, test.says) {
				t.Errorf("at %q: %q", typed.At, typed.Reason)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q quotes the body", err)
			}
		})
	}
}

// A notification of the largest size passes in an envelope too.
func TestLargestNotificationIsRead(t *testing.T) {
	body := notification("2.6", "ObjectCreated:Put", "", plain)
	body += strings.Repeat("\n", MaxSize-len(body))
	for _, b := range []string{body, sns(body)} {
		if got, err := Parse(b); err != nil || len(got) != 1 {
			t.Errorf("%d bytes: %v, %v", len(b), got, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range cases(f) {
		f.Add(c.Body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		records, err := Parse(body)
		if err != nil {
			var typed *Error
			if !errors.As(err, &typed) || len(err.Error()) > 300 || records != nil {
				t.Fatalf("%d records, %v", len(records), err)
			}
		}
		for _, r := range records {
			if r.Bucket == "" || r.Key == "" || r.Size < -1 {
				t.Errorf("%+v", r)
			}
		}
	})
}
