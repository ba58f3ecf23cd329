package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	mrand "math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/holdoutd/holdoutd/dataset"
)

// partVersion is that of [partFiles] and of the directory that it describes: docs/format/segments.md.
const partVersion = 1

// partFiles is what is kept of a part's files ([sources.PartInfo.Private]).
type partFiles struct {
	Version  int       `json:"version"`
	Segments []segment `json:"segments"` // in the order of the numbers of their units
}

// segment is some units whose rows are in one dataset.
type segment struct {
	Units    int64  `json:"units"`
	Rows     int64  `json:"rows"`
	Manifest string `json:"manifest"`          // SHA-256 of the dataset's manifest
	Offsets  string `json:"offsets,omitempty"` // SHA-256 of the file of offsets, where units may have several rows
}

// segmentDir is the dataset of a segment.
func segmentDir(part string, i int) string { return filepath.Join(part, "segment"+strconv.Itoa(i)) }

// offsetsFile says where the units of a segment begin.
func offsetsFile(part string, i int) string { return segmentDir(part, i) + ".units" }

// sorting makes a segment of a bucket.
type sorting struct {
	division *division
	bucket   *bucket
	file     *os.File
	order    []uint32 // the rows of the bucket in the order of their units
	offsets  []uint32 // of units; nil where each is a row
	largest  int64
	buffer   []byte
	second   []byte
}

// segment puts the rows of a bucket in the order of their units' numbers, writes them as segment i of a part, and removes the bucket.
func (d *division) segment(ctx context.Context, part string, i int, b *bucket, grouped bool) (segment, int64, error) {
	s := &sorting{division: d, bucket: b}
	if err := ctx.Err(); err != nil {
		return segment{}, 0, err
	}
	if b.rows < b.units {
		return segment{}, 0, fmt.Errorf("files: %d rows of %d units", b.rows, b.units)
	}
	if b.rows > dataset.MaxRows {
		return segment{}, 0, refused("", "a unit has more than %d rows", int64(dataset.MaxRows))
	}
	var err error
	if s.file, err = os.Open(b.path); err != nil {
		return segment{}, 0, err
	}
	defer s.file.Close() // read only
	if err := s.sort(grouped); err != nil {
		return segment{}, 0, err
	}
	made := segment{Units: b.units, Rows: b.rows}
	dir := segmentDir(part, i)
	if err := s.write(ctx, dir); err != nil {
		return segment{}, 0, err
	}
	if grouped {
		if made.Offsets, err = writeOffsets(offsetsFile(part, i), s.offsets); err != nil {
			return segment{}, 0, err
		}
	}
	fingerprint, err := dataset.Fingerprint(dir)
	if err != nil {
		return segment{}, 0, err
	}
	made.Manifest = hex.EncodeToString(fingerprint[:])
	return made, s.largest, os.Remove(b.path)
}

// sort finds the order of the rows. Those of one unit are in a random order, for the table's could tell something of them.
func (s *sorting) sort(grouped bool) error {
	numbers := make([]uint32, 0, s.bucket.rows)
	for i := range s.bucket.chunks {
		c := &s.bucket.chunks[i]
		b, err := s.read(c, -1)
		if err != nil {
			return err
		}
		numbers = append(numbers, bytesAs[uint32](b)...)
	}
	s.offsets = make([]uint32, s.bucket.units+1)
	for _, n := range numbers {
		if int64(n) >= s.bucket.units {
			return fmt.Errorf("files: number %d of %d units", n, s.bucket.units)
		}
		s.offsets[n+1]++
	}
	for u := range s.bucket.units {
		rows := s.offsets[u+1]
		if rows == 0 || rows > 1 && !grouped {
			return fmt.Errorf("files: number %d was given to %d rows", s.bucket.first+u, rows)
		}
		s.largest = max(s.largest, int64(rows))
		s.offsets[u+1] += s.offsets[u]
	}
	s.order = make([]uint32, len(numbers))
	next := append([]uint32(nil), s.offsets...)
	for row, n := range numbers {
		s.order[next[n]] = uint32(row)
		next[n]++
	}
	if !grouped {
		s.offsets = nil
		return nil
	}
	var seed [32]byte
	rand.Read(seed[:]) // never fails
	random := mrand.New(mrand.NewChaCha8(seed))
	for u := range s.bucket.units {
		rows := s.order[s.offsets[u]:s.offsets[u+1]]
		random.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	}
	return nil
}

// read returns the values of a column of a chunk as bytes, until the next call.
func (s *sorting) read(c *chunk, column int) ([]byte, error) {
	offset, width := c.column(column)
	s.second = aligned(s.second, width*c.rows)
	_, err := io.ReadFull(io.NewSectionReader(s.file, offset, int64(len(s.second))), s.second)
	return s.second, err
}

// aligned is a slice of n bytes that can be seen as values of any width: b where that is large enough.
func aligned(b []byte, n int) []byte {
	if cap(b) < n {
		b = asBytes(make([]uint64, n/8+1))
	}
	return b[:n]
}

func (s *sorting) write(ctx context.Context, dir string) error {
	w, err := dataset.NewWriter(dir)
	if err != nil {
		return err
	}
	for i, f := range s.division.columns {
		if err = ctx.Err(); err == nil {
			err = w.Begin(f)
		}
		if err == nil {
			switch f.Kind {
			case dataset.Bool:
				err = s.bools(w, i)
			case dataset.Text:
				err = s.texts(w, i)
			default:
				err = s.numbers(w, i)
			}
		}
		if err != nil {
			return errors.Join(err, w.Abort())
		}
	}
	if err := w.Close(); err != nil {
		return errors.Join(err, w.Abort())
	}
	return nil
}

