package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/sources"
)

// maxFiles bounds the files of a table: what is kept of each, some hundred bytes, is in the memory of whoever reads the table.
const maxFiles = 1 << 16

// tableFiles is what a snapshot keeps of a table's files ([sources.Snapshot.Private]).
type tableFiles struct {
	Files []tableFile `json:"files"` // in the order of their names
}

type tableFile struct {
	Name   string  `json:"name"` // below the source's directory, with slashes
	Bytes  int64   `json:"bytes"`
	SHA256 string  `json:"sha256"`
	Groups []int64 `json:"groups"` // rows of each row group
}

// names are the files of a table, in order.
func (s *Source) names(table string) ([]string, error) {
	name := strings.TrimSuffix(table, "/")
	if !fs.ValidPath(name) {
		return nil, notFound(table, fmt.Errorf("%q is no path below the directory", table))
	}
	info, err := s.root.Stat(name)
	var found []string
	switch {
	case err == nil && info.IsDir():
		if found, err = s.inFolder(table, name); err != nil {
			return nil, err
		}
	case err == nil:
		found = []string{name}
	case errors.Is(err, fs.ErrNotExist) && strings.ContainsAny(name, "*?["):
		if found, err = fs.Glob(s.root.FS(), name); err != nil {
			return nil, notFound(table, err)
		}
		found = slices.DeleteFunc(found, hidden)
	default:
		return nil, notFound(table, err)
	}
	switch {
	case len(found) == 0:
		return nil, notFound(table, fs.ErrNotExist)
	case len(found) > maxFiles:
		return nil, refused("", "the table %q has %d files, the limit is %d; write larger ones", table, len(found), maxFiles)
	}
	for _, name := range found {
		if !utf8.ValidString(name) {
			return nil, refused("", "the name %q of a file is not UTF-8; rename it", name)
		}
	}
	slices.Sort(found)
	return found, nil
}

// inFolder lists the Parquet files of a folder, not those of folders in it.
func (s *Source) inFolder(table, name string) ([]string, error) {
	entries, err := fs.ReadDir(s.root.FS(), name)
	if err != nil {
		return nil, notFound(table, err)
	}
	var found []string
	folders := 0
	for _, e := range entries {
		switch {
		case hidden(e.Name()):
		case e.IsDir():
			folders++
		case strings.EqualFold(path.Ext(e.Name()), ".parquet"):
			found = append(found, path.Join(name, e.Name()))
		}
	}
	if len(found) == 0 {
		if folders > 0 {
			return nil, refused("", "the folder %q has folders and no Parquet files; name the files by a pattern such as %s (columns that are in folders' names only, like year=2024, are not read)",
				table, path.Join(name, "*", "*.parquet"))
		}
		return nil, refused("", "the folder %q has no files that end in .parquet", table)
	}
	return found, nil
}

// hidden reports files that programs leave beside tables: _SUCCESS, _metadata, .part.parquet.crc.
func hidden(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// open opens a file below the directory; links that lead out of it are no files.
func (s *Source) open(name string) (*os.File, int64, error) {
	info, err := s.root.Stat(name) // before it is opened, for that would wait for the writer of a pipe
	if err != nil {
		return nil, 0, notFound(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, refused("", "%q is no file", name)
	}
	f, err := s.root.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return nil, 0, refused("", "the server may not read the file %q", name)
		}
		return nil, 0, unavailable(err)
	}
	return f, info.Size(), nil
}

func (s *Source) pieces(f *os.File) ingest.Pieces {
	return ingest.Pieces{Argv: s.o.Argv, File: f, Limits: s.o.Limits}
}

