package attacks

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/normal"
	"github.com/holdoutd/holdoutd/experiments/analysts"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func planned(t *testing.T, s thresholdout.Spec) thresholdout.Guarantee {
	t.Helper()
	g, err := thresholdout.Plan(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func audited(t *testing.T, s thresholdout.Spec) Report {
	t.Helper()
	r, err := Audit(context.Background(), Request{Guarantee: planned(t, s), Seed: 1, Minutes: .005})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestHeld: no mechanism is said to break its promise, its noise no more than it is, and each is attacked in all the ways that there are time for. An
// audit is wrong with probability FalseAlarm; the seed is fixed.
func TestHeld(t *testing.T) {
	for name, s := range map[string]thresholdout.Spec{
		"gaussian":        {Mechanism: thresholdout.Gaussian, Questions: 40},
		"in rounds":       {Mechanism: thresholdout.Gaussian, Questions: 40, Rounds: 3},
		"constant noise":  {Mechanism: thresholdout.Gaussian, Questions: 40, Sigma: .1},
		"guess_and_check": {Mechanism: thresholdout.GuessAndCheck, Training: 150, Questions: 40, Tokens: 10},
		"thresholdout":    {Mechanism: thresholdout.Thresholdout, Training: 150, Questions: 40, Tokens: 10},
		"laplace":         {Mechanism: thresholdout.Thresholdout, Form: thresholdout.FormLaplace, Training: 150, Questions: 40, Tokens: 10},
		"split":           {Mechanism: thresholdout.Split, Questions: 10},
		"ladder":          {Mechanism: thresholdout.Ladder, Questions: 40},
	} {
		t.Run(name, func(t *testing.T) {
			s.N = 150
			r := audited(t, s)
			if r.Verdict != Held || !strings.HasPrefix(r.Says, "No attacker broke") || len(r.Intervals) == 0 {
				t.Errorf("%s: %s", r.Verdict, r.Says)
			}
			for _, i := range r.Intervals {
				if i.Runs < leastRuns || i.Allowed == nil || i.Questions == 0 || !(i.Error > 0) {
					t.Errorf("%+v", i)
				}
			}
			if s.Mechanism == thresholdout.Ladder {
				return
			}
			if len(r.Membership) == 0 || r.Reconstruction == nil {
				t.Fatalf("%+v, %v", r.Membership, r.Notes)
			}
			claimed := false
			for _, m := range r.Membership {
				claimed = claimed || m.Allowed != nil
				if m.Mu != nil && m.MuAtLeast > *m.Mu || m.EpsilonAtMost != nil && m.EpsilonAtLeast > *m.EpsilonAtMost {
					t.Errorf("%+v", m)
				}
			}
			if noisy := s.Mechanism == thresholdout.Gaussian || s.Form == thresholdout.FormLaplace; claimed != noisy {
				t.Errorf("what the noise allows is said: %v", claimed)
			}
		})
	}
}

// TestNaiveLoses: where nothing is protected the attackers win in each way: intervals as in a textbook miss, rows are told, and a secret column is found.
func TestNaiveLoses(t *testing.T) {
	r := audited(t, thresholdout.Spec{Mechanism: thresholdout.Naive, N: 150, Questions: 300})
	if r.Verdict != Unprotected || !r.Intervals[0].Broken || r.Intervals[0].Allowed != nil || r.Intervals[0].Reach < 1 {
		t.Errorf("%s: %s: %+v", r.Verdict, r.Says, r.Intervals[0])
	}
	if m := r.Membership[0]; m.Right < .95 || m.Allowed != nil || m.MuAtLeast < 1.5 {
		t.Errorf("%+v", m)
	}
	if c := r.Reconstruction; c.Right < .99 || c.Allowed != nil {
		t.Errorf("%+v", c)
	}
	if r := audited(t, thresholdout.Spec{Mechanism: thresholdout.Naive, N: 2000, Questions: 3}); r.Verdict != Undecided {
		t.Errorf("three questions: %s: %s", r.Verdict, r.Says)
	}
}

// TestBroken: a promise that is not kept is found: intervals of questions that are fixed beforehand, sold as those of gaussian; and noise of half of what is claimed.
func TestBroken(t *testing.T) {
	naive := planned(t, thresholdout.Spec{Mechanism: thresholdout.Naive, N: 150, Questions: 300})
	g := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 150, Questions: 20, Sigma: .05})
	var games []analysts.Game
	for seed := range uint64(30) {
		game, err := analysts.Play(analysts.All[0], oracle(naive, seed), seed, 150, 0)
		if err != nil {
			t.Fatal(err)
		}
		games = append(games, game)
	}
	fine := Interval{Analyst: "nobody", Runs: 30}
	sold := tally(g, "single-adaptive", games, math.Log(10/FalseAlarm))
	r := Report{Intervals: []Interval{sold, fine}, Confidence: .95}
	if r.judge(false); r.Verdict != Broken || !strings.Contains(r.Says, "30 of 30 runs") {
		t.Errorf("%s: %s", r.Verdict, r.Says)
	}
	c, whole, ok, err := claimOf(g)
	if err != nil || !whole || !ok || math.Abs(*c.mu-math.Sqrt(20)/(150*.05)) > 1e-12 {
		t.Fatalf("%v, %v, %v, mu %v", err, whole, ok, *c.mu)
	}
	strong := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 150, Questions: 20, Sigma: .015})
	for name, played := range map[string]thresholdout.Guarantee{"as claimed": g, "a third of the noise": strong} {
		m, err := Request{Guarantee: played, Seed: 3}.tells(context.Background(), attacker{knows: true}, 0, 1200, c)
		if err != nil {
			t.Fatal(err)
		}
		r := Report{Intervals: []Interval{fine}, Membership: []Membership{m}, Confidence: .95}
		r.judge(false)
		if want := map[bool]Verdict{false: Held, true: Broken}[name != "as claimed"]; r.Verdict != want {
			t.Errorf("%s: %s: %+v", name, r.Verdict, m)
		}
	}
}

