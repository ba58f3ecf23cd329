package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/sources"
)

const (
	// lookColumns is how many columns a statement of a look says facts of.
	lookColumns = 50
	// textOverhead is what package ingest counts for each distinct text beside its bytes.
	textOverhead = 16
	// maxTableName is far above names of databases and tables.
	maxTableName = 1000
)

// looked is the private part of a snapshot.
type looked struct {
	Database string                       `json:"database"`
	Table    string                       `json:"table"`
	Columns  []kept                       `json:"columns"`
	Texts    map[string]dataset.TextShape `json:"texts"`
}

// readable are engines whose tables are rows that stay: others take rows away when they are read, or have none.
func readable(engine string) bool {
	return strings.HasSuffix(engine, "MergeTree") || slices.Contains([]string{"Distributed", "View", "MaterializedView", "Merge", "Memory", "Log", "TinyLog", "StripeLog", "Buffer",
		"SharedMergeTree", "Iceberg", "IcebergS3", "IcebergLocal", "DeltaLake", "S3", "File", "Dictionary", "Join", "MySQL", "PostgreSQL"}, engine)
}

// Look implements [sources.Source]. It takes a scan for facts of the columns, one for each column of texts, and one for the checksum.
func (s *Source) Look(ctx context.Context, table string) (sources.Snapshot, error) {
	if err := s.ready(ctx); err != nil {
		return sources.Snapshot{}, err
	}
	of := sources.Snapshot{Table: table}
	l, engine, err := s.find(ctx, table)
	if err != nil {
		return of, err
	}
	if l.Database == s.conn.o.database || slices.Contains([]string{"system", "information_schema", "INFORMATION_SCHEMA"}, l.Database) {
		return of, refused("", "tables of the database %s are not registered; name one of an owner's", l.Database)
	}
	if !readable(engine) {
		return of, refused("", "the table's engine is %s, whose rows do not stay; copy them into a MergeTree, and register that", engine)
	}
	columns, err := s.columns(ctx, l)
	if err != nil {
		return of, err
	}
	skip := func(column, reason string) {
		of.Skipped = append(of.Skipped, sources.Skipped{Name: column, Reason: reason})
	}
	for i := range columns {
		k := &columns[i]
		if reason := k.plan(); reason != "" {
			skip(k.Name, reason)
			continue
		}
		l.Columns = append(l.Columns, *k)
	}
	if err := s.facts(ctx, l, skip); err != nil {
		return of, err
	}
	if err := s.texts(ctx, l, skip); err != nil {
		return of, err
	}
	for i := range l.Columns {
		if k := &l.Columns[i]; !k.Only {
			of.Schema.Fields = append(of.Schema.Fields, dataset.Field{Name: k.Name, Kind: k.Kind, Source: k.Type})
		}
	}
	if len(of.Schema.Fields) == 0 {
		return of, refused("", "the table has no column that questions can be about")
	}
	if of.Rows, of.Checksum, err = s.checksum(ctx, l); err != nil {
		return of, err
	}
	if of.Rows > dataset.MaxRows {
		return of, refused("", "the table has %d rows; the most are %d", of.Rows, int64(dataset.MaxRows))
	}
	of.Private, err = json.Marshal(l)
	return of, err
}

// refused says why a holdout cannot be made of a table. column is the one that it is about, or "".
func refused(column, format string, args ...any) error {
	return &sources.Error{Kind: sources.Refused, Column: column, Detail: fmt.Sprintf(format, args...)}
}

// find looks for a table by its name, DATABASE.TABLE, in which either may have points.
func (s *Source) find(ctx context.Context, table string) (*looked, string, error) {
	missing := &sources.Error{Kind: sources.NotFound, Detail: "the source has no such table; name it DATABASE.TABLE, as its owner does"}
	if len(table) > maxTableName || !utf8.ValidString(table) || !strings.Contains(table, ".") {
		return nil, "", missing
	}
	rows, err := s.strings(ctx, s.conn.o.loader, 3, "SELECT database, name, engine FROM system.tables WHERE concat(database, '.', name) = "+literal(table))
	switch {
	case err != nil:
		return nil, "", err
	case len(rows) == 0:
		return nil, "", missing
	case len(rows) > 1:
		return nil, "", refused("", "two tables of the source have this name, for names of databases and tables have points; make a view of another name")
	}
	return &looked{Database: rows[0][0], Table: rows[0][1]}, rows[0][2], nil
}

// columns are those of a table that stand in its rows, in their order.
func (s *Source) columns(ctx context.Context, l *looked) ([]kept, error) {
	rows, err := s.strings(ctx, s.conn.o.loader, 3, fmt.Sprintf("SELECT name, type, toString(default_kind) FROM system.columns WHERE database = %s AND table = %s", literal(l.Database), literal(l.Table)))
	if err != nil {
		return nil, err
	}
	var list []kept
	for _, r := range rows {
		switch {
		case r[2] == "ALIAS" || r[2] == "EPHEMERAL": // it is computed when it is read, or never stored
		case r[0] == "" || !utf8.ValidString(r[0]) || strings.ContainsFunc(r[0], forbidden):
			return nil, refused("", "a column's name is empty, not UTF-8, or holds a control character; rename it in a view")
		default:
			list = append(list, kept{Name: r[0], Type: r[1]})
		}
	}
	if list == nil {
		return nil, &sources.Error{Kind: sources.NotFound, Detail: "the source's table is gone, or the server's user may not see its columns"}
	}
	return list, nil
}

