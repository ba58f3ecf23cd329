package dashboard

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const root = "../../"

// sources is what the application is built from; web/stamp.mjs has the same list.
var sources = []string{"web/src", "web/public", "web/index.html", "web/package.json", "web/package-lock.json", "web/svelte.config.js", "web/tsconfig.json", "web/vite.config.ts", "internal/dashboard/dist"}

// TestBuildIsOfItsSources holds the digests that the build recorded against the files that are there. It notices a change of web/ that was not
// built, and a built file that was changed by hand or taken from another build. That the sources build these very bytes is seen by building
// them (tests/browser_test.go).
func TestBuildIsOfItsSources(t *testing.T) {
	recorded, err := os.ReadFile("build.sum")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, source := range sources {
		err := fs.WalkDir(os.DirFS(root), source, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(name, ".test.ts") {
				return err
			}
			body, err := os.ReadFile(root + name)
			digest := sha256.Sum256(body)
			lines = append(lines, hex.EncodeToString(digest[:])+"  "+name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	want := strings.Split(strings.TrimSuffix(string(recorded), "\n"), "\n")
	for _, line := range want {
		if !slices.Contains(lines, line) {
			t.Errorf("%s is not what it was when the dashboard was built: make generate", line[66:])
		}
	}
	for _, line := range lines {
		if name := line[66:]; !slices.ContainsFunc(want, func(w string) bool { return strings.HasSuffix(w, "  "+name) }) {
			t.Errorf("%s was not there when the dashboard was built: make generate", name)
		}
	}
}

// TestPagesAreTheRoutes: the server knows the addresses that the application draws, so that each can be opened anew or sent to somebody.
func TestPagesAreTheRoutes(t *testing.T) {
	routes, err := os.ReadFile(root + "web/src/routes.ts")
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, m := range regexp.MustCompile(`\{ path: "([^"]+)"`).FindAllStringSubmatch(string(routes), -1) {
		drawn = append(drawn, m[1])
	}
	known := slices.Clone(Pages)
	slices.Sort(drawn)
	slices.Sort(known)
	if !slices.Equal(drawn, known) {
		t.Errorf("web/src/routes.ts draws %q, the server knows %q", drawn, known)
	}
}

// TestUnknownFilesAreRefused: a file whose type nobody said, and a build without its page.
func TestUnknownFilesAreRefused(t *testing.T) {
	page := &fstest.MapFile{Data: []byte("<!doctype html>")}
	if _, files, err := load(fstest.MapFS{"index.html": page, "assets/a.js": {Data: []byte("1")}}); err != nil || len(files) != 1 {
		t.Errorf("%v %v", files, err)
	}
	for _, built := range []fstest.MapFS{{"index.html": page, "assets/a.wasm": {}}, {"assets/a.js": {}}} {
		if _, _, err := load(built); err == nil {
			t.Errorf("%v is served", built)
		}
	}
}
