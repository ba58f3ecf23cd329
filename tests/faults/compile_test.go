package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestPlantedCodeCompiles type-checks each package with each of its faults. Planting takes most of an hour, so runs of every day plant few of the
// faults: without this an entry whose new text no longer fits the code around it would be found by chance, in somebody else's run.
func TestPlantedCodeCompiles(t *testing.T) {
	all, err := Read(".")
	if err != nil {
		t.Fatal(err)
	}
	byPackage := map[string][]Fault{} // by the folder of the changed file
	for _, f := range all {
		if filepath.Ext(f.File) == ".go" {
			byPackage[path.Dir(f.File)] = append(byPackage[path.Dir(f.File)], f)
		}
	}
	if len(byPackage) == 0 {
		t.Fatal("the tables have no fault in Go code")
	}
	packages, exports := listed(t, byPackage)
	for folder, faults := range byPackage {
		p, ok := packages[folder]
		if !ok {
			t.Errorf("%s is no package of this module", folder)
			continue
		}
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			p.mustCompile(t, faults, exports)
		})
	}
}

// listedPackage is what go list says of a package.
type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	Module                  *struct{ Dir string }
}

// listed are the packages of these folders, and where the compiler's export data of all that they import is.
func listed(t *testing.T, folders map[string][]Fault) (packages map[string]listedPackage, exports map[string]string) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-tags", "nomsgpack", "-json=ImportPath,Dir,Export,GoFiles,Module"}
	for folder := range folders {
		args = append(args, "./"+folder)
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir = root
	var said bytes.Buffer
	list.Stderr = &said
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, said.Bytes())
	}
	packages, exports = map[string]listedPackage{}, map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, exports
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil {
			if folder, err := filepath.Rel(p.Module.Dir, p.Dir); err == nil && folders[filepath.ToSlash(folder)] != nil && !strings.Contains(p.Dir, "@") {
				packages[filepath.ToSlash(folder)] = p
			}
		}
	}
}

func (p listedPackage) mustCompile(t *testing.T, faults []Fault, exports map[string]string) {
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) })
	texts, files := map[string]string{}, map[string]*ast.File{}
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = string(text)
		if files[name], err = parser.ParseFile(set, name, text, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	compile := func(changed string, file *ast.File) error {
		all := []*ast.File{}
		for _, name := range p.GoFiles {
			if name == changed {
				all = append(all, file)
			} else {
				all = append(all, files[name])
			}
		}
		_, err := (&types.Config{Importer: imports, Sizes: types.SizesFor("gc", runtime.GOARCH)}).Check(p.ImportPath, set, all, nil)
		return err
	}
	if err := compile("", nil); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	for _, f := range faults {
		name := path.Base(f.File)
		if !slices.Contains(p.GoFiles, name) { // of another system, or for a build tag: TestPlanted has the last word
			continue
		}
		planted, err := f.Plant(texts[name])
		if err != nil {
			continue // TestTablesFit says so
		}
		file, err := parser.ParseFile(set, name, planted, parser.SkipObjectResolution)
		if err == nil {
			err = compile(name, file)
		}
		if err != nil {
			t.Error(fmt.Errorf("%s.txt:%d: fault %s: with its new text the code does not compile: %w", f.Area, f.Line, f.Name, err))
		}
	}
}
