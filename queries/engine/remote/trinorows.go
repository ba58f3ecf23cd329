package remote

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// Trino has no way in but statements. Rows are written as one binary constant for each column, from which the engine takes those of a row: doubles as their bits, so that no decimal stands between, and nothing that takes a
// parser long.

const (
	// trinoRows is how many rows a statement writes at most: Trino's sequence gives 10,000.
	trinoRows = 10_000
	// trinoText is about how many bytes of rows a statement has: Trino reads statements of a million characters, in which 3 bytes are 4 characters.
	trinoText = 500_000
)

var _ Loader = (*Trino)(nil)

// Make implements [Loader].
func (t *Trino) Make(ctx context.Context, of *sql.Table) error {
	_, err := t.change(ctx, "CREATE TABLE "+of.From+" ("+strings.Join(trinoTypes(of), ", ")+")")
	return err
}

// Drop implements [Loader].
func (t *Trino) Drop(ctx context.Context, of *sql.Table) error {
	_, err := t.change(ctx, "DROP TABLE IF EXISTS "+of.From)
	return err
}

// Insert implements [Loader]. Each of its statements is sent once: where one broke off its rows may be there or not, and the table has to be made anew.
func (t *Trino) Insert(ctx context.Context, of *sql.Table, rows *Rows) error {
	for len(rows.rows) > 0 {
		n := rows.some(trinoRows, trinoText)
		piece, rest := *rows, *rows
		piece.rows, rest.rows = rows.rows[:n], rows.rows[n:]
		said, err := t.change(ctx, "INSERT INTO "+of.From+" "+piece.constants(of))
		if err != nil {
			return err
		}
		if len(said) != 1 || len(said[0]) != 1 || said[0][0] != strconv.Itoa(n) {
			return &Error{Kind: Failed, Engine: t.engine, Detail: "it does not say that all rows were written"}
		}
		rows = &rest
	}
	return nil
}

// change runs a statement that is no question, once.
func (t *Trino) change(ctx context.Context, statement string) ([][]string, error) {
	ctx, cancel := context.WithTimeout(ctx, StatementWait)
	defer cancel()
	rows, f := t.once(ctx, statement, AnswerBytes)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case f != nil:
		return nil, f.err
	}
	return rows, nil
}

// trinoTypes are the columns of a table that is written.
func trinoTypes(t *sql.Table) []string {
	var all []string
	for _, typed := range columnTypes(t) {
		all = append(all, strings.NewReplacer("Int64", "bigint", "UInt8", "tinyint", "Float64", "double", "String", "varchar").Replace(typed))
	}
	return all
}

// some is how many of the first rows are at most so many, and have at most about so many bytes; at least one.
func (r *Rows) some(most, size int) int {
	fixed := 0
	for _, c := range r.columns {
		switch c.Kind {
		case dataset.Text:
			fixed += 9
		case dataset.Bool:
			fixed++
		default:
			fixed += 8
		}
	}
	for n, row := range r.rows {
		size -= fixed + 16
		for _, c := range r.columns {
			if c.Kind == dataset.Text && c.Codes[row] > 0 {
				size -= len(c.Dictionary.Text(int(c.Codes[row] - 1)))
			}
		}
		if n == most || size < 0 {
			return max(1, n)
		}
	}
	return len(r.rows)
}

