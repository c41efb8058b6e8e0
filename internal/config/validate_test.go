package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// valid is a configuration that a test then breaks in one place.
func valid() *Config {
	c := Default()
	c.Region = "us-west-2"
	c.Queues = Queues{
		Logs: "https://sqs.us-west-2.amazonaws.com/111122223333/logs",
		Sync: "https://sqs.us-west-2.amazonaws.com/111122223333/sync",
	}
	c.Logs = []Log{{Bucket: "log-bucket", Prefix: "access/", WhenDone: WhenDoneKeep}}
	r := DefaultRoute()
	r.Bucket = "overseas-media"
	r.Source = Source{
		COS:             "https://media-1250000000.cos.ap-shanghai.myqcloud.com",
		Read:            ReadSigned,
		CredentialsFile: "/etc/objectferry/cos.json",
	}
	r.Include = []string{"img/**"}
	c.Routes = []Route{r}
	return c
}

// anonymous turns the only route's source into one that is read as a stranger.
func anonymous(c *Config) {
	c.Routes[0].Source.Read, c.Routes[0].Source.CredentialsFile = ReadAnonymous, ""
}

type breakage struct {
	name  string
	field string // of the only problem; "" when there must be none
	says  string
	do    func(*Config)
}

func runBreakages(t *testing.T, breakages []breakage) {
	t.Helper()
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			c := valid()
			b.do(c)
			err := c.Validate()
			if b.field == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var problems Errors
			if !errors.As(err, &problems) || len(problems) != 1 || problems[0].Field != b.field || !strings.Contains(problems[0].Text, b.says) {
				t.Errorf("got %v\nwant only %s: … %s …", err, b.field, b.says)
			}
		})
	}
}

func TestValidIsValid(t *testing.T) {
	if err := valid().Validate(); err != nil {
		t.Fatal(err)
	}
}

// Rule 4: nothing becomes more public than it was.
func TestWhatMayBecomePublicMustBeSaid(t *testing.T) {
	const include, read = "routes[0].include", "routes[0].source.read"
	runBreakages(t, []breakage{
		{"read not chosen", read, "there is no default", func(c *Config) { c.Routes[0].Source.Read = "" }},
		{"read is another word", read, `"anonymous" or "signed"`, func(c *Config) { c.Routes[0].Source.Read = "Signed" }},
		{"signed without include", include, "must name what may become public", func(c *Config) { c.Routes[0].Include = nil }},
		{"signed, all public, without include", include, "must name", func(c *Config) { c.Routes[0].Include, c.Routes[0].Source.AllPublic = nil, true }},
		{"signed and everything", include, "all_public: true", func(c *Config) { c.Routes[0].Include = []string{"**"} }},
		{"signed and everything beside something", include, "matches everything", func(c *Config) { c.Routes[0].Include = []string{"img/**", "{a,**}"} }},
		{"signed and everything in two", include, "matches everything", func(c *Config) { c.Routes[0].Include = []string{"*", "**/*"} }},
		{"an exclude does not make it less", include, "matches everything", func(c *Config) { c.Routes[0].Include, c.Routes[0].Exclude = []string{"**"}, []string{"private/**"} }},
		{"signed, everything, said so", "", "", func(c *Config) { c.Routes[0].Include, c.Routes[0].Source.AllPublic = []string{"**"}, true }},
		{"anonymous without include", "", "", func(c *Config) { anonymous(c); c.Routes[0].Include = nil }},
		{"anonymous and everything", "", "", func(c *Config) { anonymous(c); c.Routes[0].Include = []string{"**"} }},
		{"malformed include", "routes[0].include[1]", "malformed", func(c *Config) { c.Routes[0].Include = []string{"img/**", "a/[b"} }},
		{"malformed exclude", "routes[0].exclude[0]", "would not cross slashes", func(c *Config) { c.Routes[0].Exclude = []string{"private**"} }},
		{"exclude with a leading slash", "routes[0].exclude[0]", "leading slash", func(c *Config) { c.Routes[0].Exclude = []string{"/private/**"} }},
	})
}

