package stranger

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/objectferry/objectferry/test/ferry"
)

// account is the one that the page and the templates' examples have.
const account = "111122223333"

// moto is moto_server behind a front that mends what would stand in the page's way.
//
// In moto a stack that was made by a change set, as `aws cloudformation deploy`
// makes it, has no outputs, and one with a list among its parameters cannot be
// updated; so the front executes a change set as CreateStack or UpdateStack of the
// same template and parameters. Constraints of parameters are checked, and what
// moto's CloudFormation leaves out is applied (mend).
type moto struct {
	url   string // of the front
	proxy *httputil.ReverseProxy

	mu         sync.Mutex
	changes    map[string]url.Values        // change sets by stack name, with the value of each parameter
	parameters map[string]map[string]string // by stack name, that are not defaults
	exports    map[string]any               // of all stacks
}

func startMoto(t *testing.T) *moto {
	t.Helper()
	behind, err := ferry.StartMoto("MOTO_ACCOUNT_ID=" + account)
	if err != nil {
		t.Fatalf("start moto: %v", err)
	}
	target, err := url.Parse(behind)
	if err != nil {
		t.Fatal(err)
	}
	m := &moto{changes: map[string]url.Values{}, parameters: map[string]map[string]string{}, exports: map[string]any{}}
	m.proxy = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host // it is part of what is signed
		},
		ModifyResponse: unknownUpload,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // a client went
	}
	server := httptest.NewServer(m)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	m.url = server.URL
	return m
}

// unknownUpload answers as S3 does for a part of an upload that never was, where
// moto breaks down.
func unknownUpload(resp *http.Response) error {
	if q := resp.Request.URL.Query(); resp.StatusCode == http.StatusInternalServerError && q.Has("uploadId") && q.Has("partNumber") {
		body := "<Error><Code>NoSuchUpload</Code><Message>The upload does not exist.</Message></Error>"
		resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
		resp.Header = http.Header{"Content-Type": {"application/xml"}, "Content-Length": {fmt.Sprint(len(body))}, "X-Amz-Request-Id": {"0123456789ABCDEF"}}
	}
	return nil
}

func (m *moto) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		m.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	form, _ := url.ParseQuery(string(body)) // what is no form has no Action
	switch form.Get("Action") {
	case "CreateChangeSet":
		m.keep(form)
	case "ExecuteChangeSet":
		if err := m.execute(r, stackOf(form)); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "<ErrorResponse><Error><Type>Sender</Type><Code>ValidationError</Code><Message>")
			_ = xml.EscapeText(w, []byte(err.Error())) // the client would see half an answer
			fmt.Fprint(w, "</Message></Error></ErrorResponse>")
			return
		}
		fmt.Fprint(w, `<ExecuteChangeSetResponse xmlns="http://cloudformation.amazonaws.com/doc/2010-05-15/"><ExecuteChangeSetResult/></ExecuteChangeSetResponse>`)
		return
	}
	m.forward(w, r, body)
}

func (m *moto) forward(w http.ResponseWriter, r *http.Request, body []byte) {
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	m.proxy.ServeHTTP(w, r)
}

// keep remembers a change set with the value of each parameter, those that it
// takes over from the stack before it, too.
func (m *moto) keep(form url.Values) {
	m.mu.Lock()
	defer m.mu.Unlock()
	name := stackOf(form)
	before, now := m.parameters[name], map[string]string{}
	change := url.Values{}
	for field := range form {
		if !strings.HasPrefix(field, "Parameters.") {
			// moto knows this policy by its older name only.
			change.Set(field, strings.ReplaceAll(form.Get(field), "RetainExceptOnCreate", "Retain"))
			continue
		}
		at, isKey := strings.CutSuffix(field, ".ParameterKey")
		if !isKey {
			continue
		}
		key := form.Get(field)
		if form.Get(at+".UsePreviousValue") != "true" {
			now[key] = form.Get(at + ".ParameterValue")
		} else if value, ok := before[key]; ok {
			now[key] = value
		}
	}
	for i, key := range slices.Sorted(maps.Keys(now)) {
		at := fmt.Sprintf("Parameters.member.%d.", i+1)
		change.Set(at+"ParameterKey", key)
		change.Set(at+"ParameterValue", now[key])
	}
	m.changes[name], m.parameters[name] = change, now
}

// execute makes or updates the stack of a change set.
func (m *moto) execute(r *http.Request, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	change := m.changes[name]
	stack, err := m.resolve(change)
	if err != nil {
		return err
	}
	actions := []string{"UpdateStack"}
	if change.Get("ChangeSetType") == "CREATE" {
		actions = []string{"DeleteStack", "CreateStack"} // the first is the one that waits for its change set
	}
	for _, action := range actions {
		change.Set("Action", action)
		answer := httptest.NewRecorder()
		m.forward(answer, r.Clone(r.Context()), []byte(change.Encode()))
		if answer.Code != http.StatusOK {
			return fmt.Errorf("%s: %s", action, answer.Body)
		}
	}
	maps.Copy(m.exports, stack.Exports)
	return m.mend(stack)
}

// call asks moto itself, which goes by what a signature names and does not verify
// it: it takes a fraction of what a start of the command line takes.
func (m *moto) call(service, method, path, body string) (answer string, err error) {
	req, err := http.NewRequest(method, m.url+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260904/us-west-2/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s\n%s", method, path, resp.Status, b)
	}
	return string(b), err
}

// stackOf is the name of the stack of a form, which may hold its ARN.
func stackOf(form url.Values) string {
	name := form.Get("StackName")
	if _, rest, ok := strings.Cut(name, ":stack/"); ok {
		name, _, _ = strings.Cut(rest, "/")
	}
	return name
}
