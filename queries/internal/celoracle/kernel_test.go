package celoracle_test

import (
	"fmt"
	"math"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/internal/celoracle"
	"github.com/holdoutd/holdoutd/queries/kernel"
)

// TestKernelIsCEL: the block kernels compute, at every row of a table, what CEL's own interpreter computes of the source,
// bit for bit. Tables are longer than a block of a kernel in one case of eight, so that a block's end is crossed too; the
// rows of these repeat, and CEL is asked once for each.
func TestKernelIsCEL(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := draw(t)
		tree, oracle, _ := compile(t, src)
		rows := make([]map[string]any, rapid.IntRange(1, 24).Draw(t, "rows"))
		for i := range rows {
			rows[i] = row(t)
		}
		length := len(rows)
		if rapid.IntRange(0, 7).Draw(t, "long") == 0 {
			length = rapid.IntRange(kernel.MaxBlock-1, 2*kernel.MaxBlock+9).Draw(t, "length")
		}
		got, err := kernel.Evaluate(table(t, rows, length), tree)
		if err != nil {
			t.Fatalf("%s: %v", src, err)
		}
		for i := range rows {
			want, err := oracle.Eval(forOracle(rows[i]))
			if err != nil {
				t.Fatal(err)
			}
			for at := i; at < length; at += len(rows) {
				if x := value(got, at); !same(x, want) {
					t.Fatalf("%s\n%s\nrow %d of %d, %v: the kernel has %v, CEL has %v", src, oracle.Total(), at, length, rows[i], x, want)
				}
			}
		}
	})
}

func value(v kernel.Values, row int) any {
	if v.Conditions != nil {
		return v.Conditions[row] == 1
	}
	return v.Numbers[row]
}

// table repeats rows to a length.
func table(t rapid.TB, rows []map[string]any, length int) *dataset.Table {
	var columns []dataset.Column
	for _, f := range schema.Fields {
		c := dataset.Column{Field: f}
		texts := make([]string, length)
		for at := range length {
			cell := rows[at%len(rows)][f.Name]
			switch f.Kind {
			case dataset.Bool:
				c.Bools = append(c.Bools, map[any]uint8{nil: dataset.NullBool, true: 1, false: 0}[cell])
			case dataset.Text:
				texts[at], _ = cell.(string)
			default:
				x, ok := cell.(float64)
				if !ok {
					x = math.NaN()
				}
				c.Numbers = append(c.Numbers, x)
			}
		}
		if f.Kind == dataset.Text {
			c = dataset.NewText(f.Name, texts, func(at int) bool { return rows[at%len(rows)][f.Name] == nil })
		}
		columns = append(columns, c)
	}
	made, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestKernelThresholds compares one number with many literals, which kernels do in one step, at and beside each literal.
// The result tells which of the comparisons held, so that none can hide behind another.
func TestKernelThresholds(t *testing.T) {
	literals := []float64{-1e308, -60, -1, -5e-324, 0, 5e-324, 0.1, 1, 15, 1e15, 1e300}
	var rows []map[string]any
	for _, k := range literals {
		for _, x := range []float64{math.Nextafter(k, math.Inf(-1)), k, math.Nextafter(k, math.Inf(1))} {
			rows = append(rows, map[string]any{"x": x + 0})
		}
	}
	rows = append(rows, map[string]any{"x": nil})
	for _, signs := range [][]string{{">"}, {">="}, {"<"}, {"<="}, {">", ">="}, {"<=", "<"}, {"==", "!="}} {
		src := "0"
		for i, k := range literals {
			src += fmt.Sprintf(" + (x %s %s ? %d : 0)", signs[i%len(signs)], strconv.FormatFloat(k, 'e', -1, 64), 1<<i)
		}
		s, err := expr.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		tree, err := s.Check(schema)
		if err != nil {
			t.Fatal(err)
		}
		oracle, err := celoracle.New(schema, src)
		if err != nil {
			t.Fatal(err)
		}
		got, err := kernel.Evaluate(table(t, rows, len(rows)), tree)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range rows {
			want, err := oracle.Eval(forOracle(r))
			if err != nil {
				t.Fatal(err)
			}
			if x := value(got, i); !same(x, want) {
				t.Errorf("%v at %v: the kernel has %v, CEL has %v", signs, r["x"], x, want)
			}
		}
	}
}
