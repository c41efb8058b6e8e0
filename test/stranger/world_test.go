package stranger

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/objectferry/objectferry/test/ferry"
)

// write puts a file into the checkout.
func (h *hour) write(path string, b []byte) {
	h.Helper()
	path = filepath.Join(h.checkout, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o700); err != nil {
		h.Fatal(err)
	}
}

func (h *hour) read(path string) string {
	h.Helper()
	b, err := os.ReadFile(filepath.Join(h.checkout, path))
	if err != nil {
		h.Fatal(err)
	}
	return string(b)
}

// binary is what the tests built, for the quick run, which leaves `make build` out.
func (h *hour) binary() {
	h.Helper()
	if h.full {
		return
	}
	b, err := os.ReadFile(ferry.Binary(h))
	if err != nil {
		h.Fatal(err)
	}
	h.write("bin/objectferry", b)
}

// ownSettings are the stranger's own values: the source is on this machine.
func (h *hour) ownSettings() {
	h.Helper()
	h.write(mine+"/settings.sh", fmt.Appendf([]byte(h.read(mine+"/settings.sh")), "export SOURCE=%s\n", h.cos.URL()))
	h.Logf("own value: SOURCE=%s", h.cos.URL())
}

// call is a call of moto's that must succeed.
func (h *hour) call(service, method, path, body string) string {
	h.Helper()
	answer, err := h.moto.call(service, method, path, body)
	if err != nil {
		h.Fatal(err)
	}
	return answer
}

// visit is a visitor who asks S3 for a key that only COS has, and S3's delivery
// of the access log that tells.
func (h *hour) visit(key string) {
	h.Helper()
	h.log++
	now := time.Now().UTC()
	name := fmt.Sprintf("access/overseas-media/%s-%016X", now.Format("2006-01-02-15-04-05"), h.log)
	row := fmt.Sprintf("%s overseas-media [%s] 203.0.113.9 - 3E57427F3EXAMPLE REST.GET.OBJECT %s \"GET /%s HTTP/1.1\" 404 NoSuchKey 297 - 8 - \"-\" \"Mozilla/5.0\" - "+
		"s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/ - ECDHE-RSA-AES128-GCM-SHA256 - overseas-media.s3.us-west-2.amazonaws.com TLSv1.3 - -\n",
		strings.Repeat("79a59df9", 8), now.Format("02/Jan/2006:15:04:05 -0700"), key, key)
	h.call("s3", http.MethodPut, "/objectferry-logs-111122223333-us-west-2/"+name, row)
}

// observed waits until parse has counted both misses that are only observed, and
// returns the line that says so.
func (h *hour) observed() (line string) {
	h.Helper()
	ferry.Until(h, time.Minute, "two misses are observed", func() bool {
		_, metrics, err := h.services["parse"].Get(h.Context(), "/metrics")
		line = regexp.MustCompile(`(?m)^objectferry_rows_total.*observed.*$`).FindString(metrics)
		return err == nil && strings.HasSuffix(line, " 2")
	})
	return line
}
