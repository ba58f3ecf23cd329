package thresholdout

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// wrongRows is a submission that errs on so many rows.
func wrongRows(p Guarantee, count int64) Mean { return Mean{N: p.N, Sum: count * grid} }

// TestLadderRunsArePaidFor walks all runs of a small board by the mechanism's own states: for each of them the next submission is fixed,
// and may miss on two sides with the probability that its printed interval stands for; together at most beta. It would notice runs that are
// not counted, moves that are not paid for, and a weight that is used twice.
func TestLadderRunsArePaidFor(t *testing.T) {
	const submissions = 7
	p := must(t, Spec{Mechanism: Ladder, N: 1_000_000, Questions: submissions, Threshold: 0.25})
	total := 0.0
	var walk func(s State)
	walk = func(s State) {
		if s.Questions == submissions {
			return
		}
		runs := map[Standing]State{} // by what is shown
		level := math.NaN()          // of the submission, where it may move the board
		for eighths := int64(0); eighths <= 8; eighths++ {
			standing, next, err := StepLadder(p, s, wrongRows(p, eighths*p.N/8))
			if err != nil {
				t.Fatal(err)
			}
			if standing.Best { // e^-level is what Chernoff's bound allows the upper end
				held := min(1, (float64(next.Memory.(Board).Shown)+0.5)*p.ladder().Threshold)
				if high := standing.Interval.High - gridError; held < 1 {
					level = float64(p.N) * bounds.KL(held, high)
				}
			}
			standing.Interval = nil
			runs[standing] = next
		}
		if !math.IsNaN(level) {
			total += 2 * math.Exp(-level)
		}
		for _, next := range runs {
			walk(next)
		}
	}
	walk(State{})
	t.Logf("all runs together miss with %.4f of the probability of error", total/p.Beta())
	if beta := p.Beta(); total > beta || total < beta/5 {
		t.Errorf("all runs together miss with %v of %v", total, beta)
	}
}

// climber submits variations of the best submission so far on rows whose labels are fair coins, unknown to it: every submission is
// truly wrong half of the time. It flips few rows or many of the best one's predictions and keeps what moves the board.
type climber struct {
	r       *rand.Rand
	best    []bool // whether the submission that is shown is wrong, by row
	flipped []int
	drawn   []int // the last turn in which a row was drawn
	turn    int
	sum     int64
}

func newClimber(n int, run uint64) *climber {
	c := &climber{r: rand.New(rand.NewPCG(run, 77)), best: make([]bool, n), drawn: make([]int, n)}
	for i := range c.best {
		if c.best[i] = c.r.IntN(2) == 1; c.best[i] {
			c.sum++
		}
	}
	return c
}

// vary draws the rows that the next submission predicts otherwise; it returns the errors of the submission, and how many rows both get wrong.
func (c *climber) vary() (sum, both int64) {
	n := len(c.best)
	count := []int{2, 2, 4, 16, n / 16, n / 4, n / 2}[c.r.IntN(7)]
	c.flipped, c.turn = c.flipped[:0], c.turn+1
	sum, both = c.sum, c.sum
	for range count {
		i := c.r.IntN(n)
		if c.drawn[i] == c.turn {
			continue
		}
		c.drawn[i] = c.turn
		c.flipped = append(c.flipped, i)
		if c.best[i] {
			sum--
			both--
		} else {
			sum++
		}
	}
	return sum, both
}

func (c *climber) keep(sum int64) {
	c.sum = sum
	for _, i := range c.flipped {
		c.best[i] = !c.best[i]
	}
}

// TestLadderIsNotClimbed: under the climbing attack, and whatever it does, what the board shows stays within the card's half-width of the
// truth, 1/2, and no more than 5% of runs have an interval without it (false alarm 1e-6). The parameter-free form is climbed far beyond.
func TestLadderIsNotClimbed(t *testing.T) {
	const runs, rows = 24, 2000
	p := must(t, Spec{Mechanism: Ladder, N: rows, Questions: 8000})
	missed := 0
	for run := range uint64(runs) {
		c, s, miss := newClimber(rows, run), State{}, false
		sum := c.sum
		for range p.Questions {
			standing, next, err := StepLadder(p, s, wrongRows(p, sum))
			if err != nil {
				t.Fatal(err)
			}
			if standing.Best && s.Memory != nil {
				c.keep(sum)
			}
			s = next
			miss = miss || standing.Interval.Low > 0.5 || standing.Interval.High < 0.5
			if standing.Loss < 0.5-p.HalfWidth {
				t.Fatalf("run %d: the board shows %v, the truth is 1/2, the card says ±%v", run, standing.Loss, p.HalfWidth)
			}
			sum, _ = c.vary()
		}
		if miss {
			missed++
		}
	}
	if err := stattest.AtMost(missed, runs, 0.05, falseAlarm); err != nil {
		t.Error(err)
	}
	c, free := newClimber(rows, 0), ParameterFreeLadder{}
	sum, both, shown := c.sum, c.sum, 1.0
	for range p.Questions {
		square := func(count int64) *big.Int { return new(big.Int).Lsh(big.NewInt(count), 60) }
		standing, next, err := free.Submit(Losses{N: rows, Sum: sum * grid, Square: square(sum), Cross: square(both)})
		if err != nil {
			t.Fatal(err)
		}
		if standing.Best && free.Submissions > 0 {
			c.keep(sum)
		}
		free, shown = next, standing.Loss
		sum, both = c.vary()
	}
	if shown > 0.5-p.HalfWidth-0.03 {
		t.Errorf("the parameter-free board shows %v: the attack has lost its point", shown)
	}
	t.Logf("%d of %d runs missed; ±%.3f by the card, the parameter-free board shows %.3f", missed, runs, p.HalfWidth, shown)
}