// constants are rows as a SELECT, whose columns are in the order of the table's.
func (r *Rows) constants(t *sql.Table) string {
	var all []string
	of := func(expression string, data []byte) {
		all = append(all, strings.ReplaceAll(expression, "$", "from_base64('"+base64.StdEncoding.EncodeToString(data)+"')"))
	}
	words := func(value func(row int) uint64) (b []byte) {
		for _, row := range r.rows {
			b = binary.BigEndian.AppendUint64(b, value(row))
		}
		return b
	}
	octets := func(value func(row int) byte) (b []byte) {
		for _, row := range r.rows {
			b = append(b, value(row))
		}
		return b
	}
	const word, octet = "substr($, i * 8 + 1, 8)", "CAST(from_big_endian_32(concat(X'000000', substr($, i + 1, 1))) AS tinyint)"
	of("from_big_endian_64("+word+")", words(func(row int) uint64 { return uint64(row) }))
	if t.Unit != "" {
		of("from_big_endian_64("+word+")", words(func(row int) uint64 { return uint64(r.units[row]) }))
	}
	for _, c := range r.columns {
		switch c.Kind {
		case dataset.Text:
			var text, places []byte
			for _, row := range r.rows {
				from := len(text)
				if c.Codes[row] > 0 {
					text = append(text, c.Dictionary.Text(int(c.Codes[row]-1))...)
				}
				places = binary.BigEndian.AppendUint64(places, uint64(from+1)<<32|uint64(len(text)-from))
			}
			place := "from_big_endian_64(substr(from_base64('" + base64.StdEncoding.EncodeToString(places) + "'), i * 8 + 1, 8))"
			of("from_utf8(substr($, bitwise_right_shift("+place+", 32), bitwise_and("+place+", 4294967295)))", append(text, 0)) // from_base64 of something
			of(octet, octets(func(row int) byte {
				if c.Codes[row] > 0 {
					return 0
				}
				return 1
			}))
		case dataset.Bool:
			of(octet, octets(func(row int) byte { return c.Bools[row] }))
		default:
			of("from_ieee754_64("+word+")", words(func(row int) uint64 { return math.Float64bits(r.number(c.Numbers[row])) }))
		}
	}
	return fmt.Sprintf("SELECT %s FROM UNNEST(sequence(0, %d)) AS n (i)", strings.Join(all, ", "), len(r.rows)-1)
}

// Block implements [Engine]: doubles come as their bits.
func (t *Trino) Block(ctx context.Context, of *sql.Table, columns []string, from, to int64) (Block, error) {
	selected, numbered := []string{of.Row}, of.Row
	if of.Unit != "" {
		numbered = of.Unit
	}
	for _, name := range columns {
		switch column := of.Columns[name]; column.Type {
		case rowfn.Text:
			selected = append(selected, column.Name, column.Null)
		case rowfn.Condition:
			selected = append(selected, column.Name)
		default:
			selected = append(selected, "from_big_endian_64(to_ieee754_64("+column.Name+"))")
		}
	}
	rows, err := t.rows(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s >= BIGINT '%d' AND %[3]s < BIGINT '%[5]d'", strings.Join(selected, ", "), of.From, numbered, from, to), BlockBytes)
	if err != nil {
		return Block{}, err
	}
	b, ok := readCells(rows, of, columns, len(selected))
	if !ok {
		return Block{}, &Error{Kind: Failed, Engine: t.engine, Detail: "the answer is none of rows"}
	}
	return b, nil
}

// readCells reads rows of JSON.
func readCells(rows [][]string, t *sql.Table, columns []string, width int) (b Block, ok bool) {
	b.Columns, ok = make([]dataset.Column, len(columns)), true
	integer := func(cell string) int64 {
		n, err := strconv.ParseInt(cell, 10, 64)
		ok = ok && err == nil
		return n
	}
	for _, row := range rows {
		if len(row) != width {
			return b, false
		}
		b.Rows = append(b.Rows, integer(row[0]))
	}
	at := 1
	for i, name := range columns {
		c := &b.Columns[i]
		c.Field = dataset.Field{Name: name, Kind: kindOf[t.Columns[name].Type], Source: "stored"}
		switch c.Kind {
		case dataset.Text:
			texts, nulls := make([]string, len(rows)), make([]bool, len(rows))
			for j, row := range rows {
				ok = ok && json.Unmarshal([]byte(row[at]), &texts[j]) == nil && row[at] != "null"
				nulls[j] = integer(row[at+1]) != 0
			}
			*c = dataset.NewText(name, texts, func(row int) bool { return nulls[row] })
			at++
		case dataset.Bool:
			for _, row := range rows {
				c.Bools = append(c.Bools, uint8(integer(row[at])))
			}
		default:
			for _, row := range rows {
				c.Numbers = append(c.Numbers, math.Float64frombits(uint64(integer(row[at]))))
			}
		}
		at++
	}
	return b, ok
}
