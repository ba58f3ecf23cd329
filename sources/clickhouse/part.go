package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/blocks"
	"github.com/holdoutd/holdoutd/sources/sql"
)

const (
	// DearBytes is the most that is read for the row functions of a batch that ClickHouse does not sum: some minutes of a fast network.
	DearBytes = 64 << 30
	// DearStatements is the most statements of a batch: each is a scan.
	DearStatements = 200
	// groupCells is how many sums of single units a statement holds: 16 to 30 bytes each, some hundred megabytes.
	groupCells = 1 << 24
	// aheadBlocks is how many blocks wait while one is summed.
	aheadBlocks = 2
)

// What [Part.Price] takes for granted: seconds of one statement, of one row function for a row, and of a byte that is read. On two busy processors; a cluster is faster.
const (
	secondsOfStatement = 0.02
	secondsOfValue     = 15e-9
	secondsOfByte      = 10e-9
)

// part is an open part.
type part struct {
	s    *Source
	info sources.PartInfo
	sql  sql.Part
	cap  int64
}

var _ sources.Part = (*part)(nil)

// sqlPart is a part as statements know it.
func sqlPart(s *Source, info sources.PartInfo, rowsCap int64, checks *sql.Checks) sql.Part {
	of := sql.Part{Table: name(s.conn.o.database, info.Name), Schema: info.Schema, Units: info.Units, Grouped: info.Grouped, Cap: rowsCap, Checks: checks}
	if s.conn.o.cluster != "" {
		of.Local, of.Each = name(s.conn.o.database, info.Name+suffixLocal), name(s.conn.o.database, suffixReady)
	}
	return of
}

// Open implements [sources.Source].
func (s *Source) Open(ctx context.Context, of sources.PartInfo, rowsCap int64) (sources.Part, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	checks := &sql.Checks{}
	if err := json.Unmarshal(of.Private, checks); err != nil || checks.Block < 1 || len(checks.Columns) != len(of.Schema.Fields) || !partName.MatchString(of.Name) {
		return nil, changed(partChanged, fmt.Errorf("clickhouse: what is kept of the part %q: %w", of.Name, errors.Join(err, errors.New("it does not fit its schema"))))
	}
	rows := int64(0)
	for _, n := range checks.Rows {
		rows += n
	}
	if rows != of.Rows {
		return nil, changed(partChanged, fmt.Errorf("clickhouse: the part has %d rows, its blocks %d", of.Rows, rows))
	}
	for i, f := range of.Schema.Fields {
		if of.Checksums[f.Name] != strconv.FormatUint(checks.Total(i), 10) {
			return nil, changed(partChanged, fmt.Errorf("clickhouse: the checksum of column %d is not that of its blocks", i))
		}
	}
	p := &part{s: s, info: of, sql: sqlPart(s, of, rowsCap, checks), cap: rowsCap}
	if err := p.Check(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Units implements [sources.Part].
func (p *part) Units() int64 { return p.info.Units }

// Shape implements [sources.Part].
func (p *part) Shape() dataset.Shape {
	s := dataset.Shape{Rows: p.info.Rows, Texts: p.info.Texts}
	if p.info.Grouped {
		s.Units = p.info.Units
	}
	return s
}

// Close implements [sources.Part].
func (p *part) Close() error { return nil }

// Check implements [sources.Part].
func (p *part) Check(ctx context.Context) error {
	if p.info.Units == 0 {
		return nil
	}
	return p.s.run(ctx, p.sql, sql.Check(sql.ClickHouse, p.sql, 0, p.info.Units), nil)
}

// ofPart is an error of a statement about a part: a table or column that is gone was there.
func ofPart(err error) error {
	if e := (*sources.Error)(nil); errors.As(err, &e) && e.Kind == sources.NotFound {
		return changed(partChanged, err)
	}
	return err
}

// run runs a statement about a part, compares what it says with what was registered, and puts its sums into place. It is sent again where the connection fails, for it only reads.
func (s *Source) run(ctx context.Context, of sql.Part, st sql.Statement, into *rowfn.Sums) error {
	rows, err := s.integers(ctx, st.Text)
	if err != nil {
		return ofPart(err)
	}
	if into == nil {
		into = &rowfn.Sums{}
	}
	return st.Read(of.Checks, into, rows...)
}

// integers runs a statement of the reader that returns integers, within the deadline of a statement.
func (s *Source) integers(ctx context.Context, text string) (rows [][]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.conn.o.deadline)
	defer cancel()
	err = s.conn.retry(ctx, func() error {
		reply, err := s.conn.text(ctx, statement{as: s.conn.o.reader, text: text + " FORMAT TabSeparated"})
		if err != nil {
			return err
		}
		if len(reply) > 0 && reply[len(reply)-1] != '\n' || codeOf(reply) != 0 {
			return broken(reply, errors.New("it ends within a line, or in an error"))
		}
		rows = nil
		for l := range bytes.Lines(reply) {
			rows = append(rows, strings.Split(strings.TrimSuffix(string(l), "\n"), "\t"))
		}
		return nil
	})
	return rows, err
}

// Sums implements [sources.Part].
func (p *part) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := p.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments implements [sources.Part].
func (p *part) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	plan, err := sql.Plan(sql.ClickHouse, p.sql, batch, from, to)
	if err != nil {
		return rowfn.Sums{}, err
	}
	if err := p.dear(plan, to-from); err != nil {
		return rowfn.Sums{}, err
	}
	sums := plan.Sums()
	for low := from; low < to; {
		high := p.until(low, to, len(batch.Functions)+len(batch.Products))
		some := plan
		if low != from || high != to {
			if some, err = sql.Plan(sql.ClickHouse, p.sql, batch, low, high); err != nil {
				return rowfn.Sums{}, err
			}
		}
		found := some.Sums()
		for _, st := range some.Statements {
			if err := p.s.run(ctx, p.sql, st, &found); err != nil {
				return rowfn.Sums{}, err
			}
		}
		for i, sum := range found.Values {
			sums.Values[i] += sum
		}
		for i, sum := range found.Products {
			sums.Products[i] = sums.Products[i].Plus(sum)
		}
		low = high
	}
	if len(plan.Rest.Functions) > 0 {
		rest, err := blocks.Sum(ctx, ahead{p}, p.info.Schema, plan.Rest, p.cap, from, to)
		if err != nil {
			return rowfn.Sums{}, err
		}
		plan.Place(rest, &sums)
	}
	return sums, nil
}

