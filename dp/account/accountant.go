package account

import (
	"fmt"
	"math"
	"slices"
)

// Accountant interprets events. It is a value: With returns another one, and changes nothing.
type Accountant interface {
	// With is the account with one more event: what was asked may be chosen by earlier answers, its noise and sampling not (see Filter and Odometer). The
	// error wraps ErrEvent, or ErrUnknown where this accountant has no proof for it.
	With(e Event) (Accountant, error)
	// Epsilon is the least for which (epsilon, delta) follows from the account, delta in [0,1]; +Inf where none does.
	Epsilon(delta float64) float64
	// Delta is the least for which (eps, delta) follows, eps from 0; 1 where none does.
	Delta(eps float64) float64
}

func unknown(accountant string, e Event) error {
	return fmt.Errorf("%w: %s and a %s event", ErrUnknown, accountant, e.kind())
}

// relation is what sampling has fixed neighbours to.
type relation uint8

const (
	anyRelation relation = iota
	addedOrRemoved
	replaced
)

// fix makes the relation one of a sampled event.
func (r *relation) fix(e Event) error {
	want := addedOrRemoved
	if _, is := e.(FixedSize); is {
		want = replaced
	}
	if *r != anyRelation && *r != want {
		return fmt.Errorf("%w: Poisson samples are accounted for with added or removed rows, samples of a fixed size with replaced ones, and not in one account", ErrUnknown)
	}
	*r = want
	return nil
}

// Basic adds up epsilons and deltas (Dwork, McSherry, Nissim and Smith 2006; Dwork, Kenthapadi, McSherry, Mironov and Naor 2006). Its zero value is empty.
// Samples of what is (eps, delta)-private are (ln(1 + q(e^eps - 1)), q delta)-private (Balle, Barthe and Gaboardi, arXiv 1807.01647, Theorems 8 and 9).
type Basic struct {
	epsilon, delta float64
	relation       relation
}

