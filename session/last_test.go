package session

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// shop is a table of customers: whether two models are right about them, the first one's score, whether they churn, their revenue, and which of two offers they got.
type shop struct {
	right1, right2, churn, treated []bool
	score, revenue                 []float64
}

func newShop(seed uint64, n int) (s shop) {
	r := rand.New(rand.NewPCG(seed, 41))
	for range n {
		x := r.NormFloat64()
		p := 1 / (1 + math.Exp(1.2-1.3*x))
		churn := r.Float64() < p
		right := (p > 0.5) == churn
		other := right
		if r.Float64() < 0.024 {
			other = !right
		}
		s.right1, s.right2, s.churn = append(s.right1, right), append(s.right2, other), append(s.churn, churn)
		s.score = append(s.score, p)
		s.treated = append(s.treated, r.IntN(2) == 0)
		s.revenue = append(s.revenue, math.Exp(3.3+1.4*r.NormFloat64()))
	}
	return s
}

func (s shop) source(t testing.TB) (dataset.Schema, *engine.Table) {
	t.Helper()
	bits := func(name string, x []bool) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool}}
		for _, b := range x {
			v := uint8(0)
			if b {
				v = 1
			}
			c.Bools = append(c.Bools, v)
		}
		return c
	}
	table, err := dataset.FromColumns(bits("right1", s.right1), bits("right2", s.right2), bits("churn", s.churn), bits("treated", s.treated),
		dataset.Column{Field: dataset.Field{Name: "score", Kind: dataset.Number}, Numbers: s.score},
		dataset.Column{Field: dataset.Field{Name: "revenue", Kind: dataset.Number}, Numbers: s.revenue})
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	return table.Schema(), source
}

// spread is the standard error of a mean over the rows in which some hold.
func (s shop) spread(of func(i int) (x float64, counts bool)) float64 {
	sum, squares, n := 0.0, 0.0, 0.0
	for i := range s.score {
		if x, counts := of(i); counts {
			sum, squares, n = sum+x, squares+x*x, n+1
		}
	}
	return math.Sqrt((squares/n - sum*sum/n/n) / n)
}

// delong is the standard error of the area under the curve of the score in so many equal bins (DeLong et al. 1988).
func (s shop) delong(bins int) float64 {
	counts := [2][]float64{make([]float64, bins), make([]float64, bins)}
	var n [2]float64
	class := func(i int) int {
		if s.churn[i] {
			return 1
		}
		return 0
	}
	for i, p := range s.score {
		counts[class(i)][int(p*float64(bins))]++
		n[class(i)]++
	}
	variance := 0.0
	for c := range counts {
		sum, squares, below := 0.0, 0.0, 0.0
		for b, count := range counts[c] {
			place := (below + counts[1-c][b]/2) / n[1-c]
			sum, squares = sum+count*place, squares+count*place*place
			below += counts[1-c][b]
		}
		variance += (squares/n[c] - sum*sum/n[c]/n[c]) / n[c]
	}
	return math.Sqrt(variance)
}

// textbook is a question with the standard error that a textbook's interval is made of, of one that has no half-width by itself.
type textbook struct {
	name, body string
	error      func(s shop) float64
	at         [3]float64 // how many times a textbook's the half-width may be, as one of ten questions, of a hundred, and alone
}

