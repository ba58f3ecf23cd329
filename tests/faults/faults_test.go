package faults

import (
	"errors"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// TestTablesFit keeps the tables true while the code moves: the text that a fault replaces occurs exactly once in its file, the
// changed file is still Go, and the named test stands in its package.
func TestTablesFit(t *testing.T) {
	all, err := Read(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		text, err := os.ReadFile(filepath.Join(root, f.File))
		if err != nil {
			t.Errorf("%s.txt:%d: fault %s: %v", f.Area, f.Line, f.Name, err)
			continue
		}
		planted, err := f.Plant(string(text))
		if err != nil {
			t.Error(err)
			continue
		}
		if filepath.Ext(f.File) == ".go" {
			if _, err := parser.ParseFile(token.NewFileSet(), f.File, planted, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s.txt:%d: fault %s: with its new text the file is not Go: %v", f.Area, f.Line, f.Name, err)
			}
		}
		if !hasTest(t, f) {
			t.Errorf("%s.txt:%d: fault %s: %s has no test %s that is built with the tags %q", f.Area, f.Line, f.Name, f.Package, f.Test, f.Tags)
		}
	}
}

// hasTest reports whether the fault's test stands in a file of its package that its tags admit. Other systems' files do not count.
func hasTest(t *testing.T, f Fault) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, f.Package, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(f.Test, "/")
	declared := regexp.MustCompile(`(?m)^func ` + name + `\(\w+ \*testing\.T\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(text) && admitted(text, strings.Split(f.Tags, ",")) {
			return true
		}
	}
	return false
}

func admitted(text []byte, tags []string) bool {
	for line := range strings.Lines(string(text)) {
		if expr, err := constraint.Parse(strings.TrimSpace(line)); err == nil {
			return expr.Eval(func(tag string) bool {
				for _, have := range append(tags, "linux", "unix") {
					if tag == have {
						return true
					}
				}
				return false
			})
		}
		if strings.HasPrefix(line, "package ") {
			break
		}
	}
	return true
}

// TestSince: a fault is planted anew when its file changed, when its entry did, or when it is new; not when its line alone is another.
func TestSince(t *testing.T) {
	a, b, c := Fault{Name: "a", File: "a.go"}, Fault{Name: "b", File: "b.go"}, Fault{Name: "c", File: "c.go"}
	moved, other, added := a, b, Fault{Name: "d", File: "d.go", Line: 9}
	moved.Line, other.New = 7, "otherwise"
	got := since([]Fault{moved, other, c, added}, []Fault{a, b, c}, []string{"c.go"})
	if len(got) != 3 || got[0] != other || got[1] != c || got[2] != added {
		t.Errorf("%+v", got)
	}
}

// TestPage: docs/FAULTS.md shows an entry of the tables, as it is there, and says how many there are.
func TestPage(t *testing.T) {
	all, err := Read(".")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(root + "/docs/FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := slices.ContainsFunc(all, func(f Fault) bool {
		for _, cell := range []string{"`" + f.Name + "`", f.What, "`" + f.File + "`", "`" + f.Test + "` in `" + strings.TrimPrefix(f.Package, "./") + "`"} {
			if !strings.Contains(string(page), "| "+cell+" |") {
				return false
			}
		}
		return true
	})
	if !shown {
		t.Error("docs/FAULTS.md shows a fault that is in no table")
	}
	if len(all) <= 1000 {
		t.Errorf("there are %d faults, and docs/FAULTS.md says more than a thousand", len(all))
	}
}

const good = `# a comment
fault: one-thing
what: it breaks
file: a/b.go
old: <<<
	x := 1 // fault: not a member here
>>>
new: <<<
>>>
test: ./a TestX/sub -tags=python

fault: another
what: it breaks too
file: a/b.go
old: y: 2
new: y: 3
test: ./a TestY
`

func TestParse(t *testing.T) {
	got, err := Parse("area.txt", good)
	if err != nil {
		t.Fatal(err)
	}
	want := []Fault{
		{Area: "area", Line: 2, Name: "one-thing", What: "it breaks", File: "a/b.go", Old: "\tx := 1 // fault: not a member here", New: "",
			Package: "./a", Test: "TestX/sub", Tags: "python"},
		{Area: "area", Line: 12, Name: "another", What: "it breaks too", File: "a/b.go", Old: "y: 2", New: "y: 3", Package: "./a", Test: "TestY"},
	}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for _, c := range []struct{ old, new, says string }{
		{"what: it breaks\n", "", `area.txt:2: fault one-thing has no "what"`},
		{"test: ./a TestY", "test: ./a", "area.txt:12: test:"},
		{"test: ./a TestY", "test: a TestY", "area.txt:12: test:"},
		{"fault: another", "fault: An other", "is not a short-kebab-name"},
		{"fault: one-thing\n", "", "area.txt:2: an entry starts with"},
		{"what: it breaks too", "why: it breaks too", `area.txt:13: unknown member "why"`},
		{"what: it breaks too", "what: a\nwhat: b", `area.txt:14: "what" stands twice`},
		{"new: y: 3", "new: y: 2", "the same"},
		{"file: a/b.go\nold: y", "file: ../b.go\nold: y", "a path in the repository"},
		{">>>\ntest: ./a TestX", "test: ./a TestX", "no end"},
		{"what: it breaks too", "nothing here", "area.txt:13: want"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if text == good {
			t.Fatalf("%q does not occur", c.old)
		}
		_, err := Parse("area.txt", text)
		if e := (*Error)(nil); !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q for %q: got the error %v, want one that says %q", c.new, c.old, err, c.says)
		}
	}
}

func TestPlant(t *testing.T) {
	f := Fault{Name: "one-thing", File: "a.go", Old: "x := 1", New: "x := 2"}
	if got, err := f.Plant("a\nx := 1\n"); got != "a\nx := 2\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, text := range []string{"", "x := 1; x := 1"} {
		if _, err := f.Plant(text); err == nil {
			t.Errorf("%q: planted", text)
		}
	}
}

// TestWithoutEngines: where there is no engine, the faults of its tests are left out, by name, and no others.
func TestWithoutEngines(t *testing.T) {
	a, b, c := Fault{Area: "x", Name: "a"}, Fault{Area: "x", Name: "b", Tags: "engines"}, Fault{Area: "x", Name: "c", Tags: "python"}
	some, without := withoutEngines([]Fault{a, b, c})
	if len(some) != 2 || some[0] != a || some[1] != c || len(without) != 1 || without[0] != "x/b" {
		t.Errorf("%+v, without %v", some, without)
	}
}

// TestShare: the n shares are the whole, each fault in one of them, and what is no share is refused.
func TestShare(t *testing.T) {
	all := []Fault{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}, {Name: "e"}}
	seen := map[string]int{}
	for _, text := range []string{"0/3", "1/3", "2/3"} {
		some, err := share(all, text)
		if err != nil || len(some) == 0 {
			t.Fatal(text, some, err)
		}
		for _, f := range some {
			seen[f.Name]++
		}
	}
	for _, f := range all {
		if seen[f.Name] != 1 {
			t.Errorf("%s is in %d shares", f.Name, seen[f.Name])
		}
	}
	for _, text := range []string{"", "0/1"} {
		if some, err := share(all, text); err != nil || len(some) != len(all) {
			t.Errorf("%q: %v, %v", text, some, err)
		}
	}
	for _, text := range []string{"3/3", "-1/3", "1", "a/b", "0/0"} {
		if _, err := share(all, text); err == nil {
			t.Errorf("%q is taken for a share", text)
		}
	}
}
