package cos

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/objectferry/objectferry/internal/object"
)

// BenchmarkGet reads 64 KiB over loopback; both ends are in the numbers.
func BenchmarkGet(b *testing.B) {
	data := make([]byte, 64<<10)
	url := newPlainServer(b, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Cos-Request-Id", "R")
		h.Set("Etag", `"e"`)
		h.Set("Content-Range", "bytes 0-65535/65536")
		h.Set("Content-Length", strconv.Itoa(len(data)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(data)
	})
	path := filepath.Join(b.TempDir(), "cos.json")
	if err := os.WriteFile(path, []byte(`{"id": "a", "key": "b"}`), 0o600); err != nil {
		b.Fatal(err)
	}
	for name, cfg := range map[string]Config{"anonymous": {URL: url}, "signed": {URL: url, Signed: true, CredentialsFile: path}} {
		b.Run(name, func(b *testing.B) {
			source, err := New(cfg, nil)
			if err != nil {
				b.Fatal(err)
			}
			buffer := make([]byte, len(data))
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				read, err := source.Get(b.Context(), "model/42.glb", object.Range{Length: 16 << 20}, "")
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(read.Body, buffer); err != nil {
					b.Fatal(err)
				}
				read.Body.Close()
			}
		})
	}
}
