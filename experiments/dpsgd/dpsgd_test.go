package dpsgd

import (
	"context"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
)

// TestAuditNoticesFaults: a training with a third of the noise that it claims fails both kinds of the audit's checks; an honest one
// passes them.
func TestAuditNoticesFaults(t *testing.T) {
	settings := learn.Private{Steps: 20, Sampling: 0.2, Clip: 1, Rate: auditRate, Multiplier: 1}
	spent, err := settings.Account()
	if err != nil {
		t.Fatal(err)
	}
	claimed, _ := spent.Epsilon(delta)
	for name, c := range map[string]struct {
		multiplier float64
		agrees     bool
	}{"honest": {1, true}, "a third of the noise": {1. / 3, false}} {
		used := &audit{epsilon: claimed, settings: settings}
		used.settings.Multiplier = c.multiplier
		for i := range 12 {
			v, err := used.repetition(context.Background(), 40, seeds.Of(7, uint64(i)))
			if err != nil {
				t.Fatal(err)
			}
			used.found = append(used.found, v)
		}
		used.settings = settings // what it says of itself
		var checks run.Checks
		auditChecks(&checks, []*audit{used})
		for _, check := range checks.Decide() {
			if check.Agrees != c.agrees {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}

// TestAdvantageBound: the attack on one Gaussian release, whose best advantage is known, stays within it, and comes near for
// one that is tuned.
func TestAdvantageBound(t *testing.T) {
	for _, mu := range []float64{0.1, 0.5, 1} {
		best := account.GDP(mu).Delta(0) // total variation
		closest := math.Inf(1)
		for eps := 0.01; eps < 8; eps += 0.01 {
			// (eps, delta) for a removed example of GDP mu/2 is (2 eps, ...) for a replaced one, of GDP mu.
			bound := advantageBound(eps, account.GDP(mu/2).Delta(eps))
			if bound < best {
				t.Errorf("mu %v, epsilon %v: bound %v below the advantage %v", mu, eps, bound, best)
			}
			closest = min(closest, bound/best)
		}
		if closest > 2.2 {
			t.Errorf("mu %v: the bound is never below %v times the advantage", mu, closest)
		}
	}
}

// TestMembershipAdvantage: a model that knows its members by heart and errs on the others gives them away; one that knows
// nothing does not.
func TestMembershipAdvantage(t *testing.T) {
	members, others := learn.Data{Dim: 2, Classes: 2}, learn.Data{Dim: 2, Classes: 2}
	for i := range 40 {
		members.X, members.Y = append(members.X, 1, float64(i%7)/7), append(members.Y, i%2)
		others.X, others.Y = append(others.X, 0, float64(i%7)/7), append(others.Y, i%2)
	}
	for i := range members.Y { // the first feature tells members, and their class, apart
		members.X[2*i] = float64(2*members.Y[i] - 1)
	}
	n := learn.Softmax(2, 2)
	if got := membershipAdvantage(n, members, others); got != 0 {
		t.Errorf("a model of zeros has advantage %v", got)
	}
	if err := n.Train(context.Background(), members, learn.Plain{Epochs: 200}, noise.Seeded(1)); err != nil {
		t.Fatal(err)
	}
	if got := membershipAdvantage(n, members, others); got < 0.4 {
		t.Errorf("a model that knows its members has advantage %v", got)
	}
}

// TestAccountsAreInOrder: of the valid accounts, the one by Rényi divergence is the least for steps of training.
func TestAccountsAreInOrder(t *testing.T) {
	for _, steps := range []int{10, 100, 1000} {
		o := publishedSteps
		if a, b, c := accountings[0].epsilon(o, steps), accountings[1].epsilon(o, steps), accountings[2].epsilon(o, steps); !(a < b && b < c) {
			t.Errorf("%d steps: %v, %v, %v", steps, a, b, c)
		}
	}
}
