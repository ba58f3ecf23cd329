package thresholdout

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// closes is a guess_and_check guarantee and its mechanism.
func closes(t testing.TB, n, questions int64, confidence float64) (Guarantee, *guessAndCheck) {
	t.Helper()
	p := must(t, Spec{Mechanism: GuessAndCheck, N: n, Training: n, Questions: questions, Tokens: questions, Confidence: confidence})
	return p, p.own.(*guessAndCheck)
}

// TestReportLevel: the level of a report's number is ln(2m/(beta s)) + N by hand: with nothing asked, after passes, and of a number with several shares.
func TestReportLevel(t *testing.T) {
	p, m := closes(t, 12_000, 1000, 0.95)
	for _, c := range []struct {
		asked, size int64
		shares      float64
		want        float64 // without what the outcomes said
	}{
		{0, 1, 1, math.Log(2 / 0.05)},
		{0, 5, 1, math.Log(10 / 0.05)},
		{300, 5, 1, math.Log(10 / (0.05 * 0.85))},
		{300, 10, 2, math.Log(10 / (0.05 * 0.85))},
		{999, 1, 1, math.Log(2 / (0.05 * (1 - 0.4995)))},
	} {
		s := State{Questions: c.asked}
		said := m.urn().Level(c.asked, 0, 0, 0) - math.Log(4*1000/0.05)
		s, err := p.Close(s, c.size)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.reportLevel(s, c.shares); math.Abs(got-c.want-said) > 1e-6 || got < c.want+said {
			t.Errorf("%+v: the level is %v, want %v and a little more", c, got, c.want+said)
		}
	}
}

