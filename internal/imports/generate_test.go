package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGenerateMakesAll: every test that says of a stale file "make generate" is one that scripts/generate.sh runs, in the test's package, or its file is one of the
// dashboard's, which npm builds there. It notices a file that the command leaves stale.
func TestGenerateMakesAll(t *testing.T) {
	const root = "../.."
	script, err := os.ReadFile(root + "/scripts/generate.sh")
	if err != nil {
		t.Fatal(err)
	}
	made := map[string][]string{}
	for _, line := range regexp.MustCompile(`(?m)^make (\./\S+) '?([\w|]+)'?$`).FindAllSubmatch(script, -1) {
		made[string(line[1])] = strings.Split(string(line[2]), "|")
	}
	npm := strings.Contains(string(script), "npm")
	elsewhere := map[string]bool{"TestBuildIsOfItsSources": npm, "TestDashboardBuild": npm, "TestGenerateMakesAll": true}
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry != nil && entry.IsDir() && (entry.Name() == "node_modules" || len(entry.Name()) > 2 && strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(f.Name.Name, "Test") || !says(f, "make generate") || elsewhere[f.Name.Name] {
				continue
			}
			found++
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			named := false
			for _, name := range made["./"+filepath.ToSlash(dir)] {
				named = named || name == f.Name.Name
			}
			if !named {
				t.Errorf("%s: %s says that the command mends it, and scripts/generate.sh does not run it", path, f.Name.Name)
			}
		}
		return nil
	})
	if err != nil || found < 10 {
		t.Errorf("%d tests of generated files, %v", found, err)
	}
}

// says reports whether a text of a function has these words.
func says(f *ast.FuncDecl, words string) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Kind == token.STRING {
			found = found || strings.Contains(text.Value, words)
		}
		return true
	})
	return found
}
