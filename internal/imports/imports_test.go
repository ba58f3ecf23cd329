// Package imports holds the test of who may import whom.
package imports

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/holdoutd/holdoutd/"

// inner are the packages at the bottom of the house, from the ground up: each may import itself, what its list
// names and what those import, and nothing else of this module. A package that is not named here is free.
var inner = map[string][]string{
	"dp":           {},
	"dataset":      {},
	"thresholdout": {"dp"},
	"rowfn":        {},
	"queries":      {"dataset", "rowfn", "internal/nearest", "internal/strictjson"},
	"session":      {"dp", "dataset", "thresholdout", "rowfn", "queries", "internal/nearest", "internal/strictjson"},
	"holdout":      {"dp", "dataset", "thresholdout", "rowfn", "queries", "session", "internal/nearest", "internal/strictjson", "internal/turns", "internal/machine", "internal/tracing", "internal/oidc"},
	"featuresel":   {"dp", "dataset", "thresholdout", "rowfn", "queries", "session", "internal/nearest", "internal/strictjson"},
	"client":       {},
	"experiments":  {"dp", "dataset", "thresholdout", "rowfn", "queries", "session", "featuresel", "client", "internal/figure", "internal/nearest", "internal/printed", "internal/strictjson"},
}

// only names the packages in which an outside module, or one that is dangerous, may be imported (by code, not by tests).
var only = map[string][]string{
	"github.com/gin-gonic/gin":         {"internal/api"},
	"github.com/danielgtaylor/huma/v2": {"internal/api"},
	"github.com/modelcontextprotocol":  {"internal/api"},
	"modernc.org/sqlite":               {"holdout/ledger/sqlite"},
	"filippo.io/age":                   {"cmd/holdoutd"},
	"github.com/go-jose/go-jose/v4":    {"internal/oidc"},
	"github.com/jackc/pgx/v5":          {"holdout/ledger/postgres"},
	"github.com/pressly/goose/v3":      {"holdout/ledger/sqlite", "holdout/ledger/postgres"},
	"database/sql":                     {"holdout/ledger/sqlite", "holdout/ledger/postgres"},
	"github.com/xitongsys/parquet-go":  {"dataset/ingest"},
	"cel.dev/cel-go":                   {"queries/expr", "queries/internal/celoracle"},
	"github.com/spf13/cobra":           {"cmd/holdoutd"},
	"github.com/yuin/goldmark":         {"internal/site"},
	module + "internal/seed":           {"internal/stattest"}, // it makes secrets known
}

type listed struct {
	ImportPath   string
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
}

func TestImportRules(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		room, _, _ := strings.Cut(name, "/")
		for _, dep := range p.Deps {
			if !strings.HasPrefix(dep, module) {
				continue
			}
			if allowed, ok := inner[room]; ok && !within(strings.TrimPrefix(dep, module), append(allowed, room)) {
				t.Errorf("%s must not depend on %s: %s/ may depend on %v only", name, dep, room, allowed)
			}
		}
		for _, imp := range p.Imports {
			for outside, rooms := range only {
				if (imp == outside || strings.HasPrefix(imp, outside+"/")) && !within(name, rooms) {
					t.Errorf("%s must not import %s: only %v may", name, imp, rooms)
				}
			}
		}
	}
}

// TestInnermost keeps what the rooms above cannot say: packages that must not know of their siblings.
func TestInnermost(t *testing.T) {
	never := map[string][]string{
		"queries":                   {"dataset/ingest", "queries/engine"},
		"queries/expr":              {"queries/kernel", "queries/engine"},
		"queries/kernel":            {"queries", "queries/expr", "queries/engine", "queries/model"}, // row functions alone: another engine needs no language
		"queries/engine":            {"queries", "queries/expr", "queries/model", "queries/engine/remote"},
		"queries/engine/remote":     {"queries", "queries/expr", "queries/model"},
		"queries/model":             {"queries", "queries/expr", "dataset"},
		"dataset":                   {"dataset/ingest"},
		"holdout/ledger":            {"holdout", "queries", "thresholdout", "dataset", "holdout/ledger/sqlite", "holdout/ledger/postgres"}, // a contract knows no implementation
		"holdout/ledger/sqlite":     {"holdout", "queries", "thresholdout", "dataset", "holdout/ledger/postgres"},
		"holdout/ledger/postgres":   {"holdout", "queries", "thresholdout", "dataset", "holdout/ledger/sqlite"},
		"holdout/ledger/ledgertest": {"holdout", "queries", "thresholdout", "dataset", "holdout/ledger/sqlite", "holdout/ledger/postgres"},
		"thresholdout/bounds":       {"thresholdout", "thresholdout/compare"},
		"thresholdout/moments":      {"thresholdout", "thresholdout/compare"},
		"thresholdout":              {"thresholdout/compare"},
		"internal/stattest":         {"holdout", "internal/api"},
	}
	for _, p := range list(t) {
		for _, other := range never[strings.TrimPrefix(p.ImportPath, module)] {
			for _, dep := range p.Deps {
				if dep == module+other {
					t.Errorf("%s must not depend on %s", p.ImportPath, dep)
				}
			}
		}
	}
}