// until is where a statement about the units from low on ends: at to, or at a block of what was registered before it, where units of several rows would take more memory. It depends on
// the number of row functions, and of units, alone.
func (p *part) until(low, to int64, functions int) int64 {
	if !p.info.Grouped {
		return to
	}
	block := p.sql.Checks.Block
	blocks := max(1, p.s.cells/int64(min(max(functions, 1), 100))/block)
	return min(to, (low/block+blocks)*block)
}

// ahead reads blocks while the last one is summed.
type ahead struct{ *part }

func (a ahead) Read(ctx context.Context, columns []string, from, to int64, yield func(sources.Block) error) error {
	return blocks.Ahead(ctx, aheadBlocks, func(ctx context.Context, yield func(sources.Block) error) error {
		return a.part.Read(ctx, columns, from, to, yield)
	}, yield)
}

// Price implements [sources.Part].
func (p *part) Price(batch rowfn.Batch) (sources.Price, error) {
	plan, err := sql.Plan(sql.ClickHouse, p.sql, batch, 0, p.info.Units)
	if err != nil {
		return sources.Price{}, err
	}
	if err := p.dear(plan, p.info.Units); err != nil {
		return sources.Price{}, err
	}
	price := sources.Price{Pushed: len(batch.Functions) - len(plan.Rest.Functions), Read: len(plan.Rest.Functions), Bytes: p.bytes(plan, p.info.Units), Scans: len(plan.Statements)}
	if price.Read > 0 || price.Scans == 0 {
		price.Scans++
	}
	price.Seconds = float64(price.Scans)*secondsOfStatement + float64(len(batch.Functions)+len(batch.Products))*float64(p.info.Rows)*secondsOfValue + float64(price.Bytes)*secondsOfByte
	return price, nil
}

// bytes is about how many bytes are read for the rest of a batch over so many units.
func (p *part) bytes(plan *sql.Planned, units int64) int64 {
	if len(plan.Rest.Functions) == 0 || p.info.Units == 0 {
		return 0
	}
	columns, err := blocks.Columns(p.info.Schema, plan.Rest)
	if err != nil {
		return 0
	}
	width := int64(4) // the unit's number
	for _, f := range p.info.Schema.Fields {
		if !slices.Contains(columns, f.Name) {
			continue
		}
		switch f.Kind {
		case dataset.Bool:
			width++
		case dataset.Text:
			t := p.info.Texts[f.Name]
			width += 1 + t.Bytes/max(t.Texts, 1)
		default:
			width += 8
		}
	}
	return int64(float64(width) * float64(p.info.Rows) * float64(units) / float64(p.info.Units))
}

// dear refuses what would take the source too long.
func (p *part) dear(plan *sql.Planned, units int64) error {
	if n := len(plan.Statements); n > DearStatements {
		return &sources.Error{Kind: sources.Dear, Detail: fmt.Sprintf("this takes %d statements of the source, more than %d: ask for fewer questions at once", n, DearStatements)}
	}
	if n := p.bytes(plan, units); n > DearBytes {
		return &sources.Error{Kind: sources.Dear, Detail: fmt.Sprintf("about %d GiB of rows would have to be read from the source, more than %d, for row functions that it cannot sum itself (%s): ask with arithmetic, comparisons and texts alone, or with fewer columns",
			n>>30, DearBytes>>30, plan.Why[0])}
	}
	return nil
}
