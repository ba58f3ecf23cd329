package pmw

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestUpdateReference: one update that was computed elsewhere: half of the domain has too much, at a rate of .1.
func TestUpdateReference(t *testing.T) {
	r := &Run{set: Settings{Threshold: .2}, guess: []float64{.25, .25, .25, .25}}
	r.mend([]uint32{One, 0, One, 0}, -1)
	for i, want := range []float64{0.23751040626053, 0.26248959373947, 0.23751040626053, 0.26248959373947} {
		if math.Abs(r.guess[i]-want) > 1e-12 {
			t.Errorf("element %d is guessed to be %v, want %v", i, r.guess[i], want)
		}
	}
}

// skewed is a table of 64 elements in which a few are frequent.
func skewed(rows int64) []int64 {
	counts, left := make([]int64, 64), rows
	for i := range counts {
		counts[i] = left / 4
		left -= counts[i]
	}
	counts[63] += left
	return counts
}

// TestAccuracy: of 40 runs of 200 random questions each, where 4,000 were planned for, all answers are within what is promised at beta .05 in all but a few
// (false alarm 1e-6), and the guess is mended some times, but never as often as was paid for. A guess that is mended the wrong way is noticed: it is spent
// at once.
func TestAccuracy(t *testing.T) {
	const rows, questions = 2_000_000, 4000
	set, err := Plan(64, rows, 2, questions, .05)
	if err != nil {
		t.Fatal(err)
	}
	promised := set.Accuracy(questions, .05)
	if promised > .07 {
		t.Errorf("an error of %v is promised with %+v, want less than .07", promised, set)
	}
	counts, failed, mended, worst := skewed(rows), 0, 0, 0.0
	for run := range uint64(40) {
		s := noise.Seeded(run)
		r, err := set.Start(counts, s)
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0.0
		for range questions / 20 {
			weights, truth := make([]uint32, 64), 0.0
			for i := range weights {
				weights[i] = uint32(s.Below(2)) * One
				truth += float64(counts[i]) * float64(weights[i]) / (rows * One)
			}
			a, err := r.Ask(weights)
			if err != nil {
				t.Fatalf("run %d: %v", run, err)
			}
			wrong = max(wrong, math.Abs(a.Value-truth))
		}
		if wrong > promised {
			failed++
		}
		worst = max(worst, wrong)
		mended += set.Updates - r.Left()
	}
	if err := stattest.AtMost(failed, 40, .05, 1e-6); err != nil || mended < 40 {
		t.Errorf("runs are off by more than %v, the worst by %v, after %d updates: %v", promised, worst, mended, err)
	}
}

// TestPotential: what Accuracy counts on. An update that mends a mistake brings the relative entropy of the table to the guess down by no less than drop
// says, over tables, guesses and questions drawn at random; and by hardly more for a question that halves the guess, so that a smaller square in drop is
// noticed.
func TestPotential(t *testing.T) {
	s := noise.Seeded(31)
	entropy := func(table, guess []float64) (sum float64) {
		for i, p := range table {
			if p > 0 {
				sum += p * math.Log(p/guess[i])
			}
		}
		return sum
	}
	draw := func(n int) []float64 {
		shares, total := make([]float64, n), 0.
		for i := range shares {
			shares[i] = float64(1 + s.Below(1000))
			total += shares[i]
		}
		for i := range shares {
			shares[i] /= total
		}
		return shares
	}
	tightest := math.Inf(1)
	for range 2000 {
		n := 2 + int(s.Below(6))
		table, guess, weights := draw(n), draw(n), make([]uint32, n)
		if s.Below(2) == 0 {
			for i := range guess {
				guess[i] = 1 / float64(n)
			}
		}
		off := 0.
		for i := range weights {
			weights[i] = uint32(s.Below(3)) * One / 2
			off += (table[i] - guess[i]) * float64(weights[i]) / One
		}
		r := &Run{set: Settings{Rate: float64(1+s.Below(300)) / 100}, guess: slices.Clone(guess)}
		r.mend(weights, math.Copysign(1, off))
		fell, least := entropy(table, guess)-entropy(table, r.guess), drop(r.set.Rate, math.Abs(off))
		if fell < least-1e-12 {
			t.Fatalf("the entropy fell by %v, and by at least %v it should", fell, least)
		}
		tightest = min(tightest, (fell-least)/(r.set.Rate*r.set.Rate))
	}
	if tightest > 1e-3 {
		t.Errorf("the entropy fell by at least %v squares of the rate more than it should: the test is weak", tightest)
	}
}