// all reads a column's values of all chunks, one behind the other.
func (s *sorting) all(column, width int) ([]byte, error) {
	s.buffer = aligned(s.buffer, width*int(s.bucket.rows))
	at := 0
	for i := range s.bucket.chunks {
		c := &s.bucket.chunks[i]
		offset, _ := c.column(column)
		n := width * c.rows
		if _, err := io.ReadFull(io.NewSectionReader(s.file, offset, int64(n)), s.buffer[at:at+n]); err != nil {
			return nil, err
		}
		at += n
	}
	return s.buffer, nil
}

// gathered is how many values are put in order before they are written: they stay in the second-level cache.
const gathered = 1 << 15

func (s *sorting) numbers(w *dataset.Writer, column int) error {
	b, err := s.all(column, 8)
	if err != nil {
		return err
	}
	values := bytesAs[float64](b)
	dst := make([]float64, min(gathered, len(s.order)))
	for order := s.order; len(order) > 0; order = order[min(gathered, len(order)):] {
		n := min(gathered, len(order))
		if err := w.AppendNumbers(gather(dst[:n], values, order[:n])); err != nil {
			return err
		}
	}
	return w.End(nil)
}

func (s *sorting) bools(w *dataset.Writer, column int) error {
	values, err := s.all(column, 1)
	if err != nil {
		return err
	}
	dst := make([]uint8, min(gathered, len(s.order)))
	for order := s.order; len(order) > 0; order = order[min(gathered, len(order)):] {
		n := min(gathered, len(order))
		if err := w.AppendBools(gather(dst[:n], values, order[:n])); err != nil {
			return err
		}
	}
	return w.End(nil)
}

// texts writes a column of texts. One of few has all texts of the table in each segment; of many, a segment has those that its rows have.
func (s *sorting) texts(w *dataset.Writer, column int) error {
	words := s.division.words[column]
	v := &vocabulary{codes: map[dataset.Mark]uint32{}}
	common := make([]uint32, len(words.common)+1) // by common code: that of the vocabulary
	of := func(code uint32) uint32 {
		if common[code] == 0 && code != 0 {
			text := []byte(words.common[code-1])
			common[code] = v.code(dataset.MarkOf(words.common[code-1]), text)
		}
		return common[code]
	}
	if !words.many {
		for code := range words.common {
			of(uint32(code + 1))
		}
	}
	s.buffer = aligned(s.buffer, 4*int(s.bucket.rows))
	codes := bytesAs[uint32](s.buffer)[:0]
	for i := range s.bucket.chunks {
		c := &s.bucket.chunks[i]
		b, err := s.read(c, column)
		if err != nil {
			return err
		}
		switch own, at := c.own(column); {
		case own:
			local := []uint32{0}
			if err := readTexts(s.file, at, func(mark dataset.Mark, text []byte) { local = append(local, v.code(mark, text)) }); err != nil {
				return err
			}
			for _, code := range bytesAs[uint32](b) {
				codes = append(codes, local[code])
			}
		case c.layout.widths[column] == 1:
			for _, code := range b {
				codes = append(codes, of(uint32(code)))
			}
		default:
			for _, code := range bytesAs[uint16](b) {
				codes = append(codes, of(uint32(code)))
			}
		}
	}
	remap := v.sorted()
	dst := make([]uint32, min(gathered, len(s.order)))
	for order := s.order; len(order) > 0; order = order[min(gathered, len(order)):] {
		n := min(gathered, len(order))
		for i, row := range order[:n] {
			dst[i] = remap[codes[row]]
		}
		if err := w.AppendCodes(dst[:n]); err != nil {
			return err
		}
	}
	return w.EndTexts(v.all)
}

// own says whether a column's codes are those of a dictionary in the chunk, and where that is.
func (c *chunk) own(column int) (bool, int64) {
	for at, i := range c.layout.own {
		if i == column {
			return true, c.texts[at]
		}
	}
	return false, 0
}

// The file of a segment's units: a line with a salt and the CRC-32C of what follows, then where the rows of each unit begin, and the end, as uint32.
const offsetsMagic = "holdoutd units 1 "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func writeOffsets(path string, offsets []uint32) (fingerprint string, err error) {
	var salt [32]byte
	rand.Read(salt[:]) // never fails
	values := make([]byte, 0, 4*len(offsets))
	for _, o := range offsets {
		values = binary.LittleEndian.AppendUint32(values, o)
	}
	data := append(fmt.Appendf(nil, "%s%s %08x\n", offsetsMagic, hex.EncodeToString(salt[:]), crc32.Checksum(values, castagnoli)), values...)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), errors.Join(err, f.Close())
}

// readOffsets reads the file of a segment's units, which must have the fingerprint.
func readOffsets(path, fingerprint string, units, rows int64) ([]uint32, error) {
	const head = len(offsetsMagic) + 64 + 1 + 8 + 1
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	data := make([]byte, int64(head)+4*(units+1))
	if info, err := f.Stat(); err != nil || info.Size() != int64(len(data)) {
		return nil, &dataset.CorruptError{Path: path, Detail: "it has another size", Err: err}
	}
	if _, err := io.ReadFull(f, data); err != nil {
		return nil, &dataset.CorruptError{Path: path, Detail: "it cannot be read", Err: err}
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != fingerprint {
		return nil, &dataset.CorruptError{Path: path, Detail: "it is not what was written"}
	}
	offsets := make([]uint32, units+1)
	for i := range offsets {
		offsets[i] = binary.LittleEndian.Uint32(data[head+4*i:])
	}
	if int64(offsets[units]) != rows {
		return nil, &dataset.CorruptError{Path: path, Detail: "it is of other rows"}
	}
	return offsets, nil
}
