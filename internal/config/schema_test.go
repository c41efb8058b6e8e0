package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/invopop/jsonschema"
)

const schemaPath = "../../docs/objectferry.schema.json"

var update = flag.Bool("update", false, "write docs/objectferry.schema.json anew")

// schema is generated in a test, so that the service does not link the generator.
func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	r := jsonschema.Reflector{
		BaseSchemaID:               "https://github.com/objectferry/objectferry/docs",
		FieldNameTag:               "yaml",
		RequiredFromJSONSchemaTags: true,
		ExpandedStruct:             true,
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[Duration]():
				return &jsonschema.Schema{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`}
			case reflect.TypeFor[Size]():
				return &jsonschema.Schema{OneOf: []*jsonschema.Schema{
					{Type: "integer", Minimum: "0"},
					{Type: "string", Pattern: `^[0-9]+([KMGT]i?B|B)?$`},
				}}
			}
			return nil
		},
	}
	if err := r.AddGoComments(reflect.TypeFor[Config]().PkgPath(), "."); err != nil {
		t.Fatal(err)
	}
	s := r.Reflect(&Config{})
	s.ID = "https://github.com/objectferry/objectferry/docs/objectferry.schema.json"
	s.Title = "objectferry.yaml"
	return s
}

func TestSchemaIsCurrent(t *testing.T) {
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema(t)); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaPath, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("docs/objectferry.schema.json is old; run go test ./internal/config -update (-file +generated):\n%s", diff)
	}
}

// A field without a description would show as such in an editor.
func TestSchemaDescribesEveryField(t *testing.T) {
	s := schema(t)
	types := map[string]*jsonschema.Schema{"Config": s}
	for name, d := range s.Definitions {
		types[name] = d
	}
	for name, typ := range types {
		for p := typ.Properties.Oldest(); p != nil; p = p.Next() {
			described := p.Value.Description != "" || p.Key == "bucket"
			if ref := strings.TrimPrefix(p.Value.Ref, "#/$defs/"); p.Value.Ref != "" {
				described = s.Definitions[ref] != nil && s.Definitions[ref].Description != ""
			}
			if !described {
				t.Errorf("%s.%s has no description", name, p.Key)
			}
		}
	}
}

// The schema's words and the ones that validation takes are written in two places.
func TestSchemaAndValidationTakeTheSameWords(t *testing.T) {
	s := schema(t)
	for _, tt := range []struct {
		typ, field string
		path       string
		at         func(*Config) *string
	}{
		{"Log", "when_done", "logs[0].when_done", func(c *Config) *string { return &c.Logs[0].WhenDone }},
		{"Route", "mode", "routes[0].mode", func(c *Config) *string { return &c.Routes[0].Mode }},
		{"Source", "read", "routes[0].source.read", func(c *Config) *string { return &c.Routes[0].Source.Read }},
		{"Destination", "sse", "routes[0].destination.sse", func(c *Config) *string { return &c.Routes[0].Destination.SSE }},
		{"Destination", "storage_class", "routes[0].destination.storage_class", func(c *Config) *string { return &c.Routes[0].Destination.StorageClass }},
		{"Logging", "level", "log.level", func(c *Config) *string { return &c.Log.Level }},
	} {
		property, ok := s.Definitions[tt.typ].Properties.Get(tt.field)
		if !ok || len(property.Enum) == 0 {
			t.Errorf("the schema lists no words for %s", tt.path)
			continue
		}
		var quoted []string
		for _, word := range property.Enum {
			quoted = append(quoted, fmt.Sprintf("%q", word))
		}
		want := strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
		c := valid()
		*tt.at(c) = "other"
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), tt.path+": must be "+want) {
			t.Errorf("%v\nthe schema has %s", err, want)
		}
	}
}
