package celoracle_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
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
func table(t *rapid.T, rows []map[string]any, length int) *dataset.Table {
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
