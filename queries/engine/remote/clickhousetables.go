package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// ClickHouse hands over tables in its format Native: blocks of rows, column by column. Every version writes it alike for the five types that are asked for.

var _ Tables = (*ClickHouse)(nil)

// quoted is a name in a statement of ClickHouse.
func (c *ClickHouse) quoted(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// Columns implements [Tables]. Columns that the engine computes when they are asked for are not read, as SELECT * leaves them out.
func (c *ClickHouse) Columns(ctx context.Context, table string) (all []TableColumn, err error) {
	if err := CheckTableName(table); err != nil {
		return nil, err
	}
	answer, err := c.ask(ctx, "DESCRIBE TABLE "+c.quoted(table)+" FORMAT Native", maxDescription)
	if errors.Is(err, &Error{Kind: Changed}) {
		return nil, ErrNoTable
	}
	if err != nil {
		return nil, err
	}
	in := native{r: bufio.NewReader(bytes.NewReader(answer)), left: maxDescription}
	for {
		block, more := in.block()
		if !more {
			break
		}
		names, types, computed := block.texts("name"), block.texts("type"), block.texts("default_type")
		if names == nil || len(types) != len(names) || len(computed) != len(names) {
			in.fail()
			break
		}
		for i, name := range names {
			column := c.column(name, types[i])
			if computed[i] == "ALIAS" || computed[i] == "MATERIALIZED" || computed[i] == "EPHEMERAL" {
				column = TableColumn{ValueColumn: ingest.ValueColumn{Name: name}, Type: types[i], Why: computed[i] + ": ClickHouse computes it; select it in a view"}
			}
			all = append(all, column)
		}
	}
	if in.failed {
		return nil, &Error{Kind: Failed, Engine: c.engine, Detail: "the answer is no list of columns"}
	}
	if len(all) == 0 {
		return nil, ErrNoTable
	}
	return all, nil
}

// clickHouseTypes are how values of a type are asked for: as one of the types that native reads, of an expression of the column.
var clickHouseTypes = map[string]struct {
	kind       ingest.ValueKind
	expression string // of the column in the place of %s; "": itself
	as         string // type that it is cast to
}{
	"Int8": {ingest.Integers, "", "Int64"}, "Int16": {ingest.Integers, "", "Int64"}, "Int32": {ingest.Integers, "", "Int64"}, "Int64": {ingest.Integers, "", "Int64"},
	"UInt8": {ingest.Integers, "", "Int64"}, "UInt16": {ingest.Integers, "", "Int64"}, "UInt32": {ingest.Integers, "", "Int64"}, "UInt64": {ingest.Unsigned, "", "UInt64"},
	"Float32": {ingest.Doubles, "", "Float64"}, "Float64": {ingest.Doubles, "", "Float64"}, "BFloat16": {ingest.Doubles, "", "Float64"},
	"Bool":   {ingest.Truths, "", "UInt8"},
	"String": {ingest.Texts, "", "String"}, "FixedString": {ingest.Texts, "toStringCutToZero(%s)", "String"},
	"Enum8": {ingest.Texts, "", "String"}, "Enum16": {ingest.Texts, "", "String"},
	"UUID": {ingest.Texts, "toString(%s)", "String"}, "IPv4": {ingest.Texts, "toString(%s)", "String"}, "IPv6": {ingest.Texts, "toString(%s)", "String"},
	"Date": {ingest.Days, "toInt64(%s)", "Int64"}, "Date32": {ingest.Days, "toInt64(%s)", "Int64"},
	"DateTime": {ingest.Instants, "toInt64(%s) * 1000000", "Int64"}, "DateTime64": {ingest.Instants, "toUnixTimestamp64Micro(%s)", "Int64"},
}

// column says how a column of a type is read.
func (c *ClickHouse) column(name, typed string) TableColumn {
	column := TableColumn{ValueColumn: ingest.ValueColumn{Name: name}, Type: typed}
	bare, rest := typed, ""
	for {
		bare, rest, _ = strings.Cut(strings.TrimSuffix(bare, ")"), "(")
		if bare != "Nullable" && bare != "LowCardinality" {
			break
		}
		column.null = column.null || bare == "Nullable"
		bare = rest
	}
	how, known := clickHouseTypes[bare]
	switch {
	case bare == "Decimal" || strings.HasPrefix(bare, "Decimal") && known:
		precision, scale, err := decimal(rest)
		if err == nil && scale == 0 && precision > 18 {
			column.Why = fmt.Sprintf(whyWide, typed)
			return column
		}
		how, known = clickHouseTypes["String"], err == nil
		if how.expression, how.kind, column.text = "toString(%s)", ingest.Doubles, double; scale == 0 {
			how = clickHouseTypes["Int64"]
			column.text = nil
		}
	case slices.Contains([]string{"Int128", "Int256", "UInt128", "UInt256"}, bare):
		column.Why = fmt.Sprintf(whyWide, bare)
		return column
	case slices.Contains([]string{"Array", "Map", "Tuple", "Nested"}, bare):
		column.Why = fmt.Sprintf(whyNested, bare)
		return column
	}
	if !known {
		column.Why = fmt.Sprintf(whyOther, bare)
		return column
	}
	column.Kind = how.kind
	column.selected = c.quoted(name)
	if how.expression != "" {
		column.selected = fmt.Sprintf(how.expression, column.selected)
	}
	as := how.as
	if column.null {
		as = "Nullable(" + as + ")"
	}
	column.selected = "CAST(" + column.selected + ", '" + as + "')"
	return column
}

// native is the type of a column's values in Native, without Nullable.
func (t *TableColumn) native() string {
	switch {
	case t.Kind == ingest.Texts || t.text != nil:
		return "String"
	case t.Kind == ingest.Unsigned:
		return "UInt64"
	case t.Kind == ingest.Doubles:
		return "Float64"
	case t.Kind == ingest.Truths:
		return "UInt8"
	}
	return "Int64"
}

// State implements [Tables]: a keyless hash of each row, summed and combined bit by bit.
func (c *ClickHouse) State(ctx context.Context, table string, columns []TableColumn) (int64, []string, error) {
	return stateOf(columns, func(some []TableColumn) ([]string, error) {
		var hashed []string
		for i := range some {
			if !some[i].null {
				hashed = append(hashed, some[i].selected)
				continue
			}
			instead := "0"
			if some[i].native() == "String" {
				instead = "''"
			}
			hashed = append(hashed, "ifNull("+some[i].selected+", "+instead+")", "isNull("+some[i].selected+")")
		}
		hash := "sipHash64(" + strings.Join(hashed, ", ") + ")"
		return c.Integers(ctx, "SELECT count(), sum("+hash+"), groupBitXor("+hash+") FROM "+c.quoted(table)+c.dialect.End, 3)
	}, func(detail string) error { return &Error{Kind: Failed, Engine: c.engine, Detail: detail} })
}

// Rows implements [Tables].
func (c *ClickHouse) Rows(ctx context.Context, table string, columns []TableColumn, take func([]ingest.Values) error) error {
	var selected []string
	for i := range columns {
		selected = append(selected, fmt.Sprintf("%s AS c%d", columns[i].selected, i))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(StatementWait, func() { cancel(errIdle) })
	defer idle.Stop()
	id := queryID()
	response, err := c.post(ctx, url.Values{"query_id": {id}}, strings.NewReader("SELECT "+strings.Join(selected, ", ")+" FROM "+c.quoted(table)+" FORMAT Native"))
	if err != nil {
		c.kill(ctx, id)
		return c.broke(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Clickhouse-Exception-Code") != "" {
		words, _ := readAll(response.Body, AnswerBytes) // of a failure
		return c.said(response.StatusCode, words).err
	}
	in := native{r: bufio.NewReaderSize(response.Body, 1<<20), want: columns}
	for {
		in.left = BlockBytes
		block, more := in.block()
		if !more {
			break
		}
		idle.Reset(StatementWait)
		if err := take(block.values); err != nil {
			c.kill(ctx, id)
			return err
		}
	}
	switch {
	case in.err != nil:
		c.kill(ctx, id)
		return c.broke(ctx, in.err)
	case in.large:
		c.kill(ctx, id)
		return &Error{Kind: Failed, Engine: c.engine, Detail: fmt.Sprintf("it sends blocks of more than %d MiB; take the table from one of MergeTree, whose blocks are smaller, or leave out columns in a view", BlockBytes>>20)}
	case in.failed: // the engine's words about a failure in the middle of an answer, or something else
		c.kill(ctx, id)
		c.tell("what came is no block of the table's columns: " + in.tail())
		return &Error{Kind: Failed, Engine: c.engine, Detail: "it broke off in the middle of the table"}
	}
	return nil
}

// errIdle ends an answer that does not go on.
var errIdle = errors.New("nothing came for too long")

// broke is about an answer that did not come to its end.
func (c *connection) broke(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && cause != errIdle {
		return ctx.Err()
	}
	return c.fail(Unreachable, false, err.Error()).err
}

// native reads the format Native. After a failure there are no more blocks.
type native struct {
	r      *bufio.Reader
	want   []TableColumn // nil: whatever columns of texts come
	left   int64         // bytes that the block may still take in memory
	large  bool          // it would take more
	failed bool          // what came is not of this form, or is too large
	err    error         // reading failed
}

// nativeBlock is one block: the values of the columns that are wanted.
type nativeBlock struct {
	names  []string
	values []ingest.Values
}

// texts are the values of a column of texts, nil where there is none of the name.
func (b *nativeBlock) texts(name string) []string {
	if at := slices.Index(b.names, name); at >= 0 {
		return b.values[at].Texts
	}
	return nil
}

func (in *native) fail() { in.failed = true }

// tail is what comes next, for the owner's log.
func (in *native) tail() string {
	text, _ := in.r.Peek(min(in.r.Buffered(), 1<<10))
	return string(text)
}

// number reads an unsigned LEB128 number up to a bound.
func (in *native) number(most uint64) int {
	n := uint64(0)
	for shift := 0; shift < 63; shift += 7 {
		octet, err := in.r.ReadByte()
		if err != nil {
			in.broken(err)
			return 0
		}
		n |= uint64(octet&0x7f) << shift
		if octet < 0x80 {
			if n > most {
				in.fail()
				return 0
			}
			return int(n)
		}
	}
	in.fail()
	return 0
}

// broken notes that the bytes ended, or could not be read.
func (in *native) broken(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		in.fail()
		return
	}
	if in.err == nil {
		in.err = err
	}
}

// takes notes that so many bytes more are needed, and reports whether they may be.
func (in *native) takes(n int) bool {
	if in.left -= int64(n); in.left < 0 {
		in.large, in.failed = true, true
	}
	return !in.failed && in.err == nil
}

// bytes reads so many.
func (in *native) bytes(n int) []byte {
	if !in.takes(n) {
		return nil
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(in.r, b); err != nil {
		in.broken(err)
		return nil
	}
	return b
}

func (in *native) text() string { return string(in.bytes(in.number(math.MaxInt32))) }

// maxNativeRows is more than a block has: 65,536 rows, or a million where they were inserted so into memory.
const maxNativeRows = 1 << 22

// block reads the next block that has rows; false at the end, and after a failure.
func (in *native) block() (b nativeBlock, more bool) {
	for {
		if _, err := in.r.Peek(1); err != nil {
			if err != io.EOF {
				in.broken(err)
			}
			return b, false
		}
		columns := in.number(math.MaxInt16)
		rows := in.number(maxNativeRows)
		if in.want != nil && columns != len(in.want) && !(columns == 0 && rows == 0) {
			in.fail()
		}
		for i := 0; i < columns && !in.failed && in.err == nil; i++ {
			name, typed := in.text(), in.text()
			var values ingest.Values
			if in.want == nil {
				values = in.any(typed, rows)
			} else {
				values = in.column(&in.want[i], typed, rows)
			}
			b.names, b.values = append(b.names, name), append(b.values, values)
		}
		if in.failed || in.err != nil {
			return nativeBlock{}, false
		}
		if rows > 0 {
			return b, true
		}
		b = nativeBlock{}
	}
}

// any reads a column of texts, or passes over one of small integers.
func (in *native) any(typed string, rows int) (v ingest.Values) {
	switch typed {
	case "String":
		v.Texts = in.strings(rows)
	case "UInt8":
		in.bytes(rows)
	default:
		in.fail()
	}
	return v
}

// column reads the values of a column, whose type must be the one that was asked for.
func (in *native) column(c *TableColumn, typed string, rows int) (v ingest.Values) {
	want := c.native()
	if c.null {
		want = "Nullable(" + want + ")"
	}
	if typed != want {
		in.fail()
		return v
	}
	if rows == 0 {
		return v
	}
	if c.null {
		nulls := in.bytes(rows)
		v.Null = make([]bool, len(nulls))
		for i, null := range nulls {
			v.Null[i] = null != 0
		}
	}
	switch c.native() {
	case "String":
		v.Texts = in.strings(rows)
		if c.text != nil {
			v.Texts, v.Words = nil, in.parsed(c, v.Texts, v.Null)
		}
	case "UInt8":
		if !in.takes(7 * rows) {
			return v
		}
		v.Words = make([]int64, rows)
		for i, octet := range in.bytes(rows) {
			v.Words[i] = int64(octet)
		}
	default:
		data := in.bytes(8 * rows)
		v.Words = make([]int64, len(data)/8)
		for i := range v.Words {
			v.Words[i] = int64(binary.LittleEndian.Uint64(data[8*i:]))
		}
	}
	return v
}

// parsed are numbers that came as texts.
func (in *native) parsed(c *TableColumn, texts []string, null []bool) []int64 {
	words := make([]int64, len(texts))
	for i, text := range texts {
		if null != nil && null[i] {
			continue
		}
		var err error
		if words[i], err = c.text(text); err != nil {
			in.fail()
			return nil
		}
	}
	return words
}

// textBytes is what a text takes beside its own bytes.
const textBytes = 16

// strings reads texts. They are pieces of one memory.
func (in *native) strings(rows int) []string {
	var all []byte
	ends := make([]int, 0, min(rows, 1<<16))
	for i := 0; i < rows && !in.failed && in.err == nil; i++ {
		n := in.number(math.MaxInt32)
		if !in.takes(n + textBytes) {
			return nil
		}
		from := len(all)
		all = slices.Grow(all, n)[:from+n]
		if _, err := io.ReadFull(in.r, all[from:]); err != nil {
			in.broken(err)
			return nil
		}
		ends = append(ends, len(all))
	}
	if in.failed || in.err != nil {
		return nil
	}
	memory, texts, from := string(all), make([]string, rows), 0
	for i, to := range ends {
		texts[i], from = memory[from:to], to
	}
	return texts
}
