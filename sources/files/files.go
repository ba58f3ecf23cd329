// Package files is the source of tables that are folders of Parquet files: file:///dir. It is also how one machine keeps a table that is larger than its memory.
//
// A table is a folder, a file or a pattern below the source's directory. Files are decoded a few row groups at a time in limited child processes ([ingest.Pieces]); the server
// itself parses none. Rows have places: by the order of the files' names, then by their order in the file.
//
// A part is a directory of segments, each a dataset of about a million rows, whose columns are mapped only while they are read and compared with their checksums whenever they
// are (docs/format/segments.md). What is in memory is bounded by the rows of a segment, whatever the table has.
package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/sources"
)

const (
	// DefaultSegmentRows is how many rows a segment has, unless they are wide. What a pass holds in memory, and what it costs to open a segment, are small at this size.
	DefaultSegmentRows = 1 << 20
	// segmentBytes bounds a segment's columns: of rows that are wide a segment has fewer.
	segmentBytes = 256 << 20
	// minSegmentRows keeps the number of files small where rows are very wide.
	minSegmentRows = 1 << 12
)

// Options say where a source's files are.
type Options struct {
	Dir    string        // of the tables
	Parts  string        // where parts are kept: a directory of the server's own, made where it is not there
	Argv   []string      // command of the decoding child process, whose main function calls ingest.ChildMain
	Limits ingest.Limits // of a child

	// ReadOnly is for who opens parts and changes nothing: no directory is made, and no table is read.
	ReadOnly bool

	Scratch     string // where tables are decoded while they are divided; "": among the parts
	SegmentRows int64  // 0: DefaultSegmentRows
}

// Parse reads file:///dir and its options (?parts=/directory) into o.
func Parse(location string, o Options) (Options, error) {
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return o, fmt.Errorf("files: %q is no address: %w", location, err)
	case u.Scheme != "file" || u.Host != "" || !filepath.IsAbs(u.Path):
		return o, fmt.Errorf("files: %q: a folder of Parquet files is file:///directory, with three slashes", location)
	case u.Fragment != "" || u.User != nil:
		return o, fmt.Errorf("files: %q has more than a directory and options; write # in a name as %%23", location)
	}
	o.Dir = filepath.Clean(u.Path)
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return o, fmt.Errorf("files: the options of %q: %w", location, err)
	}
	for name, values := range query {
		if name != "parts" || len(values) != 1 || !filepath.IsAbs(values[0]) {
			return o, fmt.Errorf("files: %q: the one option is parts=/directory, where the parts of holdouts are kept", location)
		}
		o.Parts = filepath.Clean(values[0])
	}
	return o, nil
}

// Source is a directory of tables. It implements [sources.Source] and [sources.Placed].
type Source struct {
	o       Options
	root    *os.Root
	working *working
}

var (
	_ sources.Source = (*Source)(nil)
	_ sources.Placed = (*Source)(nil)
)

// New opens a source. Its directory must be there. Of its directory of scratch it removes what a process has left that was killed while it read a table.
func New(o Options) (*Source, error) {
	if o.SegmentRows == 0 {
		o.SegmentRows = DefaultSegmentRows
	}
	if o.Scratch == "" {
		o.Scratch = o.Parts
	}
	root, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("files: the directory of the tables: %w", err)
	}
	if o.ReadOnly {
		return &Source{o: o, root: root}, nil
	}
	if err := os.MkdirAll(o.Parts, 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("files: the directory of the parts: %w", err), root.Close())
	}
	w, err := beginWork(o.Scratch)
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return &Source{o: o, root: root, working: w}, nil
}

// Kind implements [sources.Source].
func (*Source) Kind() string { return "file" }

// RowsHavePlaces implements [sources.Placed].
func (*Source) RowsHavePlaces() bool { return true }

// Ready implements [sources.Source]: both directories can be listed.
func (s *Source) Ready(context.Context) error {
	for _, dir := range []string{s.o.Dir, s.o.Parts} {
		d, err := os.Open(dir)
		if err == nil {
			if _, err = d.Stat(); err == nil {
				_, err = d.ReadDir(1)
			}
			err = errors.Join(ignoreEOF(err), d.Close())
		}
		if err != nil {
			return &sources.Error{Kind: sources.Unavailable, Detail: "the directory of the files does not answer", Err: err}
		}
	}
	return nil
}

// Close implements [sources.Source].
func (s *Source) Close() error { return errors.Join(s.working.end(), s.root.Close()) }

// partName is what names of parts, and of scratch directories, look like.
var partName = regexp.MustCompile(`^[A-Za-z0-9_]{1,60}$`)

func (s *Source) partDir(name string) (string, error) { return partDir(s.o.Parts, name) }

func partDir(parts, name string) (string, error) {
	if !partName.MatchString(name) {
		return "", fmt.Errorf("files: %q is no name of a part", name)
	}
	return filepath.Join(parts, name), nil
}

// Parts implements [sources.Source]. What a server left that was killed while it read a table is listed too.
func (s *Source) Parts(context.Context) ([]string, error) {
	entries, err := os.ReadDir(s.o.Parts)
	if err != nil {
		return nil, unavailable(err)
	}
	names := []string{}
	for _, e := range entries {
		if e.IsDir() && partName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// Drop implements [sources.Source].
func (s *Source) Drop(_ context.Context, name string) error {
	dir, err := s.partDir(name)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return unavailable(err)
	}
	return nil
}

// unavailable says in a fixed text what kept a file from being read or written.
func unavailable(err error) error {
	if e := (*sources.Error)(nil); errors.As(err, &e) {
		return err
	}
	if full(err) {
		return &sources.Error{Kind: sources.Unavailable, Err: err,
			Detail: "the disk on which the parts of this source are kept is full: it needs room for the decoded table, twice while it is divided; make room and try again"}
	}
	return &sources.Error{Kind: sources.Unavailable, Detail: "the files of this source cannot be read or written now; try again", Err: err}
}

// full reports an error of a disk that has no room.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// changed says that files are not what was registered.
func changed(detail string, err error) error {
	return &sources.Error{Kind: sources.Changed, Detail: detail, Err: err}
}

func refused(column, format string, args ...any) error {
	return &sources.Error{Kind: sources.Refused, Column: column, Detail: fmt.Sprintf(format, args...)}
}

// decoding makes an error of one of decoding a file.
func decoding(file string, err error) error {
	e := (*ingest.Error)(nil)
	switch {
	case !errors.As(err, &e):
		return err
	case e.Kind == ingest.Unavailable:
		return unavailable(err)
	case e.Kind == ingest.Internal:
		return &sources.Error{Kind: sources.Unavailable, Detail: "a file of the table could not be decoded here; the server's log says why", Err: err}
	}
	detail := strings.TrimSuffix(e.Detail, ".")
	if e.Column != "" {
		detail = fmt.Sprintf("column %q: %s", e.Column, detail)
	}
	return &sources.Error{Kind: sources.Refused, Column: e.Column, Detail: fmt.Sprintf("file %q: %s", file, detail), Err: err}
}

func notFound(table string, err error) error {
	detail := fmt.Sprintf("the source has no table %q: name a folder, a file or a pattern such as flights/2024-*.parquet, below the source's directory", table)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		detail = fmt.Sprintf("the table %q cannot be opened: it must lie below the source's directory, links included", table)
	}
	return &sources.Error{Kind: sources.NotFound, Detail: detail, Err: err}
}
