package holdout

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestTrainingMeans: sums over the training part are those that the engine finds, whatever is known of them already, and what is known is not summed again. It would notice two row
// functions that are taken for one: of another range, null, condition, rule or column.
func TestTrainingMeans(t *testing.T) {
	if f, n := reflect.TypeFor[queries.RowFunction]().NumField(), reflect.TypeFor[rowfn.Node]().NumField(); f != 6 || n != 9 {
		t.Fatalf("a row function has %d fields and a node %d: appendFunction and appendNode have to write the new one, or refuse it", f, n)
	}
	x, y := []float64{1.1, 2.3, 3.2, 4.7, 5.9}, []float64{5.3, 4.1, 1.7, 2.6, 7.8}
	table, err := dataset.FromColumns(dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: x},
		dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Number}, Numbers: y})
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, []uint32{0, 2, 5}, 3)
	if err != nil {
		t.Fatal(err)
	}
	a, b := rowfn.Column("x", rowfn.Number), rowfn.Column("y", rowfn.Number)
	more := rowfn.CompareTo(rowfn.OpGreater, a, 2)
	functions := []queries.RowFunction{
		{Value: a, Lo: 0, Hi: 10}, {Value: b, Lo: 0, Hi: 10}, {Value: a, Lo: 1, Hi: 10, Null: 1}, {Value: a, Lo: 0, Hi: 11}, {Value: rowfn.Clamp(a, 0, 3), Lo: 0, Hi: 10},
		{Value: rowfn.Clamp(a, 2, 3), Lo: 0, Hi: 10}, {Value: a, Lo: 0, Hi: 10, Where: more}, {Value: a, Lo: 0, Hi: 10, Where: more, PerUnit: rowfn.UnitShare}, {Lo: 0, Hi: 1, Where: more, PerUnit: rowfn.UnitAny},
		{Value: rowfn.Log(rowfn.Sub(a, rowfn.Const(3))), Lo: 0, Hi: 10, Null: 0}, {Value: rowfn.Log(rowfn.Sub(a, rowfn.Const(3))), Lo: 0, Hi: 10, Null: 4},
		{Value: rowfn.Sub(a, b), Lo: -10, Hi: 10}, {Value: rowfn.Sub(b, a), Lo: -10, Hi: 10}, {Value: rowfn.Add(a, b), Lo: -10, Hi: 10},
	}
	want, err := source.Sums(t.Context(), functions, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if different := slices.Compact(slices.Sorted(slices.Values(want))); len(different) != len(want) {
		t.Fatalf("%v: of %d sums %d are different: the others would not be told apart", want, len(want), len(different))
	}
	var m trainingMeans
	summed := 0
	sum := func(ctx context.Context, f []queries.RowFunction) ([]int64, error) {
		summed += len(f)
		return source.Sums(ctx, f, 0, 2)
	}
	for _, part := range [][]queries.RowFunction{functions[:3], functions[2:9], functions, functions} {
		first := slices.IndexFunc(functions, func(f queries.RowFunction) bool { return f == part[0] })
		got, err := m.of(t.Context(), part, sum)
		if err != nil || !slices.Equal(got, want[first:first+len(part)]) {
			t.Fatalf("from %d on: %v, %v; want %v", first, got, err, want[first:first+len(part)])
		}
	}
	if summed != len(functions) {
		t.Errorf("%d row functions were summed, of %d", summed, len(functions))
	}
	// What fails is not remembered.
	failure := errors.New("no")
	other := []queries.RowFunction{{Value: a, Lo: 0, Hi: 77}}
	if _, err := m.of(t.Context(), other, func(context.Context, []queries.RowFunction) ([]int64, error) { return nil, failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	if got, err := m.of(t.Context(), other, sum); err != nil || got[0] == 0 {
		t.Error(got, err)
	}
	// Numbers that come with a question are not remembered, and neither are more than there is room for.
	summed = 0
	for range 2 {
		if _, err := m.of(t.Context(), []queries.RowFunction{{Value: &rowfn.Node{Op: rowfn.OpRow, Type: rowfn.Number, Values: x}, Lo: 0, Hi: 10}}, sum); err != nil {
			t.Fatal(err)
		}
	}
	if summed != 2 {
		t.Errorf("numbers for each row were summed %d times, want 2", summed)
	}
	for i := range maxMeans + 10 {
		if _, err := m.of(t.Context(), []queries.RowFunction{{Value: a, Lo: 0, Hi: float64(100 + i)}}, func(context.Context, []queries.RowFunction) ([]int64, error) { return []int64{1}, nil }); err != nil || len(m.sums) > maxMeans {
			t.Fatal(len(m.sums), err)
		}
	}
}

// TestRememberedMeansAreRefusedAsOthers: whether means of the training part are too much work does not depend on what was asked before: a refusal that came for new ones alone would tell an
// analyst which constants others have asked about.
func TestRememberedMeansAreRefusedAsOthers(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 10}, visits(t, 2000, 1))
	h, release, err := s.tables.take(t.Context(), card.ID)
	must(t, err)
	defer release()
	functions := []queries.RowFunction{{Value: rowfn.Column("x", rowfn.Number), Lo: 0, Hi: 10}}
	means := func(ctx context.Context) error {
		_, err := trainingPart{h}.Means(ctx, functions)
		return err
	}
	full := Work{Steps: s.limits.Work}
	if err := s.InTurn(t.Context(), analyst, full, means); KindOf(err) != TooLarge {
		t.Fatalf("means that are not known: %v", err)
	}
	must(t, s.InTurn(t.Context(), analyst, Work{}, means))
	if err := s.InTurn(t.Context(), analyst, full, means); KindOf(err) != TooLarge {
		t.Errorf("means that are known: %v, want what was said before", err)
	}
}
