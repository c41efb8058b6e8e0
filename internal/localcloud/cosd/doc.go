// Package cosd is an embedded Tencent COS bucket for the demo and the tests: it
// verifies request signatures, answers reads with COS's headers and error
// bodies, can be slowed down and limited, and can lie and fail on request.
//
// One Server is one bucket. Keys are the exact bytes of the request's escaped
// path, decoded once; nothing is cleaned, so "//", ".." and a leading "/" are
// keys like others, and "GET /" lists the bucket as COS does. Objects come and
// go by the Go API only: over HTTP the bucket is read-only.
//
// An honest answer always carries x-cos-request-id. What is set by Change, Lie,
// Revoke and SetPrincipals takes effect with the next request. All methods are
// safe for concurrent use.
package cosd
