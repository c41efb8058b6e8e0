package config

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// maxFile bounds the file: a thousand routes fit, a log given by mistake does not.
const maxFile = 1 << 20

// envPrefix begins the environment variables that set a field: copy.part_size is
// OBJECTFERRY_COPY_PART_SIZE. What stands in a list (logs, routes) has none.
const envPrefix = "OBJECTFERRY_"

// Overrides are values given on the command line, by the path of their field:
// {"log.level": "debug"}. Fields in lists cannot be overridden.
type Overrides map[string]string

// Load reads the configuration at path, over it the environment, over that the
// flags, and checks it whole. A configuration that is wrong gives Errors; so does
// a file that cannot be read.
func Load(path string, flags Overrides) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return load(filepath.Base(path), data, os.Environ(), flags)
}

func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, Errors{{Text: "no configuration file is named; use --config FILE"}}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, Errors{{Text: fmt.Sprintf("open configuration: %v", err)}}
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, Errors{{Text: fmt.Sprintf("read configuration: %v", err)}}
	}
	if len(data) > maxFile {
		return nil, Errors{{Source: filepath.Base(path), Text: "is larger than 1 MiB; is this the configuration?"}}
	}
	return data, nil
}

// load does all but the reading, so that it depends on nothing but its arguments.
func load(file string, data []byte, environ []string, flags Overrides) (*Config, error) {
	c := Default()
	d := &decoder{file: file, origins: map[string]origin{"": {source: file}}}
	root := d.parseYAML(data)
	if root == nil {
		return nil, d.problems.err()
	}
	d.decode(root, reflect.ValueOf(c).Elem(), "")
	d.environment(c, environ)
	d.flags(c, flags)
	for i := range c.Routes {
		if c.Routes[i].Destination.Region == "" {
			c.Routes[i].Destination.Region = c.Region
		}
	}
	d.validate(c)
	d.problems = append(d.problems, credentialProblems(environ)...)
	if err := d.problems.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// validate adds what is wrong with c as a whole, except where a field could not
// even be read: then its zero value says nothing.
func (d *decoder) validate(c *Config) {
	unread := slices.Clone(d.problems)
	for _, p := range c.problems() {
		if slices.ContainsFunc(unread, func(u Problem) bool { return u.Field != "" && within(p.Field, u.Field) }) {
			continue
		}
		o := d.originOf(p.Field)
		p.Source, p.Line = o.source, o.line
		d.problems = append(d.problems, p)
	}
}

// originOf is where a field was given, or else the nearest thing around it.
func (d *decoder) originOf(field string) origin {
	for {
		if o, ok := d.origins[field]; ok {
			return o
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// within reports whether a field is another one or stands in it.
func within(field, other string) bool {
	rest, ok := strings.CutPrefix(field, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func (d *decoder) environment(c *Config, environ []string) {
	byVariable := map[string]string{}
	for _, path := range scalarPaths(reflect.TypeFor[Config](), "") {
		byVariable[variable(path)] = path
	}
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || fromKubernetes(name) {
			continue
		}
		path, ok := byVariable[name]
		if !ok {
			d.problems = append(d.problems, Problem{
				Source: fromEnvironment + name,
				Text:   "sets nothing; a field's variable is its path in capitals, such as " + variable("copy.part_size") + ", and fields in lists have none",
			})
			continue
		}
		d.override(c, fromEnvironment+name, path, text)
	}
}

func (d *decoder) flags(c *Config, flags Overrides) {
	for _, path := range slices.Sorted(maps.Keys(flags)) {
		if !slices.Contains(scalarPaths(reflect.TypeFor[Config](), ""), path) {
			d.problems = append(d.problems, Problem{Source: fromFlag + path, Text: "is not a field that a flag can set"})
			continue
		}
		d.override(c, fromFlag+path, path, flags[path])
	}
}

func (d *decoder) override(c *Config, source, path, text string) {
	v := reflect.ValueOf(c).Elem()
	for part := range strings.SplitSeq(path, ".") {
		v, _ = fieldByName(v, part)
	}
	d.origins[path] = origin{source: source}
	if err := setScalar(v, text); err != nil {
		d.problems = append(d.problems, Problem{Source: source, Field: path, Text: err.Error()})
	}
}

func variable(path string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_"))
}

// fromKubernetes knows the variables that Kubernetes sets in every pod beside a
// Service called "objectferry".
func fromKubernetes(name string) bool {
	rest := strings.TrimPrefix(name, envPrefix)
	return strings.HasPrefix(rest, "SERVICE_") || rest == "PORT" || strings.HasPrefix(rest, "PORT_")
}

// scalarPaths are the paths of all fields that are not in a list.
func scalarPaths(t reflect.Type, path string) []string {
	var paths []string
	for i := range t.NumField() {
		f := t.Field(i)
		at := join(path, f.Tag.Get("yaml"))
		switch f.Type.Kind() {
		case reflect.Struct:
			paths = append(paths, scalarPaths(f.Type, at)...)
		case reflect.Slice:
		default:
			paths = append(paths, at)
		}
	}
	return paths
}

// credentialProblems finds AWS credentials of which only a part is set: the SDK
// would quietly go on to the next place and run as somebody else.
func credentialProblems(environ []string) Errors {
	set := map[string]bool{}
	for _, entry := range environ {
		if name, text, _ := strings.Cut(entry, "="); text != "" {
			set[name] = true
		}
	}
	var problems Errors
	for _, rule := range []struct{ given, missing string }{
		{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"},
		{"AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"},
		{"AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID"},
		{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"},
	} {
		if set[rule.given] && !set[rule.missing] {
			problems = append(problems, Problem{
				Source: fromEnvironment + rule.given,
				Text:   fmt.Sprintf("is set without %s; set both or neither", rule.missing),
			})
		}
	}
	return problems
}
