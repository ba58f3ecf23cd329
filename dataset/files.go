package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
)

// Files is a dataset on disk of which columns are mapped only while they are read: for tables that are larger than memory, of many such pieces. It is safe for concurrent use.
type Files struct {
	dir         string
	manifest    *manifest
	fingerprint [sha256.Size]byte
	index       map[string]int
}

// OpenFiles reads the manifest of the dataset in dir, and compares the size of its columns file, as [Fingerprint] does. No column is read.
func OpenFiles(dir string) (*Files, error) {
	if !littleEndian {
		return nil, errBigEndian
	}
	m, fingerprint, err := readManifest(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	f := &Files{dir: dir, manifest: m, fingerprint: fingerprint, index: make(map[string]int, len(m.Columns))}
	for i := range m.Columns {
		f.index[m.Columns[i].Name] = i
	}
	if len(f.index) < len(m.Columns) {
		return nil, &CorruptError{Path: dir, Detail: "two columns have one name"}
	}
	path := filepath.Join(dir, columnsFile)
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	return f, checkSize(path, info, m.Bytes)
}

// Fingerprint is what [Fingerprint] says of the directory.
func (f *Files) Fingerprint() [sha256.Size]byte { return f.fingerprint }

// Rows is the number of rows.
func (f *Files) Rows() int { return int(f.manifest.Rows) }

// Checksum is the CRC-32C of column i, as the manifest says it.
func (f *Files) Checksum(i int) uint32 { return f.manifest.Columns[i].CRC }

// Bytes is the size of the columns file.
func (f *Files) Bytes() int64 { return f.manifest.Bytes }

// Schema returns the columns, in order.
func (f *Files) Schema() Schema {
	fields := make([]Field, len(f.manifest.Columns))
	for i := range fields {
		fields[i] = f.manifest.Columns[i].Field
	}
	return Schema{Fields: fields}
}

// Map maps the columns of these names, or all where names is nil, and returns them in the order of the schema as a table, once it has compared their checksums and checked
// their values as [Open] does. Only their bytes of the file are read. The caller closes the table.
func (f *Files) Map(names []string) (*Table, error) {
	part := *f.manifest
	if names != nil {
		part.Columns = nil
		chosen := make([]int, 0, len(names))
		for _, name := range names {
			i, ok := f.index[name]
			if !ok {
				return nil, fmt.Errorf("dataset: %s has no column %q", f.dir, name)
			}
			chosen = append(chosen, i)
		}
		slices.Sort(chosen)
		for _, i := range slices.Compact(chosen) {
			part.Columns = append(part.Columns, f.manifest.Columns[i])
		}
	}
	path := filepath.Join(f.dir, columnsFile)
	mapping, err := mapColumns(path, part.Bytes)
	if err != nil {
		return nil, err
	}
	var columns []Column
	if faulted := Guarded(func() { columns, err = viewColumns(path, mapping, &part) }); faulted != nil {
		err = &CorruptError{Path: path, Detail: "it cannot be read", Err: faulted}
	}
	if err != nil {
		return nil, errors.Join(err, unmapFile(mapping))
	}
	t, err := newTable(columns, int(part.Rows))
	if err != nil {
		return nil, errors.Join(err, unmapFile(mapping))
	}
	t.mapping, t.fingerprint = mapping, f.fingerprint
	return t, nil
}

// Slice returns the rows from..to-1, 0 <= from <= to <= Rows(), without a copy: it must not be used once t is closed, and need not be closed itself. Dictionaries are t's.
func (t *Table) Slice(from, to int) *Table {
	s := &Table{columns: slices.Clone(t.columns), index: t.index, rows: to - from}
	for i := range s.columns {
		switch c := &s.columns[i]; c.Kind {
		case Bool:
			c.Bools = c.Bools[from:to:to]
		case Text:
			c.Codes = c.Codes[from:to:to]
		default:
			c.Numbers = c.Numbers[from:to:to]
		}
	}
	return s
}

// NewScratch is [NewWriter] for a dataset that is read once and removed: nothing of it is made durable.
func NewScratch(dir string) (*Writer, error) {
	w, err := NewWriter(dir)
	if err == nil {
		w.scratch = true
	}
	return w, err
}

// EndTexts finishes a Text column whose codes are already those of its dictionary: texts with their marks, in the ascending order of marks, each once. It is gone through more
// than once.
func (w *Writer) EndTexts(dictionary iter.Seq2[[]byte, Mark]) error {
	if !w.accepts(Text, Text) {
		return w.err
	}
	if c := w.current; w.rows >= 0 && w.count != w.rows {
		return w.fail(fmt.Errorf("dataset: column %q has %d values, the others have %d", c.Name, w.count, w.rows))
	}
	last := Mark{}
	for _, mark := range dictionary {
		if mark.Compare(last) <= 0 {
			return w.fail(fmt.Errorf("dataset: column %q: the texts are not in the order of their marks", w.current.Name))
		}
		last = mark
	}
	return w.endOrdered(texts(dictionary))
}

// All yields the texts of a dictionary in order, that of [FromColumns], with their marks. Texts are the dictionary's own bytes.
func (d *Dictionary) All() iter.Seq2[[]byte, Mark] { return iter.Seq2[[]byte, Mark](d.all()) }

// Bytes returns the text of a code, from 1 on, as the dictionary's own bytes, which must not be written to.
func (d *Dictionary) Bytes(code uint32) []byte { return d.bytes(int(code) - 1) }

// ShapeOf is what is public of so many distinct texts, whose bytes together, without separators, are bytes.
func ShapeOf(texts, bytes int64) TextShape { return shapeOf(texts, bytes+texts+1) }
