package sourcetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
)

// Memory is a source whose tables are in memory and whose sums are those of the server's own engine: what the suite is held against, and a source for tests that need one but
// no engine. It does all that the contract says. It outlives Close: a server that starts again finds its parts.
type Memory struct {
	Places bool  // its rows have places, so that they need no key
	Block  int   // units that Units and Read yield together; 0: 64
	Limit  int64 // row functions of a batch from which on it is Dear; 0: none

	trusts bool // compares nothing with what was registered: a fault, for the test of the suite

	lock   sync.Mutex
	tables map[string]Rows
	parts  map[string]*memoryPart
	down   error
	sums   func(context.Context) error
}

var (
	_ sources.Source = (*Memory)(nil)
	_ sources.Placed = (*Memory)(nil)
)

// Put makes or replaces an owner's table.
func (m *Memory) Put(table string, rows Rows) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.tables == nil {
		m.tables = map[string]Rows{}
	}
	m.tables[table] = rows
}

// Down makes the source answer everything with an error, until it is nil again.
func (m *Memory) Down(err error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.down = err
}

// BeforeSums is called before a part sums, whatever is summed; its error is the sums'. nil: nothing is.
func (m *Memory) BeforeSums(f func(context.Context) error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.sums = f
}

// Spoil changes the rows of a finished part where the source keeps them.
func (m *Memory) Spoil(part string, change func(Rows) Rows) {
	m.lock.Lock()
	defer m.lock.Unlock()
	p := m.parts[part]
	m.parts[part] = &memoryPart{rows: change(p.rows), offsets: p.offsets}
}

// Kind is "memory".
func (*Memory) Kind() string { return "memory" }

// RowsHavePlaces implements [sources.Placed].
func (m *Memory) RowsHavePlaces() bool { return m.Places }

// up is an error while the source is down.
func (m *Memory) up(ctx context.Context) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.down != nil {
		return &sources.Error{Kind: sources.Unavailable, Detail: "the source in memory does not answer", Err: m.down}
	}
	return ctx.Err()
}

// Ready implements [sources.Source].
func (m *Memory) Ready(ctx context.Context) error { return m.up(ctx) }

// Close implements [sources.Source].
func (*Memory) Close() error { return nil }

