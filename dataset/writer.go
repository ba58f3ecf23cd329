package dataset

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
)

// writeBuffer is how many bytes are gathered before the file is written to, and how many are read back at once when
// codes are renumbered: large enough for a fast disk, small enough to be nothing.
const writeBuffer = 1 << 20

// Writer writes a dataset directory, one column after another, each in pieces of any size. Its memory does not grow
// with the rows. The directory is complete and, but for NewPassing, durable when Close has returned nil, and not a dataset before that.
type Writer struct {
	dir     string
	file    *os.File
	columns []section
	names   map[string]bool
	rows    int64 // of the finished columns; -1 before the first

	current *section // the column being written
	count   int64    // its values so far
	at      int64    // where buffer goes in the file
	begun   int64    // up to where the disk was told to begin
	passing bool     // nothing need be durable
	crc     uint32   // of the section up to at
	buffer  []byte
	spare   []byte     // the other buffer: of the write under way, or free
	under   chan error // what came of the write under way; nil where there is none
	err     error      // the first failure; everything after it fails too
}

// NewWriter creates dir, which must not exist, and begins a dataset in it.
func NewWriter(dir string) (*Writer, error) {
	if !littleEndian {
		return nil, errBigEndian
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, columnsFile), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("dataset: %w", err), os.RemoveAll(dir))
	}
	w := &Writer{dir: dir, file: f, names: map[string]bool{}, rows: -1, buffer: make([]byte, 0, writeBuffer), spare: make([]byte, 0, writeBuffer)}
	w.put(header())
	return w, w.err
}

// NewPassing is NewWriter of a dataset that is read soon and then removed: nothing waits for the disk, and after a crash it may be damaged, which [Open] then says.
func NewPassing(dir string) (*Writer, error) {
	w, err := NewWriter(dir)
	if err == nil {
		w.passing = true
	}
	return w, err
}

// Begin starts a column. The one before it must have been ended or dropped.
func (w *Writer) Begin(f Field) error {
	switch {
	case w.err != nil:
		return w.err
	case w.current != nil:
		return w.fail(fmt.Errorf("dataset: column %q is not ended", w.current.Name))
	case w.names[f.Name]:
		return w.fail(fmt.Errorf("dataset: two columns are named %q", f.Name))
	}
	if err := f.check(); err != nil {
		return w.fail(err)
	}
	w.current = &section{Field: f, Offset: w.at + int64(len(w.buffer))}
	w.count = 0
	w.flush()
	w.crc = 0
	return w.err
}

// AppendNumbers adds values to a Number or Time column. Infinities become null and -0 becomes 0, in place.
func (w *Writer) AppendNumbers(values []float64) error {
	if !w.accepts(Number, Time) {
		return w.err
	}
	cleanNumbers(values)
	return w.appendClean(bytesOf(values), len(values))
}

// AppendBools adds values to a Bool column: 0, 1 or NullBool.
func (w *Writer) AppendBools(values []uint8) error {
	if !w.accepts(Bool, Bool) {
		return w.err
	}
	for _, v := range values {
		if v > NullBool {
			return w.fail(fmt.Errorf("dataset: column %q: %d is no boolean", w.current.Name, v))
		}
	}
	return w.appendClean(values, len(values))
}

// AppendCodes adds values to a Text column: 0 for null, else 1 + the place in the dictionary that End gets.
func (w *Writer) AppendCodes(codes []uint32) error {
	if !w.accepts(Text, Text) {
		return w.err
	}
	return w.appendClean(bytesOf(codes), len(codes))
}

func (w *Writer) accepts(a, b Kind) bool {
	switch {
	case w.err != nil:
	case w.current == nil:
		w.fail(errors.New("dataset: values without a column"))
	case w.current.Kind != a && w.current.Kind != b:
		w.fail(fmt.Errorf("dataset: column %q is a %v and got values of another kind", w.current.Name, w.current.Kind))
	}
	return w.err == nil
}

func (w *Writer) appendClean(values []byte, n int) error {
	w.count += int64(n)
	if w.count > MaxRows {
		return w.fail(fmt.Errorf("dataset: column %q has more than %d rows", w.current.Name, int64(MaxRows)))
	}
	w.put(values)
	return w.err
}

