package sql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sql/internal/minisql"
)

var dialects = []*Dialect{ClickHouse, Trino}

// kept is a part as an engine keeps it, in memory, and the server's own engine over the same rows.
type kept struct {
	Part
	d    *Dialect
	rows []minisql.Row
	want *engine.Table
}

func keep(t testing.TB, d *Dialect, table *dataset.Table, offsets []uint32, rowsCap int64) *kept {
	t.Helper()
	want, err := engine.NewTable(table, offsets, rowsCap)
	if err != nil {
		t.Fatal(err)
	}
	k := &kept{d: d, want: want, Part: Part{Table: "part", Schema: table.Schema(), Units: want.Units(), Grouped: offsets != nil, Cap: rowsCap}}
	unit := 0
	for row := range table.Rows() {
		for offsets != nil && int(offsets[unit+1]) <= row {
			unit++
		}
		r := minisql.Row{"_unit": int64(row)}
		if offsets != nil {
			r["_unit"] = int64(unit)
		}
		for i := range table.Columns() {
			r[columnName(i)] = stored(d, table.Column(i), row)
		}
		k.rows = append(k.rows, r)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(k.rows), func(i, j int) { k.rows[i], k.rows[j] = k.rows[j], k.rows[i] })
	reply, err := minisql.Run(RegisterText(d, k.Part), k.rows)
	if err != nil {
		t.Fatal(err)
	}
	if k.Checks, err = ReadRegister(k.Part, reply); err != nil {
		t.Fatal(err)
	}
	return k
}

func stored(d *Dialect, c *dataset.Column, row int) any {
	switch {
	case c.Kind == dataset.Bool:
		return int64(c.Bools[row])
	case c.Kind != dataset.Text:
		return c.Numbers[row]
	case c.Codes[row] > 0:
		return c.Dictionary.Text(int(c.Codes[row]) - 1)
	case d == Trino:
		return nil
	}
	return "\xff"
}

// moments are the sums of a batch as a source makes them.
func (k *kept) moments(batch rowfn.Batch, from, to int64) (rowfn.Sums, *Planned, error) {
	plan, err := Plan(k.d, k.Part, batch, from, to)
	if err != nil {
		return rowfn.Sums{}, nil, err
	}
	sums := plan.Sums()
	for i := range plan.Statements {
		s := &plan.Statements[i]
		var of [2][]minisql.Row // on two machines
		for _, row := range k.rows {
			at := row["_unit"].(int64) % 2
			of[at] = append(of[at], row)
		}
		var rows [][]string
		for _, half := range of {
			reply, err := minisql.Run(s.Text, half)
			if err != nil {
				return sums, plan, fmt.Errorf("%w\n%s", err, s.Text)
			}
			rows = append(rows, reply...)
		}
		if err := s.Read(k.Checks, &sums, rows...); err != nil {
			return sums, plan, err
		}
	}
	rest, err := k.want.Moments(context.Background(), plan.Rest, from, to)
	if err != nil {
		return sums, plan, err
	}
	plan.Place(rest, &sums)
	return sums, plan, nil
}

// agree compares the sums of a batch with the kernels', and returns how many functions were pushed.
func (k *kept) agree(t testing.TB, batch rowfn.Batch, from, to int64) (pushed int) {
	t.Helper()
	want, err := k.want.Moments(t.Context(), batch, from, to)
	if err != nil {
		t.Fatal(err)
	}
	got, plan, err := k.moments(batch, from, to)
	if err != nil {
		t.Fatalf("%v: %v", k.d, err)
	}
	for i := range want.Values {
		if got.Values[i] != want.Values[i] {
			t.Errorf("%v, units %d to %d: %d, want %d, of %s", k.d, from, to, got.Values[i], want.Values[i], show(batch.Functions[i]))
		}
	}
	for i := range want.Products {
		if got.Products[i] != want.Products[i] {
			p := batch.Products[i]
			t.Errorf("%v, units %d to %d: product %v, want %v, of %s and %s", k.d, from, to, got.Products[i], want.Products[i], show(batch.Functions[p.A]), show(batch.Functions[p.B]))
		}
	}
	return len(batch.Functions) - len(plan.Rest.Functions)
}

