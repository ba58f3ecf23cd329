package session

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/thresholdout"
)

const rootRows, rootColumns = 400, 24

// rare is a value that is nearly always small: a sample in which the large ones are missing has a small variance and too small a mean. Its expectation is rareMean.
func rare(r *rand.Rand) float64 {
	if r.Float64() < 0.01 {
		return 1
	}
	return 0.1 * r.Float64()
}

const rareMean = 0.01 + 0.99*0.05

// rareTable has columns of rare values, x0, x1, …, and a condition c that half of the rows satisfy.
func rareTable(t *testing.T, seed uint64) (dataset.Schema, *engine.Table) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 17))
	columns := []dataset.Column{{Field: dataset.Field{Name: "c", Kind: dataset.Number}, Numbers: make([]float64, rootRows)}}
	for i := range rootRows {
		columns[0].Numbers[i] = r.Float64()
	}
	for j := range rootColumns {
		x := make([]float64, rootRows)
		for i := range x {
			x[i] = rare(r)
		}
		columns = append(columns, dataset.Column{Field: dataset.Field{Name: fmt.Sprintf("x%d", j), Kind: dataset.Number}, Numbers: x})
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table.Schema(), source
}

// TestRootsCover: through the whole session, in at most a share of runs of 1-confidence does any interval miss, at confidence .5 and .9 (false alarm 1e-6
// each). The analyst asks about means and conditional means of values whose samples are often of too small a variance, places guesses so that they just pass on
// the wrong side or fail, and picks by the answers the columns that seem smallest for a mean of several. Intervals of half the width are missed in nearly all runs, so that the test has
// power: the last line demands it.
func TestRootsCover(t *testing.T) {
	const runs = 60
	for _, confidence := range []float64{0.5, 0.9} {
		missed, narrow := 0, 0
		for run := range uint64(runs) {
			p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: rootRows, Training: rootRows, Questions: 2*rootColumns + 2, Tokens: 2 * rootColumns, Confidence: confidence})
			if err != nil {
				t.Fatal(err)
			}
			schema, holdout := rareTable(t, 2*run)
			_, training := rareTable(t, 2*run+1)
			l := &Local{Session: Session{Guarantee: p, Noise: Seeded(run)}, Schema: schema, Holdout: holdout, Training: training}
			any, anyNarrow, least, smallest := false, false, 1.0, "x0"
			ask := func(body string) float64 {
				before := l.State.Questions
				a, err := l.Ask(context.Background(), []byte(body))
				if err != nil {
					t.Fatalf("%s: %v", body, err)
				}
				if l.State.Questions != before+1 {
					t.Fatalf("%s cost %d questions", body, l.State.Questions-before)
				}
				low, high := *a.Interval.Low, *a.Interval.High
				any = any || rareMean < low || rareMean > high
				middle, half := (low+high)/2, (high-low)/4
				anyNarrow = anyNarrow || math.Abs(rareMean-middle) > half
				return middle
			}
			for j := range rootColumns {
				guess := 0.02 + 0.07*float64(j%8)/8 // near the smallest, and near the largest, that can pass
				if middle := ask(fmt.Sprintf(`{"type":"mean","of":"x%d","range":[0,1],"guess":%v}`, j, guess)); middle < least {
					least, smallest = middle, fmt.Sprintf("x%d", j)
				}
				if l.State.Tokens >= p.Tokens-2 {
					break
				}
				ask(fmt.Sprintf(`{"type":"mean","of":"x%d","range":[0,1],"where":"c < 0.5","guess":%v}`, j, guess))
			}
			if l.State.Tokens < p.Tokens {
				ask(fmt.Sprintf(`{"type":"mean","of":"%s","range":[0,1],"where":"c >= 0.5","guess":0.02}`, smallest))
			}
			if any {
				missed++
			}
			if anyNarrow {
				narrow++
			}
		}
		t.Logf("confidence %v: %d of %d runs missed, at half the width %d", confidence, missed, runs, narrow)
		if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
			t.Errorf("confidence %v: %v", confidence, err)
		}
		if stattest.AtMost(narrow, runs, 1-confidence, 1e-6) == nil {
			t.Errorf("confidence %v: intervals of half the width were missed in %d of %d runs only", confidence, narrow, runs)
		}
	}
}

