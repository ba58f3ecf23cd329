package trino

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/blocks"
	"github.com/holdoutd/holdoutd/sources/sql"
)

// part is a part that is open.
type part struct {
	source *Source
	info   sources.PartInfo
	kept   kept
	cap    int64
	index  map[string]int // of columns
}

var _ sources.Part = (*part)(nil)

// checkReader refuses a reader who could make tables where the parts are. Statements are checked for it without being run.
func (s *Source) checkReader(ctx context.Context) error {
	return s.mustNot(ctx, "make tables in the schema of the parts", "CREATE TABLE "+s.table(partTable, "probe")+" AS SELECT 1 AS x")
}

// mustNot refuses a reader who may run a statement that writes.
func (s *Source) mustNot(ctx context.Context, what, statement string) error {
	err := s.reader.read(ctx, "EXPLAIN (TYPE VALIDATE) "+statement, nil, nil)
	f := (*failure)(nil)
	switch {
	case asFailure(err, &f) && f.Name == "PERMISSION_DENIED":
		return nil
	case asFailure(err, &f) && f.Name == "NOT_SUPPORTED": // nobody may, there
		return nil
	case err != nil:
		return ofPart(err)
	}
	return &sources.Error{Kind: sources.Refused, Detail: "the source's reader may " + what + "; it must be a user who can read there and nothing else, by rules of the source's access control"}
}

// Open opens a part as the reader. It counts its rows, and compares the version of its table where it has versions; that its values are those that were registered, each sum compares
// with what it reads.
func (s *Source) Open(ctx context.Context, of sources.PartInfo, rowsCap int64) (sources.Part, error) {
	p := &part{source: s, info: of, cap: rowsCap, index: map[string]int{}}
	if !partName.MatchString(of.Name) || rowsCap < 1 {
		return nil, fmt.Errorf("trino: a part %q, opened with a cap of %d rows", of.Name, rowsCap)
	}
	if err := json.Unmarshal(of.Private, &p.kept); err != nil {
		return nil, fmt.Errorf("trino: what was kept of part %s: %w", of.Name, err)
	}
	for i, f := range of.Schema.Fields {
		p.index[f.Name] = i
	}
	if err := p.consistent(); err != nil {
		return nil, changed(err)
	}
	ctx, cancel := p.deadline(ctx)
	defer cancel()
	rows, err := s.reader.rows(ctx, "SELECT count(*), coalesce(max(_unit), -1) + 1 FROM "+p.table())
	if err != nil {
		return nil, ofPart(err)
	}
	for i, want := range []int64{of.Rows, of.Units} {
		if n, err := integer(rows, i); err != nil || n != want {
			return nil, changed(fmt.Errorf("trino: part %s has %d rows or units, want %d: %w", of.Name, n, want, err))
		}
	}
	version, err := s.versionOf(ctx, s.reader, of.Name)
	if err != nil {
		return nil, ofPart(err)
	}
	if version != p.kept.Version {
		return nil, changed(fmt.Errorf("trino: the table of part %s is of version %q, it was made as %q", of.Name, version, p.kept.Version))
	}
	for what, statement := range map[string]string{
		"insert rows into the parts": "INSERT INTO " + p.table() + " SELECT * FROM " + p.table(),
		"delete rows of the parts":   "DELETE FROM " + p.table(),
	} {
		if err := s.mustNot(ctx, what, statement); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// consistent reports what is kept of a part that does not agree with itself.
func (p *part) consistent() error {
	c := p.kept.Checks
	if c == nil || c.Block < 1 || len(c.Columns) != len(p.info.Schema.Fields) || p.kept.Piece < 1 || len(p.kept.Columns) != len(c.Columns) {
		return fmt.Errorf("trino: what was kept of part %s is not whole", p.info.Name)
	}
	rows := int64(0)
	for _, n := range c.Rows {
		rows += n
	}
	if blocks := (p.info.Units + c.Block - 1) / c.Block; rows != p.info.Rows || blocks != int64(len(c.Rows)) {
		return fmt.Errorf("trino: what was kept of part %s is of %d rows in %d blocks, want %d in %d", p.info.Name, rows, len(c.Rows), p.info.Rows, blocks)
	}
	for i, f := range p.info.Schema.Fields {
		if len(c.Columns[i]) != len(c.Rows) || p.info.Checksums[f.Name] != strconv.FormatUint(c.Total(i), 10) {
			return fmt.Errorf("trino: the checksums that were kept of part %s do not agree in column %d", p.info.Name, i)
		}
	}
	return nil
}

// versionOf is the version of a part's table, where the catalog has versions; "" elsewhere.
func (s *Source) versionOf(ctx context.Context, c *client, part string) (string, error) {
	connector, err := s.kept(ctx)
	if err != nil || connector != "iceberg" {
		return "", err
	}
	rows, err := c.rows(ctx, "SELECT CAST(snapshot_id AS varchar) FROM "+sql.Trino.Name(s.catalog, s.schema, tableOf(partTable, part)+"$refs")+" WHERE name = 'main'")
	if err != nil {
		return "", ofPart(err)
	}
	if len(rows) != 1 {
		return "", unavailable(fmt.Errorf("%w: %d versions", errProtocol, len(rows)))
	}
	version, _ := rows[0][0].(string)
	return version, nil
}

// deadline bounds what a statement about the part takes, here as in the engine.
func (p *part) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, p.source.reader.longest+waitForPage, errDeadline)
}

