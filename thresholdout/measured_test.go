package thresholdout

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// TestMeasuredLevel: each end of a measured answer is read at ln(2/(beta s)) + N by hand, s its share of the probability of error, N what was said before.
func TestMeasuredLevel(t *testing.T) {
	for _, c := range []struct{ questions, price int64 }{{1, 1}, {40, 1}, {41, 2}, {300, 8}, {1000, 25}} {
		p, m := closes(t, 12_000, c.questions, 0.95)
		if p.MeasuredPrice() != c.price {
			t.Errorf("of %d questions a measured answer costs %d, want %d", c.questions, p.MeasuredPrice(), c.price)
		}
		share := float64(c.price) / float64(c.questions)
		if got, want := m.measuredLevel(State{}), math.Log(2/(0.05*share)); math.Abs(got-want) > 1e-9 {
			t.Errorf("of %d questions the level is %v, want %v", c.questions, got, want)
		}
	}
	// Two measured answers that said 3 nats, five checks of which one failed with a price of 4: the urn knows of the checks alone.
	_, m := closes(t, 12_000, 1000, 0.95)
	s := State{Questions: 5 + 2*25, Tokens: 1 + 2, Memory: account{Measured: 2, Paid: 7 << 20}}
	if got, want := m.level(s), m.urn().Level(5, 1, 0, 7<<20); got != want {
		t.Errorf("the level is %v, want %v", got, want)
	}
}

// spends is the most that any run from a state on costs of the probability of error, over both sides, of its share and more: checking on, measuring, or closing now. A measured answer says one of several things, of these weights.
type spends struct {
	p        Guarantee
	m        *guessAndCheck
	things   float64   // that a failure says
	weights  []float64 // of what a measured answer says
	measured func(s State) float64
	after    func(s State, said moments.Nats) State // a measured answer
	known    map[State]float64
}

func (r *spends) of(s State) float64 {
	left := r.p.Questions - s.Questions
	if left == 0 {
		return 0
	}
	if cost, ok := r.known[s]; ok {
		return cost
	}
	worst := 0.0
	for _, size := range []int64{1, left} {
		closing, err := r.p.Close(s, size)
		if err != nil {
			return math.Inf(1)
		}
		worst = max(worst, float64(size)*2*math.Exp(-r.m.reportLevel(closing, 1)))
	}
	a := accountOf(s)
	pass, failed := s, s
	pass.Questions++
	failed.Questions++
	failed.Tokens++
	failed.Memory = account{Wide: a.Wide, Paid: a.Paid + moments.PriceOf(r.things), Measured: a.Measured}
	worst = max(worst, 2*math.Exp(-r.m.level(s))+r.of(pass)+r.things*r.of(failed))
	if price := r.m.MeasuredPrice(); left >= price {
		on := 2 * math.Exp(-r.measured(s))
		for _, w := range r.weights {
			on += r.of(r.after(s, moments.PriceOf(1/w)))
		}
		worst = max(worst, on)
	}
	r.known[s] = worst
	return worst
}

// TestMeasuredIsPaidFor: whoever measures, checks and closes when he likes misses with a probability of at most beta: all transcripts, added up along the mechanism's own states, each continued in the worst way. Red where what a
// measured answer said is not paid, where it has more of the error than its questions, or where the urn counts it as a check that passed.
func TestMeasuredIsPaidFor(t *testing.T) {
	const beta = 0.05
	for _, k := range []int64{1, 7, 41} {
		p, m := closes(t, 2000, k, 1-beta)
		paid := func(s State, said moments.Nats) State {
			next := p.Spend(s, m.MeasuredPrice(), 1)
			next.Memory = m.measured(s, said)
			return next
		}
		cost := func(measured func(s State) float64, after func(s State, said moments.Nats) State) float64 {
			run := spends{p, m, 2, []float64{0.6, 0.4}, measured, after, map[State]float64{}}
			return run.of(State{}) / beta
		}
		sound := cost(m.measuredLevel, paid)
		t.Logf("%d questions, %d for a measured answer: the worst run costs %.6f of the probability of error", k, m.MeasuredPrice(), sound)
		if !(sound <= 1+1e-6) || sound < 0.99 {
			t.Errorf("%d questions: the worst run costs %v", k, sound)
		}
		if k == 1 {
			continue
		}
		faults := map[string]float64{
			"what was said":          cost(m.measuredLevel, func(s State, said moments.Nats) State { return paid(s, 0) }),
			"its share":              cost(func(s State) float64 { return m.measuredLevel(s) - math.Ln2 }, paid),
			"the price of its share": cost(func(s State) float64 { return m.measuredLevel(s) - math.Log(1+1/float64(m.MeasuredPrice())) }, paid),
		}
		for fault, cost := range faults {
			if cost <= 1+1e-6 {
				t.Errorf("%d questions: %s, unpaid, costs only %v", k, fault, cost)
			}
		}
	}
}

