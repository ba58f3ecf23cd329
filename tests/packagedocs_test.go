package tests

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// given are the names that the Go of a package's comment takes for granted, as parameters. Every such block has a line here.
var given = map[string]string{
	"client": "ctx context.Context, key string, file io.Reader",
	"session": "ctx context.Context, s *session.Session, query *queries.Query, plan *queries.Plan, begun, state thresholdout.State, " +
		"most int64, training session.PartSums, holdout session.Source, reference session.Reference",
}

// goLine is a line that is Go and no command, table or formula.
var goLine = regexp.MustCompile(`(?m)^\s*[\w, ]+ :?= \w+(\.\w+)*\(.*\)|^func |^package `)

// TestPackageDocsCompile: the Go that the comments of packages show compiles against the packages as they are. It notices a call on a
// front page whose arguments or results have changed.
func TestPackageDocsCompile(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != root && (name == "node_modules" || name == "testdata" || strings.HasPrefix(name, ".")) {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil || file.Doc == nil {
			return err
		}
		in, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		for _, block := range new(comment.Parser).Parse(file.Doc.Text()).Content {
			code, ok := block.(*comment.Code)
			if !ok || !goLine.MatchString(code.Text) {
				continue
			}
			names, ok := given[filepath.ToSlash(in)]
			if !ok {
				t.Errorf("%s shows Go; the list given has no line for it:\n%s", path, code.Text)
				continue
			}
			found = append(found, filepath.ToSlash(in))
			written := filepath.Join(t.TempDir(), "shown.go")
			if err := os.WriteFile(written, shown(t, names, code.Text), 0o600); err != nil {
				return err
			}
			run := exec.CommandContext(t.Context(), "go", "build", "-tags", "nomsgpack", written)
			run.Dir = root
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%s shows Go that does not compile: %v\n%s\n%s", path, err, out, code.Text)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != len(given) {
		t.Errorf("Go is shown by %v, and the list given has %d lines", found, len(given))
	}
}

// shown is a Go file whose function has a block as its body, with what it defines used.
func shown(t *testing.T, names, block string) []byte {
	t.Helper()
	body := strings.ReplaceAll(block, "{ … }", "{ }")
	head := "package shown\n\nfunc shown(" + names + ") {\n"
	file, err := parser.ParseFile(token.NewFileSet(), "", head+body+"\n}\n", 0)
	if err != nil {
		t.Fatalf("%v:\n%s", err, block)
	}
	used, imports := map[string]bool{}, map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				if id, ok := e.(*ast.Ident); ok && n.Tok == token.DEFINE && id.Name != "_" && !used[id.Name] {
					used[id.Name] = true
					body += "\n_ = " + id.Name
				}
			}
		case *ast.SelectorExpr:
			if id, ok := n.X.(*ast.Ident); ok && packages[id.Name] != "" {
				imports[packages[id.Name]] = true
			}
		}
		return true
	})
	var text strings.Builder
	text.WriteString("package shown\n\n")
	for path := range imports {
		fmt.Fprintf(&text, "import %q\n", path)
	}
	return []byte(text.String() + strings.TrimPrefix(head, "package shown\n") + body + "\n}\n")
}

// packages are those that blocks, and the list given, name.
var packages = map[string]string{
	"context": "context", "io": "io",
	"client":       "github.com/holdoutd/holdoutd/client",
	"queries":      "github.com/holdoutd/holdoutd/queries",
	"session":      "github.com/holdoutd/holdoutd/session",
	"thresholdout": "github.com/holdoutd/holdoutd/thresholdout",
}