var errDeadline = unavailable(fmt.Errorf("trino: the deadline of a statement has passed"))

func (p *part) table() string { return p.source.table(partTable, p.info.Name) }

// from is the part's table as statements about the units from..to-1 read it: the pieces that hold their blocks.
func (p *part) from(from, to int64) string {
	block, piece, units := p.kept.Checks.Block, p.kept.Piece, p.info.Units
	low, high := from/block*block, min((to+block-1)/block*block, units)
	if units <= piece || low >= high || low/piece == 0 && (high-1)/piece == (units-1)/piece {
		return p.table()
	}
	return fmt.Sprintf("(SELECT * FROM %s WHERE _piece BETWEEN %d AND %d)", p.table(), low/piece, (high-1)/piece)
}

func (p *part) sql(from, to int64) sql.Part {
	return sql.Part{Table: p.from(from, to), Schema: p.info.Schema, Units: p.info.Units, Grouped: p.info.Grouped, Cap: p.cap, Checks: p.kept.Checks}
}

// Units is the number of units.
func (p *part) Units() int64 { return p.info.Units }

// Shape is what is public of the part.
func (p *part) Shape() dataset.Shape {
	shape := dataset.Shape{Rows: p.info.Rows, Texts: maps.Clone(p.info.Texts)}
	if p.info.Grouped {
		shape.Units = p.info.Units
	}
	return shape
}

// Sums are the sums of row functions.
func (p *part) Sums(ctx context.Context, functions []rowfn.Function, from, to int64) ([]int64, error) {
	sums, err := p.Moments(ctx, rowfn.Batch{Functions: functions}, from, to)
	return sums.Values, err
}

// Moments sums a batch: what can be said in SQL by statements of the engine, the rest here, over rows that are read.
func (p *part) Moments(ctx context.Context, batch rowfn.Batch, from, to int64) (rowfn.Sums, error) {
	if from < 0 || to < from || to > p.info.Units {
		return rowfn.Sums{}, fmt.Errorf("trino: units %d to %d of %d", from, to, p.info.Units)
	}
	planned, err := sql.Plan(sql.Trino, p.sql(from, to), batch, from, to)
	if err != nil {
		return rowfn.Sums{}, err
	}
	sums := planned.Sums()
	for i := range planned.Statements {
		if err := p.ask(ctx, &planned.Statements[i], &sums); err != nil {
			return rowfn.Sums{}, err
		}
	}
	if len(planned.Rest.Functions) > 0 {
		rest, err := blocks.Sum(ctx, p, p.info.Schema, planned.Rest, p.cap, from, to)
		if err != nil {
			return rowfn.Sums{}, err
		}
		planned.Place(rest, &sums)
	}
	return sums, nil
}