func show(f rowfn.Function) string {
	text := func(n *rowfn.Node) string {
		if n == nil {
			return "-"
		}
		return randomtree.String(n)
	}
	return fmt.Sprintf("%s in [%v, %v], null %v, where %s, per unit %d", text(f.Value), f.Lo, f.Hi, f.Null, text(f.Where), f.PerUnit)
}

// edges is a table of random rows with edge values, and units of up to four rows.
func edges(seed, rows int) (*dataset.Table, []uint32) {
	table := rapid.Custom(func(t *rapid.T) *dataset.Table { return randomtree.Table(randomtree.Rows(t, rows)) }).Example(seed)
	r, offsets := rand.New(rand.NewPCG(uint64(seed), 3)), []uint32{0}
	for int(offsets[len(offsets)-1]) < rows {
		offsets = append(offsets, min(offsets[len(offsets)-1]+1+r.Uint32N(4), uint32(rows)))
	}
	return table, offsets
}

// TestRandomSums: random row functions and products are summed by the statements, which a small interpreter runs as each of the engines would, bit by bit as by the kernels. It notices
// any operation that is printed as another one, whose null is not the kernels', or that is rounded in another way.
func TestRandomSums(t *testing.T) {
	const together, batches = 12, 10
	table, offsets := edges(1, 60)
	draw := rapid.Custom(func(t *rapid.T) rowfn.Function { return randomtree.Plain.Function(t, 4) })
	for _, d := range dialects {
		pushed := 0
		for grouped, k := range []*kept{keep(t, d, table, nil, 1), keep(t, d, table, offsets, 3)} {
			for b := range batches {
				seed := 1000*grouped + together*b
				r := rand.New(rand.NewPCG(uint64(seed), 1))
				var batch rowfn.Batch
				for i := range together {
					batch.Functions = append(batch.Functions, draw.Example(seed+i))
				}
				for range 5 {
					batch.Products = append(batch.Products, rowfn.Product{A: r.IntN(together), B: r.IntN(together)})
				}
				from, to := int64(0), k.Units
				if b%3 == 1 {
					from = r.Int64N(to)
					to = from + r.Int64N(to-from+1)
				}
				pushed += k.agree(t, batch, from, to)
			}
		}
		if pushed < together*batches { // of twice as many
			t.Errorf("%v: %d row functions are pushed", d, pushed)
		}
	}
}

// made is a shorthand for trees.
func made(o rowfn.Op, as rowfn.Type, args ...*rowfn.Node) *rowfn.Node {
	return &rowfn.Node{Op: o, Type: as, Args: args}
}

