package files

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

const (
	// unitBlock is how many units are yielded at once.
	unitBlock = 1 << 16
	// partitionRows is about how many rows' keys are in memory at once while units are found: some 100 bytes each.
	partitionRows = 1 << 19
	// maxPartitions bounds the files that are open at once.
	maxPartitions = 512
	// partitionBuffer is what is gathered of a partition before it is written.
	partitionBuffer = 32 << 10
	day             = 24 * 60 * 60 * 1e6 // in microseconds
)

// Units implements [sources.Source].
func (s *Source) Units(ctx context.Context, of sources.Snapshot, by sources.Keys, yield func(sources.Units) error) error {
	t, err := s.table(of)
	if err != nil {
		return err
	}
	scratch, remove, err := s.scratch()
	if err != nil {
		return err
	}
	defer remove() // what is left is found by its name
	return t.units(ctx, scratch, by, func(u sources.Units, _ [][]uint32) error { return yield(u) })
}

// units yields the units of a table with the places of each one's rows. Without a key rows are nil: unit i of a block is the row whose place the block says.
func (t *table) units(ctx context.Context, scratch string, by sources.Keys, yield func(u sources.Units, rows [][]uint32) error) error {
	schema := t.snapshot.Schema
	k := keys{by: by, table: t}
	for _, name := range by.Columns {
		if err := k.column(schema, name); err != nil {
			return err
		}
	}
	if by.Day && (len(k.fields) != 1 || k.fields[0].Kind != dataset.Time) {
		return refused("", "the day of a unit needs one column of dates or times")
	}
	if by.Places && len(k.fields) != 1 {
		return refused("", "units with places need one column")
	}
	if f, ok := field(schema, by.Latest); by.Latest != "" && (!ok || f.Kind != dataset.Time) {
		return refused(by.Latest, "the table has no column %q of dates or times", by.Latest)
	}
	if _, ok := field(schema, by.Stratum); by.Stratum != "" && !ok {
		return refused(by.Stratum, "the table has no column %q", by.Stratum)
	}
	if len(by.Columns) == 0 {
		return k.places(ctx, scratch, func(u sources.Units) error { return yield(u, nil) })
	}
	return k.grouped(ctx, scratch, yield)
}

func field(s dataset.Schema, name string) (dataset.Field, bool) {
	for _, f := range s.Fields {
		if f.Name == name {
			return f, true
		}
	}
	return dataset.Field{}, false
}

// keys reads units.
type keys struct {
	by     sources.Keys
	table  *table
	fields []dataset.Field // of the key
}

func (k *keys) column(schema dataset.Schema, name string) error {
	f, ok := field(schema, name)
	if !ok {
		return refused(name, "the table has no column %q, which is to be a key", name)
	}
	k.fields = append(k.fields, f)
	return nil
}

// reads are the columns that must be decoded.
func (k *keys) reads() []string {
	var names []string
	seen := map[string]bool{"": true}
	for _, name := range append(append([]string{}, k.by.Columns...), k.by.Latest, k.by.Stratum) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// ones are the rows of units that are rows.
func ones(n int) []int64 {
	rows := make([]int64, n)
	for i := range rows {
		rows[i] = 1
	}
	return rows
}

// atPlaces are units that are rows, from a place on.
func atPlaces(first int64, n int) (sources.Units, error) {
	places := make([]float64, n)
	for i := range places {
		places[i] = float64(first + int64(i))
	}
	keys, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "row", Kind: dataset.Number, Source: "INT64"}, Numbers: places})
	return sources.Units{Keys: keys, Rows: ones(n)}, err
}

