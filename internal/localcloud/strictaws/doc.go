// Package strictaws is an in-memory S3 and SQS for the demo and for tests. It
// speaks the real wire protocols (S3's REST/XML, SQS's AWS JSON 1.0), so the
// AWS SDKs, the aws command line and curl work against it.
//
// It exists because emulators are lax where objectferry must be exact:
//
//   - A key is bytes. Paths are never cleaned, so "a//b", "../x", a leading
//     slash and bytes that are not UTF-8 are keys like any other.
//   - What AWS refuses is refused: wrong checksums and digests, parts out of
//     order or too small, create-only writes over an object, metadata that is
//     too large or not ASCII, batches that are too long, and so on. A refused
//     write stores nothing.
//   - It writes S3 server access logs in S3's own form and announces new
//     objects on SQS as S3 does.
//   - It misbehaves on request (Faults), and counts every call (Counters).
//
// All state lives in a Cloud; any number of them fit into one process. New opens
// no socket. Every exported method is safe for concurrent use. The cost of a
// receive or a change of visibility grows with the logarithm of the messages in
// flight and not at all with those waiting.
package strictaws