// directed are row functions that a natural way of printing gets wrong.
func directed() (list []rowfn.Function) {
	x, y, s, d := rowfn.Column("x", rowfn.Number), rowfn.Column("y", rowfn.Number), rowfn.Column("s", rowfn.Text), rowfn.Column("d", rowfn.Time)
	p := rowfn.Column("p", rowfn.Condition)
	k := rowfn.Const
	count := func(c *rowfn.Node) { list = append(list, rowfn.Function{Value: c, Lo: 0, Hi: 1}) }
	mean := func(v *rowfn.Node, lo, hi, null float64) {
		for _, per := range []rowfn.PerUnit{rowfn.UnitMean, rowfn.UnitShare} {
			list = append(list, rowfn.Function{Value: v, Lo: lo, Hi: hi, Null: null, PerUnit: per}, rowfn.Function{Value: v, Lo: lo, Hi: hi, Null: null, PerUnit: per, Where: p})
		}
	}
	big := k(math.MaxFloat64)
	overflow := rowfn.Mul(rowfn.Add(x, big), k(2))
	for _, v := range []*rowfn.Node{x, rowfn.Div(x, y), rowfn.Div(k(1), overflow), rowfn.Max(x, y), made(rowfn.OpMin, rowfn.Number, x, y), rowfn.Max(overflow, k(0)), made(rowfn.OpMin, rowfn.Number, k(3), x),
		rowfn.Clamp(overflow, -1, 1), rowfn.Sqrt(x), rowfn.If(p, overflow, y), rowfn.If(rowfn.IsNull(y), x, overflow), made(rowfn.OpFloor, rowfn.Number, rowfn.Div(x, k(3))),
		made(rowfn.OpCeil, rowfn.Number, x), rowfn.Mul(rowfn.Sub(x, x), big), rowfn.Null(), k(0.5),
		{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{s}, Texts: map[string]float64{"a": 0.25, "": -1, "é": 2}, Number: 0.75},
		{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{s}, Texts: map[string]float64{"ab": 1}, Number: math.NaN()},
	} {
		mean(v, -1, 1, -1)
		mean(v, -1, 1, 1)
		mean(v, -1, 1.5, 0.25)
	}
	// What a rounded sum and a sum of rounded values tell apart.
	mean(x, 0, float64(3*rowfn.One), 0)
	for part := rowfn.OpFullYear; part <= rowfn.OpMilliseconds; part++ {
		mean(made(part, rowfn.Number, d), -300000, 300000, 0)
	}
	for c := rowfn.OpLess; c <= rowfn.OpNe; c++ {
		count(rowfn.Compare(c, x, y))
		count(rowfn.Compare(c, overflow, y))
		count(rowfn.Compare(c, y, overflow))
		count(rowfn.Compare(c, x, k(0)))
		count(rowfn.Not(rowfn.Compare(c, x, y)))
	}
	for _, c := range []rowfn.Op{rowfn.OpEq, rowfn.OpNe} {
		count(rowfn.Compare(c, s, rowfn.Column("t", rowfn.Text)))
		count(rowfn.Compare(c, s, rowfn.TextConst("a'b\\")))
		count(rowfn.Not(rowfn.Compare(c, s, rowfn.TextConst("a"))))
	}
	for _, c := range []rowfn.Op{rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains} {
		for _, text := range []string{"", "a", "b", "é", "本", "abcabc"} {
			count(made(c, rowfn.Condition, rowfn.Column("t", rowfn.Text), rowfn.TextConst(text)))
		}
	}
	count(rowfn.In(s, rowfn.TextConst("a"), rowfn.TextConst("")))
	count(rowfn.Not(rowfn.In(s, rowfn.TextConst("a"))))
	count(rowfn.In(x, k(0), k(1), y, rowfn.Null()))
	for _, n := range []*rowfn.Node{x, overflow, s, p, d, rowfn.Div(x, y)} {
		count(rowfn.IsNull(n))
	}
	count(rowfn.And(p, rowfn.Column("q", rowfn.Condition), rowfn.Compare(rowfn.OpLess, x, y)))
	count(rowfn.Or(rowfn.Not(p), rowfn.IsNull(x)))
	list = append(list, rowfn.Function{Lo: 0, Hi: 1}, rowfn.Function{Lo: 0, Hi: 1, Where: p}, rowfn.Function{Lo: 0, Hi: 1, Where: p, PerUnit: rowfn.UnitAny}, rowfn.Function{Lo: 0, Hi: 1, PerUnit: rowfn.UnitAny},
		rowfn.Function{Value: rowfn.If(p, k(0.3), k(0.7)), Lo: 0, Hi: 1}, rowfn.Function{Value: rowfn.If(p, k(0.3), k(0.7)), Lo: 0, Hi: 1, Where: rowfn.Column("q", rowfn.Condition), PerUnit: rowfn.UnitShare},
		rowfn.Function{Lo: 0, Hi: 1, Where: made(rowfn.OpFalse, rowfn.Condition)})
	return list
}

// TestDirectedSums: each of the ways in which engines are known to differ from the kernels, alone and in products, by rows and by units.
func TestDirectedSums(t *testing.T) {
	table, offsets := edges(2, 50)
	batch := rowfn.Batch{Functions: directed()}
	for i := range batch.Functions {
		batch.Products = append(batch.Products, rowfn.Product{A: i, B: i * 5 % len(batch.Functions)})
	}
	for _, d := range dialects {
		for _, k := range []*kept{keep(t, d, table, nil, 1), keep(t, d, table, offsets, 3)} {
			if pushed := k.agree(t, batch, 0, k.Units); pushed != len(batch.Functions) {
				t.Errorf("%v: %d of %d row functions are pushed", d, pushed, len(batch.Functions))
			}
			k.agree(t, batch, 3, k.Units-2)
		}
	}
}

