package sql_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

var update = flag.Bool("update", false, "write the statements of testdata anew")

const nasty = `x" = 1; DROP TABLE rows --\'`

func table(unit string) *sql.Table {
	return &sql.Table{From: "catalog.rows", Row: "row_number", Unit: unit, Largest: 5, Columns: map[string]sql.Column{
		"delay": {Name: "c0", Type: rowfn.Number}, "origin": {Name: "c1", Null: "c1_null", Type: rowfn.Text}, "late": {Name: "c2", Type: rowfn.Condition},
		nasty: {Name: "c3", Type: rowfn.Number}, "at": {Name: "c4", Type: rowfn.Time},
	}}
}

var (
	delay  = rowfn.Column("delay", rowfn.Number)
	origin = rowfn.Column("origin", rowfn.Text)
)

// batch is the one of docs/format/rowfn.md, and a share of what is nasty.
func batch() rowfn.Batch {
	fromSFO := rowfn.Compare(rowfn.OpEq, origin, rowfn.TextConst("SFO"))
	return rowfn.Batch{Functions: []rowfn.Function{
		{Value: delay, Lo: -60, Hi: 180, Null: -60, Where: fromSFO},
		{Lo: 0, Hi: 1, Where: fromSFO, PerUnit: rowfn.UnitAny},
		{Value: rowfn.Clamp(rowfn.Column(nasty, rowfn.Number), 0, 1), Lo: 0, Hi: 1, Where: rowfn.In(origin, rowfn.TextConst(nasty), rowfn.TextConst("")), PerUnit: rowfn.UnitShare},
	}, Products: []rowfn.Product{{A: 0, B: 0}}}
}

// TestStatementsStay: the statements of a batch are the recorded ones. A change of one is a change of what engines are sent, and has to pass the tests with
// the tag "engines" first.
func TestStatementsStay(t *testing.T) {
	for _, d := range []*sql.Dialect{&sql.ClickHouse, &sql.Trino} {
		for _, unit := range []string{"", "unit_number"} {
			statements, err := sql.Print(d, table(unit), batch(), 3, 1000)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, s := range statements {
				text += s.SQL + "\n"
			}
			file := fmt.Sprintf("testdata/%s%s.sql", strings.ToLower(d.Name), unit)
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != text {
				t.Errorf("%s, %v: go test ./rowfn/sql -update; now\n%s", file, err, text)
			}
		}
	}
}

// alphabet is all that statements consist of: words, digits, operators, and quotes around digits alone.
var alphabet = regexp.MustCompile(`^(?:[A-Za-z0-9_.,()+*/%<>= -]|'[0-9a-f]*')*$`)