// TestJointCovers: in at most a share of runs of 1-confidence does any interval of a spread or an association miss, at confidence .5 (false alarm 1e-6), for values whose samples
// are often of too small a variance and too small a mean at once; and the analyst asks last about the columns that seem to vary least. Intervals of 40% of the width are missed in nearly all
// runs: the last line demands it.
func TestJointCovers(t *testing.T) {
	const runs, variance = 60, 0.01 + 0.99*0.01/3 - rareMean*rareMean
	confidence, missed, narrow := 0.5, 0, 0
	for run := range uint64(runs) {
		p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: rootRows, Training: rootRows, Questions: 2 * rootColumns, Tokens: 2*rootColumns - 1, Confidence: confidence})
		if err != nil {
			t.Fatal(err)
		}
		schema, holdout := rareTable(t, 2*run)
		_, training := rareTable(t, 2*run+1)
		l := &Local{Session: Session{Guarantee: p, Noise: Seeded(run)}, Schema: schema, Holdout: holdout, Training: training}
		any, anyNarrow, least, smallest := false, false, 1.0, "x0"
		ask := func(body string, truth float64) float64 {
			a, err := l.Ask(context.Background(), []byte(body))
			if err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if a.Cost.Questions != 1 {
				t.Fatalf("%s cost %+v", body, a.Cost)
			}
			low, high := *a.Interval.Low, *a.Interval.High
			any = any || truth < low || truth > high
			middle, half := (low+high)/2, 0.4*(high-low)/2
			anyNarrow = anyNarrow || math.Abs(truth-middle) > half
			return high
		}
		for j := range rootColumns - 1 {
			if high := ask(fmt.Sprintf(`{"type":"variance","of":"x%d","range":[0,1]}`, j), variance); high < least {
				least, smallest = high, fmt.Sprintf("x%d", j)
			}
			ask(fmt.Sprintf(`{"type":"covariance","form":"exact","x":"x%d","y":"c","range_x":[0,1],"range_y":[0,1]}`, j), 0)
			if l.State.Tokens >= p.Tokens-1 {
				break
			}
		}
		if l.State.Tokens < p.Tokens {
			ask(`{"type":"variance","of":"`+smallest+`","range":[0,1],"where":"c < 0.5"}`, variance)
		}
		if any {
			missed++
		}
		if anyNarrow {
			narrow++
		}
	}
	t.Logf("%d of %d runs missed, at 40%% of the width %d", missed, runs, narrow)
	if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
		t.Error(err)
	}
	if stattest.AtMost(narrow, runs, 1-confidence, 1e-6) == nil {
		t.Errorf("intervals of 40%% of the width were missed in %d of %d runs only", narrow, runs)
	}
}

