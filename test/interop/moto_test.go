package interop

import (
	"fmt"
	"sync"
	"testing"

	"github.com/objectferry/objectferry/test/ferry"
)

// motoAccount is the one account that moto knows.
const motoAccount = "123456789012"

// motoPage makes moto's listings short, so that few keys are several pages.
const motoPage = 7

// startMoto starts one server for all tests of this process.
var startMoto = sync.OnceValues(func() (url string, err error) {
	return ferry.StartMoto(fmt.Sprintf("MOTO_S3_DEFAULT_MAX_KEYS=%d", motoPage))
})

// moto is someone else's cloud. The test is skipped where it is not installed.
func moto(t *testing.T) *cloud {
	t.Helper()
	ferry.Tool(t, ferry.MotoProgram)
	url, err := startMoto()
	if err != nil {
		t.Fatalf("start %s: %v", ferry.MotoProgram, err)
	}
	return &cloud{name: "moto", s3URL: url, sqsURL: url, account: motoAccount, page: motoPage}
}
