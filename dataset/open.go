package dataset

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Open maps the dataset in dir for reading, after it has compared all checksums and checked all values. Damaged
// files give a [*CorruptError]; a missing directory gives an error that wraps fs.ErrNotExist. The caller closes the
// table when nobody reads it any more.
func Open(dir string) (*Table, error) { return openTable(dir, true) }

// Reopen is Open of what this process has just written: checksums are not compared, nor are numbers and truth values checked, which takes as long as to read them once. What it returns
// is safe to read, but damage is not noticed.
func Reopen(dir string) (*Table, error) { return openTable(dir, false) }

func openTable(dir string, verify bool) (*Table, error) {
	if !littleEndian {
		return nil, errBigEndian
	}
	m, fingerprint, err := readManifest(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, columnsFile)
	mapping, err := mapColumns(path, m.Bytes)
	if err != nil {
		return nil, err
	}
	var columns []Column
	if faulted := Guarded(func() { columns, err = viewColumns(path, mapping, m, verify) }); faulted != nil {
		err = &CorruptError{Path: path, Detail: "it cannot be read", Err: faulted}
	}
	if err == nil {
		var t *Table
		if t, err = newTable(columns, int(m.Rows)); err == nil {
			t.mapping, t.fingerprint = mapping, fingerprint
			return t, nil
		}
		err = &CorruptError{Path: dir, Detail: "the schema cannot be", Err: err}
	}
	return nil, errors.Join(err, unmapFile(mapping))
}

// Fingerprint is the SHA-256 of the manifest of the dataset in dir. The manifest holds the checksums of all columns and a
// random salt, so that the fingerprint binds the whole dataset and says nothing about its rows. It fails with a
// [*CorruptError] where the manifest is damaged or the columns file has another size; the columns are not read.
func Fingerprint(dir string) ([sha256.Size]byte, error) {
	m, fingerprint, err := readManifest(filepath.Join(dir, manifestFile))
	if err != nil {
		return fingerprint, err
	}
	path := filepath.Join(dir, columnsFile)
	info, err := os.Stat(path)
	if err != nil {
		return fingerprint, fmt.Errorf("dataset: %w", err)
	}
	return fingerprint, checkSize(path, info, m.Bytes)
}

// OpenRegular opens a regular file for reading. What else has its name is a [*CorruptError], and nobody waits for it: the opening of a named pipe
// would last until somebody writes.
func OpenRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &CorruptError{Path: path, Detail: "it is no regular file"}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func checkSize(path string, info os.FileInfo, size int64) error {
	if info.Size() != size || !info.Mode().IsRegular() {
		return &CorruptError{Path: path, Detail: fmt.Sprintf("%d bytes, the manifest says %d", info.Size(), size)}
	}
	return nil
}

func readManifest(path string) (*manifest, [sha256.Size]byte, error) {
	var none [sha256.Size]byte
	f, err := OpenRegular(path)
	if err != nil {
		return nil, none, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, none, fmt.Errorf("dataset: %w", err)
	}
	if len(data) > maxManifestBytes {
		return nil, none, &CorruptError{Path: path, Detail: "the manifest is too large"}
	}
	m, detail, err := decodeManifest(data)
	if m == nil {
		return nil, none, &CorruptError{Path: path, Detail: detail, Err: err}
	}
	return m, sha256.Sum256(data), nil
}

func mapColumns(path string, size int64) ([]byte, error) {
	f, err := OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	if err := checkSize(path, info, size); err != nil {
		return nil, err
	}
	mapping, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("dataset: map %s: %w", path, err)
	}
	return mapping, nil
}

// viewColumns makes the columns out of their sections, verifying several at a time, if at all.
func viewColumns(path string, mapping []byte, m *manifest, verify bool) ([]Column, error) {
	if string(mapping[:headerSize]) != string(header()) {
		return nil, &CorruptError{Path: path, Detail: "not a columns file"}
	}
	if err := checkPadding(mapping, m); verify && err != nil {
		return nil, &CorruptError{Path: path, Detail: "padding between columns is not zero", Err: err}
	}
	columns := make([]Column, len(m.Columns))
	failures := make([]string, len(m.Columns))
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(runtime.NumCPU(), len(columns)) {
		wait.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(columns); i = int(next.Add(1)) - 1 {
				if err := Guarded(func() { columns[i], failures[i] = viewColumn(mapping, &m.Columns[i], m.Rows, verify) }); err != nil {
					failures[i] = err.Error()
				}
			}
		})
	}
	wait.Wait()
	for i, detail := range failures {
		if detail != "" {
			return nil, &CorruptError{Path: path, Detail: fmt.Sprintf("column %q: %s", m.Columns[i].Name, detail)}
		}
	}
	return columns, nil
}

