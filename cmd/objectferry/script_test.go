package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/objectferry/objectferry/internal/localcloud"
	"github.com/objectferry/objectferry/internal/localcloud/cosd"
	"github.com/objectferry/objectferry/internal/localcloud/strictaws"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// TestMain makes this test binary the command "objectferry" of the scripts.
func TestMain(m *testing.M) {
	// Scripts mostly wait, for dead letters that do not come.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"objectferry": main})
}

// TestScripts runs the command line as people do, against an embedded cloud. The
// commands that the scripts have beside testscript's own are below.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null")
			env.Values[siteKey{}] = new(*localcloud.Site)
			env.Values[clockKey{}] = new(time.Time)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cloud": scriptCloud, "exits": scriptExits, "letters": scriptLetters, "message": scriptMessage,
			"holds": scriptHolds, "messages": scriptMessages, "plain": scriptPlain, "logs": scriptLogs, "fails": scriptFails, "once": scriptOnce, "deny": scriptDeny, "share": scriptShare, "golden": scriptGolden,
			"cos": scriptCOS, "hang": scriptHang, "heal": scriptHeal, "asked": scriptAsked, "object": scriptObject, "logged": scriptLogged,
			"clock": scriptClock, "within": scriptWithin, "unlisted": scriptUnlisted, "many": scriptMany,
		},
		RequireExplicitExec: true,
	})
}

type (
	siteKey  struct{}
	clockKey struct{}
)

func scriptSite(ts *testscript.TestScript) *localcloud.Site {
	return *ts.Value(siteKey{}).(**localcloud.Site)
}

// cloud [route-line...]: starts a cloud and writes objectferry.yaml for it, with
// one route that carries img/** and has these further lines.
func scriptCloud(ts *testscript.TestScript, _ bool, lines []string) {
	site, err := localcloud.Start(localcloud.Config{
		AWS: strictaws.Config{LogInterval: -1}, COS: cosd.Config{Behaviour: cosd.Behaviour{PublicRead: true}},
	})
	ts.Check(err)
	ts.Defer(site.Close)
	*ts.Value(siteKey{}).(**localcloud.Site) = site
	for name, value := range site.Environ() {
		ts.Setenv(name, value)
	}
	yaml := site.YAML([]localcloud.Route{{Lines: append([]string{`include: ["img/**"]`}, lines...)}}, `admin: {listen: "127.0.0.1:0"}`)
	ts.Check(os.WriteFile(ts.MkAbs("objectferry.yaml"), []byte(yaml), 0o600))
	ts.Setenv("QUEUES", site.QueueURL(""))
	ts.Setenv("TAKEN", strings.TrimPrefix(site.S3URL, "http://"))
	site.Cloud.CreateBucket(localcloud.LogBucket, strictaws.Bucket{}) // anew: it announces nothing, so that sweep has what to do
}

// exits CODE program [arg...]: runs the program, which must end with that code.
func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// letters QUEUE N PREFIX DETAIL: puts N dead letters of sync requests for the keys
// PREFIX0, PREFIX1 … behind the queue. DETAIL "-" is what SQS moved itself.
func scriptLetters(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	for i := range n {
		body, err := syncrequest.Encode(syncrequest.Request{Bucket: localcloud.Bucket, Key: unquoted(ts, args[2]) + strconv.Itoa(i), Seen: time.Unix(1788508800, 0)})
		ts.Check(err)
		var attributes map[string]string
		if args[3] != "-" {
			attributes = map[string]string{"end": "failed", "detail": args[3], "receives": "8", "dead_at": "2026-09-04T09:00:00Z"}
		}
		ts.Check(scriptSite(ts).Cloud.Send(args[0]+localcloud.DeadSuffix, body, attributes))
	}
}

// message QUEUE BODY [NAME=VALUE...]: puts a message with attributes into a queue.
func scriptMessage(ts *testscript.TestScript, _ bool, args []string) {
	attributes := map[string]string{}
	for _, a := range args[2:] {
		name, value, _ := strings.Cut(a, "=")
		attributes[name] = unquoted(ts, value)
	}
	ts.Check(scriptSite(ts).Cloud.Send(args[0], unquoted(ts, args[1]), attributes))
}

// unquoted resolves Go's escapes such as \u009b.
func unquoted(ts *testscript.TestScript, s string) string {
	text, err := strconv.Unquote(`"` + strings.ReplaceAll(s, `"`, `\"`) + `"`)
	ts.Check(err)
	return text
}

// holds QUEUE N: the queue has N messages, and none is in flight.
func scriptHolds(ts *testscript.TestScript, _ bool, args []string) {
	if d := scriptSite(ts).Cloud.Depth(args[0]); strconv.Itoa(d.Waiting) != args[1] || d.InFlight > 0 {
		ts.Fatalf("%s holds %+v, want %s waiting", args[0], d, args[1])
	}
}

// messages QUEUE: prints a line for each message: its body and its attributes.
func scriptMessages(ts *testscript.TestScript, _ bool, args []string) {
	for _, m := range scriptSite(ts).Cloud.Messages(args[0]) {
		fmt.Fprint(ts.Stdout(), m.Body)
		for _, name := range slices.Sorted(maps.Keys(m.Attributes)) {
			fmt.Fprintf(ts.Stdout(), " %s=%s", name, m.Attributes[name])
		}
		fmt.Fprintln(ts.Stdout())
	}
}

