package accesslog

import "testing"

func TestRoleMadeARequestOfItsSessionsOnly(t *testing.T) {
	tests := map[string]bool{
		"arn:aws:sts::111122223333:assumed-role/copy/i-0123":      true,
		"arn:aws:sts::111122223333:assumed-role/copy/a@b,c=d":     true,
		"arn:aws:sts::111122223333:assumed-role/copy":             false,
		"arn:aws:sts::111122223333:assumed-role/copy/":            false,
		"arn:aws:sts::111122223333:assumed-role/copy/x/y":         false,
		"arn:aws:sts::111122223333:assumed-role/copy2/i-0123":     false,
		"arn:aws:sts::111122223333:assumed-role/cop/y/i-0123":     false,
		"arn:aws:sts::444455556666:assumed-role/copy/i-0123":      false,
		"arn:aws-cn:sts::111122223333:assumed-role/copy/i-0123":   false,
		"arn:aws:iam::111122223333:role/copy":                     false,
		"x arn:aws:sts::111122223333:assumed-role/copy/i-0123":    false,
		"arn:aws:sts::111122223333:federated-user/copy/i-0123":    false,
		"79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7": false,
		"-": false,
	}
	for _, arn := range []string{
		"arn:aws:sts::111122223333:assumed-role/copy",
		"arn:aws:iam::111122223333:role/copy",
		"arn:aws:iam::111122223333:role/service/of/ours/copy",
	} {
		role, err := ParseRole(arn)
		if err != nil {
			t.Fatal(err)
		}
		for requester, want := range tests {
			var row Row
			row.Parse([]byte(origin + " " + requester + ` ID REST.HEAD.OBJECT a "HEAD /a HTTP/1.1" 404 NoSuchKey - - 8 - "-" "curl" -`))
			if row.Verdict != Miss || role.Made(&row) != want {
				t.Errorf("%s: %s made by %s: %v", row.Verdict, requester, arn, !want)
			}
		}
	}
}

func TestZeroRoleMadeNothing(t *testing.T) {
	var row Row
	for _, requester := range []string{signed, "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7", "-"} {
		row.Parse([]byte(origin + " " + requester + ` ID REST.HEAD.OBJECT a "HEAD /a HTTP/1.1" 404 NoSuchKey - - 8 - "-" "curl" -`))
		if row.Verdict != Miss || (Role{}).Made(&row) {
			t.Errorf("%s: made", requester)
		}
	}
}

func TestARNOfNoRoleIsRefused(t *testing.T) {
	for _, arn := range []string{
		"", "copy", "arn:aws:sts::111122223333", "arn:aws:sts::111122223333:assumed-role", "arn:aws:sts::111122223333:assumed-role/",
		"arn:aws:sts::111122223333:assumed-role/copy/i-0123", "arn:aws:iam::111122223333:user/copy", "arn:aws:iam::111122223333:role/",
		"arn:aws:iam::111122223333:role/path/", "arn:aws:iam::1111:role/copy", "arn:aws:iam::11112222333x:role/copy",
		"arn:aws:iam:us-west-2:111122223333:role/copy", "arn:aws:iam::111122223333:role/copy:x", "arn:aws:sts::111122223333:role/copy",
		"arn:aws:iam::111122223333:role/*", "arn::iam::111122223333:role/copy",
	} {
		if role, err := ParseRole(arn); err == nil {
			t.Errorf("%s: %s", arn, role.prefix)
		}
	}
}
