package s3event

import (
	"encoding/json"
	"net/url"
	"time"
)

// Format is the notification that S3 would send for r: one record, direct, the
// key form-encoded. Parse reads it back.
func Format(r Record) string {
	type object struct {
		Key  string `json:"key"`
		Size *int64 `json:"size,omitempty"`
	}
	type entity struct {
		Version string            `json:"s3SchemaVersion"`
		Bucket  map[string]string `json:"bucket"`
		Object  object            `json:"object"`
	}
	type record struct {
		Version string `json:"eventVersion"`
		Source  string `json:"eventSource"`
		Time    string `json:"eventTime"`
		Name    string `json:"eventName"`
		S3      entity `json:"s3"`
	}
	out := record{Version: "2.1", Source: "aws:s3", Time: r.EventTime.UTC().Format(time.RFC3339Nano), Name: "ObjectCreated:Put",
		S3: entity{Version: "1.0", Bucket: map[string]string{"name": r.Bucket}, Object: object{Key: url.QueryEscape(r.Key)}}}
	if r.Size >= 0 {
		out.S3.Object.Size = &r.Size
	}
	body, err := json.Marshal(map[string][]record{"Records": {out}})
	if err != nil {
		panic(err) // strings and numbers only
	}
	return string(body)
}