func TestHalfAConfigurationIsRefused(t *testing.T) {
	const cos, kms = "routes[0].source.cos", "routes[0].destination.kms_key"
	runBreakages(t, []breakage{
		{"when_done not chosen", "logs[0].when_done", "there is no default", func(c *Config) { c.Logs[0].WhenDone = "" }},
		{"signed without credentials", "routes[0].source.credentials_file", "is missing", func(c *Config) { c.Routes[0].Source.CredentialsFile = "" }},
		{"anonymous with credentials", "routes[0].source.credentials_file", "anonymously", func(c *Config) { c.Routes[0].Source.Read = ReadAnonymous }},
		{"no region", "region", "is missing", func(c *Config) { c.Region = "" }},
		{"no logs queue", "queues.logs", "is missing", func(c *Config) { c.Queues.Logs = "" }},
		{"no sync queue", "queues.sync", "is missing", func(c *Config) { c.Queues.Sync = "" }},
		{"no logs", "logs", "is missing", func(c *Config) { c.Logs = nil }},
		{"no log bucket", "logs[0].bucket", "is missing", func(c *Config) { c.Logs[0].Bucket = "" }},
		{"no routes", "routes", "is missing", func(c *Config) { c.Routes = nil }},
		{"no bucket", "routes[0].bucket", "is missing", func(c *Config) { c.Routes[0].Bucket = "" }},
		{"no source", cos, "is missing", func(c *Config) { c.Routes[0].Source.COS = "" }},
		{"aws:kms without a key", kms, `or "default"`, func(c *Config) { c.Routes[0].Destination.SSE = SSEKMS }},
		{"aws:kms with the default key", "", "", func(c *Config) { c.Routes[0].Destination.SSE, c.Routes[0].Destination.KMSKey = SSEKMS, "default" }},
		{"a key without aws:kms", kms, "sse is not aws:kms", func(c *Config) { c.Routes[0].Destination.KMSKey = "alias/media" }},
		{"memory of less than two parts", "copy.memory", "32MiB or more", func(c *Config) { c.Copy.Memory = 32<<20 - 1 }},
		{"memory of two parts", "", "", func(c *Config) { c.Copy.Memory = 32 << 20 }},
		{"memory of less than two grown parts", "copy.memory", "9538MiB or more", func(c *Config) { c.Copy.MaxSize = 50e12 }},
	})
}

func TestLogsDoNotFeedThemselvesOrOverlap(t *testing.T) {
	runBreakages(t, []breakage{
		{"a log bucket that is also a destination", "logs[0].bucket", "feed itself", func(c *Config) { c.Logs[0].Bucket = "overseas-media" }},
		{"one prefix in another", "logs[1]", "overlaps logs[0]", func(c *Config) {
			c.Logs = append(c.Logs, Log{Bucket: "log-bucket", Prefix: "access/2026", WhenDone: WhenDoneKeep})
		}},
		{"the whole bucket", "logs[1]", "overlaps logs[0]", func(c *Config) { c.Logs = append(c.Logs, Log{Bucket: "log-bucket", WhenDone: WhenDoneKeep}) }},
		{"two prefixes", "", "", func(c *Config) {
			c.Logs = append(c.Logs, Log{Bucket: "log-bucket", Prefix: "other/", WhenDone: WhenDoneDelete})
		}},
		{"two routes for a bucket", "routes[1].bucket", "routes[0].bucket", func(c *Config) { c.Routes = append(c.Routes, c.Routes[0]) }},
	})
}

