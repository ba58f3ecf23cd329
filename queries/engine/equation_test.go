package engine

import (
	"context"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestEquations: where a plan says that its answer is the root of an estimating equation, it is; A is never above B, and B, where it is
// said to be 0 or 1, is; and the products that are not summed are what they are said to follow from. In tables of single rows and of
// units of several. It would notice an equation of other rows or of other votes than the plan's.
func TestEquations(t *testing.T) {
	const rows = 400
	table := people(rows)
	var offsets []uint32
	for at := uint32(0); at < rows; at += 1 + at%4 {
		offsets = append(offsets, at)
	}
	offsets = append(offsets, rows)
	has := 0
	for _, body := range []string{
		`{"type":"mean","of":"income","range":[0,100000]}`,
		`{"type":"mean","of":"income","range":[-1000,100000],"where":"age > 40"}`,
		`{"type":"mean","of":"income","range":[0,100000],"where":"age > 40","weight":"row"}`,
		`{"type":"mean","of":"income","range":[0,100000],"weights":{"of":"age","range":[0,90]}}`,
		`{"type":"mean","of":"income","range":[0,100000],"where":"income > 10","weight":"row","weights":{"of":"age","range":[10,90]}}`,
		`{"type":"fraction","of":"town == 'town A'"}`,
		`{"type":"fraction","of":"income > 60000","where":"age > 40"}`,
		`{"type":"accuracy","label":"income > 60000","prediction":"age > 50","where":"age > 30","weight":"row"}`,
		`{"type":"loss","loss":"absolute","label":"income","prediction":"age * 1000","range":[0,50000]}`,
		`{"type":"rmse","label":"income","prediction":"age * 1000","max_error":50000,"where":"age > 30"}`,
		`{"type":"rmse","label":"income","prediction":"age * 1000","max_error":50000}`,
		`{"type":"covariance","x":"age","y":"income","range_x":[18,90],"range_y":[0,100000],"center_x":50,"scale_x":20,"center_y":50000,"scale_y":20000,"where":"age > 30"}`,
		`{"type":"compare","a":{"type":"fraction","of":"age > 50"},"b":{"type":"fraction","of":"income > 50000"},"where":"age > 20"}`,
		`{"type":"sum","of":"income","range":[0,100000]}`,
		`{"type":"median","of":"age","range":[0,100],"resolution":10}`,
		`{"type":"histogram","of":"age","edges":[0,50,100]}`,
	} {
		for _, grouped := range []bool{false, true} {
			s, err := NewTable(table, nil, 1)
			if grouped {
				s, err = NewTable(table, offsets, 3)
			}
			if err != nil {
				t.Fatal(err)
			}
			q, err := queries.Parse([]byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			plan, err := q.Compile(context.Background(), table.Schema(), queries.Grouped(grouped))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			e := plan.Equation
			if e == nil {
				continue
			}
			has++
			one := rowfn.Function{Lo: 0, Hi: 1}
			if e.B != nil {
				one = *e.B
			}
			full := rowfn.Batch{Functions: []rowfn.Function{e.A, one}, Products: []rowfn.Product{{A: 0, B: 0}, {A: 0, B: 1}, {A: 1, B: 1}}}
			for u := range s.Units() {
				v, err := s.Sums(context.Background(), full.Functions, u, u+1)
				if err != nil {
					t.Fatal(err)
				}
				if v[0] > v[1] || e.Whole && v[1] != 0 && v[1] != rowfn.One {
					t.Fatalf("%s: unit %d has A = %d and B = %d", body, u, v[0], v[1])
				}
			}
			least, err := s.Moments(context.Background(), e.Batch(), 0, s.Units())
			if err != nil {
				t.Fatal(err)
			}
			all, err := s.Moments(context.Background(), full, 0, s.Units())
			if err != nil {
				t.Fatal(err)
			}
			got := e.Sums(least, s.Units())
			if got.A != all.Values[0] || got.B != all.Values[1] || got.AA != all.Products[0] || got.AB != all.Products[1] || got.BB != all.Products[2] {
				t.Errorf("%s: %+v, all sums are %+v", body, got, all)
			}
			means, err := s.Sums(context.Background(), plan.Functions, 0, s.Units())
			if err != nil {
				t.Fatal(err)
			}
			o := queries.Outcome{N: s.Units()}
			for i, sum := range means {
				o.Parts = append(o.Parts, queries.Part{Function: i, Value: float64(sum) / float64(s.Units()*rowfn.One)})
			}
			root := float64(got.A) / float64(got.B)
			if e.Root {
				root = math.Sqrt(root)
			}
			root = e.Range.Low + (e.Range.High-e.Range.Low)*root
			if answer := plan.Combine(o).Value; answer == nil || math.Abs(*answer-root) > 1e-6*(e.Range.High-e.Range.Low) {
				t.Errorf("%s: the root is %v, the answer %v", body, root, *answer)
			}
		}
	}
	if has != 2*13 {
		t.Errorf("%d plans have an equation, want 26", has)
	}
}