// checkPadding compares the bytes that no checksum covers.
func checkPadding(mapping []byte, m *manifest) error {
	for i := range m.Columns {
		s := &m.Columns[i]
		end := s.Offset + s.Length
		for at, b := range mapping[end:aligned(end)] {
			if b != 0 {
				return fmt.Errorf("byte %d", end+int64(at))
			}
		}
	}
	return nil
}

// viewColumn checks one section and returns the column that lies in it, or what is wrong. Codes and dictionaries are always checked: who reads them goes where they point.
func viewColumn(mapping []byte, s *section, rows int64, verify bool) (Column, string) {
	b := mapping[s.Offset : s.Offset+s.Length]
	large := len(mapping) >= releaseLeast
	c := Column{Field: s.Field}
	if large {
		defer func() { c.release(0, c.Len()) }()
	}
	wrong, what, crc, values := -1, "", uint32(0), int64(0)
	switch s.Kind {
	case Bool:
		c.Bools, what, values = b[:rows:rows], "no boolean", rows
		if verify {
			crc, wrong = scan(&c, large, verify, c.Bools, func(b []uint8) []byte { return b }, func(b []uint8) int {
				return slices.IndexFunc(b, func(v uint8) bool { return v > NullBool })
			})
		}
	case Text:
		c.Codes, what, values = view[uint32](b, rows), "a text that is not in the dictionary", 4*rows
		crc, wrong = scan(&c, large, verify, c.Codes, bytesOf, func(codes []uint32) int { return indexAbove(codes, uint32(s.Dictionary)) })
	default:
		c.Numbers, what, values = view[float64](b, rows), "no finite number", 8*rows
		if verify {
			crc, wrong = scan(&c, large, verify, c.Numbers, bytesOf, indexUnclean)
		}
	}
	if verify && checksum(crc, b[values:], large) != s.CRC {
		return Column{}, "the checksum does not fit"
	}
	if wrong >= 0 {
		return c, fmt.Sprintf("row %d holds %s", wrong, what)
	}
	var detail string
	if s.Kind == Text {
		starts, marks, text, _ := s.layout(rows)
		c.Dictionary, detail = readDictionary(view[uint64](b[starts:], s.Dictionary+1), view[Mark](b[marks:], s.Dictionary+1), b[text:])
	}
	return c, detail
}

// scannedTogether is how many values are read for their checksum, and then looked at while they are in the cache.
const scannedTogether = 1 << 14

// scan goes through all values of a column once. It returns their CRC-32C where that is to be verified, and the place of the first of which wrong says that no column can have it, or -1.
func scan[T any](c *Column, large, verify bool, values []T, raw func([]T) []byte, wrong func([]T) int) (crc uint32, first int) {
	first = -1
	for from, to := range inPieces(c, large) {
		for ; from < to; from += scannedTogether {
			some := values[from:min(from+scannedTogether, to)]
			if verify {
				crc = crc32.Update(crc, castagnoli, raw(some))
			}
			if i := wrong(some); i >= 0 && first < 0 {
				first = from + i
			}
		}
	}
	return crc, first
}

// checksum is the CRC-32C of bytes of a mapping behind those of which it is crc. Of a large one no more than a piece is in memory at a time.
func checksum(crc uint32, b []byte, large bool) uint32 {
	for len(b) > 0 {
		piece := b[:min(pieceRows*8, len(b))]
		crc = crc32.Update(crc, castagnoli, piece)
		if large {
			releasePages(piece)
		}
		b = b[len(piece):]
	}
	return crc
}

// view reads the first n values in place.
func view[T float64 | uint32 | uint64 | Mark](b []byte, n int64) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// bytesOf is the inverse of view.
func bytesOf[T float64 | uint32 | uint64 | Mark](values []T) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(values[0])))
}
