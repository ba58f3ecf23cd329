// Command concurrent tells which tests of this module run under the race detector:
//
//	go run ./scripts/concurrent         # packages, all of whose tests do
//	go run ./scripts/concurrent -some   # a pattern of names of tests, and the packages that they are in
//	go run ./scripts/concurrent -quiet  # packages whose tests do in make test-all alone
//
// All tests do of a package whose code starts a goroutine (a go statement, a call of a method Go) or serves HTTP, but for those in large. Of any
// other package those do that start one themselves, or are Parallel, and all of a file that says //holdoutd:race. The rest runs on the test's own
// goroutine, and under the detector would only take ten times as long. Nobody keeps a list of tests; but a package that hands functions to one
// that starts goroutines must have a test under the detector, or a reason in quiet.
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

// large are packages that start goroutines, or serve HTTP, of which only some tests run under the detector, and why the others need not.
var large = map[string]string{
	"dataset/lineage":              "most tests make one sketch after another and compare it",
	"dataset/ingest":               "the decoder starts threads, each for a moment, and decodes on one",
	"holdout":                      "most tests ask one question after another",
	"internal/api":                 "most tests send one request after another",
	"experiments/featureselection": "of HTTP it uses the client",
}

// quiet are packages, or families of them, that call one which starts goroutines, without a test under the detector in make test, and why that is
// enough. make test-all has all their tests under it.
var quiet = map[string]string{
	"dataset/ingest":              "its goroutines wait for the decoder, a process of its own, or are threads of that one for a moment",
	"dataset/ingest/ingesttest":   "it makes a test's program the decoder",
	"queries":                     "tests/statements' TestEveryTypeAtOnce has the engine's goroutines evaluate every type of query",
	"queries/internal/celoracle":  "tests compare with it",
	"queries/internal/randomtree": "tests draw from it",
	"holdout/release":             "it reads a table in one goroutine",
	"session":                     "holdout, which calls it, is under the detector",
	"session/workload":            "it asks one question after another of a session",
	"internal/gate":               "it asks one question after another of a server",
	"experiments/":                "pieces begin from seeds of their own; that a continued run has the rows of a whole one is a test of each",
}

// slow are tests that start goroutines, or are beside such, and do not run under the detector, where they take a minute and more; and what does.
var slow = map[string]string{
	"TestTwins":                   "TestManyAgents and TestBusy send requests at once",
	"TestHistory":                 "TestFollow reads a history while it grows",
	"TestSizesAreKnownBeforehand": "it asks one question after another",
}

// outside are packages whose tests run programs that are built without the detector: it would see nothing.
var outside = []string{"cmd/holdoutd", "tests", "tests/client", "tests/browser", "tests/program", "tests/faults"}

// directive is the line with which a file of a large package says that all of its tests run under the detector.
const directive = "//holdoutd:race"

func main() {
	log.SetFlags(0)
	some := flag.Bool("some", false, "print a pattern of names of tests that run under the detector, and their packages")
	asQuiet := flag.Bool("quiet", false, "print the packages whose tests run under the detector in make test-all alone")
	flag.Parse()
	all, err := list()
	if err != nil {
		log.Fatal("concurrent: ", err)
	}
	if *asQuiet {
		for _, p := range all {
			if reasonOf(p.name()) != "" {
				fmt.Println(p.ImportPath)
			}
		}
		return
	}
	var names, packages []string
	for _, p := range all {
		switch whole, tests, err := p.racing(); {
		case err != nil:
			log.Fatal("concurrent: ", err)
		case whole && !*some:
			fmt.Println(p.ImportPath)
		case len(tests) > 0:
			names, packages = append(names, tests...), append(packages, p.ImportPath)
		}
	}
	if *some {
		slices.Sort(names)
		fmt.Printf("^(%s)$ %s\n", strings.Join(slices.Compact(names), "|"), strings.Join(packages, " "))
	}
}

// reasonOf is the name in quiet under which a package stands, itself or by its family; "" if it does not.
func reasonOf(name string) string {
	family, _, _ := strings.Cut(name, "/")
	for _, as := range []string{name, family + "/"} {
		if quiet[as] != "" {
			return as
		}
	}
	return ""
}

// listed is a package as go list shows it. Its files are those of every build tag.
type listed struct {
	Dir, ImportPath                    string
	Imports, TestImports, XTestImports []string
	GoFiles, IgnoredGoFiles            []string
	TestGoFiles, XTestGoFiles          []string
	starting                           bool // its code starts goroutines, or serves HTTP
}

func (p *listed) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// racing tells whether all tests of a package run under the detector, and if not, which do.
func (p *listed) racing() (all bool, some []string, err error) {
	if slices.Contains(outside, p.name()) {
		return false, nil, nil
	}
	if p.starting && large[p.name()] == "" {
		return true, nil, nil
	}
	some, err = p.racingTests()
	return false, some, err
}

// racingTests are the tests of a package that start goroutines, by themselves or, unless it is large, by a function of its test files, and all of
// files that say so. Files that only a build tag admits do not count.
func (p *listed) racingTests() ([]string, error) {
	names := map[string]bool{}
	functions, starting := map[string]*ast.FuncDecl{}, map[string]bool{}
	for _, file := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		all := slices.ContainsFunc(parsed.Comments, func(c *ast.CommentGroup) bool {
			return slices.ContainsFunc(c.List, func(line *ast.Comment) bool { return line.Text == directive })
		})
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			functions[f.Name.Name] = f
			starting[f.Name.Name] = starting[f.Name.Name] || startsOne(f)
			if all {
				names[f.Name.Name] = true
			}
		}
	}
	for more := true; more; {
		more = false
		for name, f := range functions {
			if !starting[name] && large[p.name()] == "" && calls(f, starting) {
				starting[name], more = true, true
			}
		}
	}
	for name, starts := range starting {
		names[name] = names[name] || starts
	}
	maps.DeleteFunc(names, func(name string, racing bool) bool {
		return !racing || slow[name] != "" || functions[name].Recv != nil || !strings.HasPrefix(name, "Test") || name == "TestMain"
	})
	return slices.Sorted(maps.Keys(names)), nil
}

// calls reports whether a function calls one of those, by its name.
func calls(f *ast.FuncDecl, those map[string]bool) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if name, ok := call.Fun.(*ast.Ident); ok && those[name.Name] {
				found = true
			}
		}
		return !found
	})
	return found
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
		if p.starting, err = starts(p.Dir, p.GoFiles, p.IgnoredGoFiles); err != nil {
			return nil, err
		}
		p.starting = p.starting || slices.Contains(p.Imports, "net/http")
		all = append(all, p)
	}
	return all, cmd.Wait()
}

// starts reports whether one of the files starts a goroutine by itself.
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