// With implements Accountant.
func (b Basic) With(e Event) (Accountant, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	err := walk(e, 1, func(e Event, times int) error {
		one, err := approximate(e, &b.relation)
		if err != nil {
			return err
		}
		b.epsilon += float64(times) * one.Epsilon
		b.delta += float64(times) * one.Delta
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// approximate is what an event is at the least, as (eps, delta).
func approximate(e Event, r *relation) (Approximate, error) {
	sampled := func(inner Event, rate float64) (Approximate, error) {
		if err := r.fix(e); err != nil {
			return Approximate{}, err
		}
		under, err := Basic{}.With(inner)
		if err != nil {
			return Approximate{}, err
		}
		whole := under.(Basic)
		if whole.relation != anyRelation {
			return Approximate{}, unknown("basic composition of a sample of samples", e)
		}
		return Approximate{whole.epsilon, min(1, whole.delta)}.Sampled(rate), nil
	}
	switch e := e.(type) {
	case Laplace:
		return Approximate{1 / e.Multiplier, 0}, nil
	case Approximate:
		return e, nil
	case Choice:
		return Approximate{e.Epsilon, 0}, nil
	case Poisson:
		return sampled(e.Event, e.Rate)
	case FixedSize:
		return sampled(e.Event, float64(e.Taken)/float64(e.Rows))
	}
	return Approximate{}, unknown("basic composition", e)
}

// Sampled is what a sample makes of it that takes a row with probability rate: Poisson samples with added or removed rows, samples of a fixed size with
// replaced ones.
func (e Approximate) Sampled(rate float64) Approximate {
	must(rate >= 0 && rate <= 1, "rate %v is not in [0,1]", rate)
	epsilon := math.Log1p(rate * math.Expm1(e.Epsilon))
	if e.Epsilon > 700 { // e^eps is infinite, its logarithm is not
		epsilon = max(0, e.Epsilon+math.Log(rate+(1-rate)*math.Exp(-e.Epsilon)))
	}
	return Approximate{epsilon, rate * e.Delta}
}

// Epsilon implements Accountant.
func (b Basic) Epsilon(delta float64) float64 {
	mustDelta(delta)
	if delta < b.delta {
		return math.Inf(1)
	}
	return Pure{b.epsilon, min(b.delta, 1), 1}.Optimal(delta)
}

// Delta implements Accountant. Below the sum of epsilons it is what randomized response has.
func (b Basic) Delta(eps float64) float64 {
	if b.delta >= 1 {
		return 1
	}
	return Pure{b.epsilon, b.delta, 1}.OptimalDelta(eps)
}

// Advanced composes (eps, delta)-private releases, each with parameters of its own: at delta = 1 - (1-slack) (1-delta_1) (1-delta_2) ... an epsilon is
//
//	sum eps_i tanh(eps_i/2) + sqrt(2 ln(1/slack) sum eps_i²)
//
// or the sum, whichever is less (Dwork, Rothblum and Vadhan 2010; Kairouz, Oh and Viswanath, arXiv 1311.0776, Theorem 3.5). Its zero value is empty.
type Advanced struct {
	sum, drift, squares float64
	sure                float64 // -ln of the probability that no delta happens
	relation            relation
}

// With implements Accountant.
func (a Advanced) With(e Event) (Accountant, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	err := walk(e, 1, func(e Event, times int) error {
		one, err := approximate(e, &a.relation)
		if err != nil {
			return err
		}
		k := float64(times)
		a.sum += k * one.Epsilon
		a.drift += k * one.Epsilon * math.Tanh(one.Epsilon/2)
		a.squares += k * one.Epsilon * one.Epsilon
		a.sure -= k * math.Log1p(-one.Delta)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Epsilon implements Accountant.
func (a Advanced) Epsilon(delta float64) float64 {
	mustDelta(delta)
	// 1-delta = (1-slack) e^-sure
	slack := -math.Expm1(math.Log1p(-delta) + a.sure)
	switch {
	case delta == 1:
		return 0
	case slack < 0 || math.IsNaN(slack):
		return math.Inf(1)
	case slack == 0:
		return a.sum
	}
	return min(a.sum, a.drift+math.Sqrt(-2*a.squares*math.Log(slack)))
}

// Delta implements Accountant.
func (a Advanced) Delta(eps float64) float64 {
	mustEpsilon(eps)
	ok := func(delta float64) bool { return a.Epsilon(delta) <= eps }
	if ok(0) {
		return 0
	}
	return smallest(0, 1, ok)
}

// With implements Accountant for Gaussian and pure releases, choices and concentrated ones. The zero value of ZCDP is an empty account.
func (z ZCDP) With(e Event) (Accountant, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	err := walk(e, 1, func(e Event, times int) error {
		rho, ok := rhoOf(e)
		if !ok {
			return unknown("zCDP", e)
		}
		z += ZCDP(times) * rho
		return nil
	})
	if err != nil {
		return nil, err
	}
	return z, nil
}

// rhoOf is what an event that is not sampled spends in zCDP.
func rhoOf(e Event) (rho ZCDP, ok bool) {
	switch e := e.(type) {
	case Gaussian:
		return GaussianZCDP(1, e.Multiplier), true
	case Laplace:
		return PureZCDP(1 / e.Multiplier), true
	case Approximate:
		return PureZCDP(e.Epsilon), e.Delta == 0
	case Choice: // losses of a range of eps: Cesar and Rogers, arXiv 2004.07223
		return PureZCDP(e.Epsilon) / 4, true
	case Concentrated:
		return ZCDP(e.Rho), true
	}
	return 0, false
}

// With implements Accountant for Gaussian releases. The zero value of GDP is an empty account.
func (m GDP) With(e Event) (Accountant, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	err := walk(e, 1, func(e Event, times int) error {
		g, ok := e.(Gaussian)
		if !ok {
			return unknown("GDP", e)
		}
		m = ComposeGDP(m, GDP(math.Sqrt(float64(times)))*GaussianGDP(1, g.Multiplier))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return m, nil
}

// Renyi is an account in Rényi differential privacy as an Accountant: [RDP] with a relation of neighbours. Its zero value is empty, over DefaultOrders.
type Renyi struct {
	rdp      *RDP
	relation relation
}

// NewRenyi is an empty account over these orders, over DefaultOrders where there are none.
func NewRenyi(orders ...float64) Renyi { return Renyi{rdp: NewRDP(orders...)} }

// RDP is a copy of the account by orders.
func (r Renyi) RDP() *RDP {
	if r.rdp == nil {
		return NewRDP()
	}
	c := NewRDP(r.rdp.orders...)
	copy(c.spent, r.rdp.spent)
	return c
}

// With implements Accountant for all kinds of events; of samples, for those of Gaussian releases.
func (r Renyi) With(e Event) (Accountant, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	next := Renyi{r.RDP(), r.relation}
	err := walk(e, 1, func(e Event, times int) error {
		switch e := e.(type) {
		case Laplace:
			next.rdp.Laplace(e.Multiplier, times)
			return nil
		case Approximate:
			if e.Delta > 0 {
				return unknown("Rényi accounting, which has no delta of a release's own,", e)
			}
			next.rdp.add(times, responseDivergence(e.Epsilon))
			return nil
		case Poisson:
			multiplier, ok := gaussian(e.Event)
			if !ok {
				return unknown("Rényi accounting, which samples Gaussian releases only,", e)
			}
			if err := next.relation.fix(e); err != nil {
				return err
			}
			next.rdp.SubsampledGaussian(e.Rate, multiplier, times)
			return nil
		case FixedSize:
			multiplier, ok := gaussian(e.Event)
			if !ok {
				return unknown("Rényi accounting, which samples Gaussian releases only,", e)
			}
			if err := next.relation.fix(e); err != nil {
				return err
			}
			next.rdp.FixedSizeGaussian(e.Taken, e.Rows, multiplier, times)
			return nil
		}
		rho, ok := rhoOf(e)
		if !ok {
			return unknown("Rényi accounting", e)
		}
		next.rdp.add(times, func(a float64) float64 { return a * float64(rho) })
		return nil
	})
	if err != nil {
		return nil, err
	}
	return next, nil
}

// responseDivergence is that of randomized response, the largest of what is eps-private (Mironov, arXiv 1702.07476, Proposition 5; Kairouz, Oh and Viswanath).
func responseDivergence(eps float64) func(a float64) float64 {
	return func(a float64) float64 {
		// ln(p^a q^(1-a) + q^a p^(1-a)) / (a-1), p = e^eps q: q (e^{a eps} + e^{(1-a) eps}); for a small eps it is a eps²/2, and the logarithm of next to 1.
		//
		// With h = eps/2 it is ln(cosh((2a-1)h)/cosh(h)) / (a-1), and cosh(x) - cosh(y) = 2 sinh((x+y)/2) sinh((x-y)/2).
		h := eps / 2
		x := (2*a - 1) * h
		if x > 300 {
			return (x + math.Log1p(math.Exp(-2*x)) - h - math.Log1p(math.Exp(-2*h))) / (a - 1)
		}
		return math.Log1p(2*math.Sinh(a*h)*math.Sinh((a-1)*h)/math.Cosh(h)) / (a - 1)
	}
}

// Epsilon implements Accountant.
func (r Renyi) Epsilon(delta float64) float64 {
	mustDelta(delta)
	rdp := r.RDP()
	if delta == 0 {
		if slices.Max(rdp.spent) > 0 {
			return math.Inf(1)
		}
		return 0
	}
	eps, _ := rdp.Epsilon(delta)
	return eps
}

// Delta implements Accountant.
func (r Renyi) Delta(eps float64) float64 {
	delta, _ := r.RDP().Delta(eps)
	return min(1, delta)
}

// Losses is the account by distributions of the privacy loss as an Accountant: [PLD] with a relation of neighbours. Its zero value is empty.
type Losses struct {
	pld      PLD
	relation relation
}

// With implements Accountant for Gaussian, Laplace and (eps, delta)-private releases, and for Poisson samples of Gaussian ones. That a product of the
// parts' worst pairs bounds events that are chosen one by one is proved by Zhu, Dong and Wang (arXiv 2106.08567).
func (l Losses) With(e Event) (Accountant, error) {
	if err := checked(e); err != nil {
		return nil, err
	}
	err := walk(e, 1, func(e Event, times int) error {
		one, err := l.one(e)
		if err != nil {
			return err
		}
		if one, err = one.Times(times); err != nil {
			return err
		}
		l.pld, err = l.pld.Compose(one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Losses) one(e Event) (PLD, error) {
	switch e := e.(type) {
	case Gaussian:
		return GaussianPLD(e.Multiplier)
	case Laplace:
		return LaplacePLD(e.Multiplier)
	case Approximate:
		return PurePLD(e.Epsilon, e.Delta)
	case Choice:
		return PurePLD(e.Epsilon, 0)
	case Poisson:
		multiplier, ok := gaussian(e.Event)
		if !ok {
			break
		}
		if err := l.relation.fix(e); err != nil {
			return PLD{}, err
		}
		return SubsampledGaussianPLD(e.Rate, multiplier)
	}
	return PLD{}, unknown("privacy loss distributions", e)
}

// Epsilon implements Accountant.
func (l Losses) Epsilon(delta float64) float64 {
	mustDelta(delta)
	return l.pld.Epsilon(delta)
}

// Delta implements Accountant.
func (l Losses) Delta(eps float64) float64 {
	mustEpsilon(eps)
	return l.pld.Delta(eps)
}

var _ = [...]Accountant{Basic{}, Advanced{}, ZCDP(0), GDP(0), Renyi{}, Losses{}}