// places yields rows as units, in their order. Nothing is decoded where nothing but their number is wanted.
func (k *keys) places(ctx context.Context, scratch string, yield func(sources.Units) error) error {
	names := k.reads()
	if len(names) == 0 {
		for first := int64(0); first < k.table.snapshot.Rows; first += unitBlock {
			if err := ctx.Err(); err != nil {
				return err
			}
			u, err := atPlaces(first, int(min(unitBlock, k.table.snapshot.Rows-first)))
			if err == nil {
				err = yield(u)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return k.table.each(ctx, scratch, names, func(p piece, rows *dataset.Table) error {
		return k.rows(p, rows, func(_ int, u sources.Units) error { return yield(u) })
	})
}

// rows yields the rows of a piece as units, and which row of it is the first of each block.
func (k *keys) rows(p piece, rows *dataset.Table, yield func(from int, u sources.Units) error) error {
	for from := 0; from < rows.Rows(); from += unitBlock {
		n := min(unitBlock, rows.Rows()-from)
		u, err := atPlaces(p.first+int64(from), n)
		if err != nil {
			return err
		}
		block := rows.Slice(from, from+n)
		if c, ok := block.Lookup(k.by.Latest); ok && k.by.Latest != "" {
			u.Latest = slices.Clone(c.Numbers) // what is yielded may be kept, the piece is not
		}
		if c, ok := block.Lookup(k.by.Stratum); ok && k.by.Stratum != "" {
			if u.Strata, err = copied(c); err != nil {
				return err
			}
		}
		if err := yield(from, u); err != nil {
			return err
		}
	}
	return nil
}

// copied is a column that does not lie in a mapping.
func copied(c *dataset.Column) (*dataset.Column, error) {
	b := newBuilder(c.Field)
	for row := range c.Len() {
		b.add(appendCell(nil, c, row, false))
	}
	out, err := b.column()
	return &out, err
}

// A cell is a value as bytes: 0 for a null, else 1 and the value.

func appendCell(dst []byte, c *dataset.Column, row int, byDay bool) []byte {
	if c.Null(row) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch c.Kind {
	case dataset.Bool:
		return append(dst, c.Bools[row])
	case dataset.Text:
		text := c.Dictionary.Text(int(c.Codes[row]) - 1)
		return append(binary.LittleEndian.AppendUint32(dst, uint32(len(text))), text...)
	}
	v := c.Numbers[row]
	if byDay {
		v = math.Floor(v/day) * day
	}
	return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v))
}

// builder makes a column of cells.
type builder struct {
	field   dataset.Field
	numbers []float64
	bools   []uint8
	codes   []uint32
	texts   []string
	known   map[string]uint32
}

func newBuilder(f dataset.Field) *builder { return &builder{field: f, known: map[string]uint32{}} }

// add adds the first cell of b, and returns what is behind it.
func (d *builder) add(b []byte) []byte {
	null := b[0] == 0
	b = b[1:]
	switch d.field.Kind {
	case dataset.Bool:
		if null {
			d.bools = append(d.bools, dataset.NullBool)
			return b
		}
		d.bools = append(d.bools, b[0])
		return b[1:]
	case dataset.Text:
		if null {
			d.codes = append(d.codes, 0)
			return b
		}
		n := binary.LittleEndian.Uint32(b)
		text := b[4 : 4+n]
		code, ok := d.known[string(text)]
		if !ok {
			d.texts = append(d.texts, string(text))
			code = uint32(len(d.texts))
			d.known[d.texts[code-1]] = code
		}
		d.codes = append(d.codes, code)
		return b[4+n:]
	}
	if null {
		d.numbers = append(d.numbers, math.NaN())
		return b
	}
	d.numbers = append(d.numbers, math.Float64frombits(binary.LittleEndian.Uint64(b)))
	return b[8:]
}

func (d *builder) column() (dataset.Column, error) {
	t, err := dataset.FromColumns(dataset.Column{Field: d.field, Numbers: d.numbers, Bools: d.bools, Codes: d.codes, Dictionary: dataset.NewDictionary(d.texts...)})
	if err != nil {
		return dataset.Column{}, err
	}
	return *t.Column(0), nil
}

// partition is a file of rows' keys. It has no name any more.
type partition struct {
	file *os.File
	out  *bufio.Writer
	size int64
}

// grouped yields units of several rows. Rows are written to partitions by a hash of their keys, so that all rows of a unit are in one of them, and partition by partition is
// brought together in memory. That of one partition is bounded as long as no single unit has more than a partition's rows.
func (k *keys) grouped(ctx context.Context, scratch string, yield func(sources.Units, [][]uint32) error) error {
	parts := make([]partition, min(maxPartitions, 1+k.table.snapshot.Rows/partitionRows))
	defer func() {
		for _, p := range parts {
			if p.file != nil {
				p.file.Close() // nothing of it is needed any more
			}
		}
	}()
	for i := range parts {
		name := filepath.Join(scratch, fmt.Sprintf("keys%d", i))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return unavailable(err)
		}
		parts[i] = partition{file: f, out: bufio.NewWriterSize(f, partitionBuffer)}
		if err := os.Remove(name); err != nil {
			return unavailable(err)
		}
	}
	seed := maphash.MakeSeed()
	var record []byte
	err := k.table.each(ctx, scratch, k.reads(), func(p piece, rows *dataset.Table) error {
		from := k.cells(rows)
		for row := range rows.Rows() {
			var err error
			if record, err = k.record(record[:0], p, from, row); err != nil {
				return err
			}
			n := binary.LittleEndian.Uint32(record)
			to := &parts[maphash.Bytes(seed, record[head:head+n])%uint64(len(parts))]
			to.size += int64(len(record))
			if _, err := to.out.Write(record); err != nil {
				return unavailable(err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := k.partition(&parts[i], yield); err != nil {
			return err
		}
	}
	return nil
}

// head is what stands before the cells of a record: the length of the key, the length of what follows it, and the row's place.
const head = 12

// cells are the columns of a piece that a record has.
type cells struct{ key, more []*dataset.Column }

func (k *keys) cells(rows *dataset.Table) (c cells) {
	for _, f := range k.fields {
		column, _ := rows.Lookup(f.Name)
		c.key = append(c.key, column)
	}
	for _, name := range []string{k.by.Latest, k.by.Stratum} {
		if column, ok := rows.Lookup(name); ok {
			c.more = append(c.more, column)
		}
	}
	return c
}

// record is a row as partitions have it.
func (k *keys) record(dst []byte, p piece, from cells, row int) ([]byte, error) {
	place := p.first + int64(row)
	dst = append(dst, make([]byte, head)...)
	for _, c := range from.key {
		null := c.Null(row)
		if null && !k.by.Places {
			return nil, refused(c.Name, "column %q has nulls (in file %q, for example), and is to say which unit a row is of; leave these rows out, or choose another column", c.Name, k.table.files[p.file].Name)
		}
		dst = appendCell(dst, c, row, k.by.Day)
		if null { // its place tells it from all others
			dst = binary.LittleEndian.AppendUint32(dst, uint32(place))
		}
	}
	key := len(dst) - head
	for _, c := range from.more {
		dst = appendCell(dst, c, row, false)
	}
	binary.LittleEndian.PutUint32(dst, uint32(key))
	binary.LittleEndian.PutUint32(dst[4:], uint32(len(dst)-head-key))
	binary.LittleEndian.PutUint32(dst[8:], uint32(place))
	return dst, nil
}

// unit is what is known of a unit; texts view the partition.
type unit struct {
	key     []byte
	latest  float64
	stratum []byte
	rows    []uint32
}

// partition brings the rows of a partition together and yields its units.
func (k *keys) partition(p *partition, yield func(sources.Units, [][]uint32) error) error {
	if err := p.out.Flush(); err != nil {
		return unavailable(err)
	}
	data := make([]byte, p.size)
	if _, err := io.ReadFull(io.NewSectionReader(p.file, 0, p.size), data); err != nil {
		return unavailable(err)
	}
	err := p.file.Close()
	if p.file, p.out = nil, nil; err != nil {
		return unavailable(err)
	}
	known, units := map[string]int{}, []unit(nil)
	for len(data) > 0 {
		n, more := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
		place := binary.LittleEndian.Uint32(data[8:])
		key, rest := data[head:head+n], data[head+n:head+n+more]
		data = data[head+n+more:]
		name := unsafe.String(unsafe.SliceData(key), len(key)) // the partition's bytes stay as they are
		at, ok := known[name]
		latest := math.NaN()
		if k.by.Latest != "" {
			if rest[0] == 1 {
				latest = math.Float64frombits(binary.LittleEndian.Uint64(rest[1:]))
				rest = rest[9:]
			} else {
				rest = rest[1:]
			}
		}
		if !ok {
			known[name] = len(units)
			units = append(units, unit{key, latest, rest, []uint32{place}})
			continue
		}
		u := &units[at]
		switch {
		case k.by.Rows:
			return refused(k.by.Columns[0], "the key does not tell rows apart: two rows have the same values of %q; name columns that together are different in each row, or leave the key out: the rows of files are known by their places",
				k.by.Columns)
		case string(u.stratum) != string(rest):
			return refused(k.by.Stratum, "the values of %q differ within a unit, so that it belongs to no stratum; stratify by a column that is the same in all rows of a unit", k.by.Stratum)
		}
		if !(latest <= u.latest) && latest == latest {
			u.latest = latest
		}
		u.rows = append(u.rows, place)
	}
	for len(units) > 0 {
		n := min(len(units), unitBlock)
		block, rows, err := k.block(units[:n])
		if err == nil {
			err = yield(block, rows)
		}
		if err != nil {
			return err
		}
		units = units[n:]
	}
	return nil
}

func (k *keys) block(units []unit) (sources.Units, [][]uint32, error) {
	u, rows := sources.Units{Rows: make([]int64, len(units))}, make([][]uint32, len(units))
	builders := make([]*builder, len(k.fields))
	for i, f := range k.fields {
		builders[i] = newBuilder(f)
	}
	var strata *builder
	if f, ok := field(k.table.snapshot.Schema, k.by.Stratum); ok {
		strata = newBuilder(f)
	}
	if k.by.Latest != "" {
		u.Latest = make([]float64, len(units))
	}
	for i := range units {
		rest := units[i].key
		for _, b := range builders {
			rest = b.add(rest)
		}
		if strata != nil {
			strata.add(units[i].stratum)
		}
		if u.Latest != nil {
			u.Latest[i] = units[i].latest
		}
		rows[i], u.Rows[i] = units[i].rows, int64(len(units[i].rows))
	}
	columns := make([]dataset.Column, len(builders))
	var err error
	for i, b := range builders {
		if columns[i], err = b.column(); err != nil {
			return u, nil, err
		}
	}
	if strata != nil {
		c, err := strata.column()
		if err != nil {
			return u, nil, err
		}
		u.Strata = &c
	}
	if k.by.Places {
		u.Places = rows
	}
	u.Keys, err = dataset.FromColumns(columns...)
	return u, rows, err
}
