package queries

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
)

// TestSoftmaxOfLargeScores: probabilities are those of the scores' differences, however large the scores are and wherever the largest stands.
func TestSoftmaxOfLargeScores(t *testing.T) {
	for _, scores := range [][]float64{{1000, 0, -1000}, {0, 1000, -1000}, {-1000, 0, 1000}, {-2000, -1999, -3000}, {0.5, 0.25, 0}} {
		top := math.Inf(-1)
		p := predictor{link: model.Softmax}
		for _, z := range scores {
			p.scores = append(p.scores, rowfn.Const(z))
			top = max(top, z)
		}
		sum := 0.0
		for _, z := range scores {
			sum += math.Exp(z - top)
		}
		for k, node := range p.probabilities() {
			got, ok := reference.Evaluate(node, reference.Row{}).(float64)
			if want := math.Exp(scores[k]-top) / sum; !ok || !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%v: class %d has %v, want %v", scores, k, got, want)
			}
		}
	}
}

// TestDescriptionsAreWhole: what is said of a question names what it is made of: its edges, its numbers, and, where units are of many
// rows, that each is a mean over them.
func TestDescriptionsAreWhole(t *testing.T) {
	schema := dataset.Schema{Fields: []dataset.Field{{Name: "v", Kind: dataset.Number}, {Name: "p", Kind: dataset.Number}, {Name: "y", Kind: dataset.Bool}}}
	for _, c := range []struct {
		body string
		says []string
	}{
		{`{"type":"calibration","prediction":"p","label":"y","edges":[0,0.25,1]}`, []string{"for each of 2 bins", "with the edges 0, 0.25, 1", "1 in the bin's rows with y, else 0"}},
		{`{"type":"gradient","model":{"linear":{"intercept":5,"weights":{"v":0.5}}},"label":"p","clip":1}`, []string{"gradient of the squared error for p", "scaled down to the length 1", "longer: by intercept, v"}},
	} {
		for _, grouped := range []bool{false, true} {
			q, err := Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := q.Compile(context.Background(), schema, Grouped(grouped))
			if err != nil {
				t.Fatal(err)
			}
			functions := plan.Describe().Functions
			for _, says := range c.says {
				if !strings.Contains(functions[0], says) {
					t.Errorf("%s: %q does not say %q", c.body, functions[0], says)
				}
			}
			for _, function := range functions {
				if strings.HasPrefix(function, "the mean over the unit's rows of") != grouped {
					t.Errorf("%s, grouped %v: %q", c.body, grouped, function)
				}
			}
		}
	}
}

// TestPlansAreSound: what every example of every type compiles to keeps the contract of row functions, which every engine relies on.
func TestPlansAreSound(t *testing.T) {
	for _, k := range kinds {
		for _, body := range k.examples {
			for _, grouped := range []bool{false, true} {
				plan, err := mustParse(t, body).Compile(context.Background(), flights, Grouped(grouped), HoldoutRows(1000), Training(halves{}))
				if k.name == "kendall" && grouped { // pairs of units of several rows have no theory
					if err == nil {
						t.Errorf("%s: compiled for units of several rows", body)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", body, err)
					continue
				}
				b := rowfn.Batch{Functions: plan.Functions}
				if err := b.Check(); err != nil {
					t.Errorf("%s: %v", body, err)
				}
			}
		}
	}
}

// halfway releases one half of whatever is asked, and the first of candidates.
type halfway bool

func (h halfway) Together() bool                       { return bool(h) }
func (halfway) Number(int) (Part, error)               { return Part{Value: 0.5}, nil }
func (halfway) Select(int, int, int64) (Choice, error) { return Choice{}, nil }
func (halfway) Vector(_, count int, _ float64) ([]Part, error) {
	return slices.Repeat([]Part{{Value: 0.5}}, count), nil
}

// TestPlansDeclare: what every example of every type declares of its answer is so: the items by name, the candidates, and whether it is a
// mean moved to a range. Sizes of answers, parts of half-widths and operands of other queries rely on it.
func TestPlansDeclare(t *testing.T) {
	for _, k := range kinds {
		for _, body := range k.examples {
			for _, grouped := range []bool{false, true} {
				plan, err := mustParse(t, body).Compile(context.Background(), flights, Grouped(grouped), HoldoutRows(1000), Training(halves{}))
				if k.name == "kendall" && grouped {
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", body, err)
				}
				for _, together := range []bool{false, true} {
					o, err := plan.Release(1000, halfway(together))
					if err != nil {
						t.Fatal(err)
					}
					var names []string
					r := plan.Combine(o)
					for _, i := range r.Items {
						names = append(names, i.Of)
					}
					if !slices.Equal(names, plan.Items(together)) || (r.Selected != "") != slices.Contains(plan.Candidates(), r.Selected) {
						t.Errorf("%s: items %q and selected %q, declared %q and %q", body, names, r.Selected, plan.Items(together), plan.Candidates())
					}
				}
				moved := func(mean float64, n int64) float64 {
					return *plan.Combine(Outcome{N: n, Parts: []Part{{Value: mean}}}).Value
				}
				switch a := plan.Affine(); {
				case a != nil:
					for _, n := range []int64{1, 7} {
						if low, high := moved(0, n), moved(1, n); math.Abs(moved(0.25, n)-(0.75*low+0.25*high)) > 1e-9*(high-low) || math.Abs(a.Scale(n)-(high-low)) > 1e-9*(high-low) {
							t.Errorf("%s: from %v to %v in %d units, declared %+v", body, low, high, n, *a)
						}
					}
				case plan.Numbers() == 1 && plan.Scalar() && !plan.Checked() && math.Abs(moved(0.25, 1)-(0.75*moved(0, 1)+0.25*moved(1, 1))) < 1e-9:
					t.Errorf("%s: a mean moved to a range, which is not declared", body)
				}
			}
		}
	}
}
