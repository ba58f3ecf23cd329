package engine

import (
	"context"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestEquations: where a plan says that its answer is made of the roots of estimating equations, it is; A is never above B, and B, where it is
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
		`{"type":"precision","label":"income > 60000","prediction":"age > 50","where":"age > 30"}`,
		`{"type":"recall","label":"income > 60000","prediction":"age / 100"}`,
		`{"type":"f1","label":"income > 60000","prediction":"age > 50"}`,
		`{"type":"f1","label":"income > 60000","prediction":"age > 50","weight":"row"}`,
		`{"type":"compare","a":{"type":"fraction","of":"age > 50"},"b":{"type":"fraction","of":"income > 50000"},"where":"age > 20"}`,
		`{"type":"sum","of":"income","range":[0,100000]}`,
		`{"type":"histogram","of":"age","edges":[0,50,100]}`,
		`{"type":"frequencies","of":"town","values":["town A","town B","nowhere"],"where":"age > 40"}`,
		`{"type":"groups","of":"income","range":[-5,100000],"by":"town","values":["town A","town B","nowhere"],"where":"age > 40"}`,
		`{"type":"difference","of":"income","range":[0,100000],"between":["age > 60","age > 30"],"where":"town != 'town A'"}`,
		`{"type":"balanced_accuracy","label":"income > 60000","prediction":"age > 50","where":"town != 'town A'"}`,
		`{"type":"compare","a":{"type":"balanced_accuracy","label":"income > 60000","prediction":"age > 50"},"b":{"type":"balanced_accuracy","label":"income > 60000","prediction":"age > 40"}}`,
		`{"type":"screen","label":"age > 40","features":["income"],"range":[0,100000],"statistic":"product"}`,
		`{"type":"median","of":"age","range":[0,100],"resolution":10}`,
		`{"type":"variance","of":"age","range":[0,100]}`,
		`{"type":"test","test":"goodness-of-fit","cells":["age > 40"],"expected":[0.5]}`,
		`{"type":"test","test":"independence","rows":["age > 40"],"columns":["income > 50000"]}`,
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
			plan, err := q.Compile(context.Background(), table.Schema(), queries.Grouped(grouped), queries.HoldoutRows(int64(table.Rows())))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if len(plan.Equations) == 0 {
				continue
			}
			has++
			least, err := s.Moments(context.Background(), plan.Equations.Batch(), 0, s.Units())
			if err != nil {
				t.Fatal(err)
			}
			got := plan.Equations.Sums(least, s.Units())
			roots := make([]float64, len(got))
			for i := range plan.Equations {
				roots[i] = checkEquation(t, s, body, &plan.Equations[i], got[i])
			}
			means, err := s.Sums(context.Background(), plan.Functions, 0, s.Units())
			if err != nil {
				t.Fatal(err)
			}
			o := queries.Outcome{N: s.Units()}
			for i, sum := range means {
				o.Parts = append(o.Parts, queries.Part{Function: i, Value: float64(sum) / float64(s.Units()*rowfn.One)})
			}
			r, answers := plan.Combine(o), []*float64{}
			for _, item := range r.Items {
				answers = append(answers, item.Value)
			}
			if _, two := plan.Shape.(shape.Contrast); two {
				roots = []float64{roots[0] - roots[1]}
			}
			if len(r.Items) == 0 {
				answers = []*float64{r.Value}
			}
			if len(answers) != len(roots) {
				t.Fatalf("%s: %d roots for %d numbers", body, len(roots), len(answers))
			}
			for i, answer := range answers {
				if answer == nil && math.IsNaN(roots[i]) {
					continue
				}
				if tolerance := 1e-6 * float64(s.Units()) * (plan.Range.High - plan.Range.Low); answer == nil || !(math.Abs(*answer-roots[i]) <= tolerance) {
					t.Errorf("%s: root %d is %v, the answer %v", body, i, roots[i], answer)
				}
			}
		}
	}
	if has != 2*25 {
		t.Errorf("%d plans have equations, want 50", has)
	}
}

// checkEquation is what the root of an equation says, after all that is promised of it was looked at, unit by unit.
func checkEquation(t *testing.T, s *Table, body string, e *shape.Equation, got shape.EquationSums) float64 {
	t.Helper()
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
	all, err := s.Moments(context.Background(), full, 0, s.Units())
	if err != nil {
		t.Fatal(err)
	}
	if got.A != all.Values[0] || got.B != all.Values[1] || got.AA != all.Products[0] || got.AB != all.Products[1] || got.BB != all.Products[2] {
		t.Errorf("%s: %+v, all sums are %+v", body, got, all)
	}
	root := float64(got.A) / float64(got.B)
	switch e.Link {
	case shape.SquareRoot:
		root = math.Sqrt(root)
	case shape.Dice:
		root = 2 * root / (1 + root)
	}
	root = e.Range.Low + (e.Range.High-e.Range.Low)*root
	if e.PerUnit {
		root *= float64(s.Units())
	}
	return root
}
