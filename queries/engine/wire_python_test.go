//go:build python

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/internal/randomtree"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/wire"
)

// onWire is a case for an engine in another process.
type onWire struct {
	batch   rowfn.Batch
	rows    []reference.Row
	offsets []uint32
	largest int64
}

// drawOnWire draws random trees without logarithms and exponentials, whose last bit is a library's own, and with scores, lookups and numbers of rows.
func drawOnWire(linear *model.Model) *rapid.Generator[onWire] {
	return rapid.Custom(func(t *rapid.T) onWire {
		c := onWire{rows: randomtree.Rows(t, rapid.IntRange(1, 20).Draw(t, "rows")), largest: rapid.Int64Range(1, 40).Draw(t, "largest")}
		if rapid.Bool().Draw(t, "units") {
			c.offsets = drawOffsets(t, len(c.rows))
		}
		values := make([]float64, len(c.rows))
		for i := range values {
			values[i] = rapid.SampledFrom([]float64{0, -2.5, 1e300, math.NaN()}).Draw(t, "of row")
		}
		lookup := &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{rowfn.Column("s", rowfn.Text)}, Texts: map[string]float64{"a": 3, "ab": -0.5}}
		for range rapid.IntRange(1, 4).Draw(t, "functions") {
			f := drawFunction(t)
			exact := map[*rowfn.Node]*rowfn.Node{}
			f.Value, f.Where = randomtree.WithoutLogs(f.Value, exact), randomtree.WithoutLogs(f.Where, exact)
			if f.Value != nil && f.Value.Type == rowfn.Number {
				switch rapid.IntRange(0, 4).Draw(t, "more") {
				case 0:
					f.Value = &rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Model: linear.Scorer(), Args: []*rowfn.Node{lookup, f.Value, rowfn.Column("y", rowfn.Number)}}
				case 1:
					f.Value = rowfn.Sub(f.Value, &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: values})
				}
			}
			c.batch.Functions = append(c.batch.Functions, f)
		}
		for range rapid.IntRange(0, 3).Draw(t, "products") {
			place := rapid.IntRange(0, len(c.batch.Functions)-1)
			c.batch.Products = append(c.batch.Products, rowfn.Product{A: place.Draw(t, "a"), B: place.Draw(t, "b")})
		}
		return c
	})
}

// TestAnotherEngine: an engine in another language, which was written from docs/format/rowfn.md alone, has the same sums, to the last
// unit. It would notice a rule that the page does not say, or says otherwise.
func TestAnotherEngine(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON is not set: run `make test`, or set it to the output of scripts/python.sh")
	}
	linear, err := model.Parse([]byte(`{"linear":{"intercept":0.1,"weights":{"a":{"x":1},"b":0.3,"c":-1.7},"impute":{"b":0.7}}}`))
	if err != nil {
		t.Fatal(err)
	}
	const cases = 600
	var input bytes.Buffer
	want := make([]rowfn.Sums, cases)
	for i := range cases {
		c := drawOnWire(linear).Example(i)
		s, err := NewTable(randomtree.Table(c.rows), c.offsets, c.largest)
		if err != nil {
			t.Fatal(err)
		}
		if want[i], err = s.Moments(context.Background(), c.batch, 0, s.Units()); err != nil {
			t.Fatal(err)
		}
		batch, err := wire.Marshal(c.batch, wire.Inline)
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(map[string]any{"batch": json.RawMessage(batch), "rows": cells(c.rows), "units": c.offsets, "largest": c.largest})
		if err != nil {
			t.Fatal(err)
		}
		input.Write(append(line, '\n'))
	}
	cmd := exec.Command(python, "testdata/engine.py")
	cmd.Stdin, cmd.Stderr = &input, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines, different := bytes.Split(bytes.TrimSpace(out), []byte("\n")), 0
	for i, line := range lines {
		var got struct{ Values, Products []string }
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatal(err)
		}
		var values, products []string
		for _, v := range want[i].Values {
			values = append(values, fmt.Sprint(v))
		}
		for _, p := range want[i].Products {
			products = append(products, p.Big().String())
		}
		if fmt.Sprint(got.Values, got.Products) != fmt.Sprint(values, products) && different < 5 {
			different++
			text, _ := wire.Marshal(drawOnWire(linear).Example(i).batch, nil)
			t.Errorf("case %d: %v %v, here %v %v\n%s", i, got.Values, got.Products, values, products, text)
		}
	}
	if len(lines) != cases {
		t.Errorf("%d answers to %d cases", len(lines), cases)
	}
}

// cells are rows as the other engine takes them: numbers as their bits.
func cells(rows []reference.Row) []map[string]any {
	all := make([]map[string]any, len(rows))
	for i, row := range rows {
		all[i] = map[string]any{}
		for name, v := range row {
			if x, ok := v.(float64); ok {
				v = fmt.Sprintf("%016x", math.Float64bits(x))
			}
			all[i][name] = v
		}
	}
	return all
}
