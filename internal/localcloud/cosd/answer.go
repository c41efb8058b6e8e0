package cosd

import (
	"io"
	"net/http"
	"strconv"
)

// answer is an answer before it is written, so that lies can alter it.
type answer struct {
	status int
	header http.Header
	body   io.Reader // nil: none
	length int64     // of body; -1: not known, so chunked
	offset int64     // where in the object the body begins

	unframed bool  // neither length nor chunks: the body ends with the connection
	cut      int64 // cut the connection after so many bytes of body; -1: do not
	reset    bool  // cut the connection instead of answering

	limited bool // refused by the request limit
}

func newAnswer(status int) *answer {
	return &answer{status: status, header: http.Header{}, cut: -1}
}

// write sends a, its body at no more than rate bytes a second (0: no cap), and
// counts the bytes of body.
func (s *Server) write(w http.ResponseWriter, r *http.Request, a *answer, rate int64, sent *int64) {
	if a.reset {
		panic(http.ErrAbortHandler)
	}
	h := w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	switch {
	case a.unframed:
		h.Set("Transfer-Encoding", "identity") // net/http then frames nothing and closes
	case a.length >= 0 && a.status != http.StatusNotModified && (a.body != nil || r.Method != http.MethodHead):
		h.Set("Content-Length", strconv.FormatInt(a.length, 10))
	}
	w.WriteHeader(a.status)
	if a.body == nil || r.Method == http.MethodHead {
		return
	}
	rc := http.NewResponseController(w)
	if a.length < 0 {
		rc.Flush() // or net/http would state the length of a short body
	}
	body := a.body
	if a.cut >= 0 {
		body = io.LimitReader(body, a.cut)
	}
	n, err := s.pace.copy(r.Context(), w, body, rate)
	*sent = n
	if a.cut >= 0 && !a.unframed || err != nil {
		rc.Flush() // what was promised so far does arrive
		panic(http.ErrAbortHandler)
	}
}
