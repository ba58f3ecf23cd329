//go:build engines

package sql

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
	"github.com/holdoutd/holdoutd/sources/trino/trinotest"
)

func TestMain(m *testing.M) { trinotest.Main(m) }

// asked is an engine with a table for parts: rows on each of its machines.
type asked struct {
	name string
	d    *Dialect
	load func(t *testing.T, table string, schema dataset.Schema, rows *dataset.Table, unit []int64)
	ask  func(text string) ([][][]string, error) // the rows of each machine
}

// clickHouse is asked as a user: the owner, or one of a profile.
func clickHouse(e *chtest.Engine, user string) asked {
	return asked{name: "ClickHouse " + e.Name, d: ClickHouse,
		load: func(t *testing.T, table string, schema dataset.Schema, rows *dataset.Table, unit []int64) {
			e.Exec(t, "DROP TABLE IF EXISTS "+chtest.Private+"."+table, "CREATE TABLE "+chtest.Private+"."+table+" ("+columns(ClickHouse, schema)+") ENGINE = MergeTree() ORDER BY _unit")
			bodies := make([][]byte, len(e.Servers))
			for row, u := range unit {
				at := int(u) % len(e.Servers)
				b := binary.LittleEndian.AppendUint32(bodies[at], uint32(u))
				for i := range rows.Columns() {
					c := rows.Column(i)
					switch c.Kind {
					case dataset.Bool:
						b = append(b, c.Bools[row])
					case dataset.Text:
						text := "\xff"
						if c.Codes[row] > 0 {
							text = c.Dictionary.Text(int(c.Codes[row]) - 1)
						}
						b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
					default:
						b = binary.LittleEndian.AppendUint64(b, math.Float64bits(c.Numbers[row]))
					}
				}
				bodies[at] = b
			}
			for i, s := range e.Servers {
				if _, err := s.Do(chtest.Owner, "INSERT INTO "+chtest.Private+"."+table+" FORMAT RowBinary", bodies[i]); err != nil {
					t.Fatal(err)
				}
			}
		},
		ask: func(text string) (all [][][]string, err error) {
			for _, s := range e.Servers {
				reply, err := s.Do(user, text, nil)
				if err != nil {
					return nil, err
				}
				var rows [][]string
				for line := range strings.Lines(string(reply)) {
					rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
				}
				all = append(all, rows)
			}
			return all, nil
		},
	}
}

func trino(c *trinotest.Cluster) asked {
	return asked{name: "Trino", d: Trino,
		load: func(t *testing.T, table string, schema dataset.Schema, rows *dataset.Table, unit []int64) {
			c.Exec(t, "DROP TABLE IF EXISTS memory.owner."+table, "CREATE TABLE memory.owner."+table+" ("+columns(Trino, schema)+")")
			var values []string
			for row, u := range unit {
				list := []string{strconv.Itoa(int(u))}
				for i := range rows.Columns() {
					c := rows.Column(i)
					switch c.Kind {
					case dataset.Bool:
						list = append(list, strconv.Itoa(int(c.Bools[row])))
					case dataset.Text:
						text := Trino.null
						if c.Codes[row] > 0 {
							text = Trino.text(c.Dictionary.Text(int(c.Codes[row]) - 1))
						}
						list = append(list, text)
					default:
						list = append(list, Trino.number(c.Numbers[row]))
					}
				}
				values = append(values, "("+strings.Join(list, ", ")+")")
			}
			for len(values) > 0 {
				n := min(len(values), 500)
				c.Exec(t, "INSERT INTO memory.owner."+table+" VALUES "+strings.Join(values[:n], ", "))
				values = values[n:]
			}
		},
		ask: func(text string) ([][][]string, error) {
			reply, err := c.Query(text)
			rows := make([][]string, len(reply))
			for i, row := range reply {
				for _, x := range row {
					rows[i] = append(rows[i], fmt.Sprint(x))
				}
			}
			return [][][]string{rows}, err
		},
	}
}

// columns are those of a part's table and their types.
func columns(d *Dialect, schema dataset.Schema) string {
	types, unit := map[dataset.Kind]string{dataset.Number: "Float64", dataset.Time: "Float64", dataset.Bool: "UInt8", dataset.Text: "String"}, "UInt32"
	if d == Trino {
		types, unit = map[dataset.Kind]string{dataset.Number: "double", dataset.Time: "double", dataset.Bool: "integer", dataset.Text: "varchar"}, "integer"
	}
	list := []string{"_unit " + unit}
	for i, f := range schema.Fields {
		list = append(list, columnName(i)+" "+types[f.Kind])
	}
	return strings.Join(list, ", ")
}

func (a asked) table(name string) string {
	if a.d == Trino {
		return "memory.owner." + name
	}
	return chtest.Private + "." + name
}

// part is a part at an engine, and the server's own engine over the same rows.
type part struct {
	Part
	want *engine.Table
}