func TestAddresses(t *testing.T) {
	var breakages []breakage
	for address, says := range map[string]string{
		"https://media-1250000000.cos.ap-shanghai.myqcloud.com":           "",
		"https://media-1250000000.cos.ap-shanghai.myqcloud.com/":          "",
		"https://media-1250000000.cos-internal.ap-shanghai.tencentcos.cn": "",
		"https://media-1250000000.cos.accelerate.myqcloud.com":            "",
		"http://media-1250000000.cos.ap-shanghai.myqcloud.com":            "must begin with https://",
		"https://media-1250000000.cos.ap-shanghai.myqcloud.com/img":       "must end with the host",
		"https://media-1250000000.cos.ap-shanghai.myqcloud.com?a=b":       "query",
		"https://media-1250000000.cos.ap-shanghai.myqcloud.com#a":         "fragment",
		"https://u:p@media-1250000000.cos.ap-shanghai.myqcloud.com":       "password",
		"https://cos.ap-shanghai.myqcloud.com":                            "custom_domain: true",
		"https://assets.example.com":                                      "custom_domain: true",
		"http://127.0.0.1:9000":                                           "",
		"https://x-1250000000.cos.ap-shanghai.myqcloud.com.example.com":   "custom_domain: true",
		"media-1250000000.cos.ap-shanghai.myqcloud.com":                   "is not a URL",
		"https://":    "is not a URL",
		"https://:80": "is not a URL",
		"ftp://media-1250000000.cos.ap-shanghai.myqcloud.com": "must begin with https://",
		"https://a b": "is not a URL",
	} {
		breakages = append(breakages, address1("routes[0].source.cos", address, says, func(c *Config) { c.Routes[0].Source.COS = address }))
	}
	for address, says := range map[string]string{
		"https://assets.example.com":     "",
		"http://127.0.0.1:9000":          "",
		"http://[::1]:9000":              "",
		"http://localhost:9000":          "",
		"http://localhost.example.com":   "must begin with https://",
		"http://10.0.0.1":                "must begin with https://",
		"https://assets.example.com/img": "must end with the host",
	} {
		breakages = append(breakages, address1("routes[0].source.cos", address, says, func(c *Config) {
			c.Routes[0].Source.COS, c.Routes[0].Source.CustomDomain = address, true
		}))
	}
	for address, says := range map[string]string{
		"https://sqs.us-west-2.amazonaws.com/111122223333/a-b_C9":           "",
		"http://127.0.0.1:4566/000000000000/sync":                           "",
		"https://vpce-1.sqs.eu-west-1.vpce.amazonaws.com/111122223333/sync": "",
		"https://sqs.eu-west-1.amazonaws.com/111122223333/sync":             "another region",
		"https://sqs.us-west-2.amazonaws.com/111122223333/sync.fifo":        "FIFO",
		"https://sqs.us-west-2.amazonaws.com/111122223333":                  "must be a queue's URL",
		"https://sqs.us-west-2.amazonaws.com/1111/sync":                     "must be a queue's URL",
		"https://sqs.us-west-2.amazonaws.com/111122223333/a/b":              "must be a queue's URL",
		"https://sqs.us-west-2.amazonaws.com/111122223333/a?b":              "query",
		"http://sqs.us-west-2.amazonaws.com/111122223333/sync":              "must begin with https://",
		"arn:aws:sqs:us-west-2:111122223333:sync":                           "is not a URL",
	} {
		breakages = append(breakages, address1("queues.sync", address, says, func(c *Config) { c.Queues.Sync = address }))
	}
	runBreakages(t, append(breakages,
		breakage{"custom_domain on COS's own host", "routes[0].source.custom_domain", "remove it", func(c *Config) { c.Routes[0].Source.CustomDomain = true }},
		breakage{"one queue for both", "queues.sync", "a queue each", func(c *Config) { c.Queues.Sync = c.Queues.Logs }},
		breakage{"the logs queue for a source", "routes[0].source.queue", "a queue each", func(c *Config) { c.Routes[0].Source.Queue = c.Queues.Logs }},
		breakage{"a source's queue in another region", "routes[0].source.queue", "another region", func(c *Config) {
			c.Routes[0].Source.Queue = "https://sqs.eu-west-1.amazonaws.com/111122223333/sync"
		}},
	))
}

// address1 is the breakage of one address, none if says is "".
func address1(field, address, says string, do func(*Config)) breakage {
	if says == "" {
		field = ""
	}
	return breakage{fmt.Sprintf("%s=%s", field, strings.ReplaceAll(address, "/", "|")), field, says, do}
}

func TestForms(t *testing.T) {
	const own, owner, kms = "own_role", "routes[0].destination.expected_owner", "routes[0].destination.kms_key"
	kmsKey := func(key string) func(*Config) {
		return func(c *Config) { c.Routes[0].Destination.SSE, c.Routes[0].Destination.KMSKey = SSEKMS, key }
	}
	runBreakages(t, []breakage{
		{"region", "region", "us-west-2", func(c *Config) { c.Region = "oregon" }},
		{"role", "", "", func(c *Config) { c.Own = "arn:aws-cn:sts::111122223333:assumed-role/objectferry-copy" }},
		{"user", own, "assumed-role", func(c *Config) { c.Own = "arn:aws:iam::111122223333:user/ops/objectferry" }},
		{"the role's own ARN", "", "", func(c *Config) { c.Own = "arn:aws:iam::111122223333:role/objectferry-copy" }},
		{"role with session", own, "leave the session out", func(c *Config) { c.Own = "arn:aws:sts::111122223333:assumed-role/a/b" }},
		{"bucket as URL", "routes[0].bucket", "no URL", func(c *Config) { c.Routes[0].Bucket = "s3://overseas-media" }},
		{"bucket too short", "logs[0].bucket", "3 to 63", func(c *Config) { c.Logs[0].Bucket = "ab" }},
		{"mode", "routes[0].mode", `"copy" or "observe"`, func(c *Config) { c.Routes[0].Mode = "Observe" }},
		{"owner", owner, "12 digits", func(c *Config) { c.Routes[0].Destination.ExpectedOwner = "1111-2222-3333" }},
		{"sse", "routes[0].destination.sse", `"AES256" or "aws:kms"`, func(c *Config) { c.Routes[0].Destination.SSE = "aes256" }},
		{"kms key", "", "", kmsKey("arn:aws:kms:us-west-2:111122223333:key/01234567-89ab-cdef-0123-456789abcdef")},
		{"kms alias", "", "", kmsKey("alias/media")},
		{"kms nonsense", kms, "id, ARN or alias", kmsKey("media")},
		{"storage class", "routes[0].destination.storage_class", `"STANDARD"`, func(c *Config) { c.Routes[0].Destination.StorageClass = "standard" }},
		{"archive class", "routes[0].destination.storage_class", "visitors cannot read", func(c *Config) { c.Routes[0].Destination.StorageClass = "DEEP_ARCHIVE" }},
		{"destination region", "routes[0].destination.region", "us-west-2", func(c *Config) { c.Routes[0].Destination.Region = "x" }},
		{"listen", "admin.listen", ":8080", func(c *Config) { c.Admin.Listen = "8080" }},
		{"listen on a name", "admin.listen", ":8080", func(c *Config) { c.Admin.Listen = ":http" }},
		{"listen off", "", "", func(c *Config) { c.Admin.Listen = "" }},
		{"level", "log.level", `"debug"`, func(c *Config) { c.Log.Level = "INFO" }},
	})
}

