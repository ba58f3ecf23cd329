package queries

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/queries/shape"
)

// jointBodies are queries that are checked as one question about several means.
var jointBodies = []string{
	`{"type":"variance",` + ofV, `{"type":"stddev",` + ofV, `{"type":"variance","ddof":1,` + ofV,
	`{"type":"covariance","form":"exact",` + ofVU, `{"type":"correlation","form":"exact",` + ofVU, `{"type":"correlation","form":"exact","x":"v","y":"-u","range_x":[-60,180],"range_y":[-180,60]`,
	`{"type":"correlation","form":"exact","x":"v + u","y":"v - u","range_x":[-60,180],"range_y":[-100,60]`,
	`{"type":"r2","label":"u","range":[-60,180],` + linearModel, `{"type":"r2","label":"u","range":[-60,180],"prediction":"u + v / 100"`,
	`{"type":"test","test":"slope",` + ofVU, `{"type":"test","test":"slope","x":"v","y":"u + 3 * v","range_x":[-60,180],"range_y":[-400,800]`,
	`{"type":"test","test":"correlation",` + ofVU,
}

// jointly are what exact means of the functions that are checked would be, each in an interval of up to width around it on either side.
func jointly(t *rapid.T, j *shape.Joint, units []unit, width float64) (parts []Part, some bool) {
	for i := range j.Means {
		e := j.Means[i]
		functions := []RowFunction{e.A}
		if e.B != nil {
			functions = append(functions, *e.B)
		}
		exact := exactParts(&Plan{Functions: functions}, units)
		root := exact[0].Value
		if e.B != nil {
			if exact[1].Value == 0 {
				return nil, false
			}
			root /= exact[1].Value
		}
		off := 0.0
		if width > 0 {
			off = rapid.Float64Range(-width, width).Draw(t, "noise")
		}
		parts = append(parts, Part{Value: root + off, Low: max(0, min(root, root+off)-width/8), High: min(1, max(root, root+off)+width/8), Bounded: true})
	}
	return parts, true
}

// loosely are parts in intervals that are so wide that they do not move the answer's value.
func loosely(parts []Part) []Part {
	wide := slices.Clone(parts)
	for i := range wide {
		wide[i].Low, wide[i].High = max(0, wide[i].Value-0.3), min(1, wide[i].Value+0.3)
	}
	return wide
}