// digest is the SHA-256 of a file's bytes, which are not looked at.
func digest(ctx context.Context, f *os.File, size int64) (string, error) {
	h := sha256.New()
	buffer := make([]byte, 1<<20)
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := f.ReadAt(buffer[:min(int64(len(buffer)), size-at)], at)
		h.Write(buffer[:n])
		at += int64(n)
		if err != nil && (err != io.EOF || at < size) {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Look implements [sources.Source]. The schemas of all files must agree: the same columns of the same types, in any order. A column that any file turns out to have in a form
// that cannot be read is skipped in all.
func (s *Source) Look(ctx context.Context, table string) (sources.Snapshot, error) {
	names, err := s.names(table)
	if err != nil {
		return sources.Snapshot{}, err
	}
	snapshot := sources.Snapshot{Table: table, Skipped: []sources.Skipped{}}
	var all tableFiles
	var first ingest.Survey
	for i, name := range names {
		file, survey, err := s.survey(ctx, name)
		if err != nil {
			return snapshot, err
		}
		if i == 0 {
			first = survey
		} else if err := agree(names[0], name, first, survey); err != nil {
			return snapshot, err
		}
		for _, n := range file.Groups {
			snapshot.Rows += n
		}
		if snapshot.Rows > dataset.MaxRows {
			return snapshot, refused("", "the table %q has more than %d rows, which is the limit", table, int64(dataset.MaxRows))
		}
		all.Files = append(all.Files, file)
	}
	if snapshot.Rows == 0 {
		return snapshot, refused("", "the table %q has no rows", table)
	}
	snapshot.Schema.Fields = slices.Clone(first.Fields)
	for _, c := range first.Skipped {
		snapshot.Skipped = append(snapshot.Skipped, sources.Skipped(c))
	}
	if snapshot.Private, err = json.Marshal(all); err != nil {
		return snapshot, err
	}
	return snapshot, s.scan(ctx, &snapshot)
}

// survey reads what can be known of a file without its values.
func (s *Source) survey(ctx context.Context, name string) (tableFile, ingest.Survey, error) {
	f, size, err := s.open(name)
	if err != nil {
		return tableFile{}, ingest.Survey{}, err
	}
	defer f.Close() // read only
	survey, err := s.pieces(f).Survey(ctx)
	if err != nil {
		return tableFile{}, survey, decoding(name, err)
	}
	sum, err := digest(ctx, f, size)
	if err != nil {
		return tableFile{}, survey, unavailable(err)
	}
	return tableFile{Name: name, Bytes: size, SHA256: sum, Groups: survey.Groups}, survey, nil
}

// agree compares the columns of two files.
func agree(name, other string, a, b ingest.Survey) error {
	type column struct{ source, reason string }
	columns := func(s ingest.Survey) map[string]column {
		m := make(map[string]column, len(s.Fields))
		for _, f := range s.Fields {
			m[f.Name] = column{source: f.Source}
		}
		for _, c := range s.Skipped {
			m[c.Name] = column{reason: c.Reason}
		}
		return m
	}
	of, others := columns(a), columns(b)
	const mend = "; the files of a table need the same columns of the same types"
	say := func(c column) string {
		if c.source == "" {
			return "cannot be read (" + c.reason + ")"
		}
		return "is " + c.source
	}
	for _, f := range a.Fields {
		switch c, ok := others[f.Name]; {
		case !ok:
			return refused(f.Name, "file %q has no column %q, which %q has%s", other, f.Name, name, mend)
		case c.source != f.Source:
			return refused(f.Name, "column %q %s in file %q and %s in %q%s", f.Name, say(c), other, say(of[f.Name]), name, mend)
		}
	}
	for _, f := range b.Fields {
		if c, ok := of[f.Name]; !ok {
			return refused(f.Name, "file %q has a column %q, which %q has not%s", other, f.Name, name, mend)
		} else if c.source == "" {
			return refused(f.Name, "column %q %s in file %q and %s in %q%s", f.Name, say(others[f.Name]), other, say(c), name, mend)
		}
	}
	return nil
}

// Join is the table of the rows of several tables, each of one file, which have the same columns of the same kinds: table names their files and no other. It has the first one's columns, and no checksum; first are the places of each
// one's first row.
func (s *Source) Join(table string, of ...sources.Snapshot) (joined sources.Snapshot, first []int64, err error) {
	type from struct {
		table int
		tableFile
	}
	var all []from
	joined = sources.Snapshot{Table: table, Schema: of[0].Schema, Skipped: []sources.Skipped{}}
	for i, part := range of {
		var kept tableFiles
		if err := json.Unmarshal(part.Private, &kept); err != nil {
			return joined, nil, fmt.Errorf("files: the snapshot of %q cannot be read: %w", part.Table, err)
		}
		if len(kept.Files) != 1 {
			return joined, nil, fmt.Errorf("files: the table %q has %d files, and is to be one of several", part.Table, len(kept.Files))
		}
		all = append(all, from{i, kept.Files[0]})
		joined.Skipped = append(joined.Skipped, part.Skipped...)
	}
	slices.SortFunc(all, func(a, b from) int { return strings.Compare(a.Name, b.Name) })
	var files tableFiles
	first = make([]int64, len(of))
	for _, f := range all {
		first[f.table] = joined.Rows
		for _, n := range f.Groups {
			joined.Rows += n
		}
		files.Files = append(files.Files, f.tableFile)
	}
	if joined.Rows > dataset.MaxRows {
		return joined, nil, refused("", "the table %q has more than %d rows, which is the limit", table, int64(dataset.MaxRows))
	}
	joined.Private, err = json.Marshal(files)
	return joined, first, err
}

// scan reads all values once: it finds columns of which no kind was known before, and makes the checksum. When a column changes its kind it begins again, for the checksum is of
// all columns as they will be.
func (s *Source) scan(ctx context.Context, snapshot *sources.Snapshot) error {
	for {
		if len(snapshot.Schema.Fields) == 0 {
			detail := "it has none"
			if len(snapshot.Skipped) > 0 {
				detail = fmt.Sprintf("%q, for example, was skipped: %s", snapshot.Skipped[0].Name, snapshot.Skipped[0].Reason)
			}
			return refused("", "no column of the table %q can be used (%s)", snapshot.Table, detail)
		}
		t, err := s.table(*snapshot)
		if err != nil {
			return err
		}
		var sum ingest.Checksum
		wide, skipped := map[string]bool{}, map[string]string{}
		err = t.scan(ctx, func(found ingest.Scan) {
			sum = sum.Plus(found.Checksum)
			for _, name := range found.Wide {
				wide[name] = true
			}
			for _, c := range found.Skipped {
				if skipped[c.Name] == "" {
					skipped[c.Name] = c.Reason
				}
			}
		})
		if err != nil {
			return err
		}
		if len(wide)+len(skipped) == 0 {
			snapshot.Checksum = fmt.Sprintf("%016x%016x", sum[0], sum[1])
			return nil
		}
		fields := snapshot.Schema.Fields[:0]
		for _, f := range snapshot.Schema.Fields {
			if reason, ok := skipped[f.Name]; ok {
				snapshot.Skipped = append(snapshot.Skipped, sources.Skipped{Name: f.Name, Reason: reason})
				continue
			}
			if wide[f.Name] {
				f.Kind = dataset.Text
			}
			fields = append(fields, f)
		}
		snapshot.Schema.Fields = fields
	}
}