func textbooks() []textbook {
	number := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	revenue := func(s shop, high float64) func(i int) (float64, bool) {
		return func(i int) (float64, bool) { return min(s.revenue[i], high), true }
	}
	both := func(s shop, of func(i int) float64) float64 {
		a := s.spread(func(i int) (float64, bool) { return of(i), s.treated[i] })
		b := s.spread(func(i int) (float64, bool) { return of(i), !s.treated[i] })
		return math.Hypot(a, b)
	}
	loss := func(s shop, i int) float64 {
		p := min(max(s.score[i], 0.02), 0.98)
		if s.churn[i] {
			return -math.Log(p)
		}
		return -math.Log(1 - p)
	}
	return []textbook{
		{"accuracy", `{"type":"fraction","of":"right1"}`, func(s shop) float64 {
			return s.spread(func(i int) (float64, bool) { return number(s.right1[i]), true })
		}, [3]float64{1.05, 1.05, 1.05}},
		{"compare, 2.4% apart", `{"type":"compare","a":{"type":"fraction","of":"right1"},"b":{"type":"fraction","of":"right2"}}`, func(s shop) float64 {
			return s.spread(func(i int) (float64, bool) { return number(s.right2[i]) - number(s.right1[i]), true })
		}, [3]float64{1.09, 1.06, 1.16}},
		{"log loss", `{"type":"loss","loss":"log","label":"churn","prediction":"score","clip":0.02}`, func(s shop) float64 {
			return s.spread(func(i int) (float64, bool) { return loss(s, i), true })
		}, [3]float64{1.09, 1.06, 1.16}},
		{"revenue in [0,200]", `{"type":"mean","of":"revenue","range":[0,200]}`, func(s shop) float64 { return s.spread(revenue(s, 200)) }, [3]float64{1.09, 1.06, 1.16}},
		{"revenue in [0,1000]", `{"type":"mean","of":"revenue","range":[0,1000]}`, func(s shop) float64 { return s.spread(revenue(s, 1000)) }, [3]float64{1.09, 1.06, 1.16}},
		{"revenue in [0,10000]", `{"type":"mean","of":"revenue","range":[0,10000]}`, func(s shop) float64 { return s.spread(revenue(s, 10000)) }, [3]float64{1.22, 1.22, 1.28}},
		{"log revenue", `{"type":"mean","of":"log(revenue + 1)","range":[0,10]}`, func(s shop) float64 {
			return s.spread(func(i int) (float64, bool) { return math.Log1p(s.revenue[i]), true })
		}, [3]float64{1.09, 1.06, 1.16}},
		{"churn of the treated", `{"type":"fraction","of":"churn","where":"treated"}`, func(s shop) float64 {
			return s.spread(func(i int) (float64, bool) { return number(s.churn[i]), s.treated[i] })
		}, [3]float64{1.09, 1.06, 1.16}},
		{"A/B, churn", `{"type":"difference","of":"churn","between":["treated"]}`, func(s shop) float64 { return both(s, func(i int) float64 { return number(s.churn[i]) }) }, [3]float64{1.12, 1.09, 1.18}},
		{"A/B, revenue in [0,1000]", `{"type":"difference","of":"revenue","range":[0,1000],"between":["treated"]}`, func(s shop) float64 {
			return both(s, func(i int) float64 { return min(s.revenue[i], 1000) })
		}, [3]float64{1.13, 1.11, 1.2}},
		{"median revenue", `{"type":"median","of":"revenue","range":[0,200]}`, func(s shop) float64 {
			return 0.5 / math.Sqrt(float64(len(s.score))) / (math.Exp(-3.3) / 1.4 / math.Sqrt(2*math.Pi)) // by its density at the median
		}, [3]float64{1.15, 1.15, 1.15}},
		{"AUC of ten bins", `{"type":"auc","label":"churn","prediction":"score","edges":[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9]}`, func(s shop) float64 { return s.delong(10) }, [3]float64{1.45, 1.4, 1.6}},
	}
}

// TestLastAnswersNextToTextbooks: of a batch fixed beforehand, of ten questions or a hundred, half-widths are within a small factor of those that a textbook gives with Bonferroni's
// correction, which are right for large samples alone. Red where a question is read by the range of its values, or its level is that of more questions than it has.
func TestLastAnswersNextToTextbooks(t *testing.T) {
	const n = 30_000
	held, train := newShop(1, n), newShop(2, 2*n)
	schema, holdout := held.source(t)
	_, training := train.source(t)
	ctx := context.Background()
	for i, k := range []int64{10, 100, 1} {
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, Training: 2 * n, Questions: 20 * k, Rounds: 1})
		if err != nil {
			t.Fatal(err)
		}
		s := &Session{Guarantee: p, Noise: Seeded(1)}
		for _, b := range textbooks() {
			query, err := queries.Parse([]byte(b.body))
			if err != nil {
				t.Fatal(err)
			}
			plan, err := query.Compile(ctx, schema)
			if err != nil {
				t.Fatal(err)
			}
			q, err := s.Question(query, plan)
			if err != nil {
				t.Fatal(err)
			}
			// As if all questions were like this one.
			price := s.Price(q.Plan)
			p, err = thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: n, Training: 2 * n, Questions: k * price.Questions, Rounds: 1})
			if err != nil {
				t.Fatal(err)
			}
			one := &Session{Guarantee: p, Noise: Seeded(1)}
			state := thresholdout.State{}
			sums, err := one.Scan(ctx, state, []*Question{q}, holdout, Reference{Training: training})
			if err != nil {
				t.Fatal(err)
			}
			a, _, err := one.Ask(state, state, q, sums[0])
			if err != nil {
				t.Fatal(err)
			}
			z := distuv.UnitNormal.Quantile(1 - 0.025/float64(k))
			half := (*a.Interval.High - *a.Interval.Low) / 2
			ratio := half / (z * b.error(held))
			t.Logf("%-26s %3d questions: ±%.5g, %.2f times a textbook's (%s, %d)", b.name, k, half, ratio, a.Interval.Bound, price.Questions)
			if !(ratio <= b.at[i]) {
				t.Errorf("%s, one of %d: %.3f times a textbook's half-width, more than %v", b.name, k, ratio, b.at[i])
			}
		}
	}
}

