package dataset

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"
)

// The files of a dataset directory; docs/format/dataset.md describes them.
const (
	manifestFile = "manifest"
	columnsFile  = "columns"

	// columnsMagic begins the columns file, the manifest's first line names the format.
	columnsMagic  = "holdoutd columns\n"
	manifestMagic = manifestName + "3"
	manifestName  = "holdoutd dataset "
	formatVersion = 3

	// saltBytes is the size of a manifest's salt: with so many random bytes the manifest's hash says nothing about the rows,
	// also not to someone who can guess all of them.
	saltBytes = 32

	// alignment of every section: a cache line, and more than any value needs.
	alignment  = 64
	headerSize = alignment

	// maxManifestBytes bounds what Open reads before a checksum is known: 16,384 columns with names of 4 KB.
	maxManifestBytes = 64 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// littleEndian is false on the few machines whose float64 in memory are not the bytes of the file.
var littleEndian = func() bool {
	x := uint16(1)
	return *(*byte)(unsafe.Pointer(&x)) == 1
}()

var errBigEndian = errors.New("dataset: column files need a little-endian machine")

// manifest is the JSON of the manifest file.
type manifest struct {
	Version int       `json:"version"`
	Salt    string    `json:"salt"` // random, in hexadecimal
	Rows    int64     `json:"rows"`
	Bytes   int64     `json:"bytes"` // of the columns file
	Columns []section `json:"columns"`
}

// section says where a column lies in the columns file: values, then for Text where the texts of its dictionary begin, their marks and
// their bytes, each from a multiple of 64 on.
type section struct {
	Field
	Offset          int64  `json:"offset"`
	Length          int64  `json:"length"`
	CRC             uint32 `json:"crc32c"` // of the whole section, the padding inside it included
	Dictionary      int64  `json:"dictionary,omitempty"`
	DictionaryBytes int64  `json:"dictionary_bytes,omitempty"`
}

// Width is the number of bytes of one value.
func (k Kind) Width() int64 {
	switch k {
	case Bool:
		return 1
	case Text:
		return 4
	default:
		return 8
	}
}

func aligned(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

// layout returns where the dictionary's starts, marks and bytes begin within the section, and the section's length.
func (s *section) layout(rows int64) (starts, marks, text, length int64) {
	values := rows * s.Kind.Width()
	if s.Kind != Text {
		return 0, 0, 0, values
	}
	starts = aligned(values)
	marks = aligned(starts + 8*(s.Dictionary+1))
	text = aligned(marks + 16*(s.Dictionary+1))
	return starts, marks, text, text + s.DictionaryBytes
}

// header is the first 64 bytes of the columns file: the magic, then zeros.
func header() []byte {
	b := make([]byte, headerSize)
	copy(b, columnsMagic)
	return b
}

// encode writes the manifest: a line with magic and checksum, then JSON.
func (m *manifest) encode() ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	head := fmt.Sprintf("%s %08x\n", manifestMagic, crc32.Checksum(body, castagnoli))
	return append([]byte(head), body...), nil
}

// unknownManifest says what a manifest is that does not begin as one of this version.
func unknownManifest(data []byte) (*manifest, string, error) {
	var version int
	if n, err := fmt.Sscanf(string(data[:min(len(data), 64)]), manifestName+"%d ", &version); n == 1 && err == nil && version != formatVersion {
		return nil, fmt.Sprintf("it has version %d, and this program reads version %d", version, formatVersion), ErrVersion
	}
	return nil, "not the manifest of a dataset", nil
}

// decodeManifest reads what encode wrote and checks everything that can be known without the columns file.
func decodeManifest(data []byte) (*manifest, string, error) {
	const head = len(manifestMagic) + 1 + 8 + 1
	if len(data) < head || string(data[:len(manifestMagic)+1]) != manifestMagic+" " || data[head-1] != '\n' {
		return unknownManifest(data)
	}
	body := data[head:]
	if fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) != string(data[head-9:head-1]) {
		return nil, "the manifest's checksum does not fit", nil
	}
	m := new(manifest)
	if err := json.Unmarshal(body, m); err != nil {
		return nil, "the manifest is not JSON", err
	}
	if m.Version != formatVersion {
		return nil, fmt.Sprintf("it has version %d, and this program reads version %d", m.Version, formatVersion), ErrVersion
	}
	if salt, err := hex.DecodeString(m.Salt); err != nil || len(salt) != saltBytes {
		return nil, "the manifest has no salt", nil
	}
	if m.Rows < 0 || m.Rows > MaxRows {
		return nil, fmt.Sprintf("%d rows", m.Rows), nil
	}
	end := int64(headerSize)
	for i := range m.Columns {
		s := &m.Columns[i]
		if err := s.Field.check(); err != nil {
			return nil, "a column that cannot be", err
		}
		if s.Dictionary < 0 || s.Dictionary > MaxRows || s.DictionaryBytes < 0 || s.DictionaryBytes > 1<<48 ||
			(s.Kind != Text && s.Dictionary+s.DictionaryBytes != 0) {
			return nil, fmt.Sprintf("column %q: a dictionary that cannot be", s.Name), nil
		}
		if _, _, _, length := s.layout(m.Rows); s.Offset != end || s.Length != length {
			return nil, fmt.Sprintf("column %q: bytes %d+%d, expected %d+%d", s.Name, s.Offset, s.Length, end, length), nil
		}
		end = aligned(s.Offset + s.Length)
	}
	if m.Bytes != end {
		return nil, fmt.Sprintf("%d bytes of columns, expected %d", m.Bytes, end), nil
	}
	return m, "", nil
}
