package clickhouse

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sql"
)

// bucketUnits is about how many units' places a join holds in memory, some hundred bytes each. A table of more units is read once for each bucket of them, and each part.
const bucketUnits = 2 << 20

// changed says that a table, or a part, is not as it was.
func changed(detail string, err error) error {
	return &sources.Error{Kind: sources.Changed, Detail: detail, Err: err}
}

const (
	tableChanged = "the source's table changes while it is registered; register it when nobody writes to it, or register a copy"
	partChanged  = "the source's rows are not those that were registered; nothing is asked there until the owner has mended it"
)

// Divide implements [sources.Source].
func (s *Source) Divide(ctx context.Context, of sources.Snapshot, by sources.Keys, parts []sources.PartSpec, place func(sources.Units, []sources.Place) error, done func(rows int64)) ([]sources.PartInfo, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	if len(parts) == 0 || len(parts) > 255 {
		return nil, fmt.Errorf("clickhouse: %d parts", len(parts))
	}
	g, err := newGrouping(of, by)
	if err != nil {
		return nil, err
	}
	d := &division{s: s, of: of, g: g, parts: parts}
	infos, err := d.make(ctx, place, done)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
		defer cancel()
		for _, p := range parts {
			err = errors.Join(err, s.Drop(ctx, p.Name)) // what cannot be dropped now is listed by Parts
		}
		return nil, err
	}
	return infos, nil
}

// division is a Divide that runs.
type division struct {
	s     *Source
	of    sources.Snapshot
	g     *grouping
	parts []sources.PartSpec
}

// units is the table of secret numbers.
func (d *division) units() string { return name(d.s.conn.o.database, d.parts[0].Name+suffixUnits) }

func (d *division) make(ctx context.Context, place func(sources.Units, []sources.Place) error, done func(rows int64)) ([]sources.PartInfo, error) {
	for _, p := range d.parts {
		if !partName.MatchString(p.Name) || p.Units < 0 || p.Units > dataset.MaxRows {
			return nil, fmt.Errorf("clickhouse: a part %q of %d units", p.Name, p.Units)
		}
	}
	if err := d.compare(ctx); err != nil {
		return nil, err
	}
	if err := d.assign(ctx, place); err != nil {
		return nil, err
	}
	rows := int64(0)
	for i, p := range d.parts {
		if err := d.create(ctx, p); err != nil {
			return nil, err
		}
		n, err := d.fill(ctx, i, func(n int64) { done(min(rows+n, d.of.Rows)) })
		if err != nil {
			return nil, err
		}
		rows += n
	}
	if err := d.s.drop(ctx, d.parts[0].Name+suffixUnits); err != nil {
		return nil, err
	}
	if err := d.compare(ctx); err != nil {
		return nil, err
	}
	return d.register(ctx, rows)
}

// compare compares the owner's table with the snapshot.
func (d *division) compare(ctx context.Context) error {
	now, err := d.s.columns(ctx, d.g.of)
	if err != nil {
		return err
	}
	types := map[string]string{}
	for _, k := range now {
		types[k.Name] = k.Type
	}
	for _, k := range d.g.of.Columns {
		if types[k.Name] != k.Type {
			return changed(tableChanged, errors.New("clickhouse: a column is of another type, or gone"))
		}
	}
	rows, sum, err := d.s.checksum(ctx, d.g.of)
	if err != nil {
		return err
	}
	if rows != d.of.Rows || sum != d.of.Checksum {
		return changed(tableChanged, fmt.Errorf("clickhouse: %d rows of the checksum %s, looked at were %d of %s", rows, sum, d.of.Rows, d.of.Checksum))
	}
	return nil
}