// End finishes the column. A Text column's dictionary may be in any order, with repetitions and with texts that no
// row has; it is put in the order of marks and the codes are renumbered in the file. Other columns pass nil.
func (w *Writer) End(dictionary []string) error {
	if w.err == nil && w.current == nil {
		return w.fail(errors.New("dataset: no column to end"))
	}
	if w.err != nil {
		return w.err
	}
	c := w.current
	if w.rows >= 0 && w.count != w.rows {
		return w.fail(fmt.Errorf("dataset: column %q has %d values, the others have %d", c.Name, w.count, w.rows))
	}
	if c.Kind == Text {
		w.endText(dictionary)
	} else if dictionary != nil {
		w.fail(fmt.Errorf("dataset: column %q has no dictionary", c.Name))
	}
	return w.finish()
}

// finish ends the current column once everything of it is written.
func (w *Writer) finish() error {
	c := w.current
	w.flush()
	if w.err != nil {
		return w.err
	}
	c.CRC = w.crc
	_, _, _, c.Length = c.layout(w.count)
	w.pad()
	w.rows = w.count
	w.names[c.Name] = true
	w.columns = append(w.columns, *c)
	w.current = nil
	return w.err
}

// Drop forgets the column that was begun; the next one takes its place.
func (w *Writer) Drop() error {
	if w.settle(); w.current == nil || w.err != nil {
		return w.err
	}
	w.at, w.buffer, w.crc = w.current.Offset, w.buffer[:0], 0
	w.begun = min(w.begun, w.at)
	w.current = nil
	if err := w.file.Truncate(w.at); err != nil {
		return w.fail(err)
	}
	return nil
}

func (w *Writer) endText(dictionary []string) {
	given := NewDictionary(dictionary...)
	ordered, remap, err := given.ordered()
	if err != nil {
		w.fail(fmt.Errorf("dataset: column %q: %w", w.current.Name, err))
		return
	}
	w.flush()
	w.renumber(uint32(len(dictionary)), remap)
	w.putDictionary(ordered.all())
}

// endOrdered finishes a Text column whose codes are those of a dictionary in order.
func (w *Writer) endOrdered(dictionary texts) error {
	if w.err != nil {
		return w.err
	}
	w.putDictionary(dictionary)
	return w.finish()
}

// putDictionary writes a dictionary in order behind the codes: where the texts start, their marks, and the texts.
func (w *Writer) putDictionary(dictionary texts) {
	w.pad()
	w.current.Dictionary, w.current.DictionaryBytes = dictionary.size()
	next := [1]uint64{1}
	w.put(bytesOf(next[:]))
	for text := range dictionary {
		next[0] += uint64(len(text)) + 1
		w.put(bytesOf(next[:]))
	}
	w.pad()
	mark := [1]Mark{} // of null
	w.put(bytesOf(mark[:]))
	for _, mark[0] = range dictionary {
		w.put(bytesOf(mark[:]))
	}
	w.pad()
	separator := []byte{Separator}
	w.put(separator)
	for text := range dictionary {
		w.put(text)
		w.put(separator)
	}
}

// renumber reads the codes of the current column back, checks them against the dictionary's length and, with a
// remap, writes the new ones. It leaves the checksum of the new ones.
func (w *Writer) renumber(limit uint32, remap []uint32) {
	w.crc = 0
	codes := make([]uint32, min(w.count, writeBuffer/4))
	for from := int64(0); from < w.count && w.err == nil; from += int64(len(codes)) {
		piece := codes[:min(int64(len(codes)), w.count-from)]
		b, at := bytesOf(piece), w.current.Offset+4*from
		if _, err := w.file.ReadAt(b, at); err != nil {
			w.fail(err)
			return
		}
		if i := indexAbove(piece, limit); i >= 0 {
			w.fail(fmt.Errorf("dataset: column %q: code %d of %d texts", w.current.Name, piece[i], limit))
			return
		}
		if remap != nil {
			for i, code := range piece {
				piece[i] = remap[code]
			}
			if _, err := w.file.WriteAt(b, at); err != nil {
				w.fail(err)
				return
			}
		}
		w.crc = crc32.Update(w.crc, castagnoli, b)
	}
}

// Close writes the manifest and makes the directory durable. After an error the directory is no dataset; the
// caller removes it with Abort.
func (w *Writer) Close() error {
	if w.err == nil && w.current != nil {
		w.fail(fmt.Errorf("dataset: column %q is not ended", w.current.Name))
	}
	w.flush()
	if w.err != nil {
		return w.err
	}
	salt := make([]byte, saltBytes)
	rand.Read(salt) // never fails: crypto/rand ends the process instead
	m := manifest{Version: formatVersion, Salt: hex.EncodeToString(salt), Rows: max(w.rows, 0), Bytes: w.at, Columns: w.columns}
	data, err := m.encode()
	if err == nil && len(data) > maxManifestBytes {
		err = fmt.Errorf("the names of %d columns are longer than %d bytes", len(w.columns), maxManifestBytes)
	}
	if err == nil && !w.passing {
		err = w.file.Sync()
	}
	if err == nil {
		err = w.file.Close()
	}
	switch path := filepath.Join(w.dir, manifestFile); {
	case err != nil:
	case w.passing:
		err = os.WriteFile(path, data, 0o600)
	default:
		if err = writeDurably(path, data); err == nil {
			err = SyncDir(w.dir)
		}
	}
	if err != nil {
		return w.fail(err)
	}
	w.err = errors.New("dataset: the writer is closed")
	return nil
}

