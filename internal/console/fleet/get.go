package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// getter reads pages, each bounded in bytes; its client bounds the time.
type getter struct {
	client *http.Client
	max    int64
}

// page is the body of a 200, as the media type accept.
func (g getter) page(ctx context.Context, url, accept string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask: %w", err)
	}
	req.Header.Set("Accept", accept)
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, err // it names the URL, without a password
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, g.max+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", req.URL.Redacted(), err)
	case int64(len(body)) > g.max:
		return nil, fmt.Errorf("read %s: the answer is larger than %d bytes", req.URL.Redacted(), g.max)
	case resp.StatusCode != http.StatusOK:
		return body, fmt.Errorf("read %s: status %d", req.URL.Redacted(), resp.StatusCode)
	}
	return body, nil
}