// TestGuessLearns: after questions about single elements the guess is near the table, though it has never been looked at but through answers.
func TestGuessLearns(t *testing.T) {
	const rows = 2_000_000
	counts := skewed(rows)
	set := Settings{Domain: 64, Rows: rows, Epsilon: 8, Updates: 400, Threshold: .02, Rate: .4}
	r, err := set.Start(counts, noise.Seeded(5))
	if err != nil {
		t.Fatal(err)
	}
	distance := func() (d float64) {
		for i, share := range r.Guess() {
			d += math.Abs(share-float64(counts[i])/rows) / 2
		}
		return d
	}
	before := distance()
	for range 30 {
		for i := range counts {
			weights := make([]uint32, 64)
			weights[i] = One
			if _, err := r.Ask(weights); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := distance(); after > before/2 || r.Left() == set.Updates {
		t.Errorf("the guess was %v from the table, and is %v after %d updates", before, after, set.Updates-r.Left())
	}
}

// TestAttack: 30,000 runs on two tables that differ in one row do not refute epsilon (false alarm 1e-6), and where updates cost nothing they do: the
// answers to 24 times the same question, added up, tell the tables apart.
func TestAttack(t *testing.T) {
	run := func(set Settings, pay bool, first int64) audit.Mechanism[[2]int] {
		return func(s *noise.Stream) (said [2]int) { // how often the guess was mended, and the sum of answers in half rows
			r, err := set.Start([]int64{first, set.Rows - first}, s)
			if err != nil {
				panic(err)
			}
			sum := 0.
			for range 24 {
				if !pay {
					if r.ask, err = set.vector().Start(s); err != nil {
						panic(err)
					}
				}
				a, err := r.Ask([]uint32{One, 0})
				if errors.Is(err, ErrSpent) {
					break
				}
				if err != nil {
					panic(err)
				}
				if a.Updated {
					said[0]++
				}
				sum += a.Value * float64(set.Rows)
			}
			said[1] = int(math.Round(2 * sum))
			return said
		}
	}
	look := audit.Settings{Runs: 30_000, Confidence: 1 - 1e-6}
	set := Settings{Domain: 2, Rows: 20, Epsilon: 1.5, Updates: 2, Threshold: .05, Rate: .5}
	report, err := audit.Outcomes(audit.Claim{Epsilon: set.Epsilon}, look, noise.Seeded(1), run(set, true, 14), run(set, true, 13))
	if err != nil || report.Refuted() {
		t.Errorf("%v, %v", report, err)
	}
	set.Updates = 1
	report, err = audit.Outcomes(audit.Claim{Epsilon: set.Epsilon}, look, noise.Seeded(2), run(set, false, 14), run(set, false, 13))
	if err != nil || !report.Refuted() {
		t.Errorf("updates that cost nothing went unnoticed: %v, %v", report, err)
	}
}

func TestRefused(t *testing.T) {
	good := Settings{Domain: 2, Rows: 10, Epsilon: 1, Updates: 3, Threshold: .1}
	for name, spoil := range map[string]func(s *Settings){
		"domain": func(s *Settings) { s.Domain = 1 }, "rows": func(s *Settings) { s.Rows = 0 }, "epsilon": func(s *Settings) { s.Epsilon = 0 }, "updates": func(s *Settings) { s.Updates = 0 },
		"threshold": func(s *Settings) { s.Threshold = 1 }, "rate": func(s *Settings) { s.Rate = math.NaN() }, "other rows": func(s *Settings) { s.Rows = 11 },
	} {
		set := good
		spoil(&set)
		if _, err := set.Start([]int64{4, 6}, noise.Seeded(1)); !errors.Is(err, ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := good.Start([]int64{-1, 11}, noise.Seeded(1)); !errors.Is(err, ErrSettings) {
		t.Errorf("a negative count: %v", err)
	}
	r, err := good.Start([]int64{4, 6}, noise.Seeded(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, weights := range [][]uint32{{1}, {One + 1, 0}} {
		if _, err := r.Ask(weights); !errors.Is(err, ErrQuestion) || r.Left() != 3 {
			t.Errorf("%v: %v, %d left", weights, err, r.Left())
		}
	}
	if _, err := Plan(1024, 1000, .1, 1e6, .05); !errors.Is(err, ErrSettings) {
		t.Errorf("a plan for too few rows: %v", err)
	}
}

func BenchmarkAsk(b *testing.B) {
	set := Settings{Domain: 1024, Rows: 1 << 20, Epsilon: 1, Updates: 100, Threshold: .5}
	counts := make([]int64, 1024)
	for i := range counts {
		counts[i] = 1024
	}
	r, err := set.Start(counts, noise.Seeded(1))
	if err != nil {
		b.Fatal(err)
	}
	weights := make([]uint32, 1024)
	weights[7] = One
	for b.Loop() {
		if _, err := r.Ask(weights); err != nil {
			b.Fatal(err)
		}
	}
}

// A table of two million rows, each of one of 64 kinds; a million questions, chosen one by one, with one error for all of them.
func ExamplePlan() {
	set, err := Plan(64, 2_000_000, 2, 1e6, 0.05)
	fmt.Printf("within %.2f of the table, %d updates, %v\n", set.Accuracy(1e6, 0.05), set.Updates, err)
	// Output: within 0.07 of the table, 861 updates, <nil>
}