// words are all that a statement may have beside numbers in digits and literals in hexadecimal ones.
var words = regexp.MustCompile(`^(SELECT|FROM|WHERE|GROUP|BY|AS|AND|OR|NOT|IS|IN|NULL|CASE|WHEN|THEN|ELSE|END|CAST|BIGINT|bigint|double|true|false|count|sum|coalesce|checksum|to_ieee754_64|to_utf8|xxhash64|reverse|from_big_endian_64|` +
	`from_ieee754_64|from_utf8|is_nan|is_finite|bitwise_(and|or|xor|right_shift)|starts_with|substr|strpos|abs|sqrt|floor|ceil|` +
	`negate|plus|minus|multiply|divide|less|lessOrEquals|equals|notEquals|if|multiIf|bit(And|Or|Xor|ShiftRight)|isNaN|isFinite|intDiv|modulo|in|tuple|startsWith|endsWith|position|` +
	`to(Int64|UInt8|UInt64|Float64)|reinterpretAsFloat64|unhex|cityHash64|part|_unit|m|[acnk]\d+|\d+)$`)

// TestOnlyItsOwnWords: whatever the texts and columns of a question are, a statement has words of its own alone, and the question's texts in hexadecimal digits. Statements are
// the same whenever they are printed, within their limits, and each row function and product has its sum from one place. It notices a text that is quoted, a name of the owner's, and an order of a map.
func TestOnlyItsOwnWords(t *testing.T) {
	literal := regexp.MustCompile(`x?'[0-9a-f]*'|BIGINT '-?\d+'`)
	evil := []string{"", "'", "\\", "a' OR '1'='1", "`", "\"", "x\x00y", "--", "/*", "{a}", "É", "n1", "0"}
	trees := randomtree.Trees{Numbers: []string{"x' OR 1", "\"y\""}, Bools: []string{"p`", "DROP TABLE"}, Texts: []string{"s\\", "sum(1)"}, Times: []string{"d--", "{b}"}, Contents: evil, Instants: []float64{0, 1e15}}
	var schema dataset.Schema
	for kind, names := range map[dataset.Kind][]string{dataset.Number: trees.Numbers, dataset.Bool: trees.Bools, dataset.Text: trees.Texts, dataset.Time: trees.Times} {
		for _, name := range names {
			schema.Fields = append(schema.Fields, dataset.Field{Name: name, Kind: kind})
		}
	}
	slices.SortFunc(schema.Fields, func(a, b dataset.Field) int { return strings.Compare(a.Name, b.Name) })
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom(dialects).Draw(t, "dialect")
		p := Part{Table: "part", Schema: schema, Units: 100_000, Grouped: rapid.Bool().Draw(t, "grouped"), Cap: 4, Checks: &Checks{Block: 4096}}
		var batch rowfn.Batch
		for range rapid.IntRange(1, 8).Draw(t, "functions") {
			batch.Functions = append(batch.Functions, trees.Function(t, 4))
		}
		for range rapid.IntRange(0, 4).Draw(t, "products") {
			n := len(batch.Functions) - 1
			batch.Products = append(batch.Products, rowfn.Product{A: rapid.IntRange(0, n).Draw(t, "a"), B: rapid.IntRange(0, n).Draw(t, "b")})
		}
		from := rapid.Int64Range(0, p.Units-1).Draw(t, "from")
		to := rapid.Int64Range(from+1, p.Units).Draw(t, "to")
		plan, err := Plan(d, p, batch, from, to)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Plan(d, p, batch, from, to)
		if err != nil || len(again.Statements) != len(plan.Statements) {
			t.Fatalf("another plan: %v", err)
		}
		functions, products := make([]int, len(batch.Functions)), make([]int, len(batch.Products))
		for i, s := range plan.Statements {
			if s.Text != again.Statements[i].Text {
				t.Fatalf("the statement is another one:\n%s\n%s", s.Text, again.Statements[i].Text)
			}
			if s.aggregates > maxAggregates || len(s.Text) > maxText {
				t.Fatalf("%d sums, %d bytes", s.aggregates, len(s.Text))
			}
			for _, word := range strings.FieldsFunc(literal.ReplaceAllString(s.Text, " "), func(r rune) bool { return strings.ContainsRune(" (),+-*/%=<>", r) }) {
				if !words.MatchString(word) {
					t.Fatalf("the word %q in\n%s", word, s.Text)
				}
			}
			for _, target := range s.functions {
				functions[target.function]++
			}
			for _, target := range s.products {
				products[target.product]++
			}
		}
		for _, at := range plan.functions {
			functions[at]++
		}
		for _, at := range plan.products {
			products[at]++
		}
		for _, n := range append(functions, products...) {
			if n != 1 {
				t.Fatalf("a sum comes from %d places", n)
			}
		}
	})
}

