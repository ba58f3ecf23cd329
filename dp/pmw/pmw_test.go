package pmw

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/audit"
	"github.com/holdoutd/holdoutd/dp/noise"
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

// TestAccuracy: of 40 runs of 200 random questions each, where 4,000 were planned for, all answers are within what is promised at beta .05 in all but a few (false alarm below 1e-6 at 12), and the guess is mended some times, but never as often as was
// paid for. A guess that is mended the wrong way is noticed: it is spent at once.
func TestAccuracy(t *testing.T) {
	const rows, questions = 2_000_000, 4000
	set, err := Plan(64, rows, 2, questions, .05)
	if err != nil {
		t.Fatal(err)
	}
	promised := set.Accuracy(questions, .05)
	if promised > .12 {
		t.Errorf("an error of %v is promised with %+v, want less than .12", promised, set)
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
	if failed > 12 || mended < 40 {
		t.Errorf("%d of 40 runs are off by more than %v, the worst by %v, after %d updates", failed, promised, worst, mended)
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

// TestAttack: 30,000 runs on two tables that differ in one row do not refute epsilon (false alarm 1e-6), and an update that costs nothing is refuted.
func TestAttack(t *testing.T) {
	set := Settings{Domain: 2, Rows: 20, Epsilon: 1, Updates: 2, Threshold: .05, Rate: .5}
	run := func(set Settings, pay bool, first int64) audit.Mechanism[string] {
		return func(s *noise.Stream) string {
			said := ""
			r, err := set.Start([]int64{first, 20 - first}, s)
			if err != nil {
				panic(err)
			}
			for range 6 {
				if !pay { // each question has comparisons of its own, of the whole epsilon
					if r.ask, err = set.vector().Start(s); err != nil {
						panic(err)
					}
				}
				a, err := r.Ask([]uint32{One, 0})
				if errors.Is(err, ErrSpent) {
					return said
				}
				if err != nil {
					panic(err)
				}
				said += fmt.Sprintf("%t%.1f ", a.Updated, a.Value)
			}
			return said
		}
	}
	look := audit.Settings{Runs: 30_000, Confidence: 1 - 1e-6}
	report, err := audit.Outcomes(audit.Claim{Epsilon: 1}, look, noise.Seeded(1), run(set, true, 20), run(set, true, 19))
	if err != nil || report.Refuted() {
		t.Errorf("%v, %v", report, err)
	}
	careless := set
	careless.Epsilon = 6 // so that an attack of few questions suffices
	careless.Updates = 1
	report, err = audit.Outcomes(audit.Claim{Epsilon: 6}, look, noise.Seeded(2), run(careless, false, 20), run(careless, false, 19))
	if err != nil || report.Epsilon < 1 {
		t.Errorf("the attack on updates that cost nothing is weak: %v, %v", report, err)
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
	// Output: within 0.12 of the table, 1217 updates, <nil>
}
