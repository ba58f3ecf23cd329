package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// Trino hands over tables as pages of JSON: doubles as their bits, times as texts.

var _ Tables = (*Trino)(nil)

func (t *Trino) quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// doubleWord is the bits of a double.
func doubleWord(x float64) int64 { return int64(math.Float64bits(x)) }

// Columns implements [Tables].
func (t *Trino) Columns(ctx context.Context, table string) (all []TableColumn, err error) {
	if err := CheckTableName(table); err != nil {
		return nil, err
	}
	rows, err := t.rows(ctx, "SHOW COLUMNS FROM "+t.quoted(table), maxDescription)
	if errors.Is(err, &Error{Kind: Changed}) {
		return nil, ErrNoTable
	}
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		var name, typed string
		if len(row) < 2 || json.Unmarshal([]byte(row[0]), &name) != nil || json.Unmarshal([]byte(row[1]), &typed) != nil {
			return nil, &Error{Kind: Failed, Engine: t.engine, Detail: "the answer is no list of columns"}
		}
		all = append(all, t.column(name, typed))
	}
	if len(all) == 0 {
		return nil, ErrNoTable
	}
	return all, nil
}

// column says how a column of a type is read.
func (t *Trino) column(name, typed string) TableColumn {
	column := TableColumn{ValueColumn: ingest.ValueColumn{Name: name}, Type: typed, null: true}
	q := t.quoted(name)
	bare, rest, _ := strings.Cut(typed, "(")
	rest, zone, _ := strings.Cut(rest, ")")
	is := func(kind ingest.ValueKind, expression string) {
		column.Kind, column.selected = kind, fmt.Sprintf(expression, q)
	}
	switch bare {
	case "boolean":
		is(ingest.Truths, "%s")
	case "tinyint", "smallint", "integer", "bigint":
		is(ingest.Integers, "%s")
	case "real", "double":
		is(ingest.Doubles, "from_big_endian_64(to_ieee754_64(CAST(%s AS double)))")
	case "varchar", "char", "uuid", "ipaddress":
		is(ingest.Texts, "CAST(%s AS varchar)")
	case "date":
		is(ingest.Days, "date_diff('day', DATE '1970-01-01', %s)")
	case "timestamp":
		column.text = microseconds
		if zone == " with time zone" {
			is(ingest.Instants, "CAST(CAST(at_timezone(%s, 'UTC') AS timestamp(6)) AS varchar)")
		} else {
			is(ingest.LocalTimes, "CAST(CAST(%s AS timestamp(6)) AS varchar)")
		}
	case "decimal":
		switch precision, scale, err := decimal(rest); {
		case err != nil:
			column.Why = fmt.Sprintf(whyOther, typed)
		case scale > 0:
			column.text = double
			is(ingest.Doubles, "CAST(%s AS varchar)")
		case precision > 18:
			column.Why = fmt.Sprintf(whyWide, typed)
		default:
			is(ingest.Integers, "CAST(%s AS bigint)")
		}
	case "array", "map", "row":
		column.Why = fmt.Sprintf(whyNested, bare)
	default:
		column.Why = fmt.Sprintf(whyOther, bare)
	}
	return column
}

// microseconds reads a time as Trino writes it: since 1970-01-01, by its own clock.
func microseconds(text string) (int64, error) {
	at, err := time.Parse("2006-01-02 15:04:05", text) // it takes a fraction behind
	return at.UnixMicro(), err
}

// State implements [Tables].
func (t *Trino) State(ctx context.Context, table string, columns []TableColumn) (int64, []string, error) {
	return stateOf(columns, func(some []TableColumn) ([]string, error) {
		var all []string
		for i := range some {
			all = append(all, some[i].selected)
		}
		return t.Integers(ctx, "SELECT count(*), from_big_endian_64(checksum(ROW("+strings.Join(all, ", ")+"))) FROM "+t.quoted(table), 2)
	}, func(detail string) error { return &Error{Kind: Failed, Engine: t.engine, Detail: detail} })
}

// Rows implements [Tables].
func (t *Trino) Rows(ctx context.Context, table string, columns []TableColumn, take func([]ingest.Values) error) error {
	var selected []string
	for i := range columns {
		selected = append(selected, columns[i].selected)
	}
	next := ""
	defer func() {
		if next != "" {
			t.cancel(ctx, next)
		}
	}()
	method, to, body := http.MethodPost, "/v1/statement", "SELECT "+strings.Join(selected, ", ")+" FROM "+t.quoted(table)
	for {
		p, f := t.page(ctx, method, to, strings.NewReader(body), BlockBytes)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case f != nil:
			return f.err
		}
		if next = p.NextURI; p.Error != nil {
			next = ""
			return t.said(p).err
		}
		if len(p.Data) > 0 {
			values, ok := cells(p.Data, columns)
			if !ok {
				return &Error{Kind: Failed, Engine: t.engine, Detail: "the answer is none of the table's columns"}
			}
			if err := take(values); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		method, to, body = http.MethodGet, next, ""
	}
}

var null = []byte("null")

// cells reads rows of JSON.
func cells(rows [][]json.RawMessage, columns []TableColumn) ([]ingest.Values, bool) {
	for _, row := range rows {
		if len(row) != len(columns) {
			return nil, false
		}
	}
	all := make([]ingest.Values, len(columns))
	for i := range columns {
		v, c := &all[i], &columns[i]
		v.Null = make([]bool, len(rows))
		if c.Kind == ingest.Texts {
			v.Texts = make([]string, len(rows))
		} else {
			v.Words = make([]int64, len(rows))
		}
		for j, row := range rows {
			if v.Null[j] = slices.Equal(row[i], null); v.Null[j] {
				continue
			}
			if !c.cell(row[i], v, j) {
				return nil, false
			}
		}
	}
	return all, true
}

// cell reads a value that is not null.
func (t *TableColumn) cell(text []byte, v *ingest.Values, row int) bool {
	var err error
	switch {
	case t.text != nil:
		var s string
		if err = json.Unmarshal(text, &s); err == nil {
			v.Words[row], err = t.text(s)
		}
	case t.Kind == ingest.Texts:
		err = json.Unmarshal(text, &v.Texts[row])
	case t.Kind == ingest.Truths:
		if string(text) == "true" {
			v.Words[row] = 1
		}
		return v.Words[row] == 1 || string(text) == "false"
	default:
		v.Words[row], err = strconv.ParseInt(string(text), 10, 64)
	}
	return err == nil
}