// TestLimits: hundreds of row functions are cut into statements of at most 128 sums, and one that is too large is left to the kernels.
func TestLimits(t *testing.T) {
	table, offsets := edges(3, 40)
	x := rowfn.Column("x", rowfn.Number)
	var batch rowfn.Batch
	for i := range 250 {
		batch.Functions = append(batch.Functions, rowfn.Function{Value: x, Lo: float64(-i), Hi: float64(i + 1)})
		batch.Products = append(batch.Products, rowfn.Product{A: i, B: i / 2})
	}
	many := make([]*rowfn.Node, 5000)
	for i := range many {
		many[i] = rowfn.CompareTo(rowfn.OpEq, x, float64(i))
	}
	batch.Functions = append(batch.Functions, rowfn.Function{Value: rowfn.Or(many...), Lo: 0, Hi: 1})
	deep := x
	for i := range 200 {
		deep = rowfn.Add(deep, rowfn.Mul(deep, rowfn.Const(float64(i))))
	}
	batch.Functions = append(batch.Functions, rowfn.Function{Value: deep, Lo: 0, Hi: 1})
	for _, d := range dialects {
		for _, k := range []*kept{keep(t, d, table, nil, 1), keep(t, d, table, offsets, 3)} {
			plan, err := Plan(d, k.Part, batch, 0, k.Units)
			if err != nil {
				t.Fatal(err)
			}
			if len(plan.Rest.Functions) != 1 || plan.Why[0] != string(tooLarge) {
				t.Errorf("%v: %d row functions are left, %v", d, len(plan.Rest.Functions), plan.Why)
			}
			if n := len(plan.Statements); n < 6 || n > 14 {
				t.Errorf("%v: %d statements", d, n)
			}
			for _, s := range plan.Statements {
				if s.aggregates > maxAggregates || len(s.Text) > maxText {
					t.Errorf("%v: %d sums in %d bytes", d, s.aggregates, len(s.Text))
				}
			}
			k.agree(t, batch, 0, k.Units)
		}
	}
}

