package queue

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// writerTo is a body as the SDK makes them: once closed, WriteTo returns io.EOF.
type writerTo struct {
	io.Reader
	wrote bool
}

func (b *writerTo) WriteTo(io.Writer) (int64, error) { b.wrote = true; return 0, io.EOF }
func (b *writerTo) Close() error                     { return nil }

func TestAnAnswerIsNotCutWhenTheSDKClosesItsRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}))
	defer server.Close()
	for k, v := range map[string]string{"AWS_CA_BUNDLE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull} {
		t.Setenv(k, v)
	}
	client, err := Connect(t.Context(), "us-west-2", 1)
	if err != nil {
		t.Fatal(err)
	}
	body := &writerTo{Reader: strings.NewReader("all of it")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Options().HTTPClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "all of it" || body.wrote {
		t.Errorf("answer %q, %v; WriteTo was called: %t", got, err, body.wrote)
	}
}
