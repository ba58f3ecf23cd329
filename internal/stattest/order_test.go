package stattest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestDrawsInOrder: no range over a map draws from a source of random numbers, or from a property, that was there before it. A map is walked in
// another order each time, so that each element would get other numbers, in spite of the seed.
func TestDrawsInOrder(t *testing.T) {
	m := read(t)
	ranges := 0
	for _, p := range m.own {
		for _, found := range m.draws(t, p) {
			t.Errorf("%s: range over a map draws from %s, which is declared outside: walk slices.Sorted(maps.Keys(…))", m.files.Position(found.Pos()), found.Name)
		}
		ranges += p.ranges
	}
	if ranges < 50 {
		t.Errorf("only %d ranges over maps were seen", ranges)
	}
}

// TestDrawsAreSeen: each kind of it is found, and what draws from a source of its own, or in order, is not.
func TestDrawsAreSeen(t *testing.T) {
	m := read(t)
	const head = `package example
import ("maps"; "math/rand/v2"; "slices"; "testing"; "pgregory.net/rapid")
var table = map[string]int{"a": 1, "b": 2}
func draw(*rand.Rand) float64 { return 0 }
var _ = slices.Sorted(maps.Keys(table))
var _ *testing.T
var _ *rapid.T
`
	for body, want := range map[string]int{
		`func f(r *rand.Rand) { for range table { r.Float64() } }`:                                                   1,
		`func f(r *rand.Rand) { for range maps.Keys(table) { draw(r) } }`:                                            1,
		`func f(r *rand.Rand, t *testing.T) { for k := range table { t.Run(k, func(t *testing.T) { draw(r) }) } }`:   1,
		`func f(s rand.Source) { for range table { draw(rand.New(s)) } }`:                                            1,
		`func f(r *rand.Rand) { for _, g := range map[int]func(){1: func() { r.Float64() }, 2: func() {}} { g() } }`: 1,
		`func f() { for _, g := range map[int]func(*rand.Rand){1: func(r *rand.Rand) { r.Float64() }} { _ = g } }`:   0,
		`type g struct{ rng *rand.Rand }; func (g g) f() { for range table { draw(g.rng) } }`:                        1,
		`type g struct{ rng *rand.Rand }; func (g g) h() {}; func (g g) f() { for range table { g.h() } }`:           1,
		`func f(t *rapid.T) { for range table { rapid.Bool().Draw(t, "") } }`:                                        1,
		`func f() { for range table { rand.Float64() } }`:                                                            1,
		`func f(r *rand.Rand) { for range slices.Sorted(maps.Keys(table)) { draw(r) } }`:                             0,
		`func f(r *rand.Rand) { for range 3 { draw(r) } }`:                                                           0,
		`func f() { for _, seed := range table { draw(rand.New(rand.NewPCG(uint64(seed), 0))) } }`:                   0,
		`func f(r *rand.Rand) { for k := range table { _ = k }; draw(r) }`:                                           0,
	} {
		file, err := parser.ParseFile(m.files, "", head+body, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := m.draws(t, &ownPackage{path: "example", asts: []*ast.File{file}}); len(found) != want {
			t.Errorf("%s: %d found, want %d", body, len(found), want)
		}
	}
}

// module is the source of all packages that the module's own and their tests are made of, with types as far as they need no function's body.
type module struct {
	files *token.FileSet
	dirs  map[string]listedPackage
	known map[string]*types.Package
	own   []*ownPackage
}

type listedPackage struct {
	Dir, ImportPath, ForTest                     string
	Module                                       *struct{ Main bool }
	GoFiles, CgoFiles, TestGoFiles, XTestGoFiles []string
}

func (p listedPackage) own() bool { return p.Module != nil && p.Module.Main }

// ownPackage is a package of the module with its tests, or the package of its outer tests.
type ownPackage struct {
	path   string
	asts   []*ast.File
	ranges int // over maps
}

// read is the module, read once for all tests.
func read(t *testing.T) *module {
	t.Helper()
	once.Do(func() { loaded = load(t) })
	if loaded == nil {
		t.Fatal("the module could not be read")
	}
	return loaded
}

var (
	once   sync.Once
	loaded *module
)

func load(t *testing.T) *module {
	t.Helper()
	m := &module{files: token.NewFileSet(), dirs: map[string]listedPackage{}, known: map[string]*types.Package{"unsafe": types.Unsafe}}
	cmd := exec.Command("go", "list", "-deps", "-test", "-tags", "python,browser,faults", "-json=Dir,ImportPath,ForTest,Module,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Dir = "../.."
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		m.dirs[p.ImportPath] = p
		if p.own() {
			m.own = append(m.own,
				&ownPackage{path: p.ImportPath, asts: m.parse(t, p.Dir, slices.Concat(p.GoFiles, p.TestGoFiles), 0)},
				&ownPackage{path: p.ImportPath + "_test", asts: m.parse(t, p.Dir, p.XTestGoFiles, 0)})
		}
	}
	return m
}

func (m *module) parse(t *testing.T, dir string, names []string, mode parser.Mode) (all []*ast.File) {
	t.Helper()
	for _, name := range names {
		file, err := parser.ParseFile(m.files, filepath.Join(dir, name), nil, mode|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file)
	}
	return all
}

// typed are the outside packages whose types the rule needs.
var typed = []string{"cmp", "iter", "maps", "math/rand/v2", "pgregory.net/rapid", "slices"}

// Import is a package's types, from its source without the bodies of its functions: of the module's own packages and of those in typed. Any other
// has no names, which saves two thirds of the time: a map that it returns is no map here.
func (m *module) Import(path string) (*types.Package, error) {
	if p, ok := m.known[path]; ok {
		return p, nil
	}
	p := types.NewPackage(path, path[strings.LastIndexByte(path, '/')+1:])
	p.MarkComplete()
	m.known[path] = p
	at, ok := m.dirs[path]
	if !ok || !at.own() && !slices.Contains(typed, path) {
		return p, nil
	}
	var files []*ast.File
	for _, name := range slices.Concat(at.GoFiles, at.CgoFiles) {
		if file, err := parser.ParseFile(m.files, filepath.Join(at.Dir, name), nil, parser.SkipObjectResolution); err == nil {
			files = append(files, file)
		}
	}
	config := types.Config{Importer: m, IgnoreFuncBodies: true, FakeImportC: true, Error: func(error) {}}
	m.known[path], _ = config.Check(path, m.files, files, nil)
	return m.known[path], nil
}

// draws are the sources that a range over a map in the package draws from although they were there before it: one for each range.
func (m *module) draws(t *testing.T, p *ownPackage) (found []*ast.Ident) {
	t.Helper()
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: m, FakeImportC: true, Error: func(error) {}}
	config.Check(p.path, m.files, p.asts, info)
	for _, file := range p.asts {
		ast.Inspect(file, func(n ast.Node) bool {
			r, ok := n.(*ast.RangeStmt)
			if !ok || !unordered(info, r.X) {
				return true
			}
			p.ranges++
			if at := outerSource(info, r); at != nil {
				found = append(found, at)
			}
			return true
		})
	}
	return found
}