// TestBestTests: who knows all other rows gets as many games right as Gaussian privacy allows, Phi(mu/2), and who knows the population as many as the noise
// of sampling and of the answers together leave (false alarm 1e-6 each; the second law is normal but for less than 0.01 here).
func TestBestTests(t *testing.T) {
	const sigma, games = .03, 1500
	for _, a := range []attacker{{knows: true}, {}} {
		n, k := 200., 20.
		if !a.knows {
			n, k = 60, 60
		}
		g := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: int64(n), Questions: int64(k), Sigma: sigma})
		variance := sigma * sigma
		if !a.knows {
			variance += 1. / (4 * n)
		}
		mu := math.Sqrt(k/variance) / n
		threshold := 0.
		if !a.knows {
			mu /= 2 // a row that is in the holdout moves a mean by half as much, from where random rows have it
			threshold = k / (8 * n * n * variance)
		}
		right := 0
		for i := range games {
			row := i%2 == 0
			rows := rand.New(rand.NewPCG(uint64(i), 9))
			score, answers, err := asked{g: g, a: a, row: row, place: rows.Int64N(g.N), rows: rows}.score(uint64(i))
			if err != nil || answers != g.Questions {
				t.Fatal(err, answers)
			}
			if (score > threshold) == row {
				right++
			}
		}
		p := 1 - normal.Upper(mu/2)
		if err := errors.Join(stattest.AtMost(right, games, p+.01, 1e-6), stattest.AtMost(games-right, games, 1-p+.01, 1e-6)); err != nil {
			t.Errorf("knows all others %v: %d right, want %.3f of %d: %v", a.knows, right, p, games, err)
		}
	}
}

// TestBestEstimate: the estimate by conjugate gradients is the one by a dense solver, and of as many exact answers as there are secrets it finds them.
func TestBestEstimate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n, k = 37, 21
	tosses := coinTosses{n: n}
	for range 3 {
		block := make([]byte, 40)
		for i := range block {
			block[i] = byte(r.Uint64())
		}
		tosses.blocks = append(tosses.blocks, block)
	}
	y, variance := make([]float64, k), make([]float64, k)
	for j := range y {
		y[j], variance[j] = r.NormFloat64()*6, 1+20*r.Float64()
	}
	e, v := mat.NewDense(k, n, nil), mat.NewDiagDense(k, variance)
	for j := range k {
		for i := range n {
			e.Set(j, i, sign(int(tosses.blocks[j/8][i])>>(j%8)))
		}
	}
	var gram, w, want mat.Dense
	gram.Mul(e, e.T())
	gram.Add(&gram, v)
	if err := w.Solve(&gram, mat.NewDense(k, 1, y)); err != nil {
		t.Fatal(err)
	}
	want.Mul(e.T(), &w)
	for i, got := range tosses.estimate(y, variance) {
		if math.Abs(got-want.At(i, 0)) > 1e-5 {
			t.Errorf("unit %d: %v, want %v", i, got, want.At(i, 0))
		}
	}
	if empty := tosses.estimate(nil, nil); len(empty) != n || empty[0] != 0 {
		t.Errorf("of nothing: %v", empty)
	}
}

