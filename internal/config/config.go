// Package config reads objectferry.yaml: defaults, then the file, then the
// environment, then flags. It reports all problems at once, each with its line
// and what to do, and refuses half a configuration: what is missing or
// contradicts itself is an error at start, never a warning.
//
// A Config holds no secrets (credentials stay in files and in the SDK's usual
// places), and no problem quotes a value, so both may be shown to anyone who may
// see the service. A Config is not changed after Load; it may be read from many
// goroutines.
//
// docs/objectferry.schema.json is generated from these structs and their
// comments; a test keeps it current.
package config

// Config is objectferry.yaml.
type Config struct {
	// Region of the queues and of the log buckets, and of destinations that name none.
	Region string `yaml:"region" jsonschema:"required"`
	Queues Queues `yaml:"queues" jsonschema:"required"`
	// Logs are the places where S3 delivers access logs; at least one.
	Logs []Log `yaml:"logs" jsonschema:"required,minItems=1"`
	// Own is the ARN that the copier's own requests show as requester in access logs, without the session name: arn:aws:sts::111122223333:assumed-role/objectferry-copy. Rows with it are not misses.
	Own string `yaml:"own_role"`
	// Routes say which bucket's misses go where; at least one.
	Routes []Route `yaml:"routes" jsonschema:"required,minItems=1"`
	Copy   Copy    `yaml:"copy"`
	Parse  Parse   `yaml:"parse"`
	Retry  Retry   `yaml:"retry"`
	Guard  Guard   `yaml:"guard"`
	// Drain is how long a termination waits for the work in hand; default 45s.
	Drain Duration `yaml:"drain"`
	S3    S3       `yaml:"s3"`
	Admin Admin    `yaml:"admin"`
	Log   Logging  `yaml:"log"`
}

// Queues are SQS queue URLs. Their dead-letter queues and visibility timeouts are read from their own attributes.
type Queues struct {
	// Logs is the queue that S3's notifications of new log objects arrive on.
	Logs string `yaml:"logs" jsonschema:"required"`
	// Sync is the queue of sync requests.
	Sync string `yaml:"sync" jsonschema:"required"`
}

// Log is a place where S3 delivers access logs.
type Log struct {
	Bucket string `yaml:"bucket" jsonschema:"required"`
	// Prefix of the log objects; "" is the whole bucket.
	Prefix string `yaml:"prefix"`
	// WhenDone is what becomes of a log object that was read: keep or delete. There is no default.
	WhenDone string `yaml:"when_done" jsonschema:"required,enum=keep,enum=delete"`
}

// Route carries one S3 bucket's misses over from one source.
type Route struct {
	// Bucket is the S3 bucket that visitors read, and that is written to.
	Bucket string `yaml:"bucket" jsonschema:"required"`
	// Mode is copy (default) or observe: count what would be copied, copy nothing.
	Mode   string `yaml:"mode" jsonschema:"enum=copy,enum=observe"`
	Source Source `yaml:"source" jsonschema:"required"`
	// Include are globs on the decoded key; ** crosses slashes. A signed source must have some; without any an anonymous source is carried whole.
	Include []string `yaml:"include"`
	// Exclude are globs on the decoded key; they win over include.
	Exclude []string `yaml:"exclude"`
	// ForbiddenIsMiss takes 403 AccessDenied in the log for a possible miss: S3 says so for a missing key when the caller may not list the bucket.
	ForbiddenIsMiss bool `yaml:"forbidden_is_miss"`
	// MaxAge of a row that is still acted on; default 72h.
	MaxAge      Duration    `yaml:"max_age"`
	Destination Destination `yaml:"destination"`
}

// Source is a COS bucket.
type Source struct {
	// COS is the bucket's address: https://<bucket>-<appid>.cos.<region>.myqcloud.com.
	COS string `yaml:"cos" jsonschema:"required"`
	// Read is anonymous (as a stranger would read it) or signed. There is no default.
	Read string `yaml:"read" jsonschema:"required,enum=anonymous,enum=signed"`
	// CredentialsFile of a signed source: JSON with id, key and, for temporary ones, token. It is read again when it changes.
	CredentialsFile string `yaml:"credentials_file"`
	// Queue is the URL of a sync queue, and so a gate, of its own; default queues.sync.
	Queue string `yaml:"queue"`
	// CustomDomain says that the host of cos is not COS's own.
	CustomDomain bool `yaml:"custom_domain"`
	// AllPublic says that a signed source may be made public whole, so that include may match everything.
	AllPublic bool `yaml:"all_public"`
	// Reference is a key that we can always read; it tells a refused object from a refused source. Default: the key that was last let through.
	Reference string `yaml:"reference"`
}

