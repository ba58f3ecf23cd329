// Command concurrent tells which tests of this module run under the race detector:
//
//	go run ./scripts/concurrent         # packages, all of whose tests do
//	go run ./scripts/concurrent -some   # packages, some of whose tests do: each with the pattern of their names
//
// A package is concurrent where its code or its tests start a goroutine (a go statement, a call of a method Go, a test that is Parallel), or
// serve HTTP; where its code calls a package of the module that does, whose goroutines may come back to what it shares; and where its
// tests call such a package that is made for tests. In any other package all that runs, runs on the test's own goroutine, but for what
// another package starts, whose own tests are under the detector: here it would only take ten times as long.
//
// Of the packages in large, most tests ask one thing at a time, and there are hundreds. Under the detector run those that start goroutines themselves, and
// all of a file that says //holdoutd:race. Nobody keeps a list of tests.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/holdoutd/holdoutd/"

// large are the packages of which only some tests run under the detector, and why the others need not.
var large = map[string]string{
	"holdout":      "most tests ask one question after another",
	"internal/api": "most tests send one request after another",
	"session":      "it starts no goroutine; what it calls, queries/engine, is under the detector",
}

// outside are packages whose tests run programs that are built without the detector: it would see nothing.
var outside = []string{"cmd/holdoutd", "tests", "tests/faults"}

// directive is the line with which a file of a large package says that all of its tests run under the detector.
const directive = "//holdoutd:race"

func main() {
	log.SetFlags(0)
	some := flag.Bool("some", false, "print the packages some of whose tests run under the detector, with the pattern of their names")
	flag.Parse()
	all, err := list()
	if err != nil {
		log.Fatal("concurrent: ", err)
	}
	racing := concurrent(all)
	for _, p := range all {
		if slices.Contains(outside, p.name()) {
			continue
		}
		if large[p.name()] == "" {
			if racing[p.ImportPath] && !*some {
				fmt.Println(p.ImportPath)
			}
			continue
		}
		names, err := p.racingTests()
		if err != nil {
			log.Fatal("concurrent: ", err)
		}
		if *some && len(names) > 0 {
			fmt.Printf("%s ^(%s)$\n", p.ImportPath, strings.Join(names, "|"))
		}
	}
}

// listed is a package as go list shows it. Its files are those of every build tag.
type listed struct {
	Dir, ImportPath                    string
	Imports, TestImports, XTestImports []string
	GoFiles, IgnoredGoFiles            []string
	TestGoFiles, XTestGoFiles          []string
	code, tests                        bool // starts goroutines
}

func (p *listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// racingTests are the tests of a large package that run under the detector, by their names. Files that only a build tag admits do not count.
func (p *listed) racingTests() ([]string, error) {
	names := map[string]bool{}
	for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		all := slices.ContainsFunc(parsed.Comments, func(c *ast.CommentGroup) bool {
			return slices.ContainsFunc(c.List, func(line *ast.Comment) bool { return line.Text == directive })
		})
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" && (all || startsOne(f)) {
				names[f.Name.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// list reads the module's packages.
func list() (all []*listed, err error) {
	cmd := exec.Command("go", "list", "-tags", "python,faults", "-json=Dir,ImportPath,Imports,TestImports,XTestImports,GoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles", module+"...")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(out); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.code, err = starts(p.Dir, p.GoFiles, p.IgnoredGoFiles); err != nil {
			return nil, err
		}
		if p.tests, err = starts(p.Dir, p.TestGoFiles, p.XTestGoFiles); err != nil {
			return nil, err
		}
		p.code = p.code || slices.Contains(p.Imports, "net/http")
		all = append(all, p)
	}
	return all, cmd.Wait()
}

// concurrent are the packages whose tests run under the race detector.
func concurrent(all []*listed) map[string]bool {
	starting, harness, racing := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, p := range all {
		starting[p.ImportPath] = p.code
		harness[p.ImportPath] = p.code && slices.Contains(p.Imports, "testing")
	}
	for _, p := range all {
		racing[p.ImportPath] = p.code || p.tests ||
			slices.ContainsFunc(p.Imports, func(other string) bool { return starting[other] }) ||
			slices.ContainsFunc(slices.Concat(p.TestImports, p.XTestImports), func(other string) bool { return harness[other] })
	}
	return racing
}

// starts reports whether one of the files starts a goroutine by itself, or lets a test run beside others.
func starts(dir string, names ...[]string) (bool, error) {
	for _, name := range slices.Concat(names...) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		if startsOne(file) {
			return true, nil
		}
	}
	return false, nil
}

func startsOne(part ast.Node) (found bool) {
	ast.Inspect(part, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok {
				switch f.Sel.Name {
				case "Go", "Parallel", "RunParallel", "TryGo":
					found = true
				}
			}
		}
		return !found
	})
	return found
}