// unordered reports whether an expression is walked in another order each time: a map, or what package maps makes of one.
func unordered(info *types.Info, x ast.Expr) bool {
	if typ := info.TypeOf(x); typ != nil {
		if _, ok := typ.Underlying().(*types.Map); ok {
			return true
		}
	}
	if call, ok := ast.Unparen(x).(*ast.CallExpr); ok {
		if f, ok := call.Fun.(*ast.SelectorExpr); ok {
			if of := info.Uses[f.Sel]; of != nil && of.Pkg() != nil && of.Pkg().Path() == "maps" {
				return true
			}
		}
	}
	return false
}

// outerSource is a name in the body of a range, or in a function of the map where that is a literal, whose value draws, or has a field that does, and is
// older than the range. A property's methods draw nothing, and are not meant: it must be handed on.
func outerSource(info *types.Info, r *ast.RangeStmt) *ast.Ident {
	found := sourceIn(info, r, r.Body)
	if literal, ok := ast.Unparen(r.X).(*ast.CompositeLit); ok {
		ast.Inspect(literal, func(n ast.Node) bool {
			if f, ok := n.(*ast.FuncLit); ok && found == nil {
				found = sourceIn(info, r, f.Body)
			}
			return found == nil
		})
	}
	return found
}

func sourceIn(info *types.Info, r *ast.RangeStmt, body ast.Node) (found *ast.Ident) {
	ast.Inspect(body, func(n ast.Node) bool {
		if method, ok := n.(*ast.SelectorExpr); ok && isNamed(info.TypeOf(method.X), "pgregory.net/rapid.T") {
			return false
		}
		name, ok := n.(*ast.Ident)
		if !ok || found != nil {
			return found == nil
		}
		switch used := info.Uses[name].(type) {
		case *types.Var:
			if !used.IsField() && (used.Pos() < r.Pos() || used.Pos() > r.End()) && source(used.Type(), 2) {
				found = name
			}
		case *types.Func:
			if pkg := used.Pkg(); pkg != nil && pkg.Path() == "math/rand/v2" && used.Signature().Recv() == nil && !strings.HasPrefix(used.Name(), "New") {
				found = name
			}
		}
		return true
	})
	return found
}

// source reports whether values of a type draw random numbers, or have a field, at most deep levels down, that does.
func source(typ types.Type, deep int) bool {
	if isNamed(typ, "math/rand/v2.Rand", "math/rand/v2.Source", "math/rand/v2.PCG", "math/rand/v2.ChaCha8", "pgregory.net/rapid.T") {
		return true
	}
	if pointer, ok := types.Unalias(typ).(*types.Pointer); ok {
		typ = pointer.Elem()
	}
	if fields, ok := typ.Underlying().(*types.Struct); ok && deep > 0 {
		for field := range fields.Fields() {
			if source(field.Type(), deep-1) {
				return true
			}
		}
	}
	return false
}

// isNamed reports whether a type is one of those with the names, or a pointer to it.
func isNamed(typ types.Type, names ...string) bool {
	if typ == nil {
		return false
	}
	if pointer, ok := types.Unalias(typ).(*types.Pointer); ok {
		typ = pointer.Elem()
	}
	named, ok := types.Unalias(typ).(*types.Named)
	return ok && named.Obj().Pkg() != nil && slices.Contains(names, named.Obj().Pkg().Path()+"."+named.Obj().Name())
}
