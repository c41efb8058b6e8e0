package explain

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/objectferry/objectferry/internal/config"
	"github.com/objectferry/objectferry/internal/glob"
	"github.com/objectferry/objectferry/internal/object"
	"github.com/objectferry/objectferry/internal/route"
	"github.com/objectferry/objectferry/pkg/syncrequest"
)

// Step is something to do, and the command for it where there is one. A command is
// one line that a shell may be given as it is, whatever the key.
type Step struct {
	Text    string `json:"text"`
	Command string `json:"command,omitempty"`
}

// steps say what to do, in this order. r is nil when there is no route.
func (x *Explainer) steps(e *Explanation, r *route.Route) []Step {
	var s []Step
	add := func(text string, command ...string) {
		s = append(s, Step{Text: text, Command: line(command)})
	}
	request := x.ferry("request", append([]string{"--bucket", e.Bucket}, keyArgument(e.key)...)...)
	match := glob.Quote(e.key)
	switch {
	case e.Route == nil:
		add("deploy a route for the bucket; then redrive what waits for it", x.ferry("deadletter", "redrive", "--detail", string(object.DetailUnrouted))...)
		return s
	case e.Request.Then == Waits:
		add("its queue waits, and nothing is lost: see what is refused or down", x.ferry("check", "--live", "--role", "copy")...)
	case e.Request.Then == Again:
		add("redrive its dead letter once the cause is gone", x.ferry("deadletter", "redrive", "--queue", "sync", "--match", match)...)
	case e.Request.End == object.EndCopied:
		add("ask for it", request...)
	case e.Request.End == object.EndPresent:
		add(presentText(e))
	case e.Request.End == object.EndAbsent:
		add("upload it at the source; then ask for it", request...)
	case e.Request.End == object.EndArchived:
		add("restore it at the source, which takes minutes to hours", restore(r, e.key)...)
		add("then ask for it", request...)
	case e.Request.End == object.EndDenied && e.Destination.State == string(object.Denied):
		add("let the role read and write this key (the bucket's policy, the role's); then ask for it", request...)
	case e.Request.End == object.EndDenied:
		add(fmt.Sprintf("let this object be read at the source (%s); then ask for it", reader(r)), request...)
	case e.Request.End == object.EndUnfit:
		add("it cannot be carried; the note and docs/RUNBOOK.md say what does not fit")
	case e.Request.Detail == object.DetailObserved:
		add("set mode: copy on the route; then ask for it", request...)
	case e.Request.Detail == object.DetailDeleted:
		add("it was deleted overseas on purpose and stays so; if that was a mistake, remove the delete marker", versions(e)...)
	case e.Request.End == object.EndFiltered:
		add("it is not to be carried; if it is, change include or exclude of the route and see", x.ferry("check")...)
	}
	add("whether a dead letter of it waits", x.ferry("deadletter", "show", "--queue", "sync", "--match", match)...)
	return s
}

// presentText compares what can be compared: of somebody else's object no more than
// the size says that it is another.
func presentText(e *Explanation) string {
	from, to := e.Source, e.Destination
	if from.State == Present && (*from.Size != *to.Size || to.SourceETag != "" && from.ETag != to.SourceETag) {
		return "the source has another version of it, but what stands overseas is never replaced; delete it there to have it carried anew"
	}
	return "nothing: visitors are served by S3"
}

func reader(r *route.Route) string {
	if r.Source.Read == config.ReadSigned {
		return "with the key of credentials_file"
	}
	return "by anyone"
}

// ferry is a command of ours with the configuration that was used.
func (x *Explainer) ferry(command string, rest ...string) []string {
	words := []string{"objectferry", command}
	if command == "deadletter" {
		words, rest = append(words, rest[0]), rest[1:]
	}
	if x.file != "objectferry.yaml" {
		words = append(words, "--config", x.file)
	}
	return append(words, rest...)
}

// keyArgument gives a key to `objectferry request`. Only printable ASCII is given
// as it is.
func keyArgument(key string) []string {
	for i := range len(key) {
		if key[i] < ' ' || key[i] > '~' {
			return []string{"--encoded", "--", syncrequest.EscapeKey(key)}
		}
	}
	return []string{"--", key}
}

// cosHost tells bucket and endpoint of COS's own hosts.
var cosHost = regexp.MustCompile(`^([a-z0-9-]+-[0-9]+)\.(cos\.[a-z0-9-]+\.myqcloud\.com)$`)

// restore is the vendor's own command, where bucket and key can be named in it.
func restore(r *route.Route, key string) []string {
	u, err := url.Parse(r.Source.COS)
	if err != nil || !readable(key) {
		return nil
	}
	host := cosHost.FindStringSubmatch(u.Host)
	if host == nil {
		return nil
	}
	return []string{"coscli", "restore", "cos://" + host[1] + "/" + key, "--endpoint", host[2], "--days", "3"}
}

// versions shows the delete marker.
func versions(e *Explanation) []string {
	if !readable(e.key) {
		return nil
	}
	return []string{"aws", "s3api", "list-object-versions", "--bucket", e.Bucket, "--prefix", e.key}
}

func readable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// line is a command as a shell reads it, "" for none.
func line(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return strings.Join(quoted, " ")
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*$`)

// shellQuote makes one word of s for any POSIX shell, which takes everything
// between single quotes as it is, and for zsh, to which "=ls" is the path of ls.
func shellQuote(s string) string {
	if bare.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