// measures is one measured answer.
func measures(t testing.TB, p Guarantee, s State, in Input, seed uint64) (Output, State) {
	t.Helper()
	if in.Guess == nil {
		in.Guess = &Guess{}
	}
	in.Guess.Measure = true
	out, next, err := Step(p, s, in, Seeded{Seed: seed, Question: s.Questions})
	if err != nil {
		t.Fatal(err)
	}
	return out, next
}

// TestMeasuredStep: an answer costs its questions and a token, is near the holdout's mean whatever was guessed, and its interval holds what it says; the state is read back; checks and the report go on from it.
func TestMeasuredStep(t *testing.T) {
	p, m := closes(t, 12_000, 1000, 0.95)
	for _, guess := range []float64{0.77, 0.3} {
		in := Input{Training: mean(0.77, p.Training), Holdout: mean(0.76, p.N), Guess: &Guess{Value: &guess}}
		out, next := measures(t, p, State{}, in, 1)
		if out.Outcome() != Measured || out.Source != FromHoldout || out.Tokens != 1 || next.Questions != 25 || next.Tokens != 1 || accountOf(next).Measured != 1 {
			t.Fatalf("%+v %+v", out, next)
		}
		if math.Abs(out.Value-0.76) > 0.0041 || out.Interval.Low > 0.76 || out.Interval.High < 0.76 || out.Interval.High-out.Interval.Low > 0.03 {
			t.Errorf("guess %v: %v in %+v", guess, out.Value, out.Interval)
		}
		said := accountOf(next).Paid.Float()
		if guess == 0.77 && said > 5 || guess == 0.3 && (said < 5 || said > 12) {
			t.Errorf("guess %v: it said %v nats", guess, said)
		}
		text, err := next.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.ReadState(text)
		if err != nil || again != next {
			t.Errorf("%s is read as %+v: %v", text, again, err)
		}
		if low, high, ok := p.IntervalAt(State{}, out, p.Level()); !ok || low != out.Interval.Low || high != out.Interval.High {
			t.Errorf("at its own level the interval is %v to %v", low, high)
		}
		if low, high, ok := p.IntervalAt(State{}, out, 0.5); !ok || low <= out.Interval.Low || high >= out.Interval.High {
			t.Errorf("at 0.5 the interval is %v to %v, not within %+v", low, high, out.Interval)
		}
		if check, _, err := Step(p, next, Input{Training: in.Training, Holdout: in.Holdout}, nil); err != nil || check.Outcome() != Close {
			t.Errorf("a check afterwards: %+v %v", check, err)
		}
		if closing, err := p.Close(next, 5); err != nil || m.reportLevel(closing, 1) < math.Log(10/(0.05*0.975))+said {
			t.Errorf("the report afterwards: %v %v", m.reportLevel(closing, 1), err)
		}
	}
}

// TestMeasuredMoves: answers to many questions of one mean lie all over the cell about it, each question in a place of its own, and one that is asked again where it was.
func TestMeasuredMoves(t *testing.T) {
	p, _ := closes(t, 12_000, 1000, 0.95)
	in := Input{Training: mean(0.77, p.Training), Holdout: mean(0.76, p.N)}
	const questions = 400
	places, below := map[float64]bool{}, 0
	for i := range uint64(questions) {
		out, _ := measures(t, p, State{}, in, i)
		again, _ := measures(t, p, State{}, in, i)
		if out.Value != again.Value {
			t.Fatal("asked again it is elsewhere")
		}
		places[out.Value] = true
		if out.Value < 0.76 {
			below++
		}
	}
	if len(places) < questions-2 {
		t.Errorf("%d questions are in %d places", questions, len(places))
	}
	if err := stattest.AtMost(max(below, questions-below), questions, 0.5, 1e-6); err != nil {
		t.Errorf("the sides of the mean: %v", err)
	}
}