// TestReportWidth: five numbers are 1.39 textbooks wide after 300 passes of a thousand questions, 2.3 and more after a failure, and about as wide as a yes/no mean's own interval in the report; there is no width without a report, or after it.
func TestReportWidth(t *testing.T) {
	p, _ := closes(t, 12_000, 1000, 0.95)
	passed := State{Questions: 300}
	width, ok := p.ReportWidth(passed)
	if !ok || width < 1.37 || width > 1.41 {
		t.Errorf("after 300 passes: %v %v", width, ok)
	}
	closing, err := p.Close(passed, ReportedNumbers)
	if err != nil {
		t.Fatal(err)
	}
	sums := RootSums{All: 12_000, Binary: true, Sums: moments.Sums{Units: 12_000, Sum: 9240 * grid}}
	sums.Squares.AddSums(sums.Sum, grid)
	out, err := p.ExpectedLast(closing, sums, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	textbook := 1.96 * math.Sqrt(0.77*0.23/12_000)
	if got := (out.Interval.High - out.Interval.Low) / 2 / textbook; math.Abs(got/width-1) > 0.02 {
		t.Errorf("a yes/no mean of the report has %v textbooks, said were %v", got, width)
	}
	failed, ok := p.ReportWidth(State{Questions: 300, Tokens: 1, Memory: account{Paid: moments.PriceOf(4)}})
	if !ok || failed < 2.1 || failed > 2.6 {
		t.Errorf("after a failure: %v %v", failed, ok)
	}
	if last, ok := p.ReportWidth(State{Questions: 999}); !ok || last >= width*1.3 {
		t.Errorf("with one question left: %v %v", last, ok)
	}
	for _, s := range []State{closing, {Questions: 1000}} {
		if width, ok := p.ReportWidth(s); ok {
			t.Errorf("%+v: a report of %v", s, width)
		}
	}
	if _, ok := must(t, Spec{Mechanism: Gaussian, N: 500, Questions: 10}).ReportWidth(State{}); ok {
		t.Error("gaussian has a report")
	}
}

// reportsOf is the most that any run from this state on costs of the probability of error, over both sides: asking on, or closing now. said is the weight of the transcript's own string,
// and things how many things a failure says.
func reportsOf(p Guarantee, m *guessAndCheck, s State, things float64, level func(s State, size int64) float64) float64 {
	left := p.Questions - s.Questions
	if left == 0 {
		return 0
	}
	worst := 0.0
	for size := int64(1); size <= left; size++ {
		closing, err := p.Close(s, size)
		if err != nil {
			return math.Inf(1)
		}
		worst = max(worst, float64(size)*2*math.Exp(-level(closing, size)))
	}
	a := accountOf(s)
	on := 2 * math.Exp(-m.level(s))
	pass, wide, failed := s, s, s
	pass.Questions++
	wide.Questions++
	failed.Questions++
	failed.Tokens++
	wide.Memory = account{Wide: a.Wide + 1, Paid: a.Paid}
	failed.Memory = account{Wide: a.Wide, Paid: a.Paid + moments.PriceOf(things)}
	on += reportsOf(p, m, pass, things, level) + reportsOf(p, m, wide, things, level) + things*reportsOf(p, m, failed, things, level)
	return max(worst, on)
}

// TestReportIsPaidFor: whoever closes when he likes, and asks until then what he likes, misses with a probability of at most beta: all transcripts, added up along the mechanism's own
// states, each continued in the worst way. Red where the report forgets what the outcomes said, has the shares of questions that were asked, or does not divide its share by its numbers.
func TestReportIsPaidFor(t *testing.T) {
	const beta = 0.05
	for _, k := range []int64{1, 3, 7} {
		p, m := closes(t, 2000, k, 1-beta)
		sound := func(s State, size int64) float64 { return m.reportLevel(s, 1) }
		cost := reportsOf(p, m, State{}, 8, sound)
		t.Logf("%d questions: the worst run costs %.6f of the probability of error", k, cost/beta)
		if !(cost <= beta*(1+1e-9)) || cost < 0.99*beta {
			t.Errorf("%d questions: the worst run costs %v", k, cost)
		}
		faults := map[string]func(s State, size int64) float64{
			"what was said": func(s State, size int64) float64 { return m.reportLevel(s, 1) - m.told(s) },
			"shares that were spent": func(s State, size int64) float64 {
				return m.reportLevel(s, 1) + math.Log(float64(k-s.Closing.Before)/float64(k))
			},
			"its numbers": func(s State, size int64) float64 { return m.reportLevel(s, 1) - math.Log(float64(size)) },
		}
		for fault, level := range faults {
			if cost := reportsOf(p, m, State{}, 8, level); k > 1 && cost <= beta*(1+1e-9) {
				t.Errorf("%d questions: %s that are not paid for cost only %v", k, fault, cost)
			}
		}
	}
}

// TestReportCovers: an analyst asks about fair coins, guesses each so far off that it fails, and reports how often rows agree with the weighted vote of what he
// was told; the true mean is 1/2. In no more runs than 1-confidence is it missed (false alarm 1e-6). Read as if nothing had been said it is missed in nearly all.
func TestReportCovers(t *testing.T) {
	const runs, failures = 60, 31 // an odd number: no vote is a tie
	const confidence = 0.5
	p, m := closes(t, 500, 200, confidence)
	missed, unpaid := 0, 0
	for run := range uint64(runs) {
		rows := coins(rand.New(rand.NewPCG(run, 77)), p.N, failures)
		state, weights := failing(t, p, rows, failures)
		state, err := p.Close(state, 1)
		if err != nil {
			t.Fatal(err)
		}
		vote := rootOfValues(voted(rows, weights), true)
		out, _ := stepLast(t, p, state, nil, vote, 1)
		if out.Interval.Low > 0.5 || out.Interval.High < 0.5 {
			missed++
		}
		low, high := out.last.Interval(m.reportLevel(state, 1) - m.told(state))
		if low > 0.5 || high < 0.5 {
			unpaid++
		}
	}
	if err := stattest.AtMost(missed, runs, 1-confidence, 1e-6); err != nil {
		t.Errorf("reports that miss: %v", err)
	}
	if unpaid < runs*9/10 {
		t.Errorf("unpaid, only %d of %d reports miss: the attack has no power", unpaid, runs)
	}
}

// failing guesses 0 of the first coins of rows, each so far off that it fails, and returns how far from 1/2 each was told to be.
func failing(t *testing.T, p Guarantee, rows [][]int8, failures int) (state State, weights []float64) {
	t.Helper()
	zero := 0.0
	for j := range failures {
		out, next, err := Step(p, state, Input{Holdout: column(rows, j), Training: mean(0.5, p.Training), Binary: true, Guess: &Guess{Value: &zero}}, nil)
		if err != nil || out.Tokens != 1 {
			t.Fatalf("a guess of 0: %+v %v", out, err)
		}
		weights, state = append(weights, out.Value-0.5), next
	}
	return state, weights
}

// voted says which rows agree, with 1, and which do not, with 0, with the weighted vote of what was told of their coins.
func voted(rows [][]int8, weights []float64) (yes []float64) {
	for _, row := range rows {
		score, bit := 0.0, 0.0
		for j, w := range weights {
			score += w * float64(2*row[j]-1)
		}
		if score > 0 {
			bit = 1
		}
		yes = append(yes, bit)
	}
	return yes
}

// TestReportIsTheEnd: a report needs a question for each number and no token, takes all that is left, and there is one.
func TestReportIsTheEnd(t *testing.T) {
	p, _ := closes(t, 500, 10, 0.95)
	values := make([]float64, 500)
	for i := range values {
		values[i] = float64(i % 2)
	}
	half := rootOfValues(values, true)
	spent := State{Questions: 8, Tokens: 10, Memory: account{Paid: 1 << 20}}
	if _, err := p.Close(spent, 3); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("three numbers for two questions: %v", err)
	}
	state, err := p.Close(spent, 2)
	if err != nil || !state.Reporting() || !p.Last(state) || p.Last(spent) {
		t.Fatalf("%+v %v", state, err)
	}
	if _, err := p.Close(state, 1); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("a report in a report: %v", err)
	}
	first, state := stepLast(t, p, state, half, half, 1)
	second, state := stepLast(t, p, state, half, half, 1)
	if first.Interval.Low != second.Interval.Low || first.Tokens != 0 || first.Value != 0.5 {
		t.Errorf("two equal numbers of a report: %+v and %+v", first, second)
	}
	if _, _, err := StepLast(p, state, []LastInput{{Training: half, Holdout: half}}, 1); !errors.Is(err, ErrNoQuestions) {
		t.Errorf("a third number: %v", err)
	}
	state = p.Closed(state)
	if p.Left(state) != 0 || !state.Reporting() {
		t.Errorf("after the report: %+v", state)
	}
	text, err := state.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.ReadState(text)
	if err != nil || again != state {
		t.Errorf("%s is read as %+v: %v", text, again, err)
	}
	for _, wrong := range []string{
		`{"version":1,"questions":10,"closing":{"before":11,"size":1}}`, `{"version":1,"questions":10,"closing":{"before":8,"size":3}}`,
		`{"version":1,"questions":10,"closing":{"before":-1,"size":1}}`, `{"version":1,"questions":10,"closing":{"before":8,"size":0}}`,
	} {
		if _, err := p.ReadState([]byte(wrong)); err == nil {
			t.Errorf("%s is read", wrong)
		}
	}
	other := must(t, Spec{Mechanism: Gaussian, N: 500, Questions: 10})
	if _, err := other.Close(State{}, 1); err == nil || other.Closes() {
		t.Error("gaussian has a final report")
	}
	if _, err := other.ReadState([]byte(`{"version":1,"questions":10,"closing":{"before":8,"size":2}}`)); err == nil {
		t.Error("a report of a mechanism that has none is read")
	}
}