// TestAlikeLastAnswers: where units are known to differ, an area under the curve keeps the form by bins in the last round too, and Kendall's tau is refused. Red where the last round
// takes any statistic.
func TestAlikeLastAnswers(t *testing.T) {
	schema, holdout := newShop(3, 400).source(t)
	_, training := newShop(4, 400).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 400, Training: 400, Questions: 100, Rounds: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, unlike := range []bool{false, true} {
		for _, body := range []string{textbooks()[len(textbooks())-1].body, `{"type":"kendall","x":"score","y":"revenue","edges_x":[0.2,0.5],"edges_y":[20,60]}`} {
			l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1), Unlike: unlike}, Schema: schema, Holdout: holdout, Training: training}
			a, err := l.Ask(context.Background(), []byte(body))
			if kendall := body != textbooks()[len(textbooks())-1].body; unlike && kendall {
				var wrong *WrongError
				if !errors.As(err, &wrong) {
					t.Errorf("%s of units that differ: %v", body, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if paired := a.Interval.Bound == thresholdout.BoundSamplePairs; paired == unlike {
				t.Errorf("units differ: %v; %s is answered by %s", unlike, body, a.Interval.Bound)
			}
		}
	}
}

// TestLastRoundOfSeveral: in the first of two rounds a question is answered with noise, in the last by its own sample, at the same price, and explained so.
func TestLastRoundOfSeveral(t *testing.T) {
	schema, holdout := newShop(5, 2000).source(t)
	_, training := newShop(6, 2000).source(t)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 2000, Training: 2000, Questions: 20, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
	const mean = `{"type":"mean","of":"revenue","range":[0,1000],"where":"treated"}`
	ctx := context.Background()
	query, err := queries.Parse([]byte(mean))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := query.Compile(ctx, schema)
	if err != nil {
		t.Fatal(err)
	}
	q, err := l.Question(query, plan)
	if err != nil {
		t.Fatal(err)
	}
	var half [2]float64
	for round, bound := range []string{thresholdout.MethodRounds, thresholdout.MethodSample} {
		known, err := TrainingSums(ctx, l.Played(l.State, q.Plan), Reference{Training: training})
		if err != nil {
			t.Fatal(err)
		}
		foreseen, err := l.Preview(l.State, q, known)
		if err != nil {
			t.Fatal(err)
		}
		l.answered = nil
		a, err := l.Ask(ctx, []byte(mean))
		if err != nil {
			t.Fatal(err)
		}
		half[round] = (*a.Interval.High - *a.Interval.Low) / 2
		expected := (*foreseen.Result.High - *foreseen.Result.Low) / 2
		if !strings.Contains(a.Interval.Bound, bound) || !strings.Contains(foreseen.Bound, bound) || a.Cost.Questions != 2 {
			t.Errorf("round %d: %s, foreseen %s, %+v", round+1, a.Interval.Bound, foreseen.Bound, a.Cost)
		}
		if r := half[round] / expected; r < 0.7 || r > 1.4 {
			t.Errorf("round %d: ±%v, foreseen ±%v", round+1, half[round], expected)
		}
	}
	if !(half[1] < half[0]/2) {
		t.Errorf("±%v in the first round, ±%v in the last", half[0], half[1])
	}
	if _, err := l.Ask(ctx, []byte(`{"type":"median","of":"revenue","range":[0,200]}`)); err == nil {
		t.Error("a search in several rounds")
	}
}
