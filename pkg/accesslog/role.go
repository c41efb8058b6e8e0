package accesslog

import (
	"bytes"
	"errors"
	"strings"
)

// Role is an IAM role as the requester of a row names it: with a session.
type Role struct {
	prefix []byte // up to and with the slash before the session
}

// ParseRole reads the ARN of a role in either form:
// arn:aws:iam::111122223333:role/path/name or
// arn:aws:sts::111122223333:assumed-role/name. The session is left out.
func ParseRole(arn string) (Role, error) {
	parts := strings.Split(arn, ":")
	if len(parts) != 6 || parts[0] != "arn" || parts[1] == "" || parts[3] != "" {
		return Role{}, errors.New("parse role: not the ARN of a role")
	}
	if len(parts[4]) != 12 || strings.Trim(parts[4], "0123456789") != "" {
		return Role{}, errors.New("parse role: the account is not of 12 digits")
	}
	kind, name, _ := strings.Cut(parts[5], "/")
	switch {
	case parts[2] == "iam" && kind == "role":
		name = name[strings.LastIndexByte(name, '/')+1:] // a session's ARN has no path
	case parts[2] == "sts" && kind == "assumed-role" && strings.Contains(name, "/"):
		return Role{}, errors.New("parse role: leave the session out")
	case parts[2] == "sts" && kind == "assumed-role":
	default:
		return Role{}, errors.New("parse role: neither iam's role/… nor sts's assumed-role/…")
	}
	if name == "" || strings.ContainsAny(name, " \"*?") {
		return Role{}, errors.New("parse role: no name of a role")
	}
	return Role{[]byte("arn:" + parts[1] + ":sts::" + parts[4] + ":assumed-role/" + name + "/")}, nil
}

// Made reports whether a session of the role made the row's request. The zero
// Role made none.
func (role Role) Made(r *Row) bool {
	session, ok := bytes.CutPrefix(r.Requester, role.prefix)
	return ok && len(role.prefix) > 0 && len(session) > 0 && bytes.IndexByte(session, '/') < 0
}