// TestJointMeansWhatItSays: the answer of one question about several means is that of the plan's own means, whatever the constants are that the training part gives, in tables of
// rows and of units; and where the interval of each mean holds it, the answer's interval holds the answer. It would notice a formula that is not the other one, a
// tangent that moves the target, means of other rows, and an end that belongs to the other end of a mean.
func TestJointMeansWhatItSays(t *testing.T) {
	for _, body := range jointBodies {
		t.Run(body, func(t *testing.T) {
			well := 0
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				more := rapid.SampledFrom([]string{"}", `,"where":"w"}`}).Draw(t, "more")
				if strings.Contains(body, "ddof") {
					more = "}"
				}
				units := drawPeople(t, "units", grouped)
				q, err := Parse([]byte(body + more))
				if err != nil {
					t.Fatal(err)
				}
				options := []Option{Grouped(grouped)}
				if rapid.IntRange(0, 3).Draw(t, "no training") > 0 {
					options = append(options, Training(inMemory{drawPeople(t, "training", grouped)}))
				}
				p, err := q.Compile(context.Background(), people, options...)
				if err != nil {
					t.Fatal(err)
				}
				checked := p.AsChecked()
				if len(checked.Statistics()) != 1 || checked.Numbers() != 1 {
					t.Fatalf("%d statistics", len(checked.Statistics()))
				}
				j := checked.Statistics()[0].(*shape.Joint)
				total := 0.0
				for _, s := range j.Shares {
					total += s
				}
				if len(j.Shares) != len(j.Means) || math.Abs(total-1) > 1e-12 {
					t.Fatalf("%d means with the shares %v", len(j.Means), j.Shares)
				}
				n := int64(len(units))
				answerOf := func(parts []Part) Result {
					return checked.Combine(Outcome{N: n, Parts: []Part{j.Make(parts, n)}})
				}
				parts, some := jointly(t, j, units, 0)
				want := p.Combine(Outcome{N: n, Parts: exactParts(p, units)})
				if !some {
					if want.Value != nil {
						t.Fatalf("%v of nothing", *want.Value)
					}
					return
				}
				width := rapid.SampledFrom([]float64{1e-6, 0.001, 0.01, 0.1, 0.4}).Draw(t, "width")
				noisy, _ := jointly(t, j, units, width)
				exact, got := answerOf(loosely(parts)), answerOf(noisy)
				plain := p.Combine(Outcome{N: n, Parts: loosely(exactParts(p, units))})
				slack := 1e-6
				for signs := range 1 << len(parts) { // what a few steps of the grid do to the answer, which small variances make much
					moved := loosely(parts)
					for i := range moved {
						moved[i].Value += float64(8*(signs>>i&1)-4) / float64(One)
					}
					if a := answerOf(moved); a.Value == nil || exact.Value == nil {
						slack = math.Inf(1)
					} else {
						slack = max(slack, 4*math.Abs(*a.Value-*exact.Value))
					}
				}
				if want.Value != nil {
					slack *= 1 + math.Abs(*want.Value)
				}
				if want.Value != nil && max(slack, *want.High-*want.Low) < 1e-2*(1+math.Abs(*want.Value)) {
					well++
					if exact.Value == nil || plain.Value == nil || math.Abs(*exact.Value-*plain.Value) > slack+(*want.High-*want.Low) {
						t.Fatalf("got %v, want %v", show(exact.Value), show(plain.Value))
					}
					if *got.Low > *want.Value+slack || *got.High < *want.Value-slack {
						t.Fatalf("[%v, %v] does not hold %v", *got.Low, *got.High, *want.Value)
					}
				}
				if got.Value != nil && (*got.Value < *got.Low || *got.Value > *got.High) {
					t.Fatalf("%v is outside of its interval [%v, %v]", *got.Value, *got.Low, *got.High)
				}
			})
			if well < 3 { // of about twenty; by chance once in a hundred thousand runs
				t.Errorf("%d of 100 draws are well conditioned", well)
			}
		})
	}
}

// TestJointIsOfOneVoteAUnit: where rows have the votes of units of several rows, the divisor is not 0 or 1, and each mean is checked by itself.
func TestJointIsOfOneVoteAUnit(t *testing.T) {
	const body = `{"type":"variance","weight":"row",` + ofV + `}`
	for grouped, questions := range map[bool]int{true: 2, false: 1} {
		if got := compiled(t, body, people, Grouped(grouped)).AsChecked().Numbers(); got != questions {
			t.Errorf("grouped %v: %d questions", grouped, got)
		}
	}
}

// TestBeyondVariesLess is why the training part's constants are there: along a line with little noise, of which it knows the slope, a mean that is left to be
// known varies a hundredth of what the plan's own does; so does the interval.
func TestBeyondVariesLess(t *testing.T) {
	var units []unit
	for i := range 200 {
		x := float64(i%100) - 20
		units = append(units, unit{{"v": x, "u": x + 3*math.Sin(float64(i*i))}})
	}
	for _, body := range []string{`{"type":"correlation","form":"exact",` + ofVU + `}`, `{"type":"test","test":"slope",` + ofVU + `}`, `{"type":"r2","label":"u","range":[-60,180],"prediction":"v"}`} {
		spread := func(options ...Option) float64 {
			p := compiled(t, body, people, options...)
			j := p.AsChecked().Statistics()[0].(*shape.Joint)
			e := j.Means[0]
			sum, squares := 0.0, 0.0
			for _, u := range units {
				x := exactParts(&Plan{Functions: []RowFunction{e.A}}, []unit{u})[0].Value * (e.Range.High - e.Range.Low)
				sum, squares = sum+x, squares+x*x
			}
			n := float64(len(units))
			return math.Sqrt(squares/n - sum/n*sum/n)
		}
		if with, without := spread(Training(inMemory{units})), spread(); !(with < 0.1*without) {
			t.Errorf("%s: varies by %v with the training part, %v without", body, with, without)
		}
	}
}