// forbidden are the control characters that no column's name has, as in an upload.
func forbidden(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0x7f }

// from is the table as it stands behind FROM.
func (l *looked) from() string { return name(l.Database, l.Table) }

// plan fills what was not stored of the columns.
func (l *looked) plan() error {
	for i := range l.Columns {
		kind := l.Columns[i].Kind
		if reason := l.Columns[i].plan(); reason != "" || l.Columns[i].Kind != kind {
			return fmt.Errorf("clickhouse: the snapshot's column %d is of the type %q", i, l.Columns[i].Type)
		}
	}
	return nil
}

// facts decides by the values of columns how they are read: integers that no float64 holds become texts, as in an upload; texts that are none are left out.
func (s *Source) facts(ctx context.Context, l *looked, skip func(column, reason string)) error {
	var columns []kept
	for some := range slices.Chunk(l.Columns, lookColumns) {
		var list []string
		for i := range some {
			k := &some[i]
			a, b := "''", "''"
			switch kind, _, _ := strings.Cut(k.base, "("); {
			case kind == "Int64" || kind == "UInt64" || strings.HasPrefix(kind, "Decimal"):
				a, b = "ifNull(toString(min("+k.value+")), '0')", "ifNull(toString(max("+k.value+")), '0')"
			case k.Kind == dataset.Text:
				text := k.clean()
				a, b = "toString(max(length("+text+")))", "toString(uniq("+text+"))"
			}
			list = append(list, a, b)
			list = append(list, k.narrowFacts()...)
			c := "'0'"
			if k.width > 0 {
				c = fmt.Sprintf("ifNull(toString(countIf(notEquals(toFixedString(toStringCutToZero(%[1]s), %[2]d), %[1]s))), '0')", k.value, k.width)
			}
			list = append(list, c)
		}
		rows, err := s.strings(ctx, s.conn.o.loader, len(list), "SELECT "+strings.Join(list, ", ")+" FROM "+l.from())
		if err != nil {
			return err
		}
		if len(rows) != 1 {
			return errors.New("clickhouse: facts of columns come in one row")
		}
		for i := range some {
			const each = 3 + narrowFactsOfColumn
			k, at := some[i], rows[0][each*i:]
			reason, err := k.judge(at[0], at[1], at[each-1])
			if err != nil {
				return err
			}
			k.narrow(at[2 : each-1])
			if reason != "" {
				skip(k.Name, reason)
			}
			if reason == "" || k.Only {
				columns = append(columns, k)
			}
		}
	}
	l.Columns = columns
	return nil
}

// judge decides by the least and the greatest value of an integer or decimal, or the longest text and about how many there are, and how many texts have zero bytes in them.
func (k *kept) judge(a, b, zeros string) (reason string, err error) {
	kind, _, _ := strings.Cut(k.base, "(")
	switch {
	case kind == "Int64" || kind == "UInt64":
		for _, digits := range []string{a, b} {
			if beyond(digits, 0) {
				k.Digits, k.Kind = true, dataset.Text
			}
		}
	case strings.HasPrefix(kind, "Decimal"):
		for _, digits := range []string{a, b} {
			if beyond(digits, k.scale) {
				return "", refused(k.Name, "%s is too precise: it has values of more than 2^53 units of its last digit, which a 64-bit float cannot hold; round the column, or cast it to Float64 or String, in a view", k.Type)
			}
		}
	case k.Kind == dataset.Text:
		longest, errA := strconv.ParseInt(a, 10, 64)
		distinct, errB := strconv.ParseInt(b, 10, 64)
		if err := errors.Join(errA, errB); err != nil {
			return "", fmt.Errorf("clickhouse: %w", err)
		}
		if zeros != "0" {
			return "it has texts with zero bytes in them, which fixed strings are padded with; cast it to String in a view", nil
		}
		if longest > ingest.DefaultMaxTextLength {
			return fmt.Sprintf("it has texts of more than %d bytes: it holds free text, not categories", ingest.DefaultMaxTextLength), nil
		}
		if distinct > 2*ingest.DefaultMaxTexts { // about; exactly below
			k.Only = true
			return tooManyTexts, nil
		}
	}
	return "", nil
}

var tooManyTexts = fmt.Sprintf("it has more than %d distinct texts", ingest.DefaultMaxTexts)

