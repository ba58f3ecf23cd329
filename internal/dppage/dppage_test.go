// Package dppage holds the test of docs/DP.md, the map of dp/: topic, code, statement, source, test.
package dppage

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../.."
	page = root + "/docs/DP.md"
)

// names are what a package declares: its exported functions, types, methods ("Type.Method"), constants and variables, and its tests.
type names struct {
	declared map[string]bool
	due      []string // must be on the page
	tests    map[string]bool
	draws    bool // something draws from a stream
	example  bool // there is a runnable one
}

// declarations reads a package. Due are exported functions and types, methods that draw from a stream, and in dp/account, where methods are what a
// guarantee says, all of them.
func declarations(t *testing.T, dir string) names {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", dir, err)
	}
	n := names{declared: map[string]bool{}, tests: map[string]bool{}}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		test := strings.HasSuffix(file, "_test.go")
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := receiver(d) + d.Name.Name
				switch {
				case test:
					n.tests[name] = true
					n.example = n.example || strings.HasPrefix(name, "Example")
				case exported(name):
					n.declared[name] = true
					n.draws = n.draws || draws(d)
					if !strings.Contains(name, ".") || draws(d) || filepath.Base(dir) == "account" && !slices.Contains([]string{"String", "Error"}, d.Name.Name) {
						n.due = append(n.due, name)
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if !test && spec.Name.IsExported() {
							n.declared[spec.Name.Name] = true
							n.due = append(n.due, spec.Name.Name)
						}
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if !test && name.IsExported() {
								n.declared[name.Name] = true
							}
						}
					}
				}
			}
		}
	}
	return n
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if index, ok := of.(*ast.IndexExpr); ok {
		of = index.X
	}
	return of.(*ast.Ident).Name + "."
}

func exported(name string) bool {
	for _, part := range strings.Split(name, ".") {
		if !ast.IsExported(part) {
			return false
		}
	}
	return true
}

// draws reports whether a function has a parameter that is a stream of noise.
func draws(d *ast.FuncDecl) bool {
	for _, p := range d.Type.Params.List {
		star, ok := p.Type.(*ast.StarExpr)
		if !ok {
			continue
		}
		switch of := star.X.(type) {
		case *ast.Ident:
			if of.Name == "Stream" {
				return true
			}
		case *ast.SelectorExpr:
			if of.Sel.Name == "Stream" {
				return true
			}
		}
	}
	return false
}

var quoted = regexp.MustCompile("`([a-z]+)\\.([A-Za-z0-9_.]+)`")

// TestPage keeps docs/DP.md in step with the code: what a reader of the field looks for is on the page, and what the page names is there, also its tests. A
// mechanism that is added and not on the page, a function that is renamed, and a test that is taken away are noticed. A package with a mechanism has an
// example, which runs.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(root + "/dp/*")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string]names{}
	for _, dir := range dirs {
		packages[filepath.Base(dir)] = declarations(t, dir)
	}
	named := map[string]bool{}
	for _, match := range quoted.FindAllStringSubmatch(string(text), -1) {
		of, ok := packages[match[1]]
		if !ok {
			t.Errorf("the page names %s, and dp/%s is not there", match[0], match[1])
			continue
		}
		if !of.declared[match[2]] && !of.tests[match[2]] {
			t.Errorf("the page names %s, which is not there", match[0])
		}
		named[match[1]+"."+match[2]] = true
	}
	for name, of := range packages {
		if strings.Count(string(text), "`dp/"+name+"`") == 0 {
			t.Errorf("dp/%s is not on the page", name)
		}
		for _, due := range of.due {
			if !named[name+"."+due] {
				t.Errorf("`%s.%s` is not on the page", name, due)
			}
		}
		if of.draws && !of.example {
			t.Errorf("dp/%s has a mechanism and no runnable example", name)
		}
	}
	topics(t, string(text))
}

// topics holds each row of a table with a column of tests to having one that is there: a topic without a test is a claim.
func topics(t *testing.T, text string) {
	t.Helper()
	rows := 0
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| topic") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if len(cells) != 5 {
			t.Errorf("a row of %d cells: %s", len(cells), line)
			continue
		}
		rows++
		if !regexp.MustCompile("`[a-z]+\\.(Test|Example)").MatchString(cells[4]) {
			t.Errorf("a topic without a test: %s", line)
		}
		for i, cell := range cells {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("cell %d is empty: %s", i, line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("%d topics on the page", rows)
	}
}