// TestRootsAreTheAnswers: under guess_and_check a mean, a fraction, a compare and an rmse, over all rows or under a condition, with weights or without, precision, recall and F1, spreads and
// associations, are one question and at most one token. What is
// previewed is what a guess that passes gets, and the training part's value is the one that its two means make. It would notice an equation of other rows, a denominator that
// is not the condition's, and a price, a preview and an answer that differ.
func TestRootsAreTheAnswers(t *testing.T) {
	schema, holdout := rareTable(t, 1)
	_, training := rareTable(t, 2)
	p, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.GuessAndCheck, N: rootRows, Training: rootRows, Questions: 100, Tokens: 50})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: rootRows, Training: rootRows, Questions: 100}) // means, no equation
	if err != nil {
		t.Fatal(err)
	}
	l := &Local{Session: Session{Guarantee: p, Noise: Seeded(1)}, Schema: schema, Holdout: holdout, Training: training}
	byMeans := Session{Guarantee: plain}
	for _, c := range []struct {
		body  string
		price int64
	}{
		{`{"type":"mean","of":"x0","range":[-1,1]}`, 1},
		{`{"type":"mean","of":"x0","range":[-1,1],"where":"c < 0.3"}`, 1},
		{`{"type":"fraction","of":"x1 > 0.05"}`, 1},
		{`{"type":"fraction","of":"x1 > 0.05","where":"c < 0.3"}`, 1},
		{`{"type":"loss","loss":"zero_one","label":"x1 > 0.05","prediction":"x2 > 0.05","where":"c < 0.3"}`, 1},
		{`{"type":"compare","a":{"type":"mean","of":"x1","range":[0,1]},"b":{"type":"mean","of":"x2","range":[0,1]},"where":"c < 0.3"}`, 1},
		{`{"type":"rmse","label":"x1","prediction":"x2","max_error":1,"where":"c < 0.3"}`, 1},
		{`{"type":"precision","label":"x1 > 0.05","prediction":"x2 > 0.05","where":"c < 0.3"}`, 1},
		{`{"type":"recall","label":"x1 > 0.05","prediction":"x2"}`, 1},
		{`{"type":"f1","label":"x1 > 0.05","prediction":"x2 > 0.05"}`, 1},
		{`{"type":"variance","of":"x1","range":[0,1]}`, 1},
		{`{"type":"stddev","of":"x1","range":[0,1],"where":"c < 0.3"}`, 1},
		{`{"type":"covariance","x":"x1","y":"c","range_x":[0,1],"range_y":[0,1],"form":"exact"}`, 1},
		{`{"type":"correlation","x":"c - x1","y":"c","range_x":[-1,1],"range_y":[0,1],"form":"exact","where":"x2 > 0.01"}`, 1},
		{`{"type":"r2","label":"c","prediction":"c + x1","range":[0,1]}`, 1},
		{`{"type":"test","test":"slope","x":"c","y":"c + x1","range_x":[0,1],"range_y":[0,2]}`, 1},
		{`{"type":"count","of":"x1 > 0.05"}`, 1},
		{`{"type":"mean","of":"x0","range":[0,1],"weights":{"of":"c","range":[0,1]}}`, 1},
	} {
		query, err := queries.Parse([]byte(c.body))
		if err != nil {
			t.Fatal(err)
		}
		plan, err := query.Compile(context.Background(), schema)
		if err != nil {
			t.Fatal(err)
		}
		q, err := l.Question(query, plan)
		if err != nil {
			t.Fatal(err)
		}
		if price := l.Price(plan); price.Questions != c.price || price.Tokens != c.price || l.MostTokens(plan) != c.price {
			t.Errorf("%s: costs %+v", c.body, price)
		}
		sums, err := TrainingSums(context.Background(), q.Plan, Reference{Training: training})
		if err != nil {
			t.Fatal(err)
		}
		other, err := byMeans.Question(query, plan)
		if err != nil {
			t.Fatal(err)
		}
		means, err := TrainingSums(context.Background(), other.Plan, Reference{Training: training})
		if err != nil {
			t.Fatal(err)
		}
		root, err := l.Session.Training(q.Plan, sums)
		if err != nil {
			t.Fatal(err)
		}
		quotient, err := byMeans.Training(other.Plan, means)
		if err != nil || math.Abs(*root.Value-*quotient.Value) > 1e-6 {
			t.Errorf("%s: the training part has the root %v, by its means %v, %v", c.body, *root.Value, *quotient.Value, err)
		}
		preview, err := l.Preview(l.State, q, sums)
		if err != nil {
			t.Fatal(err)
		}
		before := l.State
		a, err := l.Play(context.Background(), query, plan)
		if err != nil {
			t.Fatal(err)
		}
		if a.Cost.Questions != c.price || l.State.Questions != before.Questions+c.price {
			t.Errorf("%s: cost %+v", c.body, a.Cost)
		}
		if wide := a.Cost.Tokens > 0 || before.Memory != l.State.Memory; !wide && (*a.Interval.Low != *preview.Result.Low || *a.Interval.High != *preview.Result.High) {
			t.Errorf("%s: previewed [%v, %v], answered [%v, %v]", c.body, *preview.Result.Low, *preview.Result.High, *a.Interval.Low, *a.Interval.High)
		}
	}
}