// plain: what the last program printed holds nothing that a terminal obeys.
func scriptPlain(ts *testscript.TestScript, _ bool, _ []string) {
	for _, name := range []string{"stdout", "stderr"} {
		for i, b := range []byte(ts.ReadFile(name)) {
			if b != '\n' && (b < ' ' || b > '~') {
				ts.Fatalf("byte %d of %s is %#x", i, name, b)
			}
		}
	}
}

// varying is what differs from run to run: message ids and times.
var varying = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|20[0-9-]+T[0-9:.]+Z`)

// golden FILE: what the last program printed is the file, but for ids and times,
// for which the file has an asterisk.
func scriptGolden(ts *testscript.TestScript, _ bool, args []string) {
	got, want := varying.ReplaceAllString(ts.ReadFile("stdout"), "*"), ts.ReadFile(args[0])
	if diff := cmp.Diff(want, got); diff != "" {
		ts.Fatalf("%s (-want +got):\n%s", args[0], diff)
	}
}

// logs N PREFIX: puts N log objects.
func scriptLogs(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		ts.Check(scriptSite(ts).Cloud.PutObject(localcloud.LogBucket, args[1]+strconv.Itoa(i), []byte("row\n"), nil))
	}
}

// fails QUEUE ACTION INDEX: this entry of each batch fails, for good.
func scriptFails(ts *testscript.TestScript, _ bool, args []string) {
	index, err := strconv.Atoi(args[2])
	ts.Check(err)
	scriptSite(ts).Cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: args[1], Target: args[0],
		Do: strictaws.FailEntry{Indexes: []int{index}, Code: "InvalidMessageContents", SenderFault: true}})
}

// once QUEUE ACTION: the next such call is answered 503.
func scriptOnce(ts *testscript.TestScript, _ bool, args []string) {
	scriptSite(ts).Cloud.Faults().Add(strictaws.Fault{Service: strictaws.ServiceSQS, Action: args[1], Target: args[0], Times: 1,
		Do: strictaws.Fail{Status: 503, Code: "ServiceUnavailable"}})
}

// deny ACTION RESOURCE: takes a permission away.
func scriptDeny(ts *testscript.TestScript, _ bool, args []string) {
	scriptSite(ts).Cloud.Deny("*", args[0], args[1])
}

// share QUEUE DEAD: creates a queue whose dead letters go to DEAD.
func scriptShare(ts *testscript.TestScript, _ bool, args []string) {
	cloud := scriptSite(ts).Cloud
	ts.Check(cloud.CreateQueue(args[0], map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":30}`, cloud.QueueARN(args[1]))}))
}

// cos KEY BODY: puts an object into COS.
func scriptCOS(ts *testscript.TestScript, _ bool, args []string) {
	scriptSite(ts).COS.Put(args[0], []byte(args[1]), cosd.Attributes{})
}

// many N PREFIX: puts the objects PREFIX0, PREFIX1 … into COS.
func scriptMany(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	for i := range n {
		scriptSite(ts).COS.Put(args[1]+strconv.Itoa(i), []byte("body"), cosd.Attributes{})
	}
}

// unlisted: COS lets nobody list the bucket.
func scriptUnlisted(ts *testscript.TestScript, _ bool, _ []string) {
	scriptSite(ts).COS.Change(func(b *cosd.Behaviour) { b.ListDenied = true })
}

// hang: COS takes requests and answers none, until heal.
func scriptHang(ts *testscript.TestScript, _ bool, _ []string) {
	scriptSite(ts).COS.Lie(cosd.When{}, cosd.Hang())
}

func scriptHeal(ts *testscript.TestScript, _ bool, _ []string) { scriptSite(ts).COS.Heal() }

// asked KEY: waits until COS is asked for the key.
func scriptAsked(ts *testscript.TestScript, _ bool, args []string) {
	scriptUntil(ts, func() bool { return scriptSite(ts).COS.Counts().ByKey[args[0]] > 0 })
}

// logged FILE TEXT: waits until the file has the text.
func scriptLogged(ts *testscript.TestScript, _ bool, args []string) {
	scriptUntil(ts, func() bool {
		b, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(b), args[1])
	})
}

func scriptUntil(ts *testscript.TestScript, ok func() bool) {
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			ts.Fatalf("not within 30 seconds")
		}
	}
}

// clock: starts the time of within.
func scriptClock(ts *testscript.TestScript, _ bool, _ []string) {
	*ts.Value(clockKey{}).(*time.Time) = time.Now()
}

// within D: no more than D has passed since clock.
func scriptWithin(ts *testscript.TestScript, _ bool, args []string) {
	most, err := time.ParseDuration(args[0])
	ts.Check(err)
	if d := time.Since(*ts.Value(clockKey{}).(*time.Time)); d > most {
		ts.Fatalf("it took %s", d)
	}
}

// object KEY: S3 has the object.
func scriptObject(ts *testscript.TestScript, neg bool, args []string) {
	if _, ok := scriptSite(ts).Cloud.Object(localcloud.Bucket, args[0]); ok == neg {
		ts.Fatalf("%s in S3: %t", args[0], ok)
	}
}