// TestLeft: what is not exact everywhere is left to the kernels, with a reason.
func TestLeft(t *testing.T) {
	table, _ := edges(4, 10)
	x := rowfn.Column("x", rowfn.Number)
	looked := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Column("s", rowfn.Text)}, Texts: map[string]float64{}}
	for i := range 65 {
		looked.Texts[strconv.Itoa(i)] = 1
	}
	for why, v := range map[notPushed]*rowfn.Node{
		noFunction: rowfn.Log(x), noRows: {Op: rowfn.OpRow, Type: rowfn.Number, Values: make([]float64, 10)}, noModel: {Op: rowfn.OpScore, Type: rowfn.Number}, tooMany: looked,
		noPart: made(rowfn.OpHours, rowfn.Number, &rowfn.Node{Op: rowfn.OpNumber, Type: rowfn.Time, Number: 0.5}), "": rowfn.Exp(rowfn.Const(1)),
	} {
		got, err := Pushable(ClickHouse, table.Schema(), rowfn.Function{Value: v, Lo: 0, Hi: 1})
		if err != nil || got != string(why) {
			t.Errorf("%q, %v; want %q", got, err, why)
		}
	}
	for name, v := range map[string]*rowfn.Node{"no column": rowfn.Column("z", rowfn.Number), "a wrong kind": rowfn.Column("s", rowfn.Number), "a wrong argument": rowfn.Neg(rowfn.Column("p", rowfn.Condition)),
		"infinite": {Op: rowfn.OpNumber, Type: rowfn.Number, Number: math.Inf(1)}, "unknown": made(200, rowfn.Number, x), "text": rowfn.Column("s", rowfn.Text)} {
		if _, err := Pushable(Trino, table.Schema(), rowfn.Function{Value: v, Lo: 0, Hi: 1}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestChanges: a row that is missing, doubled or changed, a machine that is silent, and a reply that no rows have are never an answer. It notices any of the comparisons that is left out.
func TestChanges(t *testing.T) {
	table, offsets := edges(5, 60)
	batch := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1, Where: rowfn.Column("p", rowfn.Condition)}, {Where: rowfn.Compare(rowfn.OpEq, rowfn.Column("s", rowfn.Text), rowfn.TextConst("a")), Lo: 0, Hi: 1}}}
	changes := map[string]func(rows []minisql.Row) []minisql.Row{
		"a row is missing":     func(rows []minisql.Row) []minisql.Row { return rows[1:] },
		"a row is there twice": func(rows []minisql.Row) []minisql.Row { return append(rows, rows[0]) },
		"one for another":      func(rows []minisql.Row) []minisql.Row { return append(rows[1:], rows[1]) },
		"no rows":              func([]minisql.Row) []minisql.Row { return nil },
		"half of the units": func(rows []minisql.Row) []minisql.Row {
			return slices.DeleteFunc(rows, func(r minisql.Row) bool { return r["_unit"].(int64)%2 == 0 })
		},
		"a number":                         func(rows []minisql.Row) []minisql.Row { rows[0]["c0"] = 0.123; return rows },
		"a truth":                          func(rows []minisql.Row) []minisql.Row { rows[0]["c4"] = 2 - rows[0]["c4"].(int64) + 3; return rows },
		"a text":                           func(rows []minisql.Row) []minisql.Row { rows[0]["c6"] = "another"; return rows },
		"two units have exchanged numbers": func(rows []minisql.Row) []minisql.Row { return exchange(t, rows, "c0") },
		"two units have exchanged truths":  func(rows []minisql.Row) []minisql.Row { return exchange(t, rows, "c4") },
		"two units have exchanged texts":   func(rows []minisql.Row) []minisql.Row { return exchange(t, rows, "c6") },
	}
	for _, d := range dialects {
		for _, offsets := range [][]uint32{nil, offsets} {
			for name, change := range changes {
				k := keep(t, d, table, offsets, 3)
				if _, _, err := k.moments(batch, 0, k.Units); err != nil {
					t.Fatal(err)
				}
				k.rows = change(k.rows)
				_, _, err := k.moments(batch, 0, k.Units)
				if e := (*sources.Error)(nil); !errors.As(err, &e) || e.Kind != sources.Changed {
					t.Errorf("%v, grouped %v, %s: %v", d, offsets != nil, name, err)
				}
				s := Check(d, k.Part, 0, k.Units)
				reply, err := minisql.Run(s.Text, k.rows)
				if err == nil {
					err = s.Read(k.Checks, &rowfn.Sums{}, reply...)
				}
				if err == nil {
					t.Errorf("%v, grouped %v, %s: a check finds nothing", d, offsets != nil, name)
				}
			}
			k := keep(t, d, table, offsets, 3)
			plan, err := Plan(d, k.Part, batch, 0, k.Units)
			if err != nil {
				t.Fatal(err)
			}
			s := plan.Statements[0]
			reply, _ := minisql.Run(s.Text, k.rows)
			for name, row := range map[string][]string{"another width": reply[0][1:], "no integer": append([]string{"x"}, reply[0][1:]...), "too much": append(slices.Clone(reply[0][:s.Width-1]), "999999999999"),
				"below 0": append(slices.Clone(reply[0][:s.Width-1]), "-1")} {
				sums := plan.Sums()
				if err := s.Read(k.Checks, &sums, row); err == nil {
					t.Errorf("%v: %s is read", d, name)
				}
			}
		}
	}
}

// exchange lets two rows of different units exchange their values of a column.
func exchange(t *testing.T, rows []minisql.Row, column string) []minisql.Row {
	t.Helper()
	for _, r := range rows[1:] {
		if a := rows[0]; a["_unit"] != r["_unit"] && a[column] == a[column] && r[column] == r[column] && a[column] != r[column] { // and no NaN
			a[column], r[column] = r[column], a[column]
			return rows
		}
	}
	t.Fatalf("the values of %s are all the same", column)
	return nil
}