// TestMeasuredAsForeseen: what is planned of a measured answer is what it becomes where the holdout has what was guessed; and no answer is wider than was said.
func TestMeasuredAsForeseen(t *testing.T) {
	p, _ := closes(t, 4000, 300, 0.95)
	training := mean(0.7, p.Training)
	for _, width := range []float64{0, 0.04, 0.09} {
		guess := &Guess{Measure: true, HalfWidth: width}
		ways, err := p.Prospects(State{}, ProspectInput{Training: training, Guess: guess})
		if err != nil || len(ways) != 1 || ways[0].Outcome != Measured || ways[0].Questions != 8 || ways[0].Tokens != 1 {
			t.Fatalf("%+v %v", ways, err)
		}
		planned, widest := ways[0].Planned()
		half := max(planned.High-ways[0].Value, ways[0].Value-planned.Low)
		if width > 0 && (half > width || half < 0.9*width) {
			t.Errorf("a wish of %v is planned at %v", width, half)
		}
		for run := range uint64(50) {
			out, next := measures(t, p, State{}, Input{Training: training, Holdout: mean(0.6+0.004*float64(run), p.N), Guess: &Guess{HalfWidth: width}}, run)
			if w := max(out.Interval.High-out.Value, out.Value-out.Interval.Low); w > widest {
				t.Errorf("an answer is %v wide, foreseen were %v", w, widest)
			}
			if supposed := p.Suppose(State{}, ways[0]); supposed.Questions != next.Questions || supposed.Tokens != next.Tokens {
				t.Errorf("%+v was foreseen, and became %+v", supposed, next)
			}
		}
	}
	var narrow *WidthError
	if _, err := p.Prospects(State{}, ProspectInput{Training: training, Guess: &Guess{Measure: true, HalfWidth: 0.001}}); !errors.As(err, &narrow) || !(narrow.Least < narrow.Planned && narrow.Least > 0.01) {
		t.Errorf("a wish that cannot be: %v", err)
	}
	_, _, err := p.ExpectedStatistic(State{}, StatisticInput{Training: training, Guess: &Guess{Measure: true, HalfWidth: narrow.Least}})
	if err != nil {
		t.Errorf("the least width cannot be had: %v", err)
	}
}

// TestOthersDoNotMeasure: a mechanism without refuses, before anything is spent; so does a statistic that is not measured, and a budget that does not pay.
func TestOthersDoNotMeasure(t *testing.T) {
	gaussian := must(t, Spec{Mechanism: Gaussian, N: 500, Questions: 10})
	if _, _, err := Step(gaussian, State{}, Input{Holdout: mean(0.5, 500), Guess: &Guess{Measure: true}}, Seeded{}); err == nil || gaussian.Measures() || gaussian.MeasuredPrice() != 0 {
		t.Error("gaussian measures")
	}
	p, _ := closes(t, 500, 1000, 0.95)
	in := Input{Training: mean(0.5, 500), Holdout: mean(0.5, 500), Guess: &Guess{Measure: true}}
	if _, _, err := Step(p, State{Questions: 976}, in, Seeded{}); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("24 questions for 25: %v", err)
	}
	if _, _, err := Step(p, State{Questions: 5, Tokens: p.Tokens}, in, Seeded{}); !errors.Is(err, ErrNoTokens) {
		t.Errorf("no token: %v", err)
	}
	quantile := StatisticInput{Training: DifferenceSums{}, Guess: &Guess{Measure: true}}
	if _, _, err := p.own.(*guessAndCheck).ExpectedStatistic(State{}, quantile); err == nil {
		t.Error("a difference is measured")
	}
}