// assign asks where each unit goes, and writes it into a private table: in the body of an INSERT, which no log of statements has.
func (d *division) assign(ctx context.Context, place func(sources.Units, []sources.Place) error) error {
	var columns []string
	for i, k := range d.g.keys {
		columns = append(columns, fmt.Sprintf("k%d %s", i, cleanType(k.Kind)))
	}
	err := d.s.write(ctx, fmt.Sprintf("CREATE TABLE %s (%s, part UInt8, number UInt32) ENGINE = MergeTree ORDER BY part", d.units(), strings.Join(columns, ", ")), nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reader, writer := io.Pipe()
	given := make([]int64, len(d.parts))
	written := make(chan error, 1)
	go func() {
		out := bufio.NewWriterSize(writer, 1<<18)
		err := d.s.units(ctx, d.g, func(u sources.Units, b *block, from, to int) error {
			places := make([]sources.Place, to-from)
			if err := place(u, places); err != nil {
				return err
			}
			for i, p := range places {
				if p.Part < 0 || p.Part >= len(d.parts) || p.Number < 0 || p.Number >= d.parts[p.Part].Units {
					return fmt.Errorf("clickhouse: a unit's place is %d in part %d", p.Number, p.Part)
				}
				given[p.Part]++
				if err := d.appendUnit(out, b, from+i, p); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			err = out.Flush()
		}
		writer.CloseWithError(err) // nil ends the rows
		if err != nil {
			cancel(err)
		}
		written <- err
	}()
	_, sent := d.s.conn.text(ctx, statement{as: d.s.conn.o.loader, text: "INSERT INTO " + d.units() + " FORMAT RowBinary", rows: reader})
	reader.CloseWithError(errors.Join(sent, io.ErrClosedPipe))
	err = <-written
	switch {
	case err != nil && !errors.Is(err, io.ErrClosedPipe):
		return err
	case sent != nil:
		return sent
	}
	for i, p := range d.parts {
		if given[i] != p.Units {
			return changed(tableChanged, fmt.Errorf("clickhouse: %d units have their place in part %d, want %d", given[i], i, p.Units))
		}
	}
	return nil
}

// appendUnit writes a row of the table of numbers.
func (d *division) appendUnit(out *bufio.Writer, b *block, row int, p sources.Place) error {
	var piece [binary.MaxVarintLen64]byte
	for i, k := range d.g.keys {
		c := &b.columns[i]
		switch k.Kind {
		case dataset.Bool:
			out.WriteByte(c.bytes[row])
		case dataset.Text:
			text := c.text(row)
			out.Write(piece[:binary.PutUvarint(piece[:], uint64(len(text)))])
			out.Write(text)
		default:
			binary.LittleEndian.PutUint64(piece[:8], c.longs[row])
			out.Write(piece[:8])
		}
	}
	out.WriteByte(byte(p.Part))
	binary.LittleEndian.PutUint32(piece[:4], uint32(p.Number))
	_, err := out.Write(piece[:4]) // the first error of a bufio.Writer stays
	return err
}

// create makes the empty table of a part.
func (d *division) create(ctx context.Context, p sources.PartSpec) error {
	s, columns := d.s, []string{"_unit UInt32"}
	for i, f := range d.of.Schema.Fields {
		k, err := d.column(f)
		if err != nil {
			return err
		}
		columns = append(columns, k.definition(i, s.version[0], d.g.of.Texts[f.Name]))
	}
	list := strings.Join(columns, ", ")
	if s.conn.o.cluster == "" {
		return s.write(ctx, fmt.Sprintf("CREATE TABLE %s (%s) ENGINE = MergeTree ORDER BY _unit", name(s.conn.o.database, p.Name), list), nil)
	}
	err := s.everywhere(ctx, func(on string) string {
		return fmt.Sprintf("CREATE TABLE %s%s (%s) ENGINE = MergeTree ORDER BY _unit", name(s.conn.o.database, p.Name+suffixLocal), on, list)
	})
	if err != nil {
		return err
	}
	return s.write(ctx, fmt.Sprintf("CREATE TABLE %s (%s) ENGINE = Distributed(%s, %s, %s, _unit)", name(s.conn.o.database, p.Name), list,
		name(s.conn.o.cluster), name(s.conn.o.database), name(p.Name+suffixLocal)), nil)
}

// fill puts the rows of a part into its table, bucket by bucket, and returns how many there are.
func (d *division) fill(ctx context.Context, part int, done func(rows int64)) (rows int64, err error) {
	a, total := d.g.alias, int64(0)
	for _, p := range d.parts {
		total += p.Units
	}
	buckets := max(1, (total+bucketUnits-1)/bucketUnits)
	var left, right, using, plain []string
	for i, clean := range d.g.clean {
		left, right, using = append(left, clean+" AS "+d.g.key(i)), append(right, fmt.Sprintf("k%d AS %s", i, d.g.key(i))), append(using, d.g.key(i))
		plain = append(plain, fmt.Sprintf("k%d", i))
	}
	right = append(right, "number AS "+a+"number")
	into, outer := []string{"_unit"}, []string{a + "number"}
	for i, f := range d.of.Schema.Fields {
		k, err := d.column(f)
		if err != nil {
			return 0, err
		}
		column := fmt.Sprintf("%sc%d", a, i)
		left = append(left, k.clean()+" AS "+column)
		name, value := k.kept(i, stored(f.Kind, column))
		into, outer = append(into, name), append(outer, value)
	}
	table := name(d.s.conn.o.database, d.parts[part].Name)
	for bucket := range buckets {
		where, and := "", ""
		if buckets > 1 {
			where = fmt.Sprintf(" WHERE equals(modulo(%s, %d), %d)", rowHash(d.g.clean), buckets, bucket)
			and = fmt.Sprintf(" AND equals(modulo(%s, %d), %d)", rowHash(plain), buckets, bucket)
		}
		text := fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM (SELECT %s FROM %s%s) AS %srows ALL INNER JOIN (SELECT %s FROM %s WHERE part = %d%s) AS %splaces USING (%s)",
			table, strings.Join(into, ", "), strings.Join(outer, ", "), strings.Join(left, ", "), d.g.of.from(), where, a, strings.Join(right, ", "), d.units(), part, and, a, strings.Join(using, ", "))
		if err := d.s.write(ctx, text, d.s.heavy()); err != nil {
			return 0, err
		}
		if rows, err = d.count(ctx, table); err != nil {
			return 0, err
		}
		done(rows)
	}
	return rows, nil
}

// column is the owner's column of a field.
func (d *division) column(f dataset.Field) (*kept, error) {
	for i := range d.g.of.Columns {
		if k := &d.g.of.Columns[i]; k.Name == f.Name && k.Kind == f.Kind {
			return k, nil
		}
	}
	return nil, errors.New("clickhouse: the snapshot's columns are not those of its schema")
}

func (d *division) count(ctx context.Context, table string) (int64, error) {
	found, err := d.s.strings(ctx, d.s.conn.o.reader, 1, "SELECT toString(count()) FROM "+table)
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, errors.New("clickhouse: a count comes in one row")
	}
	return strconv.ParseInt(found[0][0], 10, 64)
}

// register compares all parts with the table, and writes down what each is.
func (d *division) register(ctx context.Context, rows int64) ([]sources.PartInfo, error) {
	var infos []sources.PartInfo
	sum := uint64(0)
	for _, p := range d.parts {
		info := sources.PartInfo{Name: p.Name, Schema: d.of.Schema, Units: p.Units, Grouped: !d.g.by.Rows, Texts: map[string]dataset.TextShape{}, Checksums: map[string]string{}}
		for _, f := range d.of.Schema.Fields {
			if f.Kind == dataset.Text {
				info.Texts[f.Name] = d.g.of.Texts[f.Name]
			}
		}
		hash, err := d.one(ctx, p, &info)
		if err != nil {
			return nil, err
		}
		sum += hash
		infos = append(infos, info)
	}
	if rows != d.of.Rows || len(d.g.of.Columns) == len(d.of.Schema.Fields) && strconv.FormatUint(sum, 10) != d.of.Checksum {
		return nil, changed(tableChanged, fmt.Errorf("clickhouse: the parts have %d rows of the checksum %d, the table %d of %s", rows, sum, d.of.Rows, d.of.Checksum))
	}
	return infos, nil
}

// one says of a part what is compared from now on, as the reader finds it, and returns the sum of the hashes of its rows.
func (d *division) one(ctx context.Context, p sources.PartSpec, info *sources.PartInfo) (hash uint64, err error) {
	part := sqlPart(d.s, *info, 1, nil)
	table := part.Table
	var values []string
	for i, f := range d.of.Schema.Fields {
		values = append(values, cleaned(f.Kind, fmt.Sprintf("c%d", i)))
	}
	facts, err := d.s.strings(ctx, d.s.conn.o.reader, 3, "SELECT toString(sum(rows)), toString(max(rows)), toString(sum(hash)) FROM (SELECT count() AS rows, sum("+rowHash(values)+") AS hash FROM "+table+" GROUP BY _unit)")
	if err != nil {
		return 0, err
	}
	info.Rows, _ = strconv.ParseInt(facts[0][0], 10, 64)
	info.LargestUnit, _ = strconv.ParseInt(facts[0][1], 10, 64)
	if hash, err = strconv.ParseUint(facts[0][2], 10, 64); err != nil {
		return 0, fmt.Errorf("clickhouse: %w", err)
	}
	rows, err := d.s.integers(ctx, sql.RegisterText(sql.ClickHouse, part))
	if err != nil {
		return 0, err
	}
	checks, err := sql.ReadRegister(part, rows)
	if err != nil {
		return 0, changed(tableChanged, err)
	}
	part.Checks = checks
	whole := sql.Check(sql.ClickHouse, part, 0, p.Units)
	if err := d.s.run(ctx, part, whole, nil); err != nil {
		return 0, err
	}
	for i, f := range d.of.Schema.Fields {
		info.Checksums[f.Name] = strconv.FormatUint(checks.Total(i), 10)
	}
	info.Private, err = json.Marshal(checks)
	return hash, err
}
