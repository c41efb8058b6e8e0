package check

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/objectferry/objectferry/internal/config"
)

func TestRoleIsOneOfFive(t *testing.T) {
	for name, want := range map[string]Role{"parse": {Parse: true}, "copy": {Copy: true}, "all": {Parse: true, Copy: true}, "sweep": {Sweep: true}, "oncall": {OnCall: true}} {
		if got, err := ParseRole(name); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := ParseRole("both"); err == nil {
		t.Error("an unknown role passes")
	}
}

func TestRolesAreCheckedForTheirOwn(t *testing.T) {
	w := newWorld(t)
	w.role = Role{Parse: true}
	for _, i := range w.live(t) {
		if strings.HasPrefix(i.Needs, "cos:") || strings.Contains(i.On, "media") || i.On == syncARN && i.Needs != "sqs:SendMessage" {
			t.Errorf("parse is checked for %s", i.short())
		}
	}
	w.role = Role{Copy: true}
	for _, i := range w.live(t) {
		if strings.Contains(i.On, "log") {
			t.Errorf("copy is checked for %s", i.short())
		}
	}
	w.role = Role{Parse: true, Copy: true}
	w.config.Routes[0].Mode = config.ModeObserve
	for _, i := range w.live(t) {
		if strings.Contains(i.On, "media") || i.On == syncARN && i.Needs == "sqs:SendMessage" {
			t.Errorf("an observed route is checked for %s", i.short())
		}
	}
}

// People on call settle dead letters, send to the queues and look at both sides.
func TestOnCallIsCheckedForItsOwn(t *testing.T) {
	w := newWorld(t)
	w.role = Role{OnCall: true}
	var got []string
	for _, i := range w.live(t) {
		got = append(got, i.short())
	}
	queue := func(arn string) []string {
		return []string{
			"ok: sqs:SendMessage on " + arn,
			"ok: sqs:GetQueueAttributes on " + arn,
			"ok: VisibilityTimeout on " + arn,
			"ok: MessageRetentionPeriod on " + arn,
			"ok: RedrivePolicy on " + arn,
			"ok: sqs:GetQueueUrl on " + arn + "-dead",
			"ok: sqs:ReceiveMessage on " + arn + "-dead",
			"ok: sqs:DeleteMessage on " + arn + "-dead",
			"ok: sqs:ChangeMessageVisibility on " + arn + "-dead",
			"ok: sqs:GetQueueAttributes on " + arn + "-dead",
			"ok: MessageRetentionPeriod on " + arn + "-dead",
			"ok: RedriveAllowPolicy on " + arn + "-dead",
		}
	}
	want := slices.Concat(queue(logsARN), queue(syncARN), []string{
		"ok: s3:ListBucket on arn:aws:s3:::log-bucket",
		"ok: s3:GetObject on arn:aws:s3:::log-bucket/access/*",
		"ok: cos:GetObject on https://media-1250000000.cos.ap-shanghai.myqcloud.com/img/.objectferry-probe",
		"ok: s3:ListBucket on arn:aws-cn:s3:::media",
		"ok: s3:GetObject on arn:aws-cn:s3:::media/*",
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	w.sqs.refuse["GetQueueAttributes sync-dead"] = true
	for _, i := range w.live(t) {
		if (i.Status == Failed) != (i.short() == "failed: sqs:GetQueueAttributes on "+syncARN+"-dead") {
			t.Error(i.short())
		}
	}
}

func TestSweepIsCheckedForItsOwn(t *testing.T) {
	w := newWorld(t)
	w.role = Role{Sweep: true}
	var got []string
	for _, i := range w.live(t) {
		got = append(got, i.short())
	}
	if diff := cmp.Diff([]string{"ok: sqs:SendMessage on " + logsARN, "ok: s3:ListBucket on arn:aws:s3:::log-bucket"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
