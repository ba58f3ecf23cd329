package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every byte of both files, changed in turn, must be noticed: no byte is outside of a checksum or a comparison.
func TestEveryByteIsChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	if err := Write(dir, sample(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{manifestFile, columnsFile} {
		path := filepath.Join(dir, name)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range data {
			bad := slices.Clone(data)
			bad[i] ^= 1 << (i % 8)
			wantCorrupt(t, dir, path, bad, fmt.Sprintf("%s byte %d", name, i))
		}
		for _, n := range []int{0, 1, len(data) / 2, len(data) - 1} {
			wantCorrupt(t, dir, path, data[:n], fmt.Sprintf("%s cut to %d", name, n))
		}
		wantCorrupt(t, dir, path, append(slices.Clone(data), 0), name+" with a byte more")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, dir)
}

func wantCorrupt(t *testing.T, dir, path string, data []byte, what string) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := Open(dir)
	if err == nil {
		table.Close()
	}
	if e := (*CorruptError)(nil); !errors.As(err, &e) || e.Path == "" || e.Detail == "" {
		t.Errorf("%s: got %v, want a CorruptError", what, err)
	}
}

// forge changes manifest and columns and makes all checksums fit again, as an attacker with the format would.
func forge(t *testing.T, change func(m *manifest, columns []byte) []byte) error {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "table")
	if err := Write(dir, sample(t)); err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	m, detail, err := decodeManifest(head)
	if m == nil {
		t.Fatal(detail, err)
	}
	columns, err := os.ReadFile(filepath.Join(dir, columnsFile))
	if err != nil {
		t.Fatal(err)
	}
	columns = change(m, columns)
	for i := range m.Columns {
		s := &m.Columns[i]
		if s.Offset >= 0 && s.Length >= 0 && s.Offset+s.Length <= int64(len(columns)) && s.Offset+s.Length >= s.Offset {
			s.CRC = crc32.Checksum(columns[s.Offset:s.Offset+s.Length], castagnoli)
		}
	}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	head = fmt.Appendf(nil, "%s %08x\n%s", manifestMagic, crc32.Checksum(body, castagnoli), body)
	for name, data := range map[string][]byte{manifestFile: head, columnsFile: columns} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table, err := Open(dir)
	if err == nil {
		table.Close()
	}
	return err
}

func TestForgedFiles(t *testing.T) {
	const n, b, text, at = 0, 1, 2, 3 // the columns of sample
	word := func(column int, offset int64, v uint64) func(m *manifest, data []byte) []byte {
		return func(m *manifest, data []byte) []byte {
			binary.LittleEndian.PutUint64(data[m.Columns[column].Offset+offset:], v)
			return data
		}
	}
	head := func(change func(m *manifest)) func(m *manifest, data []byte) []byte {
		return func(m *manifest, data []byte) []byte { change(m); return data }
	}
	for name, change := range map[string]func(*manifest, []byte) []byte{
		"infinity":    word(n, 0, math.Float64bits(math.Inf(1))),
		"minus zero":  word(at, 0, 1<<63),
		"another NaN": word(n, 8, 0x7FF8000000000003),
		"boolean": func(m *manifest, data []byte) []byte {
			data[m.Columns[b].Offset] = 3
			return data
		},
		"code":              word(text, 0, 4),
		"dictionary offset": word(text, 64+8, math.MaxUint64),
		"dictionary start":  word(text, 64, 0),
		"dictionary order":  word(text, 64+16, 0),
		"mark of null":      word(text, 128, 1),
		"mark of a text":    word(text, 128+16+8, 7),
		"separator": func(m *manifest, data []byte) []byte {
			data[m.Columns[text].Offset+192] = 'a'
			return data
		},
		"rows":                   head(func(m *manifest) { m.Rows = 5 }),
		"negative rows":          head(func(m *manifest) { m.Rows = -1 }),
		"too many rows":          head(func(m *manifest) { m.Rows = math.MaxInt64 }),
		"version":                head(func(m *manifest) { m.Version = 1 }),
		"no salt":                head(func(m *manifest) { m.Salt = "" }),
		"short salt":             head(func(m *manifest) { m.Salt = m.Salt[:2] }),
		"two names":              head(func(m *manifest) { m.Columns[1].Name = "n" }),
		"no name":                head(func(m *manifest) { m.Columns[1].Name = "" }),
		"offset":                 head(func(m *manifest) { m.Columns[1].Offset = -64 }),
		"overlap":                head(func(m *manifest) { m.Columns[3].Offset = m.Columns[0].Offset }),
		"length":                 head(func(m *manifest) { m.Columns[0].Length = math.MaxInt64 }),
		"dictionary":             head(func(m *manifest) { m.Columns[2].Dictionary = 1 << 60 }),
		"negative dictionary":    head(func(m *manifest) { m.Columns[2].Dictionary = -1 }),
		"dictionary of a number": head(func(m *manifest) { m.Columns[0].Dictionary = 1 }),
		"bytes":                  head(func(m *manifest) { m.Bytes = 1 << 62 }),
		"column missing":         head(func(m *manifest) { m.Columns = m.Columns[:3] }),
	} {
		err := forge(t, change)
		if e := (*CorruptError)(nil); !errors.As(err, &e) {
			t.Errorf("%s: got %v, want a CorruptError", name, err)
		}
	}
	if err := forge(t, head(func(*manifest) {})); err != nil {
		t.Errorf("files that were written again unchanged: %v", err)
	}
}