func (m *Memory) table(ctx context.Context, name string) (Rows, error) {
	if err := m.up(ctx); err != nil {
		return nil, err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	rows, ok := m.tables[name]
	if !ok {
		return nil, &sources.Error{Kind: sources.NotFound, Detail: fmt.Sprintf("there is no table %.60q", name)}
	}
	return rows, nil
}

// checksum is of the rows of a table whatever their order.
func checksum(t *dataset.Table) (string, error) {
	d := dataset.NewDigest()
	if err := d.Add(t); err != nil {
		return "", err
	}
	sum := d.Sum([]byte("sourcetest"))
	return hex.EncodeToString(sum[:]), nil
}

// Look implements [sources.Source].
func (m *Memory) Look(ctx context.Context, table string) (sources.Snapshot, error) {
	rows, err := m.table(ctx, table)
	if err != nil {
		return sources.Snapshot{}, err
	}
	upload := rows.Upload()
	of := sources.Snapshot{Table: table, Schema: upload.Schema(), Skipped: []sources.Skipped{}, Rows: int64(rows.Len())}
	for i := range of.Schema.Fields {
		of.Schema.Fields[i].Source = "memory"
	}
	of.Checksum, err = checksum(upload)
	return of, err
}

// still reads a table, which must be as it was looked at.
func (m *Memory) still(ctx context.Context, of sources.Snapshot) (Rows, error) {
	now, err := m.Look(ctx, of.Table)
	if err != nil {
		return nil, err
	}
	if !m.trusts && (now.Rows != of.Rows || now.Checksum != of.Checksum) {
		return nil, &sources.Error{Kind: sources.Changed, Detail: fmt.Sprintf("the table %q is not as it was looked at: register it again", of.Table)}
	}
	return m.table(ctx, of.Table)
}

// Units implements [sources.Source].
func (m *Memory) Units(ctx context.Context, of sources.Snapshot, by sources.Keys, yield func(sources.Units) error) error {
	rows, err := m.still(ctx, of)
	if err != nil {
		return err
	}
	_, err = m.units(ctx, rows, by, yield)
	return err
}

// refuse is an error about a column.
func refuse(column, format string, args ...any) error {
	return &sources.Error{Kind: sources.Refused, Detail: fmt.Sprintf(format, args...), Column: column}
}

func (m *Memory) units(ctx context.Context, rows Rows, by sources.Keys, yield func(sources.Units) error) (*owned, error) {
	upload := rows.Upload()
	if len(by.Columns) == 0 && !m.Places {
		return nil, refuse("", "rows of this source have no places: say by which columns each of them is known")
	}
	for _, name := range by.Columns {
		c, ok := upload.Lookup(name)
		if !ok {
			return nil, refuse(name, "the key names the column %q, which the table does not have", name)
		}
		for i := range c.Len() {
			if c.Null(i) {
				return nil, refuse(name, "the key %q is null in some rows: name columns that are never null", name)
			}
		}
	}
	if c, ok := upload.Lookup(by.Latest); by.Latest != "" && (!ok || c.Kind != dataset.Time) {
		return nil, refuse(by.Latest, "%q is no column of times", by.Latest)
	}
	stratum, ok := upload.Lookup(by.Stratum)
	if by.Stratum != "" && !ok {
		return nil, refuse(by.Stratum, "the table has no column %q", by.Stratum)
	}
	o := byUnit(rows, by)
	for _, unit := range o.units {
		if by.Rows && len(o.of[unit]) > 1 {
			return nil, refuse(by.Columns[0], "the key does not identify rows: several rows share one")
		}
		for _, row := range o.of[unit] {
			if stratum != nil && cell(stratum, row) != cell(stratum, o.of[unit][0]) {
				return nil, refuse(by.Stratum, "the stratum %q is not the same in all rows of a unit", by.Stratum)
			}
		}
	}
	block := m.Block
	if block == 0 {
		block = 64
	}
	for names := range slices.Chunk(o.units, block) {
		if err := m.up(ctx); err != nil {
			return nil, err
		}
		units, first := sources.Units{}, []int(nil)
		for _, name := range names {
			first = append(first, o.of[name][0])
			units.Rows = append(units.Rows, int64(len(o.of[name])))
			if by.Latest != "" {
				units.Latest = append(units.Latest, o.latest(name))
			}
		}
		if units.Keys = o.keysAt(first); by.Stratum != "" {
			units.Strata = rows.Take(first).Column(by.Stratum).asColumn()
		}
		if err := yield(units); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// keysAt are the keys of the units of some rows.
func (o *owned) keysAt(rows []int) *dataset.Table {
	if len(o.keys.Columns) == 0 {
		places := dataset.Column{Field: dataset.Field{Name: "row", Kind: dataset.Number}}
		for _, row := range rows {
			places.Numbers = append(places.Numbers, float64(row))
		}
		return table(places)
	}
	var columns []dataset.Column
	for _, name := range o.keys.Columns {
		c := o.rows.Take(rows).Column(name).upload()
		if o.keys.Day {
			for i := range c.Numbers {
				c.Numbers[i] = math.Floor(c.Numbers[i] / 86400e6)
			}
			c.Kind = dataset.Number
		}
		columns = append(columns, c)
	}
	return table(columns...)
}

func table(columns ...dataset.Column) *dataset.Table {
	t, err := dataset.FromColumns(columns...)
	if err != nil {
		panic(err)
	}
	return t
}

// asColumn is the column as an upload has it.
func (c *Column) asColumn() *dataset.Column { return table(c.upload()).Column(0) }

// Divide implements [sources.Source].
func (m *Memory) Divide(ctx context.Context, of sources.Snapshot, by sources.Keys, specs []sources.PartSpec, place func(sources.Units, []sources.Place) error, done func(int64)) ([]sources.PartInfo, error) {
	rows, err := m.still(ctx, of)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		m.keep(spec.Name, &memoryPart{}) // as an engine that makes its tables first: unfinished
	}
	a, placed := assignment{map[string]sources.Place{}, make([]int64, len(specs))}, int64(0)
	o, err := m.units(ctx, rows, by, func(units sources.Units) error {
		places := make([]sources.Place, units.Len())
		if err := place(units, places); err != nil {
			return err
		}
		for i, p := range places {
			a.place[keyOf(units.Keys, by, i)] = p
			a.units[p.Part]++
			placed += units.Rows[i]
		}
		done(placed)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, spec := range specs {
		if a.units[i] != spec.Units {
			return nil, fmt.Errorf("sourcetest: part %q has %d units, want %d", spec.Name, a.units[i], spec.Units)
		}
	}
	if _, err := m.still(ctx, of); err != nil {
		return nil, err
	}
	infos := make([]sources.PartInfo, len(specs))
	for i, made := range o.parts(a) {
		p := &memoryPart{rows: made.owner, offsets: made.offsets}
		infos[i] = sources.PartInfo{Name: specs[i].Name, Schema: of.Schema, Rows: made.shape.Rows, Units: specs[i].Units, Grouped: grouped(by), LargestUnit: made.largest(), Texts: made.shape.Texts}
		_, infos[i].Checksums = p.read()
		m.keep(specs[i].Name, p)
	}
	return infos, nil
}

func (m *Memory) keep(name string, p *memoryPart) {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.parts == nil {
		m.parts = map[string]*memoryPart{}
	}
	m.parts[name] = p
}

// Parts implements [sources.Source].
func (m *Memory) Parts(ctx context.Context) ([]string, error) {
	if err := m.up(ctx); err != nil {
		return nil, err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	names := []string{}
	for name := range m.parts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

// Drop implements [sources.Source].
func (m *Memory) Drop(ctx context.Context, name string) error {
	if err := m.up(ctx); err != nil {
		return err
	}
	m.lock.Lock()
	defer m.lock.Unlock()
	delete(m.parts, name)
	return nil
}

// memoryPart is what the source keeps: rows, unit after unit.
type memoryPart struct {
	rows    Rows
	offsets []uint32

	once   sync.Once
	upload *dataset.Table
	sums   map[string]string
}

// read returns the rows as an upload has them, and checksums of each column and of the units.
func (p *memoryPart) read() (*dataset.Table, map[string]string) {
	p.once.Do(func() { p.upload, p.sums = p.rows.Upload(), p.checksums() })
	return p.upload, p.sums
}

func (p *memoryPart) checksums() map[string]string {
	sums := map[string]string{}
	for i := range p.rows {
		sum := sha256.New()
		c := p.rows[i].asColumn()
		for row := range c.Len() {
			fmt.Fprintln(sum, cell(c, row))
		}
		sums[p.rows[i].Name] = hex.EncodeToString(sum.Sum(nil))
	}
	sums[" units"] = fmt.Sprint(p.offsets)
	return sums
}

// Open implements [sources.Source].
func (m *Memory) Open(ctx context.Context, of sources.PartInfo, rowsCap int64) (sources.Part, error) {
	if err := m.up(ctx); err != nil {
		return nil, err
	}
	p := &openPart{m: m, of: of, rowsCap: rowsCap}
	_, err := p.now(ctx)
	return p, err
}

// openPart reads what the source keeps anew each time, as an engine does.
type openPart struct {
	m       *Memory
	of      sources.PartInfo
	rowsCap int64
}

// now is what the part holds, which must be what was registered.
func (p *openPart) now(ctx context.Context) (part, error) {
	if err := p.m.up(ctx); err != nil {
		return part{}, err
	}
	p.m.lock.Lock()
	kept := p.m.parts[p.of.Name]
	p.m.lock.Unlock()
	changed := &sources.Error{Kind: sources.Changed, Detail: "the rows of the holdout are not those that were registered: its owner must mend them"}
	if kept == nil {
		return part{}, changed
	}
	rows, sums := kept.read()
	found := part{rows: rows, offsets: kept.offsets}
	for name, sum := range p.of.Checksums {
		if !p.m.trusts && sums[name] != sum {
			return part{}, changed
		}
	}
	if !p.m.trusts && (int64(found.rows.Rows()) != p.of.Rows || found.units() != p.of.Units) {
		return part{}, changed
	}
	return found, nil
}

func (p *openPart) Units() int64                    { return p.of.Units }
func (p *openPart) Close() error                    { return nil }
func (p *openPart) Check(ctx context.Context) error { _, err := p.now(ctx); return err }

func (p *openPart) Shape() dataset.Shape {
	s := dataset.Shape{Rows: p.of.Rows, Texts: p.of.Texts}
	if p.of.Grouped {
		s.Units = p.of.Units
	}
	return s
}

func (p *openPart) Price(batch rowfn.Batch) (sources.Price, error) {
	if n := len(batch.Functions); p.m.Limit > 0 && int64(n) > p.m.Limit {
		return sources.Price{}, &sources.Error{Kind: sources.Dear, Detail: fmt.Sprintf("%d row functions are more than the source's limit of %d: ask for fewer", n, p.m.Limit)}
	}
	return sources.Price{Pushed: len(batch.Functions), Scans: 1}, nil
}

func (p *openPart) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := p.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

func (p *openPart) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	p.m.lock.Lock()
	before := p.m.sums
	p.m.lock.Unlock()
	if before != nil {
		if err := before(ctx); err != nil {
			return rowfn.Sums{}, err
		}
	}
	now, err := p.now(ctx)
	if err != nil {
		return rowfn.Sums{}, err
	}
	e, err := engine.NewTable(now.rows, now.offsets, p.rowsCap)
	if err != nil {
		return rowfn.Sums{}, err
	}
	return e.Moments(ctx, batch, from, to)
}

func (p *openPart) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	now, err := p.now(ctx)
	if err != nil {
		return err
	}
	if from < 0 || to < from || to > p.of.Units {
		return fmt.Errorf("sourcetest: units %d to %d of %d", from, to, p.of.Units)
	}
	if columns == nil {
		columns = named(p.of.Schema)
	}
	p.m.lock.Lock()
	kept := p.m.parts[p.of.Name]
	p.m.lock.Unlock()
	chosen := Rows{}
	for _, name := range columns {
		if _, ok := now.rows.Lookup(name); !ok {
			return refuse(name, "there is no column %q", name)
		}
		chosen = append(chosen, *kept.rows.Column(name))
	}
	block := int64(p.m.Block)
	if block == 0 {
		block = 64
	}
	for ; from < to; from += block {
		if err := p.m.up(ctx); err != nil {
			return err
		}
		b, rows := sources.Block{First: from}, []int(nil)
		for unit := from; unit < min(to, from+block); unit++ {
			begin, end := now.rowsOf(unit)
			if now.offsets != nil {
				b.Offsets = append(b.Offsets, uint32(len(rows)))
			}
			for row := begin; row < end; row++ {
				rows = append(rows, row)
			}
		}
		if now.offsets != nil {
			b.Offsets = append(b.Offsets, uint32(len(rows)))
		}
		b.Rows = chosen.Take(rows).Upload()
		if err := yield(b); err != nil {
			return err
		}
	}
	return nil
}

func (p *openPart) Distinct(ctx context.Context, column string, most int) (dataset.Column, bool, error) {
	now, err := p.now(ctx)
	if err != nil {
		return dataset.Column{}, false, err
	}
	c, ok := now.rows.Lookup(column)
	if !ok {
		return dataset.Column{}, false, refuse(column, "there is no column %q", column)
	}
	rows := distinctRows(c)
	if len(rows) > most {
		return dataset.Column{}, false, nil
	}
	p.m.lock.Lock()
	defer p.m.lock.Unlock()
	d := p.m.parts[p.of.Name].rows.Column(column)
	if c.Kind == dataset.Text {
		texts := make([]string, len(rows))
		for i, row := range rows {
			texts[i] = c.Dictionary.Text(int(c.Codes[row]) - 1)
		}
		return *table(dataset.NewText(column, texts, nil)).Column(0), true, nil
	}
	return *Rows{*d}.Take(rows)[0].asColumn(), true, nil
}

func (p *openPart) Facts(ctx context.Context) ([]sources.Facts, error) {
	now, err := p.now(ctx)
	if err != nil {
		return nil, err
	}
	facts := make([]sources.Facts, len(p.of.Schema.Fields))
	for i, f := range p.of.Schema.Fields {
		c, _ := now.rows.Lookup(f.Name)
		facts[i] = factsOf(c)
	}
	return facts, nil
}
