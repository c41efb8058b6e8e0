package s3store

import (
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/objectferry/objectferry/internal/object"
)

// cpu is the processor time of this process so far.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHeadPut looks for an object and writes 64 KiB over loopback; both ends
// are in the numbers.
func BenchmarkHeadPut(b *testing.B) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Etag", `"e"`)
	}))
	defer s.Close()
	store := New(client(s.URL), Config{Bucket: "b", ExpectedOwner: "111122223333"})
	data := make([]byte, 64<<10)
	a := object.Attributes{ContentType: "model/gltf-binary", CacheControl: "max-age=60", Metadata: map[string]string{"a": "b"}}
	p := object.Provenance{CopyID: "0123456789abcdef", ETag: `"e"`, CRC64: "1", LastModified: "2026-09-04T08:03:42Z"}
	b.ReportAllocs()
	before := cpu(b)
	for b.Loop() {
		if _, err := store.Head(b.Context(), "model/42.glb"); err != nil {
			b.Fatal(err)
		}
		if err := store.Put(b.Context(), "model/42.glb", data, a, p); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
}
