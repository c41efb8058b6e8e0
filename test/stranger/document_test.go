// Package stranger follows docs/DEPLOY.md as somebody would who never saw the
// project: it takes the commands out of the page, runs them one after the other
// in a clean directory, and compares what they print with what the page says. AWS
// is moto_server, COS is the embedded one, and Kubernetes, in the full run (build
// tag cluster, `make stranger`), is a control plane on this machine.
//
// Every shell block of the page says in its fence what becomes of it:
//
//	```sh step=NAME                 it is run
//	```sh step=NAME full            it is run in the full run only
//	```sh step=NAME instead="WHAT"  the script does WHAT in its place
//	```sh not-run="WHY"             it is not run
//
// and the block after it, ```text expect, is the whole of what it prints; … stands
// for anything within a line, and a line of its own for any lines. The page ends
// with how many there are of each kind, and the test holds it to that.
package stranger

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// step is a shell block of the page.
type step struct {
	line    int // of its fence
	name    string
	full    bool   // needs the full run
	instead string // what the script does in its place
	notRun  string // why it is not run
	script  string
	expect  *string // what it prints; nil where the page does not say
}

// kinds are how many blocks there are of each kind.
type kinds struct{ run, full, instead, notRun int }

func count(steps []step) (k kinds) {
	for _, s := range steps {
		switch {
		case s.notRun != "":
			k.notRun++
		case s.instead != "":
			k.instead++
		case s.full:
			k.full++
		default:
			k.run++
		}
	}
	return k
}

// block is a fenced block.
type block struct {
	line int
	info string
	text string
}

func blocks(page string) (list []block, err error) {
	var open *block
	for i, line := range strings.Split(page, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case open == nil && isFence:
			open = &block{line: i + 1, info: fence}
		case open != nil && line == "```":
			list = append(list, *open)
			open = nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", open.line)
	}
	return list, nil
}

const (
	shell  = "sh"
	expect = "text expect"
)

// word is a word of a fence, NAME or NAME=VALUE or NAME="VALUE".
var word = regexp.MustCompile(`^ +([a-z-]+)(?:=(?:"([^"]+)"|([^ "]+)))?`)

// steps are the shell blocks of a page, in order. Blocks of other languages are
// left out.
func steps(page string) ([]step, error) {
	list, err := blocks(page)
	if err != nil {
		return nil, err
	}
	var all []step
	names := map[string]bool{}
	before := "" // info of the block before
	for _, b := range list {
		language, words, _ := strings.Cut(b.info, " ")
		switch {
		case b.info == expect:
			if language, _, _ := strings.Cut(before, " "); language != shell {
				return nil, fmt.Errorf("line %d: what is expected must follow a shell block", b.line)
			}
			all[len(all)-1].expect = &b.text
		case language == shell:
			s := step{line: b.line, script: b.text}
			if err := s.read(" " + words); err != nil {
				return nil, fmt.Errorf("line %d: %w", b.line, err)
			}
			if names[s.name] && s.name != "" {
				return nil, fmt.Errorf("line %d: a second step %s", b.line, s.name)
			}
			names[s.name] = true
			all = append(all, s)
		}
		before = b.info
	}
	return all, nil
}

// read takes over what stands behind the language of a fence.
func (s *step) read(words string) error {
	for words = strings.TrimRight(words, " "); words != ""; {
		m := word.FindStringSubmatch(words)
		if m == nil {
			return fmt.Errorf("cannot read %q of the fence", words)
		}
		words = words[len(m[0]):]
		value := m[2] + m[3]
		switch m[1] {
		case "step":
			s.name = value
		case "full":
			s.full = true
		case "instead":
			s.instead = value
		case "not-run":
			s.notRun = value
		default:
			return fmt.Errorf("unknown word %s", m[1])
		}
	}
	if (s.name == "") == (s.notRun == "") {
		return errors.New("a shell block is either a step or says why it is not run")
	}
	return nil
}

// columns are the gaps of a table, whose widths follow what stands in it.
var columns = regexp.MustCompile(`  +`)

// pattern is the regular expression of an expectation.
func pattern(expect string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A\n*`)
	for _, line := range strings.Split(strings.Trim(expect, "\n"), "\n") {
		if line == "…" {
			b.WriteString(`(?:.*\n)*?`)
			continue
		}
		line = columns.ReplaceAllString(regexp.QuoteMeta(line), `[ \t]+`)
		b.WriteString(strings.ReplaceAll(line, "…", `.*`) + `[ \t]*\n`)
	}
	b.WriteString(`\n*\z`)
	return regexp.MustCompile(b.String())
}

// printed reports whether output is what is expected, leading and trailing empty
// lines and spaces at the ends of lines aside.
func printed(output, expect string) bool {
	return pattern(expect).MatchString(output + "\n")
}
