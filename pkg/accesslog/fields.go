package accesslog

import (
	"bytes"
	"strconv"
	"time"
)

// Fields are all fields of a row, for display: nil is a field that the row does
// not have or that S3 left empty. Strings that are not UTF-8 are kept as they are.
type Fields struct {
	BucketOwner    *string    `json:"bucket_owner"`
	Bucket         *string    `json:"bucket"`
	Time           *time.Time `json:"time"`
	RemoteIP       *string    `json:"remote_ip"`
	Requester      *string    `json:"requester"`
	RequestID      *string    `json:"request_id"`
	Operation      *string    `json:"operation"`
	KeyRaw         *string    `json:"key_raw"`
	Key            *string    `json:"key"` // the raw key where it cannot be decoded
	RequestURI     *string    `json:"request_uri"`
	Status         *int       `json:"status"`
	ErrorCode      *string    `json:"error_code"`
	BytesSent      *int64     `json:"bytes_sent"`
	ObjectSize     *int64     `json:"object_size"`
	TotalTimeMS    *int64     `json:"total_time_ms"`
	TurnaroundMS   *int64     `json:"turnaround_ms"`
	Referer        *string    `json:"referer"`
	UserAgent      *string    `json:"user_agent"`
	VersionID      *string    `json:"version_id"`
	HostID         *string    `json:"host_id"`
	SigVersion     *string    `json:"sig_version"`
	CipherSuite    *string    `json:"cipher_suite"`
	AuthType       *string    `json:"auth_type"`
	HostHeader     *string    `json:"host_header"`
	TLSVersion     *string    `json:"tls_version"`
	AccessPointARN *string    `json:"access_point_arn"`
	ACLRequired    *string    `json:"acl_required"`
	SourceRegion   *string    `json:"source_region"`
	FieldsPresent  int        `json:"fields_present"` // those of later layouts, too
}

// headFields are the fields up to the turn-around time.
const headFields = 15

// Fields copies all fields out of the row. It allocates; judging a row needs
// none of it. Referer and user agent are split as is most likely.
func (r *Row) Fields() Fields {
	if r.time == nil { // unparsed or blank
		return Fields{}
	}
	f := Fields{
		BucketOwner: text(r.Owner),
		Bucket:      text(r.Bucket),
		RemoteIP:    text(r.RemoteIP),
		Requester:   text(r.Requester),
		RequestID:   text(r.RequestID),
		Operation:   text(r.Operation),
		KeyRaw:      text(r.KeyRaw),
		Key:         text(r.Key()),
		RequestURI:  text(r.RequestURI),
		ErrorCode:   text(r.ErrorCode),
	}
	if f.Key == nil {
		f.Key = f.KeyRaw
	}
	t := r.Time()
	f.Time = &t
	if r.Status != 0 {
		status := r.Status
		f.Status = &status
	}
	rest := r.numbers
	for _, to := range []**int64{&f.BytesSent, &f.ObjectSize, &f.TotalTimeMS, &f.TurnaroundMS} {
		var token []byte
		token, rest, _ = bytes.Cut(rest, []byte(" "))
		if n, err := strconv.ParseInt(string(token), 10, 64); err == nil {
			*to = &n
		}
	}
	referer, agent, layout := splitTail(r.tail)
	f.Referer, f.UserAgent = text(field(referer)), text(field(agent))
	f.FieldsPresent = headFields
	for _, quoted := range [][]byte{referer, agent} {
		if quoted != nil {
			f.FieldsPresent++
		}
	}
	f.FieldsPresent += len(layout)
	for i, to := range []**string{
		&f.VersionID, &f.HostID, &f.SigVersion, &f.CipherSuite, &f.AuthType, &f.HostHeader,
		&f.TLSVersion, &f.AccessPointARN, &f.ACLRequired, &f.SourceRegion,
	} {
		if i < len(layout) {
			*to = text(field(layout[i]))
		}
	}
	return f
}

// splitTail splits what follows the numbers into referer, user agent and the
// fields behind them. The first place that can be a border between the two is
// taken for it, and the last one behind which no quote is left open for the end
// of the user agent.
func splitTail(tail []byte) (referer, agent []byte, layout [][]byte) {
	switch border := bytes.Index(tail, []byte(`" "`)); {
	case tail[0] == '-':
		referer, tail = tail[:1], bytes.TrimPrefix(tail[1:], []byte(" "))
	case border > 0:
		referer, tail = tail[1:border], tail[border+2:]
	default: // a bare dash for the user agent, or cut off
		end := bytes.LastIndex(tail, []byte(`" `))
		if end < 1 {
			return nil, nil, nil
		}
		referer, tail = tail[1:end], tail[end+2:]
	}
	if len(tail) == 0 {
		return referer, nil, nil
	}
	if tail[0] != '"' {
		layout, _ = tokens(tail)
		if len(layout) == 0 {
			return referer, nil, nil
		}
		return referer, layout[0], layout[1:]
	}
	const tries = 100 // or a user agent full of quotes would cost the square of its length
	end := len(tail)
	for range tries {
		end = bytes.LastIndex(tail[:end], []byte(`" `))
		if end < 1 {
			break
		}
		if layout, ok := tokens(tail[end+2:]); ok {
			return referer, tail[1:end], layout
		}
	}
	return referer, nil, nil
}

// tokens splits b at its spaces; a token may be quoted. It reports false where a
// quote stands in a token or is left open.
func tokens(b []byte) (all [][]byte, ok bool) {
	for len(b) > 0 {
		var token []byte
		if b[0] == '"' {
			end := bytes.IndexByte(b[1:], '"')
			if end < 0 {
				return nil, false
			}
			token, b = b[1:1+end], b[2+end:]
			if len(b) > 0 && b[0] != ' ' {
				return nil, false
			}
			b = bytes.TrimPrefix(b, []byte(" "))
		} else {
			token, b, _ = bytes.Cut(b, []byte(" "))
			if bytes.IndexByte(token, '"') >= 0 {
				return nil, false
			}
		}
		all = append(all, token)
	}
	return all, true
}

// text copies b; nil stays nil.
func text(b []byte) *string {
	if b == nil {
		return nil
	}
	s := string(b)
	return &s
}