// TestMeasuredCovers: an analyst has fair coins measured, and then the weighted vote of what he was told; the true mean is 1/2. In no more runs than 1-confidence is it missed (false alarm 1e-6). Read as if nothing
// had been said it is missed in nearly all.
func TestMeasuredCovers(t *testing.T) {
	const runs, told = 60, 39 // an odd number: no vote is a tie
	const confidence = 0.5
	p, m := closes(t, 500, told+1, confidence)
	missed, unpaid := 0, 0
	for run := range uint64(runs) {
		rows := coins(rand.New(rand.NewPCG(run, 78)), p.N, told)
		state, weights := State{}, make([]float64, told)
		for j := range told {
			out, next := measures(t, p, state, Input{Holdout: column(rows, j), Training: mean(0.5, p.Training), Binary: true}, run)
			weights[j], state = out.Value-0.5, next
		}
		yes := int64(0)
		for _, bit := range voted(rows, weights) {
			yes += int64(bit)
		}
		out, _ := measures(t, p, state, Input{Holdout: Mean{Sum: yes * grid, N: p.N}, Training: mean(0.5, p.Training), Binary: true}, run)
		if out.Interval.Low > 0.5 || out.Interval.High < 0.5 {
			missed++
		}
		if i, ok := out.found.Interval(m.measuredLevel(State{})); !ok || i.Low > 0.5 || i.High < 0.5 {
			unpaid++
		}
	}
	if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
		t.Errorf("measured answers that miss: %v", err)
	}
	if unpaid < runs*9/10 {
		t.Errorf("unpaid, only %d of %d miss: the attack has no power", unpaid, runs)
	}
}

// TestMeasuredNextToTextbooks: ten measured accuracies of honest guesses, each guess as far off as a check part of two thirds of the holdout's rows is, in half-widths of a textbook's interval for one question (n = 12,000, k = 1000).
func TestMeasuredNextToTextbooks(t *testing.T) {
	p, _ := closes(t, 12_000, 1000, 0.95)
	const truth = 0.77
	deviation := math.Sqrt(truth * (1 - truth) / float64(p.N))
	random := rand.New(rand.NewPCG(3, 4))
	first, all := 0.0, 0.0
	const runs, answers = 40, 10
	for run := range uint64(runs) {
		state := State{}
		for j := range answers {
			holdout, check := truth+deviation*random.NormFloat64(), truth+deviation*math.Sqrt(1.5)*random.NormFloat64()
			yes := int64(holdout * float64(p.N))
			training := RootSums{All: 8000, Binary: true, Sums: moments.Sums{Units: 8000, Sum: int64(check*8000) * grid}}
			training.Squares.AddSums(training.Sum, grid)
			sums := RootSums{All: p.N, Binary: true, Sums: moments.Sums{Units: p.N, Sum: yes * grid}}
			sums.Squares.AddSums(sums.Sum, grid)
			g := p
			g.Training = 8000
			out, next, err := StepStatistic(g, state, StatisticInput{Training: training, Holdout: sums, Guess: &Guess{Measure: true}, Noise: Seeded{Seed: run, Question: int64(j)}})
			if err != nil {
				t.Fatal(err)
			}
			half := (out.Interval.High - out.Interval.Low) / 2 / (1.96 * deviation)
			if j == 0 {
				first += half / runs
			}
			all += half / (runs * answers)
			state = next
		}
	}
	t.Logf("the first measured answer has %.2f textbooks, ten have %.2f on average", first, all)
	if first > 1.97 || all > 2.7 {
		t.Errorf("wider than proved: %v and %v", first, all)
	}
}

// TestMeasuredOfNothing: a condition that the training part hardly has may have no unit in the holdout. Measured, it says nothing, whatever the holdout has; it takes no token, and later levels pay for its questions alone.
func TestMeasuredOfNothing(t *testing.T) {
	p, m := closes(t, 4000, 300, 0.95)
	training := RootSums{All: p.Training, Partial: true, Sums: moments.Of([]int64{grid / 4})}
	guess := &Guess{Measure: true}
	ways, err := p.Prospects(State{}, ProspectInput{Training: training, Guess: guess})
	if err != nil || len(ways) != 1 || ways[0].Outcome != Unknown || ways[0].Tokens != 0 || ways[0].Questions != 8 {
		t.Fatalf("foreseen: %+v %v", ways, err)
	}
	for _, values := range [][]int64{nil, {0}, {grid, grid / 2, grid}} {
		in := StatisticInput{Training: training, Holdout: RootSums{All: p.N, Partial: true, Sums: moments.Of(values)}, Guess: guess, Noise: Seeded{}}
		out, next, err := StepStatistic(p, State{}, in)
		if err != nil || out.Outcome() != Unknown || out.Source != FromNothing || out.Tokens != 0 || out.Value != 0.25 || out.Interval.Low != 0 || out.Interval.High != 1 {
			t.Errorf("%v: %+v %v", values, out, err)
		}
		if next != (State{Questions: 8}) || next != p.Suppose(State{}, ways[0]) || m.level(next) != m.urn().Level(8, 0, 0, 0) {
			t.Errorf("%v: the state is %+v", values, next)
		}
	}
}
