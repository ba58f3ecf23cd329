package thresholdout

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// TestTwoLawsTwoBudgets: events about the rows and events about the mechanism's noise are charged under two different laws, so that
// one budget for both can be overspent though every transcript keeps it (docs/proofs/account.md, section 4). It would notice a rule by
// which a question's share may go to whichever kind the question turns out to be.
//
// The run is small enough to enumerate. Two rows are 1 with probability r each, m = 1. The first step releases X with probability 1/2 if
// both are 1, else never; by (1) its price is ln(2)/2. After X comes an interval that misses if and only if both rows are 1: over a
// fresh sample r^2, so that its share is sqrt(2) r. Otherwise comes an event of the mechanism, of a probability that is its share.
func TestTwoLawsTwoBudgets(t *testing.T) {
	missed := func(rows, mechanism float64) float64 {
		r := rows / math.Sqrt2
		after := r * r / 2 // the probability of X, after which the interval misses
		return after + (1-after)*mechanism
	}
	for _, pot := range []float64{0.001, 0.05, 0.2, 0.5} {
		if got, want := missed(pot, pot), pot+pot*pot*(1-pot)/4; !(got > pot) || math.Abs(got-want) > 1e-15 {
			t.Errorf("one budget of %v for both kinds misses with %v: the example has lost its point", pot, got)
		}
		p := must(t, Spec{Mechanism: Gaussian, N: 1000, Questions: 1, Confidence: 1 - pot})
		a := p.gaussian().account(State{}, 1, 1) // of the only question: it may use all there is
		if got := missed(a.Share, a.Mechanism); got > p.gaussian().Capped*p.Beta() {
			t.Errorf("shares %v and %v of %v miss with %v", a.Share, a.Mechanism, p.gaussian().Capped*p.Beta(), got)
		}
	}
}

// TestSharesStayInTheirBudgets: on random ways through random guarantees, of plain answers, vectors and selections, the probabilities of
// each kind that released intervals stand for add up to no more than the kind's budget, both budgets to Capped of beta, and plain
// answers have the rest. What an interval stands for is computed from its width by the formulas of the proof, not from the account. It would notice a
// kind that draws on the other's budget, a price that is not counted, and a share that is not divided among coordinates.
func TestSharesStayInTheirBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Spec{Mechanism: Gaussian, N: rapid.Int64Range(200, 100_000).Draw(t, "n"), Questions: rapid.Int64Range(1, 60).Draw(t, "k"),
			Confidence: rapid.SampledFrom([]float64{0.5, 0.95, 0.999}).Draw(t, "confidence")}
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			in.Sigma = rapid.Float64Range(0.5, 3).Draw(t, "sigma") / math.Sqrt(float64(in.N))
		case 1:
			in.Rounds = rapid.Int64Range(1, min(5, in.Questions)).Draw(t, "rounds")
		}
		p, err := Plan(in)
		if err != nil {
			t.Fatal(err)
		}
		n, m := float64(p.N), float64(p.gaussian().Subsample)
		rows, mechanism := 0.0, 0.0
		for s := (State{}); p.Affordable(s) > 0; s = p.EndRound(s) {
			released, sigma := p.gaussian().releasedAtMost(s), p.gaussian().sigmaOf(s)
			adapted := func(fresh float64) float64 { return math.Exp((n/m-1)*released + (1-m/n)*math.Log(fresh)) }
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0: // Chernoff's cut of a plain answer
				value := rapid.Float64Range(0, 1).Draw(t, "value")
				low, high, err := p.gaussian().account(s, 1, 1).MeanInterval(value, sigma, 0)
				if err != nil {
					t.Fatal(err)
				}
				z := 0.0
				if sigma > 0 {
					z = sigma * bounds.MaxNormalQuantile(1, p.gaussian().account(s, 1, 1).Mechanism)
					mechanism += math.Erfc(z / sigma / math.Sqrt2)
				}
				if at := value + z; at < high && high < 1 {
					rows += adapted(math.Exp(-n * bounds.KL(max(at, 0), high)))
				}
				if at := value - z; at > low && low > 0 {
					rows += adapted(math.Exp(-n * bounds.KL(min(at, 1), low)))
				}
				s = p.Spend(s, 1, 0)
			case 1:
				count := rapid.IntRange(1, 20).Draw(t, "count")
				variance := rapid.Float64Range(0.01, float64(count)/4).Draw(t, "variance")
				price := p.VectorPrice(count, variance)
				if price > p.Affordable(s) {
					return
				}
				width, _, err := p.PreviewVector(s, count, variance)
				if err != nil {
					t.Fatal(err)
				}
				rows += 2 * float64(count) * bounds.PCap(width-gridError, sigma, released, p.N, p.gaussian().Subsample)
				s = p.Spend(s, price, 0)
			case 2:
				count := rapid.IntRange(2, 50).Draw(t, "candidates")
				regret := p.gaussian().regret(s, count)
				if regret < 1 && sigma > 0 {
					given := math.Log(float64(count)/p.gaussian().account(s, 1, 1).Mechanism) / p.gaussian().eta(s)
					mechanism += float64(count) * math.Exp(-p.gaussian().eta(s)*given)
					off := (regret - given - 2*gridError) / 2 // of each of two means
					rows += float64(count) * adapted(math.Exp(-2*n*off*off))
				}
				s = p.Spend(s, 1, 0)
			}
			budget := p.gaussian().Capped * p.Beta()
			if rows > (1-mechanismShare)*budget*(1+1e-6) || mechanism > mechanismShare*budget*(1+1e-6) {
				t.Fatalf("%+v: after %d questions %v about rows and %v about noise, of %v", p, s.Questions, rows, mechanism, budget)
			}
			if p.gaussian().plainBeta()+budget > p.Beta()*(1+1e-12) {
				t.Fatalf("plain answers have %v, others %v, of %v", p.gaussian().plainBeta(), budget, p.Beta())
			}
		}
	})
}