// TestReconstructionKeepsToItsNoise: what Gaussian noise lets through is near what it allows, and no more.
func TestReconstructionKeepsToItsNoise(t *testing.T) {
	g := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 400, Questions: 300, Sigma: .04})
	r, notes, err := Request{Guarantee: g, Seed: 4}.reconstruct(context.Background(), 3e9)
	if err != nil || r == nil || r.Runs != mostReconstructions {
		t.Fatal(r, notes, err)
	}
	c, _, _, err := claimOf(g)
	if err != nil || *r.Allowed != (1+account.Advantage(c.curve))/2 || r.Answers != 300 {
		t.Errorf("%+v, %v", r, err)
	}
	// 4000 values, of which each run's are nearly independent: five standard deviations are 0.04.
	if r.Right > *r.Allowed+.04 || r.Right < *r.Allowed-.13 {
		t.Errorf("found %v, allowed %v", r.Right, *r.Allowed)
	}
	tooLarge := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 1 << 20, Questions: 2000, Sigma: .01})
	if r, notes, err := (Request{Guarantee: tooLarge}).reconstruct(context.Background(), 1e12); err != nil || r != nil || len(notes) != 1 {
		t.Errorf("%+v, %v, %v", r, notes, err)
	}
}

// TestHeads: coins of which none, some, or more than a word are thrown have the mean and the variance of a binomial law (five standard errors).
func TestHeads(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, coins := range []int64{0, 1, 7, 63, 64, 65, 200} {
		const games = 4000
		sum, square := 0., 0.
		for range games {
			x := float64(heads(r, coins)) - float64(coins)/2
			sum, square = sum+x, square+x*x
		}
		variance := float64(coins) / 4
		if math.Abs(sum/games) > 5*math.Sqrt(variance/games) || math.Abs(square/games-variance) > 5*variance*math.Sqrt(2./games) {
			t.Errorf("%d coins: mean %v, variance %v", coins, sum/games+float64(coins)/2, square/games)
		}
	}
}

func TestAllot(t *testing.T) {
	for _, c := range []struct {
		costs []float64
		work  float64
		want  []int
	}{
		{[]float64{1, 1}, 100, []int{50, 50}},
		{[]float64{1, 10}, 1000, []int{200, 80}},
		{[]float64{10, 1}, 230, []int{0, 115}},
		{[]float64{100, 100}, 1, []int{leastRuns, 0}},
	} {
		if got := allot(c.costs, c.work); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v for %v: %v, want %v", c.costs, c.work, got, c.want)
		}
	}
}

// TestSameSeed: the same request gives the same report, and another seed another one.
func TestSameSeed(t *testing.T) {
	request := Request{Guarantee: planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 60, Questions: 10}), Seed: 7, Minutes: .001}
	reports := make([]Report, 3)
	for i := range reports {
		if i == 2 {
			request.Seed++
		}
		var err error
		if reports[i], err = Audit(context.Background(), request); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(reports[0], reports[1]) || reflect.DeepEqual(reports[0].Intervals, reports[2].Intervals) {
		t.Errorf("%+v\n%+v\n%+v", reports[0], reports[1], reports[2])
	}
}

func TestRequests(t *testing.T) {
	g := planned(t, thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: 60, Questions: 10})
	many := planned(t, thresholdout.Spec{Mechanism: thresholdout.Ladder, N: 1000, Questions: MaxQuestions + 1})
	for field, r := range map[string]Request{"minutes": {Guarantee: g, Minutes: -1}, "guarantee": {}, "questions": {Guarantee: many}} {
		_, err := Audit(context.Background(), r)
		var wrong *RequestError
		if !errors.As(err, &wrong) || wrong.Field != field || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	told := 0
	_, err := Audit(ctx, Request{Guarantee: g, Minutes: .01, Progress: func(_ string, done, total int) {
		if told++; done == 5 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || told < 5 {
		t.Errorf("%v after %d", err, told)
	}
}

// TestCellsAreNotAttacked: the attackers ask about columns of their own, which a guarantee about declared cells does not answer: an audit says so, and plays nothing.
func TestCellsAreNotAttacked(t *testing.T) {
	g := planned(t, thresholdout.Spec{Mechanism: thresholdout.Cells, N: 5000, Cells: 24, Questions: 40})
	r, err := Audit(t.Context(), Request{Guarantee: g})
	var wrong *RequestError
	if !errors.As(err, &wrong) || wrong.Field != "mechanism" || !strings.Contains(wrong.Detail, "exact") || len(r.Intervals) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}