func TestBounds(t *testing.T) {
	d := func(d time.Duration) Duration { return Duration(d) }
	runBreakages(t, []breakage{
		{"part too small", "copy.part_size", "5MiB", func(c *Config) { c.Copy.PartSize = 5<<20 - 1 }},
		{"part too large", "copy.part_size", "5GiB", func(c *Config) { c.Copy.PartSize = 5<<30 + 1 }},
		{"object too large", "copy.max_size", "50TB", func(c *Config) { c.Copy.MaxSize = 50e12 + 1 }},
		{"object of nothing", "copy.max_size", "50TB", func(c *Config) { c.Copy.MaxSize = 0 }},
		{"no concurrency", "copy.concurrency", "between 1", func(c *Config) { c.Copy.Concurrency = 0 }},
		{"no parsers", "parse.concurrency", "between 1", func(c *Config) { c.Parse.Concurrency = 0 }},
		{"negative recent keys", "parse.recent_keys", "negative", func(c *Config) { c.Parse.RecentKeys = -1 }},
		{"negative recent", "parse.recent", "negative", func(c *Config) { c.Parse.Recent = -1 }},
		{"no receives", "retry.receives", "between 1", func(c *Config) { c.Retry.Receives = 0 }},
		{"no back-off", "retry.min", "longer than nothing", func(c *Config) { c.Retry.Min = 0 }},
		{"back-off reversed", "retry.min", "retry.max", func(c *Config) { c.Retry.Min = d(time.Hour) }},
		{"back-off too long", "retry.max", "12h", func(c *Config) { c.Retry.Max = d(13 * time.Hour) }},
		{"short polling", "retry.wait", "1s to 20s", func(c *Config) { c.Retry.Wait = 0 }},
		{"part of a second", "retry.wait", "whole seconds", func(c *Config) { c.Retry.Wait = d(1500 * time.Millisecond) }},
		{"too long a poll", "retry.wait", "1s to 20s", func(c *Config) { c.Retry.Wait = d(21 * time.Second) }},
		{"probes reversed", "guard.probe_min", "guard.probe_max", func(c *Config) { c.Guard.ProbeMin = d(time.Hour) }},
		{"no probe time", "guard.probe_min", "longer than nothing", func(c *Config) { c.Guard.ProbeMin = 0 }},
		{"no timeout", "guard.timeout", "longer than nothing", func(c *Config) { c.Guard.Timeout = 0 }},
		{"no rate", "guard.min_rate", "at least 1B", func(c *Config) { c.Guard.MinRate = 0 }},
		{"no drain", "drain", "longer than nothing", func(c *Config) { c.Drain = 0 }},
		{"no age", "routes[0].max_age", "longer than nothing", func(c *Config) { c.Routes[0].MaxAge = 0 }},
	})
}

func TestKMSKeyID(t *testing.T) {
	for key, want := range map[string]string{"": "", "default": "", "alias/a": "alias/a"} {
		if got := (Destination{KMSKey: key}).KMSKeyID(); got != want {
			t.Errorf("KMSKeyID of %q = %q, want %q", key, got, want)
		}
	}
}