// FuzzManifest feeds arbitrary manifests with a right checksum to the reader of manifests and to Open.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"version":3,"salt":"0000000000000000000000000000000000000000000000000000000000000000","rows":0,"bytes":64,"columns":[]}`))
	f.Add([]byte(`{"version":3,"salt":"0000000000000000000000000000000000000000000000000000000000000000","rows":2,"bytes":128,"columns":[{"name":"a","kind":"number","source":"","offset":64,"length":16,"crc32c":0}]}`))
	dir := f.TempDir()
	columns := make([]byte, 4096)
	copy(columns, header())
	f.Fuzz(func(t *testing.T, body []byte) {
		data := fmt.Appendf(nil, "%s %08x\n%s", manifestMagic, crc32.Checksum(body, castagnoli), body)
		m, detail, _ := decodeManifest(data)
		if (m == nil) == (detail == "") {
			t.Fatalf("manifest %v with detail %q", m, detail)
		}
		if m == nil || m.Bytes > int64(len(columns)) {
			return
		}
		for name, content := range map[string][]byte{manifestFile: data, columnsFile: columns[:m.Bytes]} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if table, err := Open(dir); err == nil {
			table.Close()
		}
	})
}

// TestUnknownVersion: a table of a version to come is refused as such, by its first line or by its JSON: the error says both versions and what
// to do. It would notice a reader that calls it damaged, and has its owner restore a backup that is no better.
func TestUnknownVersion(t *testing.T) {
	m := &manifest{Version: 4, Salt: strings.Repeat("00", saltBytes), Bytes: headerSize}
	data, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{data, bytes.Replace(data, []byte(manifestMagic), []byte(manifestName+"4"), 1)} {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, manifestFile), data, 0o600), os.WriteFile(filepath.Join(dir, columnsFile), header(), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir)
		if !errors.Is(err, ErrVersion) || !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "version 4, and this program reads version 3: use the holdoutd that wrote it") {
			t.Errorf("%v", err)
		}
	}
}

// TestReopen: what was just written is opened without its numbers being checked, and what would lead a reader astray is noticed all the same. It notices a Reopen that checks all, or nothing.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "table")
	if err := Write(dir, sample(t)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, columnsFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	m, detail, err := decodeManifest(head)
	if m == nil {
		t.Fatal(detail, err)
	}
	for i, noticed := range []bool{false, false, true} { // a number, a truth value, a text
		bad := slices.Clone(data)
		binary.LittleEndian.PutUint32(bad[m.Columns[i].Offset+4*int64(i/2):], 0x03030303)
		wantCorrupt(t, dir, path, bad, fmt.Sprint("column ", i))
		table, err := Reopen(dir)
		if err == nil {
			err = table.Close()
		}
		if (err != nil) != noticed {
			t.Errorf("reopened with a damaged column %d: %v", i, err)
		}
	}
}