// TestNothingOfTheUser: no name, text or number of a query stands in a statement but as hexadecimal digits.
func TestNothingOfTheUser(t *testing.T) {
	for _, d := range []*sql.Dialect{&sql.ClickHouse, &sql.Trino} {
		b := batch()
		b.Functions[0].Lo, b.Functions[0].Null = -61.7, -61.7
		for _, text := range []string{"'", `\`, "/*", "--", ";", "\x00", "`", `"`, "é"} {
			b.Functions = append(b.Functions, rowfn.Function{Value: rowfn.Compare(rowfn.OpEq, origin, rowfn.TextConst(text)), Lo: 0, Hi: 1})
		}
		statements, err := sql.Print(d, table(""), b, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range statements {
			if !alphabet.MatchString(s.SQL) || strings.Contains(s.SQL, "DROP") || strings.Contains(s.SQL, "61.7") || strings.Contains(s.SQL, "delay") || strings.Contains(s.SQL, "--") {
				t.Errorf("%s: %s", d.Name, s.SQL)
			}
			where := strings.Count(s.SQL, "WHERE")
			if where != 1 || !strings.Contains(s.SQL, " WHERE row_number >= 0 AND row_number < 10") || !strings.Contains(s.SQL, d.Count) {
				t.Errorf("%s: predicates beside the range, or no count: %s", d.Name, s.SQL)
			}
		}
	}
}

// TestRefused: what is not computed bit by bit is refused, with all functions that have it; the others can be printed without them.
func TestRefused(t *testing.T) {
	long := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{origin}, Texts: map[string]float64{}}
	for i := range sql.MaxLookup + 1 {
		long.Texts[fmt.Sprint(i)] = 1
	}
	late := &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: 1e300}
	b := rowfn.Batch{Functions: []rowfn.Function{
		{Value: delay, Lo: 0, Hi: 1},
		{Value: rowfn.Log(delay), Lo: 0, Hi: 1},
		{Lo: 0, Hi: 1, Where: rowfn.CompareTo(rowfn.OpLess, rowfn.Exp(delay), 2)},
		{Value: &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: []float64{1}}, Lo: 0, Hi: 1},
		{Value: long, Lo: 0, Hi: 1},
		{Lo: 0, Hi: 1, Where: rowfn.Compare(rowfn.OpLess, rowfn.Column("at", rowfn.Time), late)},
		{Value: rowfn.Column("unknown", rowfn.Number), Lo: 0, Hi: 1},
		{Value: rowfn.Column("origin", rowfn.Number), Lo: 0, Hi: 1},
	}}
	for _, d := range []*sql.Dialect{&sql.ClickHouse, &sql.Trino} {
		_, err := sql.Print(d, table(""), b, 0, 10)
		var refusal *sql.Refusal
		if !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		var of []int
		for _, f := range refusal.Functions {
			of = append(of, f.Function)
		}
		if fmt.Sprint(of) != "[1 2 3 4 5 6 7]" || refusal.Of != 8 {
			t.Errorf("%s: %v", d.Name, err)
		}
		if _, err := sql.Print(d, table(""), rowfn.Batch{Functions: b.Functions[:1]}, 0, 10); err != nil {
			t.Error(err)
		}
		without := *d
		without.Sqrt = ""
		if _, err := sql.Print(&without, table(""), rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Sqrt(delay), Lo: 0, Hi: 1}}}, 0, 10); !errors.As(err, &refusal) {
			t.Errorf("%s without a root: %v", d.Name, err)
		}
	}
	broken := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Add(delay, origin), Lo: 0, Hi: 1}}}
	if _, err := sql.Print(&sql.Trino, table(""), broken, 0, 10); err == nil || errors.As(err, new(*sql.Refusal)) {
		t.Errorf("a sum of a text: %v", err)
	}
}

// TestSharedStaysSmall: what is used twice at each of many levels is written once, and beyond the limits refused. A statement that writes it out would have
// 4^20 copies.
func TestSharedStaysSmall(t *testing.T) {
	deep := func(levels int) rowfn.Function {
		x := delay
		for range levels {
			x = rowfn.Max(x, rowfn.Sub(x, rowfn.Const(0.5)))
		}
		return rowfn.Function{Value: x, Lo: 0, Hi: 1}
	}
	for _, d := range []*sql.Dialect{&sql.ClickHouse, &sql.Trino} {
		statements, err := sql.Print(d, table(""), rowfn.Batch{Functions: []rowfn.Function{deep(20)}}, 0, 10)
		if err != nil || len(statements) != 1 || len(statements[0].SQL) > 20000 {
			t.Errorf("%s: %d statements, %v", d.Name, len(statements), err)
		}
		if _, err := sql.Print(d, table(""), rowfn.Batch{Functions: []rowfn.Function{deep(20), deep(100)}}, 0, 10); err == nil || !strings.Contains(err.Error(), "function 1") {
			t.Errorf("%s: 100 levels: %v", d.Name, err)
		}
	}
}

// TestManyStatements: a batch of more sums than a statement has is several, which together say each once.
func TestManyStatements(t *testing.T) {
	b := rowfn.Batch{}
	for i := range 250 {
		b.Functions = append(b.Functions, rowfn.Function{Value: delay, Lo: 0, Hi: 1 + float64(i)})
		b.Products = append(b.Products, rowfn.Product{A: i, B: i / 2})
	}
	for _, unit := range []string{"", "unit_number"} {
		statements, err := sql.Print(&sql.ClickHouse, table(unit), b, 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		sums := rowfn.Sums{Values: make([]int64, 250), Products: make([]rowfn.Wide, 250)}
		for i := range sums.Values {
			sums.Values[i] = -1
		}
		for _, s := range statements {
			row := make([]string, s.Cells)
			for i := range row {
				row[i] = "5"
			}
			units, rows, err := s.Read(row, sums)
			if err != nil || units != 5 || rows != 5 || strings.Count(s.SQL, "sum(") > 2*sql.MaxAggregates+8 {
				t.Errorf("%d units, %d rows, %v: %s", units, rows, err, s.SQL)
			}
			row[0] = "5.0"
			if _, _, err := s.Read(row, sums); err == nil {
				t.Error("a float is read as a count")
			}
			if _, _, err := s.Read(row[1:], sums); err == nil {
				t.Error("a row with a cell too few is read")
			}
		}
		for i := range 250 {
			if sums.Values[i] != 5 || sums.Products[i] != (rowfn.Wide{Lo: 5<<32 + 5}) {
				t.Fatalf("sum %d is %d, product %v", i, sums.Values[i], sums.Products[i])
			}
		}
	}
}

// TestNames: names of a table that could say more than a name are refused.
func TestNames(t *testing.T) {
	for _, name := range []string{"", "a b", "t;", `t"`, "T", "a.b.c.d", "1t", "t--", "t\n"} {
		bad := *table("")
		if bad.From = name; bad.Check() == nil {
			t.Errorf("a table %q", name)
		}
		bad = *table("")
		bad.Columns = map[string]sql.Column{"x": {Name: name, Type: rowfn.Number}}
		if bad.Check() == nil {
			t.Errorf("a column %q", name)
		}
	}
	for _, name := range []string{"n0", "a12", "v3"} { // statements give them
		bad := *table("")
		if bad.Row = name; bad.Check() == nil {
			t.Errorf("a column %q", name)
		}
	}
	if _, err := sql.Print(&sql.Trino, table(""), batch(), 5, 5); err == nil {
		t.Error("no units are asked about")
	}
}
