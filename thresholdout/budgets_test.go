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

// missesBeyond is what the upper end of a cut stands for, by the formula of the proof and a plain sum over the noise: at most share where the end is right.
func missesBeyond(c bounds.Cut, value, end, far float64) float64 {
	lead, total := 0.0, 0.0
	if c.M > 0 {
		lead = (c.N/c.M - 1) * c.Released
	}
	if c.Sigma == 0 {
		return math.Exp(lead - (c.N-c.M)*bounds.KL(value, max(value, end)))
	}
	const step = 1.0 / 256
	for z := -far + step/2; z < far && value-c.Sigma*z >= 0; z += step {
		q := min(value-c.Sigma*z, 1)
		total += step * math.Exp(lead-(c.N-c.M)*bounds.KL(q, max(q, end))-z*z/2) / math.Sqrt(2*math.Pi)
	}
	return total + math.Erfc(far/math.Sqrt2)/2
}

// TestSharesStayInTheirBudgets: on random ways through random guarantees, of plain answers, vectors and selections, the probabilities of
// each kind that released intervals stand for add up to no more than the kind's budget, those about the rows in each block, all budgets to Capped of beta, and plain
// answers have the rest. What an interval stands for is computed from its width by the formulas of the proof, not from the account. It would notice a
// kind that draws on another's budget, a price that is not counted, a release that charges what another block's questions brought, and a share that is not divided among coordinates.
func TestSharesStayInTheirBudgets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := Spec{Mechanism: Gaussian, N: rapid.Int64Range(200, 100_000).Draw(t, "n"), Questions: rapid.Int64Range(1, 60).Draw(t, "k"), Capped: rapid.SampledFrom([]float64{0, 0.5, 0.9}).Draw(t, "capped"),
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
		n := float64(p.N)
		var rows, cuts, mechanism float64
		blocks := make([]float64, len(p.gaussian().Blocks))
		for s := (State{}); p.Affordable(s) > 0; s = p.EndRound(s) {
			released, sigma := p.gaussian().releasedAtMost(s), p.gaussian().sigmaOf(s)
			b := 0
			adapted := func(fresh float64) float64 {
				m := float64(p.gaussian().Subsamples[b])
				return math.Exp((n/m-1)*released + (1-m/n)*math.Log(fresh))
			}
			rows = 0
			part := 1 - cutsShare
			if p.gaussian().exact(s) {
				part = 1
			}
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0: // Chernoff's cut of a plain answer
				value := rapid.Float64Range(0, 1).Draw(t, "value")
				share := cutsShare * p.gaussian().Capped * p.Beta() / float64(p.Questions)
				c := p.gaussian().cutOf(s)
				if p.gaussian().exact(s) { // of the block
					b, _ = p.gaussian().charged(s, 1)
					share, c.M = p.gaussian().account(s, 1, 1).Share, float64(p.gaussian().Subsamples[b])
				}
				low, high := c.Within(value, 0, share, 0, 1)
				far := bounds.MaxNormalQuantile(1, 0.1*share)
				for _, side := range [][2]float64{{value, high}, {1 - value, 1 - low}} {
					if side[1] < 1 {
						if miss := missesBeyond(c, side[0], side[1], far); p.gaussian().exact(s) {
							rows += miss
						} else {
							cuts += miss
						}
					}
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
				b, _ = p.gaussian().charged(s, price)
				noise := p.gaussian().vectorNoise(s, count, variance)
				if given := bounds.Information(n, variance, noise); noise > 0 && given > paidFor(p, s, price)*(1+1e-9) {
					t.Fatalf("%v nats by a vector for %d questions, which release %v", given, price, paidFor(p, s, price))
				}
				rows += 2 * float64(count) * bounds.PCap(width-gridError, noise, released, p.N, p.gaussian().Subsamples[b])
				s = p.Spend(s, price, 0)
			case 2:
				count := rapid.IntRange(2, 50).Draw(t, "candidates")
				price := rapid.Int64Range(1, min(4, p.Affordable(s))).Draw(t, "questions")
				b, _ = p.gaussian().charged(s, price)
				regret := p.gaussian().regret(s, count, price)
				if eta := p.gaussian().eta(s, price); regret < 1 && sigma > 0 && p.gaussian().plainNoise(s, price) > 0 {
					if given := bounds.Selection(n, eta); given > paidFor(p, s, price)*(1+1e-9) {
						t.Fatalf("%v nats by a selection for %d questions, which release %v", given, price, paidFor(p, s, price))
					}
					given := math.Log(float64(count)/p.gaussian().account(s, price, 1).Mechanism) / eta
					mechanism += float64(count) * math.Exp(-eta*given)
					off := (regret - given - 2*gridError) / 2 // of each of two means
					rows += float64(count) * adapted(math.Exp(-2*n*off*off))
				}
				s = p.Spend(s, price, 0)
			}
			blocks[b] += rows
			budget := p.gaussian().Capped * p.Beta()
			if of := (1 - mechanismShare) * part * budget * float64(p.gaussian().Blocks[b]) / float64(p.Questions); blocks[b] > of*(1+1e-6) {
				t.Fatalf("%+v: after %d questions %v about rows in block %d, of %v", p, s.Questions, blocks[b], b, of)
			}
			if mechanism > mechanismShare*(1-cutsShare)*budget*(1+1e-6) || cuts > cutsShare*budget*(1+1e-3) {
				t.Fatalf("%+v: after %d questions %v about noise and %v by cuts, of %v", p, s.Questions, mechanism, cuts, budget)
			}
			if p.gaussian().plainBeta()+budget > p.Beta()*(1+1e-12) {
				t.Fatalf("plain answers have %v, others %v, of %v", p.gaussian().plainBeta(), budget, p.Beta())
			}
		}
	})
}

// paidFor is what plain answers to the next questions release, of which there are price.
func paidFor(p Guarantee, s State, price int64) (nats float64) {
	for range price {
		nats += bounds.Information(float64(p.N), 0.25, p.gaussian().sigmaOf(s))
		s = p.Spend(s, 1, 0)
	}
	return nats
}