// TestLadderSteps: the board falls by whole steps, shows the best loss to half a step, and its state survives being stored; a step is pure.
func TestLadderSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Spec{Mechanism: Ladder, N: rapid.Int64Range(2, 3000).Draw(t, "n"), Questions: rapid.Int64Range(1, 30).Draw(t, "k")}
		if rapid.Bool().Draw(t, "own step") {
			in.Threshold = float64(rapid.Int64Range(1, in.N).Draw(t, "step")) / float64(in.N)
		}
		p, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		var s State
		last, moves := math.Inf(1), int64(0)
		for range p.Questions {
			loss := Mean{N: p.N, Sum: rapid.Int64Range(0, p.N*grid).Draw(t, "sum")}
			if s.Memory != nil && rapid.Bool().Draw(t, "near") { // within two steps of what is shown
				away := rapid.Float64Range(-2, 2).Draw(t, "away") * float64(p.ladder().step())
				loss.Sum = min(max(0, s.Memory.(Board).Shown*p.ladder().step()*grid+int64(away*float64(grid))), p.N*grid)
			}
			standing, next, err := StepLadder(p, s, loss)
			again, _, _ := StepLadder(p, s, loss)
			if err != nil || !reflect.DeepEqual(standing, again) {
				t.Fatalf("a step is not pure: %+v, %+v, %v", standing, again, err)
			}
			exact := float64(loss.Sum) / float64(grid) / float64(p.N)
			switch {
			case standing.Best:
				moves++
				if standing.Loss >= last || math.Abs(standing.Loss-exact) > p.ladder().Threshold/2+1e-12 && standing.Loss < 1 {
					t.Fatalf("the board shows %v after %v, the loss is %v and the step %v", standing.Loss, last, exact, p.ladder().Threshold)
				}
			case standing.Loss != last || exact < last-p.ladder().Threshold-1e-9:
				t.Fatalf("the board shows %v after %v, and a loss of %v is not the best", standing.Loss, last, exact)
			}
			if i := standing.Interval; i.Low > standing.Loss || i.High < standing.Loss || max(i.High-standing.Loss, standing.Loss-i.Low) > p.HalfWidth+gridError {
				t.Fatalf("%v in [%v, %v], the card says ±%v", standing.Loss, i.Low, i.High, p.HalfWidth)
			}
			text, err := json.Marshal(next)
			if err != nil {
				t.Fatal(err)
			}
			last = standing.Loss
			if s, err = p.ReadState(text); err != nil || s.Memory.(Board).Moves != moves {
				t.Fatalf("%s, %v", text, err)
			}
		}
		if _, _, err := StepLadder(p, s, wrongRows(p, 0)); !errors.Is(err, ErrNoQuestions) {
			t.Fatalf("one submission more: %v", err)
		}
	})
}

func TestLadderRefuses(t *testing.T) {
	p := must(t, Spec{Mechanism: Ladder, N: 100})
	for name, in := range map[string]Mean{"another holdout's": {N: 99}, "negative": {N: 100, Sum: -1}, "above 1": {N: 100, Sum: 100*grid + 1}} {
		if _, s, err := StepLadder(p, State{}, in); err == nil || !reflect.DeepEqual(s, State{}) {
			t.Errorf("%s losses were accepted", name)
		}
	}
	for field, in := range map[string]Spec{
		"threshold":  {Mechanism: Ladder, N: 100, Threshold: 0.001},
		"half_width": {Mechanism: Ladder, N: 100, HalfWidth: 0.1},
	} {
		var wrong *ParamError
		if _, err := Plan(in); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestLadderStepIsNearTheBest: the planned step's widest interval is at most a sixth wider than the best step's.
func TestLadderStepIsNearTheBest(t *testing.T) {
	for _, n := range []int64{500, 6000, 200_000} {
		planned := bounds.LadderStep(n, DefaultSubmissions, 0.05)
		least := math.Inf(1)
		for step := int64(1); step <= n; step += max(1, step/50) {
			least = min(least, bounds.LadderSteps{N: n, Step: step, Beta: 0.05}.Widest(DefaultSubmissions))
		}
		if got := (bounds.LadderSteps{N: n, Step: planned, Beta: 0.05}).Widest(DefaultSubmissions); got > least*7/6 {
			t.Errorf("n=%d: steps of %d give ±%v, the best ±%v", n, planned, got, least)
		}
	}
}
