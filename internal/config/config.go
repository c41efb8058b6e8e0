// Package config reads objectferry.yaml: defaults, file, environment, flags. It
// reports all problems at once, each with its line, and refuses half a
// configuration.
package config

import "time"

// Config is objectferry.yaml.
type Config struct {
	Region string   `yaml:"region"`
	Queues Queues   `yaml:"queues"`
	Logs   []Log    `yaml:"logs"`
	Own    string   `yaml:"own_role"` // ARN of the copier's role, without the session name
	Routes []Route  `yaml:"routes"`
	Copy   Copy     `yaml:"copy"`
	Parse  Parse    `yaml:"parse"`
	Retry  Retry    `yaml:"retry"`
	Guard  Guard    `yaml:"guard"`
	Drain  Duration `yaml:"drain"` // how long SIGTERM waits for the work in hand; default 45s
	S3     S3       `yaml:"s3"`
	Admin  Admin    `yaml:"admin"`
	Log    Logging  `yaml:"log"`
}

// Queues are SQS queue URLs. Their dead-letter queues and visibility timeouts
// are read from their own attributes.
type Queues struct {
	Logs string `yaml:"logs"`
	Sync string `yaml:"sync"`
}

// Log is a place where S3 delivers access logs.
type Log struct {
	Bucket   string `yaml:"bucket"`
	Prefix   string `yaml:"prefix"`
	WhenDone string `yaml:"when_done"` // keep or delete; no default
}

// Route carries one S3 bucket's misses over from one source.
type Route struct {
	Bucket          string      `yaml:"bucket"`
	Mode            string      `yaml:"mode"` // copy (default) or observe
	Source          Source      `yaml:"source"`
	Include         []string    `yaml:"include"`
	Exclude         []string    `yaml:"exclude"`
	ForbiddenIsMiss bool        `yaml:"forbidden_is_miss"`
	MaxAge          Duration    `yaml:"max_age"` // default 72h
	Destination     Destination `yaml:"destination"`
}

// Source is a COS bucket.
type Source struct {
	COS             string `yaml:"cos"`  // https://<bucket>-<appid>.cos.<region>.myqcloud.com
	Read            string `yaml:"read"` // anonymous or signed; no default
	CredentialsFile string `yaml:"credentials_file"`
	Queue           string `yaml:"queue"` // a sync queue, and so a gate, of its own
	CustomDomain    bool   `yaml:"custom_domain"`
	AllPublic       bool   `yaml:"all_public"`
	Reference       string `yaml:"reference"` // a key that is always readable; tells a refused object from a refused source
}

// Destination is how objects are written.
type Destination struct {
	Region        string `yaml:"region"`
	ExpectedOwner string `yaml:"expected_owner"`
	SSE           string `yaml:"sse"` // none (default), AES256, aws:kms
	KMSKey        string `yaml:"kms_key"`
	StorageClass  string `yaml:"storage_class"`
}

// Copy bounds the copier.
type Copy struct {
	Concurrency int  `yaml:"concurrency"` // source reads at once, per source; default 64
	Memory      Size `yaml:"memory"`      // bytes held at once; default 1GiB
	PartSize    Size `yaml:"part_size"`   // default 16MiB
	MaxSize     Size `yaml:"max_size"`    // default 20GiB
}

// Parse bounds the log reader.
type Parse struct {
	Concurrency int      `yaml:"concurrency"` // log objects at once; default 8
	Recent      Duration `yaml:"recent"`      // a key asked for within it is not asked again; default 5m
	RecentKeys  int      `yaml:"recent_keys"` // bound of the recent table; default 100000
}

// Retry is how deliveries are tried again.
type Retry struct {
	Receives int      `yaml:"receives"` // own limit; default 8
	Min      Duration `yaml:"min"`      // back-off after the first receive; default 5s
	Max      Duration `yaml:"max"`      // default 15m
	Wait     Duration `yaml:"wait"`     // long poll; default 20s
}

// Guard is how a failing dependency is held back from.
type Guard struct {
	ProbeMin Duration `yaml:"probe_min"` // default 5s
	ProbeMax Duration `yaml:"probe_max"` // default 5m
	Timeout  Duration `yaml:"timeout"`   // of one read or write, before its bytes are counted; default 30s
	MinRate  Size     `yaml:"min_rate"`  // bytes a second that a body must keep up; default 64KiB
}

// S3 is for emulators.
type S3 struct {
	PathStyle bool `yaml:"path_style"`
}

// Admin is the read-only HTTP server.
type Admin struct {
	Listen string `yaml:"listen"` // default :8080; "" is off
}

// Logging is the process's own log.
type Logging struct {
	Level string `yaml:"level"` // debug, info (default), warn, error
}

// Duration is a time.Duration written as "72h".
type Duration time.Duration

// Size is a number of bytes, written as "16MiB" or as a plain number.
type Size int64