// TestPropertiesHaveASeed: a package with properties imports what sets their seed. It notices one whose verdict would be another in each run.
func TestPropertiesHaveASeed(t *testing.T) {
	with := 0
	for _, p := range list(t) {
		tests := append(p.TestImports, p.XTestImports...)
		if p.ImportPath == module+"internal/stattest" || !slices.Contains(tests, "pgregory.net/rapid") {
			continue
		}
		with++
		if !slices.Contains(tests, module+"internal/stattest") {
			t.Errorf("%s: tests import rapid, and not internal/stattest, so that their seed is another each time", p.ImportPath)
		}
	}
	if with < 10 {
		t.Errorf("only %d packages have properties", with)
	}
}

// TestExperimentsApart: an experiment imports no other one, only what they share; and what they share knows of no experiment.
func TestExperimentsApart(t *testing.T) {
	const room = "experiments/"
	shared := map[string][]string{ // what each may import of the others
		"run":         {},
		"run/runtest": {"run"},
		"data":        {},
		"tables":      {"data"},
		"analysts":    {"run", "seeds"},
		"attacks":     {"analysts", "seeds"},
		"seeds":       {},
		"selection":   {"seeds"},
	}
	experiments := 0
	for _, p := range list(t) {
		name, ok := strings.CutPrefix(p.ImportPath, module+room)
		if !ok {
			continue
		}
		allowed, isShared := shared[name]
		if !isShared {
			experiments++
			allowed = []string{"run", "data", "tables", "analysts", "attacks", "seeds", "selection"}
		}
		for _, imp := range p.Imports {
			if other, ok := strings.CutPrefix(imp, module+room); ok && !slices.Contains(allowed, other) {
				t.Errorf("%s must not import %s: of experiments/ only %v", p.ImportPath, imp, allowed)
			}
		}
	}
	if experiments < 10 {
		t.Errorf("%d experiments; there were ten", experiments)
	}
}

// heavy are modules that once came along unused and took seconds to compile and megabytes of the binary: JSON in other ways, Arrow's
// arithmetic, MessagePack.
var heavy = []string{"github.com/apache/arrow-go", "github.com/goccy/go-json", "github.com/bytedance/sonic", "github.com/json-iterator", "github.com/ugorji/go",
	"google.golang.org/grpc"}

// TestWeight keeps heavy modules out of the command as make build builds it, and what no server needs out of it as make demo does.
func TestWeight(t *testing.T) {
	for tags, without := range map[string][]string{
		"nomsgpack":                      heavy,
		"nomsgpack,nofigures,nopostgres": append([]string{"gonum.org/v1/plot", module + "internal/figure", module + "experiments/run", "github.com/jackc/pgx/v5"}, heavy...),
	} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tags, module+"cmd/holdoutd").Output()
		if err != nil {
			t.Fatal(err)
		}
		deps := strings.Fields(string(out))
		if len(deps) < 100 {
			t.Fatalf("-tags %s: the command depends on %d packages", tags, len(deps))
		}
		for _, dep := range deps {
			if within(dep, without) {
				t.Errorf("-tags %s: cmd/holdoutd depends on %s", tags, dep)
			}
		}
	}
}

const architecture = "../../docs/ARCHITECTURE.md"

var (
	tableRow = regexp.MustCompile("(?m)^\\| (`[^|]*/`) \\|[^|]*\\|(?: ([^|]*) \\|)?$")
	quoted   = regexp.MustCompile("`([^`]*)`")
)

// TestArchitecture holds the page's table of the house against the rules: a room whose third column is not its rule, or a package that
// no row names, turns it red.
func TestArchitecture(t *testing.T) {
	page, err := os.ReadFile(architecture)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{} // third column by folder
	for _, row := range tableRow.FindAllStringSubmatch(string(page), -1) {
		for _, folder := range quoted.FindAllStringSubmatch(row[1], -1) {
			said[strings.TrimSuffix(folder[1], "/")] = row[2]
		}
	}
	for room, allowed := range inner {
		var names []string
		for _, name := range quoted.FindAllStringSubmatch(said[room], -1) {
			names = append(names, name[1])
		}
		if !slices.Equal(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(allowed))) {
			t.Errorf("%s says that %s/ may import %q; the rule is %v", architecture, room, said[room], allowed)
		}
	}
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		if name+"/" == module {
			name = "."
		}
		if parent := path.Dir(name); said[name] == "" && strings.HasSuffix(parent, "/internal") {
			name = parent
		}
		if _, ok := said[name]; !ok {
			t.Errorf("%s has no row for %s/", architecture, name)
		}
	}
}

// within reports whether a package lies in one of the rooms.
func within(name string, rooms []string) bool {
	for _, room := range rooms {
		if name == room || strings.HasPrefix(name, room+"/") {
			return true
		}
	}
	return false
}

func list(t *testing.T) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports,Deps,TestImports,XTestImports", module+"...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	if len(packages) < len(inner) {
		t.Fatalf("go list named %d packages, fewer than the %d rooms that the rules are about", len(packages), len(inner))
	}
	return packages
}