// Abort removes the directory with all that was written.
func (w *Writer) Abort() error {
	w.settle()
	w.file.Close() // an error of a file that is removed next says nothing
	w.fail(errors.New("dataset: the writer was aborted"))
	return os.RemoveAll(w.dir)
}

// put buffers bytes of the file.
func (w *Writer) put(b []byte) {
	for len(b) > 0 && w.err == nil {
		n := min(writeBuffer-len(w.buffer), len(b))
		w.buffer = append(w.buffer, b[:n]...)
		b = b[n:]
		if len(w.buffer) == writeBuffer {
			w.hand()
		}
	}
}

// hand gives the buffer to be written, at the same time as the other one is filled, once the one before it is written.
func (w *Writer) hand() {
	w.settle()
	if len(w.buffer) == 0 || w.err != nil {
		w.buffer = w.buffer[:0]
		return
	}
	b, at, under := w.buffer, w.at, make(chan error, 1)
	w.at += int64(len(b))
	w.buffer, w.spare, w.under = w.spare[:0], b, under
	go func() { under <- w.writeOut(b, at) }()
}

// settle waits for the write under way. Only then are crc and begun those of what was handed.
func (w *Writer) settle() {
	if w.under == nil {
		return
	}
	err := <-w.under
	w.under = nil
	if err != nil {
		w.fail(err)
	}
}

// flush writes the buffer and waits for it.
func (w *Writer) flush() {
	w.hand()
	w.settle()
}

func (w *Writer) writeOut(b []byte, at int64) error {
	if _, err := w.file.WriteAt(b, at); err != nil {
		return err
	}
	w.crc = crc32.Update(w.crc, castagnoli, b)
	if end := at + int64(len(b)); end-w.begun >= ahead && !w.passing {
		beginWriting(w.file, w.begun, end-w.begun)
		w.begun = end
	}
	return nil
}

// ahead is how much is written before the disk is told to begin, so that it works meanwhile and Close, which waits for all of it, waits for little.
const ahead = 16 << 20

// pad writes zeros up to the next multiple of 64.
func (w *Writer) pad() {
	end := w.at + int64(len(w.buffer))
	var zeros [alignment]byte
	w.put(zeros[:aligned(end)-end])
}

func (w *Writer) fail(err error) error {
	if w.err == nil {
		w.err = fmt.Errorf("dataset: write %s: %w", w.dir, err)
	}
	return w.err
}

// writeDurably writes a new file whose content survives a power cut once this returns nil.
func writeDurably(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Publish gives a finished directory its final name, which must be free, and makes the name durable. Both must be on
// one file system.
func Publish(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("dataset: publish %s: it exists already", to)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	if err := SyncDir(filepath.Dir(to)); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	return nil
}

// Write writes a table to dir, which must not exist.
func Write(dir string, t *Table) error {
	return writeTable(dir, t, func(w *Writer, c *Column) error { return writeColumn(w, c) })
}

// writeTable writes all columns by the given function and leaves no directory when it fails.
func writeTable(dir string, t *Table, column func(*Writer, *Column) error) error {
	w, err := NewWriter(dir)
	if err != nil {
		return err
	}
	for i := range t.columns {
		if err = w.Begin(t.columns[i].Field); err == nil {
			err = column(w, &t.columns[i])
		}
		if err != nil {
			return errors.Join(err, w.Abort())
		}
		t.spent(i)
	}
	if err := w.Close(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

// writeColumn writes the values of a table's column as they are, for they are clean.
func writeColumn(w *Writer, c *Column) error {
	switch c.Kind {
	case Bool:
		w.appendClean(c.Bools, len(c.Bools))
	case Text:
		w.appendClean(bytesOf(c.Codes), len(c.Codes))
		return w.endOrdered(c.Dictionary.all())
	default:
		w.appendClean(bytesOf(c.Numbers), len(c.Numbers))
	}
	return w.End(nil)
}
