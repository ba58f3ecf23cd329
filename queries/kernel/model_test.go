package kernel_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/internal/randomtree"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/queries/model"
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
func score(m *model.Model, output int, number func(column string) *expr.Node) *expr.Node {
	n := &expr.Node{Op: expr.OpScore, Type: expr.Number, Model: m, Output: output}
	for _, f := range m.Features() {
		if f.Texts == nil {
			n.Args = append(n.Args, number(f.Column))
			continue
		}
		column := &expr.Node{Op: expr.OpColumn, Type: expr.Text, Text: f.Column}
		n.Args = append(n.Args, &expr.Node{Op: expr.OpLookup, Type: expr.Number, Texts: f.Texts, Number: f.Null, Args: []*expr.Node{column}})
	}
	return n
}

func column(name string) *expr.Node {
	return &expr.Node{Op: expr.OpColumn, Type: expr.Number, Text: name}
}

// TestScoresAreReference: scores, alone and within expressions, of columns and of computed features, are those of the
// reference in every row; what is not finite is null.
func TestScoresAreReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := randomtree.Rows(t, rapid.IntRange(1, 40).Draw(t, "rows"))
		table := randomtree.Table(rows)
		var nodes []*expr.Node
		for range 3 {
			m, err := model.Parse([]byte(rapid.SampledFrom(models).Draw(t, "model")))
			if err != nil {
				t.Fatal(err)
			}
			features := rapid.Bool().Draw(t, "computed")
			output := rapid.IntRange(0, m.Scorer().Outputs()-1).Draw(t, "output")
			nodes = append(nodes, score(m, output, func(name string) *expr.Node {
				if !features {
					return column(name)
				}
				return &expr.Node{Op: expr.OpMul, Type: expr.Number, Args: []*expr.Node{column("x"), column(name)}}
			}))
		}
		sum := &expr.Node{Op: expr.OpMax, Type: expr.Number, Args: []*expr.Node{nodes[2], column("y")}}
		for _, n := range []*expr.Node{nodes[0], {Op: expr.OpSub, Type: expr.Number, Args: nodes[:2]}, {Op: expr.OpLess, Type: expr.Condition, Args: []*expr.Node{nodes[1], sum}}} {
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
		var functions []queries.RowFunction
		var want []int64
		for _, body := range models {
			m, err := model.Parse([]byte(body))
			if err != nil {
				t.Fatal(err)
			}
			for k := range m.Scorer().Outputs() {
				f := queries.RowFunction{Value: score(m, k, column), Lo: -10, Hi: 20, Null: 3}
				functions = append(functions, f)
				sum := int64(0)
				for _, row := range rows {
					x := reference.Evaluate(f.Value, row).(float64)
					if math.IsNaN(x) {
						x = 3
					}
					sum += int64(float64((min(max(x, -10), 20)+10)*(float64(queries.One)/30)) + 0.5)
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
	var functions []queries.RowFunction
	for _, body := range models {
		functions = append(functions, queries.RowFunction{Value: score(mustModel(t, body), 0, column), Lo: -10, Hi: 20})
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
	text := &expr.Node{Op: expr.OpColumn, Type: expr.Text, Text: "s"}
	for want, n := range map[string]*expr.Node{
		"has no model":           {Op: expr.OpScore, Type: expr.Number},
		"0 features":             {Op: expr.OpScore, Type: expr.Number, Model: m},
		"output 1":               {Op: expr.OpScore, Type: expr.Number, Model: m, Output: 1, Args: []*expr.Node{column("x")}},
		"feature 0 is no number": {Op: expr.OpScore, Type: expr.Number, Model: m, Args: []*expr.Node{text}},
		"wants a text column":    {Op: expr.OpLookup, Type: expr.Number, Args: []*expr.Node{column("x")}},
		`no text column "x"`:     {Op: expr.OpLookup, Type: expr.Number, Args: []*expr.Node{{Op: expr.OpColumn, Type: expr.Text, Text: "x"}}},
		"null is infinite":       {Op: expr.OpLookup, Type: expr.Number, Number: math.Inf(1), Args: []*expr.Node{text}},
		`"a" is not finite`:      {Op: expr.OpLookup, Type: expr.Number, Texts: map[string]float64{"a": math.NaN()}, Args: []*expr.Node{text}},
	} {
		if _, err := kernel.Evaluate(table, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
