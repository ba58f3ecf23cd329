// Package faults holds the planted faults: changes of the code that break a promise, each with the test that must notice it.
//
// The tables are the text files of this folder, one for each area; README.md says how to add an entry. Every run of the tests
// reads the tables and checks that each entry still fits the code. `make test-faults` plants the faults one by one.
package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Fault is one change of the code and the test that must fail while it is planted.
type Fault struct {
	Area string // the table's file name without .txt
	Line int    // of the entry in its table, from 1

	Name    string // short-kebab-name, unique in all tables
	What    string // one sentence: what is broken by it
	File    string // the file that is changed, from the repository's root
	Old     string // the text that is replaced; it occurs exactly once in File
	New     string // what stands there instead; may be empty
	Package string // of the test, as ./path/from/root
	Test    string // the test's name; TestName/sub names a subtest
	Tags    string // build tags that the test needs; mostly empty
}

// An Error is a place in a table that cannot be read.
type Error struct {
	File string
	Line int
	Msg  string
}

func (e *Error) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg) }

var (
	nameForm = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	testForm = regexp.MustCompile(`^(\./[a-zA-Z0-9_/.-]*) (Test[A-Za-z0-9_]+(?:/\S+)?)(?: -tags=(\S+))?$`)
)

// Read reads all tables of a folder, in the order of their names. Names are unique over all of them.
func Read(dir string) ([]Fault, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []Fault
	known := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		faults, err := Parse(filepath.Base(file), string(text))
		if err != nil {
			return nil, err
		}
		for _, f := range faults {
			if first := known[f.Name]; first != "" {
				return nil, &Error{filepath.Base(file), f.Line, fmt.Sprintf("the name %s is taken in %s", f.Name, first)}
			}
			known[f.Name] = filepath.Base(file)
		}
		all = append(all, faults...)
	}
	return all, nil
}

// Parse reads one table. An entry starts with its `fault:` line and has each of the other members once. A member's text stands on
// its line, or between a line that ends in `<<<` and a line `>>>`. Lines that start with # and empty lines outside of texts are skipped.
func Parse(file, text string) ([]Fault, error) {
	var all []Fault
	lines := strings.Split(text, "\n")
	var members map[string]string
	start := 0
	finish := func() error {
		if members == nil {
			return nil
		}
		f := Fault{
			Area: strings.TrimSuffix(file, ".txt"), Line: start,
			Name: members["fault"], What: members["what"], File: members["file"], Old: members["old"], New: members["new"],
		}
		for _, m := range []string{"what", "file", "old", "new", "test"} {
			if _, ok := members[m]; !ok {
				return &Error{file, start, fmt.Sprintf("fault %s has no %q", f.Name, m)}
			}
		}
		test := testForm.FindStringSubmatch(members["test"])
		switch {
		case !nameForm.MatchString(f.Name):
			return &Error{file, start, fmt.Sprintf("%q is not a short-kebab-name", f.Name)}
		case test == nil:
			return &Error{file, start, fmt.Sprintf("test: %q is not of the form ./package TestName, perhaps with -tags=…", members["test"])}
		case f.What == "" || f.Old == "" || !filepath.IsLocal(f.File):
			return &Error{file, start, "what, file and old must say something; file is a path in the repository"}
		case f.Old == f.New:
			return &Error{file, start, "old and new are the same"}
		}
		f.Package, f.Test, f.Tags = test[1], test[2], test[3]
		all = append(all, f)
		return nil
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if trimmed := strings.TrimSpace(line); trimmed == "" || strings.HasPrefix(trimmed, "#") {
			continue
		}
		member, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, &Error{file, i + 1, "want `member: text`"}
		}
		at := i + 1
		value = strings.TrimSpace(value)
		if value == "<<<" {
			end := i + 1
			for end < len(lines) && lines[end] != ">>>" {
				end++
			}
			if end == len(lines) {
				return nil, &Error{file, at, "the text has no end: a line >>> is missing"}
			}
			value = strings.Join(lines[i+1:end], "\n")
			i = end
		}
		switch member {
		case "fault":
			if err := finish(); err != nil {
				return nil, err
			}
			members, start = map[string]string{}, at
		case "what", "file", "old", "new", "test":
		default:
			return nil, &Error{file, at, fmt.Sprintf("unknown member %q", member)}
		}
		if members == nil {
			return nil, &Error{file, at, "an entry starts with `fault:`"}
		}
		if _, twice := members[member]; twice {
			return nil, &Error{file, at, fmt.Sprintf("%q stands twice", member)}
		}
		members[member] = value
	}
	if err := finish(); err != nil {
		return nil, err
	}
	return all, nil
}

// Plant returns the file's text with the fault in it. The old text must occur exactly once.
func (f Fault) Plant(text string) (string, error) {
	if n := strings.Count(text, f.Old); n != 1 {
		return "", fmt.Errorf("%s.txt:%d: fault %s: its old text occurs %d times in %s, not once: bring the entry up to date",
			f.Area, f.Line, f.Name, n, f.File)
	}
	return strings.Replace(text, f.Old, f.New, 1), nil
}

// since picks the faults of changed files (paths from the repository's root), and those that were not in the tables before as they are now.
func since(all, before []Fault, changed []string) (some []Fault) {
	known := map[Fault]bool{}
	for _, f := range before {
		f.Line = 0
		known[f] = true
	}
	for _, f := range all {
		line := f.Line
		f.Line = 0
		if !known[f] || slices.Contains(changed, f.File) {
			f.Line = line
			some = append(some, f)
		}
	}
	return some
}

const (
	// enginesTag is the build tag of tests that start an SQL engine.
	enginesTag = "engines"
	// enginesVariable names the folder of the engines, or says that there are noEngines.
	enginesVariable = "HOLDOUTD_ENGINES"
	noEngines       = "none"
)

// withoutEngines leaves the faults out whose tests start an SQL engine, and says their names.
func withoutEngines(all []Fault) (some []Fault, without []string) {
	for _, f := range all {
		if f.Tags == enginesTag {
			without = append(without, f.Area+"/"+f.Name)
		} else {
			some = append(some, f)
		}
	}
	return some, without
}

// share picks the faults that `k/n` means: every n-th, from the k-th, 0 <= k < n. The empty text means all.
func share(all []Fault, text string) ([]Fault, error) {
	if text == "" {
		return all, nil
	}
	first, step, _ := strings.Cut(text, "/")
	k, errK := strconv.Atoi(first)
	n, errN := strconv.Atoi(step)
	if errK != nil || errN != nil || k < 0 || k >= n {
		return nil, fmt.Errorf("faults: the share %q is not k/n with 0 <= k < n", text)
	}
	var some []Fault
	for i := k; i < len(all); i += n {
		some = append(some, all[i])
	}
	return some, nil
}
