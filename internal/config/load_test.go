package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const examplePath = "../../docs/objectferry.example.yaml"

// minimal is the smallest configuration there is; tests replace parts of it.
const minimal = `region: us-west-2
queues:
  logs: https://sqs.us-west-2.amazonaws.com/111122223333/logs
  sync: https://sqs.us-west-2.amazonaws.com/111122223333/sync
logs:
  - {bucket: log-bucket, when_done: keep}
routes:
  - bucket: overseas-media
    source:
      cos: https://media-1250000000.cos.ap-shanghai.myqcloud.com
      read: anonymous
`

func mustLoad(t *testing.T, text string) *Config {
	t.Helper()
	c, err := load("f.yaml", []byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestExampleLoads(t *testing.T) {
	c, err := Load(examplePath, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Region = "us-west-2"
	want.Queues = Queues{
		Logs: "https://sqs.us-west-2.amazonaws.com/111122223333/objectferry-logs",
		Sync: "https://sqs.us-west-2.amazonaws.com/111122223333/objectferry-sync",
	}
	want.Logs = []Log{{Bucket: "log-bucket", Prefix: "access/", WhenDone: WhenDoneKeep}}
	want.Own = "arn:aws:sts::111122223333:assumed-role/objectferry-copy"
	want.Routes = []Route{{
		Bucket: "overseas-media",
		Mode:   ModeCopy,
		Source: Source{
			COS:             "https://media-1250000000.cos.ap-shanghai.myqcloud.com",
			Read:            ReadSigned,
			CredentialsFile: "/etc/objectferry/cos.json",
			Queue:           "https://sqs.us-west-2.amazonaws.com/111122223333/objectferry-sync_media",
		},
		Include:         []string{"model/**", "img/**"},
		Exclude:         []string{"model/tmp/**"},
		ForbiddenIsMiss: true,
		MaxAge:          Duration(72 * time.Hour),
		Destination:     Destination{Region: "us-west-2", ExpectedOwner: "111122223333", SSE: SSENone, StorageClass: "STANDARD"},
	}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultsOfTheSmallestConfiguration(t *testing.T) {
	c := mustLoad(t, minimal)
	r := c.Routes[0]
	if r.Mode != ModeCopy || r.MaxAge != Duration(72*time.Hour) {
		t.Errorf("route: mode %q, max_age %v", r.Mode, r.MaxAge)
	}
	if want := (Destination{Region: "us-west-2", SSE: SSENone, StorageClass: "STANDARD"}); r.Destination != want {
		t.Errorf("destination %+v, want %+v", r.Destination, want)
	}
	if c.Copy != Default().Copy || c.Admin.Listen != ":8080" || c.Drain != Duration(45*time.Second) {
		t.Errorf("defaults were not kept: %+v", c)
	}
}

// Tests and emulators need short times and plain http to this machine.
func TestValuesForEmulators(t *testing.T) {
	c := mustLoad(t, `region: us-east-1
queues: {logs: "http://127.0.0.1:4566/000000000000/logs", sync: "http://[::1]:4566/000000000000/sync"}
logs: [{bucket: log-bucket, when_done: delete}]
routes:
  - bucket: media
    source: {cos: "http://localhost:9000", read: anonymous, custom_domain: true}
retry: {receives: 1, min: 100ms, max: 1s, wait: 1s}
guard: {probe_min: 50ms, probe_max: 50ms, timeout: 1s, min_rate: 1}
copy: {concurrency: 1, memory: 10MiB, part_size: 5MiB}
parse: {recent: 0s, recent_keys: 0}
s3: {path_style: true}
admin: {listen: "127.0.0.1:0"}
`)
	if c.Retry.Min != Duration(100*time.Millisecond) || c.Guard.ProbeMin != Duration(50*time.Millisecond) || !c.S3.PathStyle {
		t.Errorf("%+v", c)
	}
}

func TestEnvironmentOverFileAndFlagsOverEnvironment(t *testing.T) {
	environ := []string{
		"OBJECTFERRY_COPY_PART_SIZE=8MiB", "OBJECTFERRY_LOG_LEVEL=warn", "OBJECTFERRY_ADMIN_LISTEN=", "OBJECTFERRY_S3_PATH_STYLE=true",
		"OBJECTFERRY_PORT=tcp://10.0.0.1:8080", "OBJECTFERRY_PORT_8080_TCP_ADDR=10.0.0.1", "OBJECTFERRY_SERVICE_HOST=10.0.0.1", "PATH=/bin",
	}
	c, err := load("f.yaml", []byte(minimal+"log: {level: error}\ncopy: {part_size: 32MiB}\n"), environ, Overrides{"log.level": "debug"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Copy.PartSize != 8<<20 || c.Log.Level != "debug" || c.Admin.Listen != "" || !c.S3.PathStyle {
		t.Errorf("part size %v, level %q, listen %q, path style %t", c.Copy.PartSize, c.Log.Level, c.Admin.Listen, c.S3.PathStyle)
	}

	_, err = load("f.yaml", []byte(minimal), []string{"OBJECTFERRY_COPY_MEMORY=lots", "OBJECTFERRY_LOG_LEVEL=loud", "OBJECTFERRY_ROUTES=x", "OBJECTFERRY_COPY_PARTSIZE=1"}, Overrides{"drain": "soon", "routes": "x"})
	checkProblems(t, err,
		`environment OBJECTFERRY_COPY_MEMORY: copy.memory: must be a whole number of bytes`,
		`environment OBJECTFERRY_ROUTES: sets nothing`,
		`environment OBJECTFERRY_COPY_PARTSIZE: sets nothing`,
		`environment OBJECTFERRY_LOG_LEVEL: log.level: must be "debug", "info", "warn" or "error"`,
		`flag drain: drain: must be a time with its unit`,
		`flag routes: is not a field that a flag can set`,
	)
}

func TestHalfAnAWSCredentialIsRefused(t *testing.T) {
	for want, environ := range map[string][]string{
		"environment AWS_ACCESS_KEY_ID: is set without AWS_SECRET_ACCESS_KEY":  {"AWS_ACCESS_KEY_ID=AKIDEXAMPLE"},
		"environment AWS_SECRET_ACCESS_KEY: is set without AWS_ACCESS_KEY_ID":  {"AWS_SECRET_ACCESS_KEY=topsecret", "AWS_ACCESS_KEY_ID="},
		"environment AWS_SESSION_TOKEN: is set without AWS_ACCESS_KEY_ID":      {"AWS_SESSION_TOKEN=topsecret"},
		"environment AWS_WEB_IDENTITY_TOKEN_FILE: is set without AWS_ROLE_ARN": {"AWS_WEB_IDENTITY_TOKEN_FILE=/token"},
	} {
		_, err := load("f.yaml", []byte(minimal), environ, nil)
		checkProblems(t, err, want)
	}
	if _, err := load("f.yaml", []byte(minimal), []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b", "AWS_SESSION_TOKEN=c"}, nil); err != nil {
		t.Errorf("whole credentials: %v", err)
	}
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	for name, tt := range map[string]struct{ text, says string }{
		"empty":            {"", "f.yaml: is empty"},
		"comment only":     {"# nothing\n", "f.yaml: is empty"},
		"separator only":   {"---\n", "is empty"},
		"text":             {"hello\n", "f.yaml:1: must be a mapping of the fields region, queues,"},
		"list":             {"- a\n", "f.yaml:1: must be a mapping"},
		"null":             {"null\n", "f.yaml:1: has no value"},
		"tab":              {"region: us-west-2\nqueues:\n\tlogs: x\n", "f.yaml:3: is indented with a tab"},
		"open bracket":     {"region: us-west-2\nlogs: [a, b\n", "f.yaml:2: is not YAML"},
		"open quote":       {"region: \"us-west-2\n", "f.yaml:1: is not YAML"},
		"two values":       {"region: a: b\n", "f.yaml:1: is not YAML"},
		"two documents":    {"region: us-west-2\n---\nregion: us-west-2\n", "f.yaml:3: starts a second document"},
		"binary":           {"\x1f\x8b\x08\x00\x00", "f.yaml:1: is not UTF-8 text"},
		"UTF-16":           {"\xff\xfer\x00e\x00", "f.yaml:1: is not UTF-8 text"},
		"not UTF-8 later":  {"region: us-west-2\n# \xe6\xb5\n", "f.yaml:2: is not UTF-8 text"},
		"anchor":           {"region: &r us-west-2\n", "f.yaml:1: region: uses an anchor"},
		"alias":            {"own_role: &r x\nregion: *r\n", "f.yaml:2: region: uses an anchor"},
		"merge":            {"queues:\n  <<: {logs: x}\n", "f.yaml:2: queues: has a key that is not a plain name"},
		"tag":              {"region: !!str us-west-2\n", "f.yaml:1: region: uses an anchor"},
		"numbers for keys": {"1: 2\n", "f.yaml:1: has a key that is not a plain name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load("f.yaml", []byte(tt.text), nil, nil)
			checkProblem(t, err, tt.says)
		})
	}
}

func TestNothingExpands(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		p := string(c - 1)
		bomb += string(c) + ": &" + string(c) + " [*" + strings.TrimSuffix(strings.Repeat(p+",*", 9), ",*") + "]\n"
	}
	for name, text := range map[string]string{
		"aliases":  bomb,
		"brackets": "logs: " + strings.Repeat("[", 50_000),
		"braces":   "logs: " + strings.Repeat("{a: ", 50_000),
		"dashes":   strings.Repeat("- ", 50_000) + "a",
	} {
		start := time.Now()
		if _, err := load("f.yaml", []byte(text), nil, nil); err == nil {
			t.Errorf("%s: was read", name)
		}
		if d := time.Since(start); d > 2*time.Second {
			t.Errorf("%s: took %v", name, d)
		}
	}
}

func TestFilesThatCannotBeRead(t *testing.T) {
	large := filepath.Join(t.TempDir(), "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# \n", maxFile/3+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{
		"":                               "no configuration file is named",
		filepath.Join(t.TempDir(), "no"): "open configuration",
		t.TempDir():                      "read configuration",
		large:                            "large.yaml: is larger than 1 MiB",
	} {
		_, err := Load(path, nil)
		checkProblem(t, err, says)
	}
}

func TestAllProblemsAtOnceInTheOrderOfTheFile(t *testing.T) {
	_, err := load("f.yaml", []byte(`region: us-west-2
queue:
  logs: x
queues:
  logs: 12
  sync: https://sqs.us-west-2.amazonaws.com/111122223333/sync
  sync: https://sqs.us-west-2.amazonaws.com/111122223333/other
logs:
  - {bucket: log-bucket, prefix: 7}
routes:
  - bucket: overseas-media
    source:
      cos: https://media-1250000000.cos.ap-shanghai.myqcloud.com
      raed: signed
    include: img/**
    forbidden_is_miss: yes
    max_age: 3
  - bucket:
copy: {memory: 16M, part_size: -1, concurrency: many}
drain: []
`), nil, nil)
	checkProblems(t, err,
		`f.yaml:2: queue: is not a field; the fields here are region, queues,`,
		`f.yaml:5: queues.logs: must be text; put it in quotes`,
		`f.yaml:7: queues.sync: is here a second time (first on line 6)`,
		`f.yaml:9: logs[0].prefix: must be text; put it in quotes`,
		`f.yaml:9: logs[0].when_done: must be "keep" or "delete"; there is no default`,
		`f.yaml:12: routes[0].source.read: must be "anonymous" or "signed"; there is no default`,
		`f.yaml:14: routes[0].source.raed: is not a field; the fields here are cos, read,`,
		`f.yaml:15: routes[0].include: must be a list`,
		`f.yaml:16: routes[0].forbidden_is_miss: must be true or false`,
		`f.yaml:17: routes[0].max_age: must be a time with its unit`,
		`f.yaml:18: routes[1].bucket: has no value; give it one or remove the line`,
		`f.yaml:18: routes[1].source.cos: is missing`,
		`f.yaml:18: routes[1].source.read: must be "anonymous" or "signed"`,
		`f.yaml:19: copy.memory: must be a whole number of bytes with a unit`,
		`f.yaml:19: copy.part_size: must be a whole number of bytes`,
		`f.yaml:19: copy.concurrency: must be a whole number`,
		`f.yaml:20: drain: must be a single value`,
	)
}

// A problem names the place, never the value: somebody may have put a secret there.
func TestProblemsHoldNoSecret(t *testing.T) {
	const secret = "s3cretVALUE"
	for _, text := range []string{
		strings.ReplaceAll(minimal, "overseas-media", secret),
		strings.ReplaceAll(minimal, "us-west-2", secret),
		strings.ReplaceAll(minimal, "https://", "https://user:"+secret+"@"),
		strings.ReplaceAll(minimal, "https://", "https://%zz"+secret),
		strings.ReplaceAll(minimal, "read: anonymous", "read: "+secret),
		strings.ReplaceAll(minimal, "read: anonymous", "read: signed\n      key: "+secret),
		minimal + "copy: {memory: " + secret + "}\ndrain: " + secret + "\nown_role: " + secret + "\n",
		minimal + "admin: {listen: " + secret + "}\nlog: {level: " + secret + "}\n",
		minimal + "credentials: {id: x, key: " + secret + "}\n",
		minimal + "x: [" + secret + "\n",
		minimal + "x: \"" + secret + "\n",
		minimal + "x: : " + secret + ": y: [\n",
		minimal + "x: !" + secret + " y\n",
	} {
		_, err := load("f.yaml", []byte(text), []string{"AWS_SECRET_ACCESS_KEY=" + secret, "OBJECTFERRY_DRAIN=" + secret}, Overrides{"parse.recent": secret})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%v\n\nfor:\n%s", err, text)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(minimal))
	example, err := os.ReadFile(examplePath)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(example)
	f.Add([]byte("a: &a [*a]\n? {b: 1}\n: - - -\n  \"\\u\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := load("f.yaml", data, nil, nil)
		var problems Errors
		if err != nil && (!errors.As(err, &problems) || len(problems) == 0) {
			t.Errorf("%v is not Errors", err)
		}
		if err == nil && c.Validate() != nil {
			t.Errorf("loaded, but %v", c.Validate())
		}
	})
}

// checkProblem wants the only problem to begin with text.
func checkProblem(t *testing.T, err error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v, want a problem with %q", err, says)
	}
}

// checkProblems wants exactly these problems in this order, each by how it begins.
func checkProblems(t *testing.T, err error, want ...string) {
	t.Helper()
	var problems Errors
	if !errors.As(err, &problems) {
		t.Fatalf("%v is not Errors", err)
	}
	got := make([]string, len(problems))
	for i, p := range problems {
		got[i] = p.String()
		if i < len(want) && strings.HasPrefix(got[i], want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