// TestUnboundChecks: a part that was registered before checksums were bound to units is compared as it was registered. It would notice an old part that does not open any more.
func TestUnboundChecks(t *testing.T) {
	table, offsets := edges(5, 60)
	batch := rowfn.Batch{Functions: []rowfn.Function{{Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 1, Where: rowfn.Column("p", rowfn.Condition)}, {Where: rowfn.Compare(rowfn.OpEq, rowfn.Column("s", rowfn.Text), rowfn.TextConst("a")), Lo: 0, Hi: 1}}}
	for _, d := range dialects {
		for _, offsets := range [][]uint32{nil, offsets} {
			k := keep(t, d, table, offsets, 3)
			reply, err := minisql.Run(d.register(k.Part, &d.unbound), k.rows)
			if err != nil {
				t.Fatal(err)
			}
			old, err := ReadRegister(k.Part, reply)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(map[string]any{"block": old.Block, "rows": old.Rows, "columns": old.Columns}) // as it was kept
			if err != nil {
				t.Fatal(err)
			}
			k.Checks = &Checks{}
			if err := json.Unmarshal(text, k.Checks); err != nil {
				t.Fatal(err)
			}
			k.agree(t, batch, 0, k.Units)
			k.rows[0]["c6"] = "another"
			if _, _, err := k.moments(batch, 0, k.Units); err == nil {
				t.Errorf("%v, grouped %v: a text that is another is not noticed", d, offsets != nil)
			}
		}
	}
}

// TestBothSides: what a choice does not take is computed as well, below it, in an engine that cuts choices short. It notices a side that is written inside the choice, whose time would tell how often the
// choice is made.
func TestBothSides(t *testing.T) {
	table, _ := edges(7, 5)
	x, y, p := rowfn.Column("x", rowfn.Number), rowfn.Column("y", rowfn.Number), rowfn.Column("p", rowfn.Condition)
	plan, err := Plan(Trino, Part{Table: "part", Schema: table.Schema(), Units: 5}, rowfn.Batch{Functions: []rowfn.Function{
		{Value: rowfn.If(p, rowfn.Sqrt(x), rowfn.Abs(y)), Lo: 0, Hi: 1, Where: rowfn.Compare(rowfn.OpLess, x, y)},
	}}, 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	for choice := range strings.SplitSeq(plan.Statements[0].Text, "CASE WHEN ") {
		choice, _, _ = strings.Cut(choice, " END")
		_, sides, _ := strings.Cut(choice, " THEN ")
		if strings.Contains(sides, "sqrt") || strings.Contains(sides, "abs") || strings.Contains(sides, "CAST") {
			t.Errorf("computed in some rows alone: %s, of\n%s", sides, plan.Statements[0].Text)
		}
	}
}

// TestCalendar: parts of times are those of the kernels around the ends of the months of 1,200 years, of years before Christ and of some far away. It would notice another constant of the calendar's arithmetic.
func TestCalendar(t *testing.T) {
	var numbers []float64
	month := func(year, m int) {
		at := float64(time.Date(year, time.Month(m), 1, 0, 0, 0, 0, time.UTC).Unix()) * 1e6
		numbers = append(numbers, at-1, at, at+86400e6*float64(m+year%17&15))
	}
	for year := 1500; year < 2700; year += 3 { // each place in 400 years, for 3 divides none of 4, 100 and 400
		for m := 1; m <= 12; m++ {
			month(year, m)
		}
	}
	for _, year := range []int{-140000, -40001, -401, -400, -1, 0, 1, 4, 100, 400, 9999, 10000, 139999} {
		month(year, 1)
		month(year, 3)
	}
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "d", Kind: dataset.Time}, Numbers: numbers})
	if err != nil {
		t.Fatal(err)
	}
	var batch rowfn.Batch
	for part := rowfn.OpFullYear; part <= rowfn.OpMilliseconds; part++ {
		batch.Functions = append(batch.Functions, rowfn.Function{Value: made(part, rowfn.Number, rowfn.Column("d", rowfn.Time)), Lo: -1 << 18, Hi: 1 << 18})
	}
	for _, d := range dialects {
		keep(t, d, table, nil, 1).agree(t, batch, 0, int64(len(numbers)))
	}
}