// beyond reports whether a decimal number, in units of its last digit of so many behind the point, is above 2^53, or below -2^53.
func beyond(digits string, scale int) bool {
	whole, fraction, _ := strings.Cut(digits, ".")
	if len(fraction) > scale {
		return true
	}
	v, ok := new(big.Int).SetString(whole+fraction+strings.Repeat("0", scale-len(fraction)), 10)
	return !ok || v.CmpAbs(big.NewInt(maxExact)) > 0
}

// texts reads the distinct texts of each column of texts: they must be UTF-8, and not more than an upload may have. Their shape is public.
func (s *Source) texts(ctx context.Context, l *looked, skip func(column, reason string)) error {
	l.Texts = map[string]dataset.TextShape{}
	left := int64(ingest.DefaultMaxTextBytes)
	for i := 0; i < len(l.Columns); i++ {
		k := &l.Columns[i]
		if k.Kind != dataset.Text || k.Only {
			continue
		}
		count, size, taken, reason := int64(0), int64(1), int64(0), ""
		stop := errors.New("it is known")
		where := ""
		if k.nullable {
			where = " WHERE isNotNull(" + k.value + ")"
		}
		err := s.conn.stream(ctx, statement{as: s.conn.o.loader, settings: s.heavy(), text: "SELECT DISTINCT " + k.clean() + " FROM " + l.from() + where}, []string{"String"}, func(b *block) error {
			for row := range b.rows {
				text := b.columns[0].text(row)
				count, size = count+1, size+int64(len(text))+1
				taken += int64(len(text)) + textOverhead
				switch {
				case !utf8.Valid(text):
					reason = "it holds bytes that are not UTF-8 text"
				case count > ingest.DefaultMaxTexts:
					reason, k.Only = tooManyTexts, true
				case taken > left:
					reason, k.Only = fmt.Sprintf("with its distinct texts those of the table would take more than %d bytes", int64(ingest.DefaultMaxTextBytes)), true
				default:
					continue
				}
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			return err
		}
		if reason == "" {
			left -= taken
			l.Texts[k.Name] = dataset.TextShape{Texts: powerOfTwo(count), Bytes: powerOfTwo(size)}
			continue
		}
		skip(k.Name, reason)
		if !k.Only {
			l.Columns = slices.Delete(l.Columns, i, i+1)
			i--
		}
	}
	return nil
}

// powerOfTwo is the least power of two that is at least n, and at least 1, as package dataset rounds shapes.
func powerOfTwo(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}

// rowHash is SQL of a hash of a row, of what clean makes of its columns: 64 bits, the same in every version.
func rowHash(values []string) string {
	// Of one argument it is another function, and too many make a statement that old parsers do not take.
	const most = 100
	for len(values) > most {
		var outer []string
		for some := range slices.Chunk(values, most) {
			outer = append(outer, rowHash(some))
		}
		values = outer
	}
	return "cityHash64(toUInt8(" + strconv.Itoa(len(values)) + "), " + strings.Join(values, ", ") + ")"
}

// checksum counts the rows of a table and adds the hashes of all, modulo 2^64.
func (s *Source) checksum(ctx context.Context, l *looked) (rows int64, sum string, err error) {
	var values []string
	for i := range l.Columns {
		values = append(values, l.Columns[i].clean())
	}
	found, err := s.strings(ctx, s.conn.o.loader, 2, "SELECT toString(count()), toString(sum("+rowHash(values)+")) FROM "+l.from())
	if err != nil {
		return 0, "", err
	}
	if len(found) != 1 {
		return 0, "", errors.New("clickhouse: a checksum comes in one row")
	}
	rows, err = strconv.ParseInt(found[0][0], 10, 64)
	return rows, found[0][1], err
}

// strings runs a statement that reads columns of texts, and returns all rows. The statement must not say a format.
func (s *Source) strings(ctx context.Context, as user, columns int, text string) (rows [][]string, err error) {
	types := slices.Repeat([]string{"String"}, columns)
	err = s.conn.retry(ctx, func() error {
		rows = nil
		return s.conn.stream(ctx, statement{as: as, text: text, settings: s.heavyOf(as), whole: true}, types, func(b *block) error {
			for row := range b.rows {
				values := make([]string, columns)
				for i := range values {
					values[i] = string(b.columns[i].text(row))
				}
				rows = append(rows, values)
			}
			return nil
		})
	})
	return rows, err
}

// stream runs a statement and yields the blocks of its reply, which are used again. An error that yield returns ends it and is returned.
func (c *conn) stream(ctx context.Context, st statement, types []string, yield func(*block) error) error {
	st.text += " FORMAT Native"
	r, err := c.send(ctx, st)
	if err != nil {
		return err
	}
	defer r.Close()
	in, b := newNative(r, types), &block{}
	for {
		if err := ctx.Err(); err != nil {
			return c.lost(ctx, err)
		}
		switch err := in.next(b); {
		case err == io.EOF:
			return nil
		case err != nil && ctx.Err() != nil:
			return c.lost(ctx, err)
		case err != nil:
			return broken(bytes.Clone(in.rest()), err)
		}
		if err := yield(b); err != nil {
			return err
		}
	}
}