// TestWrongGuessesCost: what guesses cost that are wrong on purpose, just beside the margins and as far off as can be, is what the pages say: a failure's nats, ten failures' own intervals, and a report of five
// numbers after five failures and 300 questions, in half-widths of a textbook's interval (n = 12,000, k = 1000). So is how the width of a check grows with the number of questions.
func TestWrongGuessesCost(t *testing.T) {
	p, m := closes(t, 12_000, 1000, 0.95)
	const truth = 0.77
	yes := RootSums{All: p.N, Binary: true, Sums: moments.Sums{Units: p.N, Sum: int64(truth*12_000) * grid}}
	yes.Squares.AddSums(yes.Sum, grid)
	textbook := 1.96 * math.Sqrt(truth*(1-truth)/12_000)
	for _, c := range []struct {
		name                      string
		guess                     func(margin float64) float64
		first, last, mean, report float64
	}{
		{"beside the margins", func(margin float64) float64 { return truth + margin + 5e-4 }, 9.3, 5.7, 5.1, 4.6},
		{"far off", func(float64) float64 { return 0 }, 14.8, 11.2, 6.2, 6.0},
	} {
		state, mean, report := State{Questions: 100}, 0.0, 0.0
		var nats []float64
		for failed := range 10 {
			planned, err := m.plan(state, StatisticInput{Training: yes})
			if err != nil {
				t.Fatal(err)
			}
			guess := c.guess(float64(planned.(rootCheck).Ranks[1].Away) / float64(grid))
			out, next, err := StepStatistic(p, state, StatisticInput{Training: yes, Holdout: yes, Guess: &Guess{Value: &guess}})
			if err != nil || out.Tokens != 1 {
				t.Fatalf("%s: %+v %v", c.name, out, err)
			}
			nats = append(nats, m.said(next)-m.said(state))
			mean += (out.Interval.High - out.Interval.Low) / 2 / textbook / 10
			state = next
			if failed == 4 {
				closing, err := p.Close(State{Questions: 300, Tokens: state.Tokens, Memory: state.Memory}, 5)
				if err != nil {
					t.Fatal(err)
				}
				number, _ := stepLast(t, p, closing, yes, yes, 1)
				report = (number.Interval.High - number.Interval.Low) / 2 / textbook
			}
		}
		t.Logf("%s: failures cost %.2f nats, ten have %.2f textbooks, the report after five %.2f", c.name, nats, mean, report)
		for what, x := range map[string][2]float64{"the first failure": {nats[0], c.first}, "the tenth": {nats[9], c.last}, "ten intervals": {mean, c.mean}, "the report": {report, c.report}} {
			if math.Abs(x[0]-x[1]) > 0.05 {
				t.Errorf("%s: %s has %v, the pages say %v", c.name, what, x[0], x[1])
			}
		}
	}
	width := func(questions int64) float64 {
		promise, _ := must(t, Spec{Mechanism: GuessAndCheck, N: 60_000, Training: 120_000, Questions: questions, Tokens: 20}).Promised(0)
		return promise.HalfWidth
	}
	if grown := width(10_000) / width(60); math.Abs(grown-1.4) > 0.02 {
		t.Errorf("from 60 to 10,000 questions a check gets wider by a factor of %v, the page says by two fifths", grown)
	}
}