// Destination is how objects are written.
type Destination struct {
	// Region of the bucket; default the configuration's region.
	Region string `yaml:"region"`
	// ExpectedOwner is the 12-digit account that must own the bucket.
	ExpectedOwner string `yaml:"expected_owner"`
	// SSE is the encryption that each write asks for: none (default, the bucket's own), AES256 or aws:kms.
	SSE string `yaml:"sse" jsonschema:"enum=none,enum=AES256,enum=aws:kms"`
	// KMSKey for sse aws:kms: an id, an ARN or an alias, or "default" for the account's aws/s3 key.
	KMSKey string `yaml:"kms_key"`
	// StorageClass that objects are written in; default STANDARD.
	StorageClass string `yaml:"storage_class" jsonschema:"enum=STANDARD,enum=STANDARD_IA,enum=ONEZONE_IA,enum=INTELLIGENT_TIERING,enum=GLACIER_IR,enum=REDUCED_REDUNDANCY"`
}

// Copy bounds the copier.
type Copy struct {
	// Concurrency is how many source reads run at once, per source; default 64.
	Concurrency int `yaml:"concurrency" jsonschema:"minimum=1,maximum=10000"`
	// Memory is how many bytes of objects are held at once; default 1GiB.
	Memory Size `yaml:"memory"`
	// PartSize is how large objects are read and written; default 16MiB, 5MiB to 5GiB.
	PartSize Size `yaml:"part_size"`
	// MaxSize of an object that is carried; default 20GiB.
	MaxSize Size `yaml:"max_size"`
}

// Parse bounds the log reader.
type Parse struct {
	// Concurrency is how many log objects are read at once; default 8.
	Concurrency int `yaml:"concurrency" jsonschema:"minimum=1,maximum=10000"`
	// Recent is how long a key that was asked for is not asked for again; default 5m, 0s is off.
	Recent Duration `yaml:"recent"`
	// RecentKeys bounds the table of recent keys; default 100000.
	RecentKeys int `yaml:"recent_keys" jsonschema:"minimum=0"`
}

// Retry is how deliveries are tried again.
type Retry struct {
	// Receives of a message until it is a dead letter; default 8.
	Receives int `yaml:"receives" jsonschema:"minimum=1,maximum=100"`
	// Min is the back-off after the first receive; default 5s.
	Min Duration `yaml:"min"`
	// Max is the longest back-off; default 15m, at most 12h.
	Max Duration `yaml:"max"`
	// Wait is how long a receive waits for a message; default 20s, whole seconds from 1s.
	Wait Duration `yaml:"wait"`
}

// Guard is how a failing dependency is held back from.
type Guard struct {
	// ProbeMin is the shortest time between probes of a dependency that is down; default 5s.
	ProbeMin Duration `yaml:"probe_min"`
	// ProbeMax is the longest time between probes; default 5m.
	ProbeMax Duration `yaml:"probe_max"`
	// Timeout of one read or write, before its bytes are counted; default 30s.
	Timeout Duration `yaml:"timeout"`
	// MinRate is how many bytes a second a body must keep up; default 64KiB.
	MinRate Size `yaml:"min_rate"`
}

// S3 is for emulators.
type S3 struct {
	// PathStyle puts the bucket into the path instead of the host name.
	PathStyle bool `yaml:"path_style"`
}

// Admin is the read-only HTTP server.
type Admin struct {
	// Listen is host:port; default :8080, "" is off.
	Listen string `yaml:"listen"`
}

// Logging is the process's own log.
type Logging struct {
	// Level is debug, info (default), warn or error.
	Level string `yaml:"level" jsonschema:"enum=debug,enum=info,enum=warn,enum=error"`
}

// The words that fields may hold.
const (
	WhenDoneKeep   = "keep"
	WhenDoneDelete = "delete"

	ModeCopy    = "copy"
	ModeObserve = "observe"

	ReadAnonymous = "anonymous"
	ReadSigned    = "signed"

	SSENone   = "none"
	SSEAES256 = "AES256"
	SSEKMS    = "aws:kms"

	kmsDefault = "default"
)

// KMSKeyID is the key that a write names, "" for the account's default key.
func (d Destination) KMSKeyID() string {
	if d.KMSKey == kmsDefault {
		return ""
	}
	return d.KMSKey
}