func (a asked) part(t *testing.T, name string, seed, units, longest int) part {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	var unit []int64
	offsets := []uint32{0}
	for u := range units {
		for range 1 + r.IntN(longest) {
			unit = append(unit, int64(u))
		}
		offsets = append(offsets, uint32(len(unit)))
	}
	rows := rapid.Custom(func(t *rapid.T) *dataset.Table { return randomtree.Table(randomtree.Rows(t, len(unit))) }).Example(seed)
	p := part{Part: Part{Table: a.table(name), Schema: rows.Schema(), Units: int64(units), Grouped: longest > 1, Cap: 3}}
	a.load(t, name, p.Schema, rows, unit)
	var err error
	if longest > 1 {
		p.want, err = engine.NewTable(rows, offsets, p.Cap)
	} else {
		p.want, err = engine.NewTable(rows, nil, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	reply, err := a.ask(RegisterText(a.d, p.Part))
	if err != nil {
		t.Fatal(err)
	}
	if p.Checks, err = ReadRegister(p.Part, slices.Concat(reply...)); err != nil {
		t.Fatal(err)
	}
	return p
}

// moments are the sums of a batch, as a source makes them.
func (a asked) moments(p part, batch rowfn.Batch, from, to int64) (sums rowfn.Sums, pushed int, err error) {
	plan, err := Plan(a.d, p.Part, batch, from, to)
	if err != nil {
		return sums, 0, err
	}
	sums = plan.Sums()
	for i := range plan.Statements {
		s := &plan.Statements[i]
		reply, err := a.ask(s.Text)
		if err != nil {
			return sums, 0, fmt.Errorf("%w\n%s", err, s.Text)
		}
		if err := s.Read(p.Checks, &sums, slices.Concat(reply...)...); err != nil {
			return sums, 0, fmt.Errorf("%w\n%s", err, s.Text)
		}
	}
	rest, err := p.want.Moments(context.Background(), plan.Rest, from, to)
	plan.Place(rest, &sums)
	return sums, len(batch.Functions) - len(plan.Rest.Functions), err
}

// agree returns how many sums differ.
func (a asked) agree(t *testing.T, p part, batch rowfn.Batch, from, to int64) (pushed int) {
	t.Helper()
	want, err := p.want.Moments(t.Context(), batch, from, to)
	if err != nil {
		t.Fatal(err)
	}
	got, pushed, err := a.moments(p, batch, from, to)
	if err != nil {
		t.Errorf("%s: %v", a.name, err)
		return pushed
	}
	for i := range want.Values {
		if got.Values[i] != want.Values[i] {
			f := batch.Functions[i]
			value, where := "-", "-"
			if f.Value != nil {
				value = randomtree.String(f.Value)
			}
			if f.Where != nil {
				where = randomtree.String(f.Where)
			}
			t.Errorf("%s: %d, want %d: %s in [%v, %v], null %v, where %s, per unit %d", a.name, got.Values[i], want.Values[i], value, f.Lo, f.Hi, f.Null, where, f.PerUnit)
		}
	}
	for i := range want.Products {
		if got.Products[i] != want.Products[i] {
			t.Errorf("%s: product %d is %v, want %v", a.name, i, got.Products[i], want.Products[i])
		}
	}
	return pushed
}

// programs is how many random row functions an engine sums.
func programs() int {
	n, err := strconv.Atoi(os.Getenv("HOLDOUTD_PROGRAMS"))
	if err != nil {
		return 100
	}
	return n
}

// random compares random row functions with the kernels.
func (a asked) random(t *testing.T) {
	const together = 25
	trees := randomtree.Plain
	draw := rapid.Custom(func(t *rapid.T) rowfn.Function { return trees.Function(t, 4) })
	pushed, units := 0, 400
	for i, p := range []part{a.part(t, "rows", 1, units, 1), a.part(t, "units", 2, units, 5)} {
		for done := 0; done < programs()/2 && !t.Failed(); done += together {
			seed := 1 + i*1_000_000 + done
			r := rand.New(rand.NewPCG(uint64(seed), 4))
			var batch rowfn.Batch
			for k := range together {
				batch.Functions = append(batch.Functions, draw.Example(seed+k))
			}
			for range 6 {
				batch.Products = append(batch.Products, rowfn.Product{A: r.IntN(together), B: r.IntN(together)})
			}
			from, to := int64(0), int64(units)
			if r.IntN(3) == 0 {
				from = r.Int64N(to)
				to = from + r.Int64N(to-from+1)
			}
			pushed += a.agree(t, p, batch, from, to)
		}
	}
	t.Logf("%s: %d row functions pushed", a.name, pushed)
	if pushed < programs()/4 {
		t.Errorf("%d row functions are pushed", pushed)
	}
}

// compiling is a reader whose statements are compiled to machine code at once; the engine itself does so when it sees one for the fourth time.
var compiling = chtest.Profile{User: "compiling", Settings: map[string]string{"min_count_to_compile_expression": "0", "min_count_to_compile_aggregate_expression": "0"}}

// TestClickHouseSums: both versions, and the current one with and without compiling. It would notice a compiler that multiplies and adds in one rounding.
func TestClickHouseSums(t *testing.T) {
	cluster, current := chtest.NewCluster(t), chtest.NewCurrent(t, compiling)
	t.Run(cluster.Name, clickHouse(cluster, chtest.Owner).random)
	t.Run(current.Name, clickHouse(current, chtest.Owner).random)
	t.Run(current.Name+", compiled", clickHouse(current, compiling.User).random)
}

func TestTrinoSums(t *testing.T) { trino(trinotest.Shared(t)).random(t) }