// ask runs a statement and puts its sums into place.
func (p *part) ask(ctx context.Context, s *sql.Statement, sums *rowfn.Sums) error {
	ctx, cancel := p.deadline(ctx)
	defer cancel()
	rows, err := p.source.reader.texts(ctx, s.Text)
	if err != nil {
		if cause := context.Cause(ctx); cause == errDeadline {
			err = cause
		}
		return ofPart(err)
	}
	return s.Read(p.kept.Checks, sums, rows...)
}

// Check compares all columns of all rows with what was registered.
func (p *part) Check(ctx context.Context) error { return p.check(ctx, 0, p.info.Units) }

func (p *part) check(ctx context.Context, from, to int64) error {
	s := sql.Check(sql.Trino, p.sql(from, to), from, to)
	return p.ask(ctx, &s, &rowfn.Sums{})
}

const (
	// pushedRow is about how long the engine takes for a row function and a row, and scannedRow for reading a row, in seconds: guesses for two cores, which nobody has measured: BenchmarkLineitem would.
	pushedRow  = 40e-9
	scannedRow = 100e-9
	// readByte is about how long a byte takes from the engine to here.
	readByte = 50e-9
	// aStatement is about how long the shortest statement takes.
	aStatement = 0.3
)

// Price says what a batch costs, from its row functions and the public shape alone.
func (p *part) Price(batch rowfn.Batch) (sources.Price, error) {
	planned, err := sql.Plan(sql.Trino, p.sql(0, p.info.Units), batch, 0, p.info.Units)
	if err != nil {
		return sources.Price{}, err
	}
	rows := float64(p.info.Rows)
	price := sources.Price{Read: len(planned.Rest.Functions), Scans: len(planned.Statements)}
	price.Pushed = len(batch.Functions) - price.Read
	price.Seconds = float64(price.Scans)*(aStatement+rows*scannedRow) + float64(price.Pushed+len(batch.Products))*rows*pushedRow
	if price.Read > 0 {
		columns, err := blocks.Columns(p.info.Schema, planned.Rest)
		if err != nil {
			return sources.Price{}, err
		}
		price.Bytes = p.info.Rows * p.rowBytes(columns)
		price.Scans += 2
		price.Seconds += 2*(aStatement+rows*scannedRow) + float64(price.Bytes)*readByte + float64(price.Read)*rows*pushedRow
		if price.Bytes > p.source.maxRead {
			return sources.Price{}, &sources.Error{Kind: sources.Dear, Detail: fmt.Sprintf("for %d of the row functions about %d MB of rows would be read from the source, and its limit is %d MB: %s. "+
				"Ask without what the engine cannot sum, about fewer columns, or of a holdout with fewer rows; or let the operator raise max_read of the source",
				price.Read, price.Bytes>>20, p.source.maxRead>>20, planned.Why[0])}
		}
	}
	return price, nil
}

// rowBytes is about how many bytes a row of some columns has on its way, by their kinds and public shape.
func (p *part) rowBytes(columns []string) int64 {
	bytes := int64(8)
	for _, name := range columns {
		switch f := p.info.Schema.Fields[p.index[name]]; f.Kind {
		case dataset.Text:
			shape := p.info.Texts[name]
			bytes += 4 + shape.Bytes/max(shape.Texts, 1)
		case dataset.Bool:
			bytes += 4
		default:
			bytes += 8
		}
	}
	return bytes * 4 / 3
}

// Close lets go of it.
func (p *part) Close() error { return nil }

var _ engine.MomentSource = (*part)(nil)

// texts runs a statement whose rows are integers, and returns their digits.
func (c *client) texts(ctx context.Context, statement string) ([][]string, error) {
	rows, err := c.rows(ctx, statement)
	if err != nil {
		return nil, err
	}
	out := make([][]string, len(rows))
	for i, row := range rows {
		for _, v := range row {
			out[i] = append(out[i], fmt.Sprint(v))
		}
	}
	return out, nil
}
