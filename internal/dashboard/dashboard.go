// Package dashboard carries the files of the web application: what web/ builds, as it is committed in dist. Building the program needs no
// node; a test says when dist is not what web/ builds. internal/api serves them.
package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Policy is the Content-Security-Policy of the application's files: it loads what its own server serves, runs and styles nothing inline, and
// is in nobody's frame. Forms are sent by scripts, so none has a target.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Pages are the addresses that the application draws by itself, all from one file. A segment that begins with a colon stands for any.
var Pages = []string{"/", "/signin", "/holdouts", "/holdouts/:id", "/holdouts/:id/ask", "/holdouts/:id/report", "/plan", "/upload", "/experiments", "/keys", "/more"}

// index is the file behind all Pages.
const index = "index.html"

//go:embed all:dist
var dist embed.FS

// A File is one reply. Its names have no digests in them, so that a build of the same sources is the same files: browsers keep a file and ask by
// its tag whether it is still the one.
type File struct {
	Media string // its Content-Type
	Body  []byte
	Gzip  []byte // the body compressed; nil where that is no shorter
	Tag   string // the entity tag of Body; that of Gzip is another
}

// ZippedTag is the entity tag of the compressed form.
func (f File) ZippedTag() string { return strings.TrimSuffix(f.Tag, `"`) + `-gzip"` }

// media are the types of what a build has. Another ending is an error: no type would be guessed well.
var media = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".woff2": "font/woff2", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// Load returns the page that all of Pages show, and the other files by their addresses. It fails only where the build has a file that it should
// not have, which a test notices.
func Load() (page File, others map[string]File, err error) {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		return page, nil, fmt.Errorf("dashboard: %w", err)
	}
	return load(built)
}

func load(built fs.FS) (page File, others map[string]File, err error) {
	others = map[string]File{}
	err = fs.WalkDir(built, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := fs.ReadFile(built, name)
		if err != nil {
			return err
		}
		file, err := made(name, body)
		if name == index {
			page = file
			return err
		}
		others["/"+name] = file
		return err
	})
	if err == nil && page.Body == nil {
		err = fmt.Errorf("there is no %s", index)
	}
	if err != nil {
		return page, nil, fmt.Errorf("dashboard: %w", err)
	}
	return page, others, nil
}

func made(name string, body []byte) (File, error) {
	f := File{Media: media[path.Ext(name)], Body: body}
	if f.Media == "" {
		return f, fmt.Errorf("the type of %s is not known", name)
	}
	digest := sha256.Sum256(body)
	f.Tag = `"` + hex.EncodeToString(digest[:16]) + `"`
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return f, err
	}
	if _, err := w.Write(body); err != nil {
		return f, err
	}
	if err := w.Close(); err != nil {
		return f, err
	}
	if b.Len() < len(body)*9/10 { // fonts are compressed by themselves
		f.Gzip = b.Bytes()
	}
	return f, nil
}
