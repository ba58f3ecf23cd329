package kernel_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/queries/randomtree"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Models over the columns x, y and s of package randomtree.
var models = []string{
	`{"linear":{"weights":{}}}`,
	`{"linear":{"intercept":-0.5,"weights":{"x":0.25},"link":"logit"}}`,
	`{"linear":{"intercept":1,"weights":{"x":2,"y":-1e10,"s":{"a":3,"nowhere":4,"":5}},"impute":{"y":7}}}`,
	`{"linear":{"weights":{"x":1e150}}}`,
	`{"softmax":{"classes":["a","b","c"],"intercepts":[1,2,3],"weights":{"x":[1,0,-1],"s":{"a":[1,2,3],"ab":[3,2,1]}}}}`,
	`{"trees":{"trees":[[["x",0.5],["y",-1,"right"],1,2,["s",["a","b"]],3,["y",1e15],4,5],[["s",["ab"],"right"],10,20]],"base":0.5}}`,
	`{"trees":{"classes":["a","b"],"average":true,"trees":[[["x",1e-300,"right"],[1,0],[0.25,0.75]],[["x",15],[0.1,0.9],["y",0],[1,0],[0,1]],[1]]}}`,
}

func mustModel(t testing.TB, body string) *model.Model {
	t.Helper()
	m, err := model.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// score is a score of a model whose number features are nodes that number returns.
func score(m *model.Model, output int, number func(column string) *rowfn.Node) *rowfn.Node {
	n := &rowfn.Node{Op: rowfn.OpScore, Type: rowfn.Number, Model: m.Scorer(), Output: output}
	for _, f := range m.Features() {
		if f.Texts == nil {
			n.Args = append(n.Args, number(f.Column))
			continue
		}
		column := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: f.Column}
		n.Args = append(n.Args, &rowfn.Node{Op: rowfn.OpLookup, Type: rowfn.Number, Texts: f.Texts, Number: f.Null, Args: []*rowfn.Node{column}})
	}
	return n
}

func column(name string) *rowfn.Node {
	return &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Number, Text: name}
}

// TestScoresAreReference: scores, alone and within expressions, of columns and of computed features, are those of the
// reference in every row; what is not finite is null.
func TestScoresAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := randomtree.Rows(t, rapid.IntRange(1, 40).Draw(t, "rows"))
		table := randomtree.Table(rows)
		var nodes []*rowfn.Node
		for range 3 {
			m, err := model.Parse([]byte(rapid.SampledFrom(models).Draw(t, "model")))
			if err != nil {
				t.Fatal(err)
			}
			features := rapid.Bool().Draw(t, "computed")
			output := rapid.IntRange(0, m.Scorer().Outputs()-1).Draw(t, "output")
			nodes = append(nodes, score(m, output, func(name string) *rowfn.Node {
				if !features {
					return column(name)
				}
				return &rowfn.Node{Op: rowfn.OpMul, Type: rowfn.Number, Args: []*rowfn.Node{column("x"), column(name)}}
			}))
		}
		sum := &rowfn.Node{Op: rowfn.OpMax, Type: rowfn.Number, Args: []*rowfn.Node{nodes[2], column("y")}}
		for _, n := range []*rowfn.Node{nodes[0], {Op: rowfn.OpSub, Type: rowfn.Number, Args: nodes[:2]}, {Op: rowfn.OpLess, Type: rowfn.Condition, Args: []*rowfn.Node{nodes[1], sum}}} {
			got, err := kernel.Evaluate(table, n)
			if err != nil {
				t.Fatal(err)
			}
			for i, row := range rows {
				compareRow(t, fmt.Sprintf("%v", row), got, i, reference.Evaluate(n, row))
			}
		}
	})
}

// TestScoresInSums: batches of row functions with models have the same sums for every way to share the rows, and steps do not
// allocate.
func TestScoresInSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := randomtree.Rows(t, rapid.IntRange(1, 30).Draw(t, "rows"))
		table := randomtree.Table(rows)
		var functions []rowfn.Function
		var want []int64
		for _, body := range models {
			m, err := model.Parse([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			for k := range m.Scorer().Outputs() {
				f := rowfn.Function{Value: score(m, k, column), Lo: -10, Hi: 20, Null: 3}
				functions = append(functions, f)
				sum := int64(0)
				for _, row := range rows {
					x := reference.Evaluate(f.Value, row).(float64)
					if math.IsNaN(x) {
						x = 3
					}
					sum += int64(float64((min(max(x, -10), 20)+10)*(float64(rowfn.One)/30)) + 0.5)
				}
				want = append(want, sum)
			}
		}
		source, err := engine.NewTable(table, nil, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := source.Sums(context.Background(), functions, 0, source.Units())
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("function %d: got %d, want %d", i, got[i], want[i])
			}
		}
		program, err := kernel.Compile(functions, table)
		if err != nil {
			t.Fatal(err)
		}
		state := kernel.NewState(program, kernel.Units{}, rapid.IntRange(1, 9).Draw(t, "block"))
		defer state.Release()
		state.Add(0, source.Units())
		for i, sum := range state.Sums() {
			if sum != want[i] {
				t.Fatalf("function %d: got %d, want %d", i, sum, want[i])
			}
		}
	})
}

func TestScoresDoNotAllocate(t *testing.T) {
	rows := make([]reference.Row, 5000)
	for i := range rows {
		rows[i] = reference.Row{"x": float64(i), "y": float64(i % 7), "s": "a"}
	}
	table := randomtree.Table(rows)
	var functions []rowfn.Function
	for _, body := range models {
		functions = append(functions, rowfn.Function{Value: score(mustModel(t, body), 0, column), Lo: -10, Hi: 20})
	}
	program, err := kernel.Compile(functions, table)
	if err != nil {
		t.Fatal(err)
	}
	state := kernel.NewState(program, kernel.Units{}, kernel.MaxBlock)
	defer state.Release()
	if n := testing.AllocsPerRun(10, func() { state.Add(0, 5000) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestMalformedScores(t *testing.T) {
	table := randomtree.Table([]reference.Row{{"x": 1.0}})
	m := mustModel(t, models[1])
	text := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "s"}
	for want, n := range map[string]*rowfn.Node{
		"has no model":           {Op: rowfn.OpScore, Type: rowfn.Number},
		"0 features":             {Op: rowfn.OpScore, Type: rowfn.Number, Model: m.Scorer()},
		"output 1":               {Op: rowfn.OpScore, Type: rowfn.Number, Model: m.Scorer(), Output: 1, Args: []*rowfn.Node{column("x")}},
		"feature 0 is no number": {Op: rowfn.OpScore, Type: rowfn.Number, Model: m.Scorer(), Args: []*rowfn.Node{text}},
		"wants a text column":    {Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{column("x")}},
		`no text column "x"`:     {Op: rowfn.OpLookup, Type: rowfn.Number, Args: []*rowfn.Node{{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "x"}}},
		"null is infinite":       {Op: rowfn.OpLookup, Type: rowfn.Number, Number: math.Inf(1), Args: []*rowfn.Node{text}},
		`"a" is not finite`:      {Op: rowfn.OpLookup, Type: rowfn.Number, Texts: map[string]float64{"a": math.NaN()}, Args: []*rowfn.Node{text}},
	} {
		if _, err := kernel.Evaluate(table, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
