package engine

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/kernel"
	"github.com/holdoutd/holdoutd/rowfn"
)

// inList is town in a list of literals that no other list has.
func inList(i, literals int) rowfn.Function {
	n := &rowfn.Node{Op: rowfn.OpIn, Type: rowfn.Condition, Args: []*rowfn.Node{{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "town"}}}
	for k := range literals {
		n.Args = append(n.Args, &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: fmt.Sprintf("town %d %d", i, k)})
	}
	n.Args[1].Text = "town C"
	return rowfn.Function{Lo: 0, Hi: 1, Value: n}
}

func inLists(n, literals int) []rowfn.Function {
	functions := make([]rowfn.Function, n)
	for i := range functions {
		functions[i] = inList(i, literals)
	}
	return functions
}

// TestPassesAreBounded: thousands of lists over a million texts are summed in passes whose tables and nodes stay within their bounds, and
// what Estimate says does not grow with the number of lists.
func TestPassesAreBounded(t *testing.T) {
	shape := dataset.Shape{Rows: 1 << 20, Texts: map[string]dataset.TextShape{"town": {Texts: 1 << 20, Bytes: 1 << 24}}}
	functions := inLists(2500, 20)
	at := 0
	for _, n := range passes(functions, shape) {
		tables, nodes := int64(0), 0
		for _, f := range functions[at : at+n] {
			tables += kernel.TableBytes(shape.Texts["town"], false)
			nodes += 1 + len(f.Value.Args)
		}
		if n == 0 || tables > MaxTables || nodes > maxNodes {
			t.Fatalf("a pass of %d functions has %d nodes and %d bytes of tables", n, nodes, tables)
		}
		at += n
	}
	if at != len(functions) {
		t.Fatalf("passes of %d functions, of %d", at, len(functions))
	}
	most := int64(MaxTables + maxNodes*nodeMemory + MaxScratch*runtime.GOMAXPROCS(0))
	if w := Estimate(functions, shape); w.Memory > most || w.Memory < MaxTables/2 {
		t.Errorf("2,500 lists take %d bytes, at most %d wanted", w.Memory, most)
	}
	// A single function that needs more is not cut, and says so.
	one := functions[0]
	all := &rowfn.Node{Op: rowfn.OpOr, Type: rowfn.Condition}
	for _, f := range functions {
		all.Args = append(all.Args, f.Value)
	}
	one.Value = all
	if w := Estimate([]rowfn.Function{one}, shape); w.Memory < 2500*(1<<20)/8 {
		t.Errorf("2,500 lists in one function take %d bytes", w.Memory)
	}
}

// TestPassesAgree: a batch that is cut into passes has the sums of its functions one by one.
func TestPassesAgree(t *testing.T) {
	s, err := NewTable(people(1000), nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	functions := inLists(600, 150) // more nodes than a pass compiles
	if n := len(passes(functions, s.Shape())); n < 2 {
		t.Fatalf("%d passes", n)
	}
	got, err := s.Sums(context.Background(), functions, 0, s.Units())
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.Sums(context.Background(), functions[:1], 0, s.Units())
	if err != nil || one[0] == 0 {
		t.Fatal(one, err)
	}
	for i, sum := range got {
		if sum != one[0] {
			t.Fatalf("function %d: %d, want %d", i, sum, one[0])
		}
	}
}

// TestEstimateGrows: more of anything is more work, and nothing overflows.
func TestEstimateGrows(t *testing.T) {
	shape := dataset.Shape{Rows: 1000, Texts: map[string]dataset.TextShape{"town": {Texts: 64, Bytes: 1024}}}
	part := func(literal string) []rowfn.Function {
		column := &rowfn.Node{Op: rowfn.OpColumn, Type: rowfn.Text, Text: "town"}
		text := &rowfn.Node{Op: rowfn.OpText, Type: rowfn.Text, Text: literal}
		return []rowfn.Function{{Lo: 0, Hi: 1, Value: call(rowfn.OpContains, rowfn.Condition, column, text)}}
	}
	base := Estimate(batch(1), shape)
	if w := Estimate(batch(2), shape); w.Steps <= base.Steps {
		t.Errorf("two predicates take %v, one %v", w, base)
	}
	twice := append(batch(1), batch(1)...)
	twice[1].Value = twice[0].Value
	if w := Estimate(twice, shape); w.Steps >= 2*base.Steps {
		t.Errorf("a shared expression counts twice: %v, once %v", w, base)
	}
	short := Estimate(part("a"), shape)
	if w := Estimate(part(string(make([]byte, 100))), shape); short.Texts < 1024 || w.Texts <= short.Texts {
		t.Errorf("a long literal takes %v, a short one %v", w, short)
	}
	shape.Texts["town"] = dataset.TextShape{Texts: 64, Bytes: 2048}
	if w := Estimate(part("a"), shape); w.Texts <= short.Texts || w.Steps != short.Steps {
		t.Errorf("more bytes of texts take %v, fewer %v", w, short)
	}
	if w := (Work{Steps: math.MaxInt64, Texts: math.MaxInt64}); w.Total(math.MaxInt64) <= 0 || w.Total(0) <= 0 {
		t.Error("a total overflows")
	}
}

// passes are how many functions each pass of a batch sums.
func passes(functions []rowfn.Function, shape dataset.Shape) []int {
	b := rowfn.Batch{Functions: functions}
	return plan(b, itemsOf(b), shape).parts
}

// TestProductsAreWork: a product takes steps and memory, however often it is asked once; functions that it shares with others count once.
func TestProductsAreWork(t *testing.T) {
	shape := dataset.Shape{Rows: 1000}
	b := rowfn.Batch{Functions: batch(2)}
	plain := EstimateBatch(b, shape)
	if plain != Estimate(b.Functions, shape) {
		t.Errorf("a batch without products takes %v, its functions %v", plain, Estimate(b.Functions, shape))
	}
	b.Products = []rowfn.Product{{A: 0, B: 1}}
	one := EstimateBatch(b, shape)
	b.Products = append(b.Products, rowfn.Product{A: 0, B: 0}, rowfn.Product{A: 1, B: 1})
	three := EstimateBatch(b, shape)
	if one.Steps <= plain.Steps || three.Steps != one.Steps+2*productSteps || one.Memory <= plain.Memory || three.Memory != one.Memory {
		t.Errorf("no product takes %v, one %v, three of the same functions %v", plain, one, three)
	}
}
