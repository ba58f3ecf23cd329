// Command concurrent tells the packages of this module whose tests run under the race detector from those whose tests do not:
//
//	go run ./scripts/concurrent        # packages that do
//	go run ./scripts/concurrent -not   # the others
//
// A package is concurrent where its code or its tests start a goroutine (a go statement, a call of a method Go, a test that is Parallel), or
// serve HTTP; where its code calls a package of the module that does, whose goroutines may come back to what it shares; and where its
// tests call such a package that is made for tests. In any other package all that runs, runs on the test's own goroutine, but for what
// another package starts, whose own tests are under the detector: here it would only take ten times as long. Nobody keeps a list.
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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

const module = "github.com/holdoutd/holdoutd/"

func main() {
	log.SetFlags(0)
	not := flag.Bool("not", false, "print the packages that are not concurrent")
	flag.Parse()
	all, err := list()
	if err != nil {
		log.Fatal("concurrent: ", err)
	}
	racing := concurrent(all)
	for _, p := range all {
		if racing[p.ImportPath] != *not {
			fmt.Println(p.ImportPath)
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
	found := false
	for _, name := range slices.Concat(names...) {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return false, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
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
	}
	return found, nil
}
