package holdout

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// A table can be there already, in a directory of the server's operator: a source of the engine EngineFiles. (One of a database is in tables.go.) Who makes a holdout of it names it, and sends no body. Its files are read once, in the limited child process, as an
// upload is, and stay where they are: the holdout has columns of its own.

// EngineFiles is the engine of a source that is a directory of Parquet files. Tables are taken from it, and nothing is written into it.
const EngineFiles = "file"

// openFolder opens such a source. It must be apart from the data directory, which has files with held-out rows.
func (s *Service) openFolder(name, directory string) error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("holdout: the source %s: "+format, append([]any{name}, args...)...)
	}
	root, err := resolved(directory)
	if err != nil {
		return wrong("%w", err)
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return wrong("%s is no directory", directory)
	}
	data, err := resolved(s.path())
	if err != nil {
		return wrong("%w", err)
	}
	if inside(root, data) || inside(data, root) {
		return wrong("%s and the data directory %s must not be one in the other: held-out rows are in the data directory", root, data)
	}
	s.folders[name] = root
	return nil
}

// resolved is a path from the root, without links.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// inside reports whether a resolved path is a directory, or in it.
func inside(path, directory string) bool {
	rest, err := filepath.Rel(directory, path)
	return err == nil && filepath.IsLocal(rest)
}

// find finds the files of the table that the settings name; nothing was sent. Their digest is of their names, sizes and times: a table that was written anew is another request.
func (c *creation) find(up Upload) (digests map[string][sha256.Size]byte, err error) {
	if _, _, err := up(); !errors.Is(err, io.EOF) {
		return nil, invalid("path", "path: the table is there already; send no body beside it")
	}
	if c.settings.Split == splitGiven {
		return nil, invalid("split", "split=given needs the parts training and holdout in the body, and no path")
	}
	name, table, _ := strings.Cut(c.settings.Path, "/")
	if from := c.service.tableSources[name]; from != nil {
		digest, err := c.findIn(from, table)
		return map[string][sha256.Size]byte{partTable: digest}, err
	}
	if table == "" {
		table = "." // the directory itself
	}
	root, known := c.service.folders[name]
	switch {
	case c.service.sources[name] != nil:
		return nil, invalid("path", "path: held-out rows are put into %s, and no table is taken from it", name)
	case !known:
		return nil, invalid("path", "path: this server takes no tables from a source of the name %q; its operator names them with --source NAME=file:///DIRECTORY, or clickhouse://… or trino://… without a loader", name)
	case !filepath.IsLocal(table):
		return nil, invalid("path", "path: a table is named as %s/PATH, without a way out of that directory", name)
	}
	at, err := filepath.EvalSymlinks(filepath.Join(root, table))
	if err == nil && !inside(at, root) {
		return nil, invalid("path", "path: %q is a link that leads out of the directory", c.settings.Path)
	}
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(at)
	}
	if err != nil {
		return nil, invalid("path", "path: there is no table %q", c.settings.Path)
	}
	files := []ingest.PartFile{{Path: at}}
	if info.IsDir() {
		if files, err = ingest.PartFiles(at); err != nil {
			return nil, invalid("path", "path: %s", c.hidden(err.Error()))
		}
	}
	h := sha256.New()
	for i := range files {
		f := &files[i]
		real, err := filepath.EvalSymlinks(f.Path)
		if err == nil && !inside(real, root) {
			return nil, invalid("path", "path: %s is a link that leads out of the directory", c.hidden(f.Path))
		}
		if err == nil {
			info, err = os.Stat(real)
		}
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is no file")
		}
		if err != nil {
			return nil, invalid("path", "path: %s cannot be read: %s", c.hidden(f.Path), c.hidden(err.Error()))
		}
		f.Size, f.Modified = info.Size(), info.ModTime().UnixNano()
		fmt.Fprintf(h, "%q %d %d\n", f.Path, f.Size, f.Modified)
		if f.Path, err = filepath.Rel(root, real); err != nil {
			return nil, err // both are absolute
		}
	}
	c.files = files
	return map[string][sha256.Size]byte{partTable: [sha256.Size]byte(h.Sum(nil))}, nil
}

// hidden is a text with the source's name where it has the path of its directory.
func (c *creation) hidden(text string) string {
	name, _, _ := strings.Cut(c.settings.Path, "/")
	return strings.ReplaceAll(text, c.service.folders[name], name)
}

// decodeFiles decodes what find has found.
func (c *creation) decodeFiles(dir string) (ingest.Result, *dataset.Table, error) {
	name, _, _ := strings.Cut(c.settings.Path, "/")
	return ingest.RunFiles(c.ctx, c.service.decoder, c.service.folders[name], c.files, dir, ingest.Limits{MemoryBytes: c.service.decodeMemory})
}
