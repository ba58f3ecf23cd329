package account

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/normal"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestTradeoffExact: of Gaussian releases it is the normal law's, of (eps, delta) the three lines, and by a distribution of losses what the exact one is, a
// little below.
func TestTradeoffExact(t *testing.T) {
	basic := must1(Basic{}.With(Approximate{1, .01}))
	losses := must1(Losses{}.With(Gaussian{1}))
	for _, level := range []float64{0, 1e-6, .001, .05, .3, .5, .9, 1} {
		want := max(0, 1-.01-math.E*level, (1-.01-level)/math.E)
		near(t, fmt.Sprint("(eps, delta) at ", level), Tradeoff(basic, level), want, 1e-12)
		if level == 0 || level == 1 {
			continue
		}
		z := smallest(-10, 10, func(z float64) bool { return normal.Upper(z) <= level })
		exact := normal.Upper(1 - z)
		near(t, fmt.Sprint("GDP at ", level), Tradeoff(GDP(1), level), exact, 1e-9)
		if level != .3 { // a distribution of losses is slow to ask
			continue
		}
		if got := Tradeoff(losses, level); got > exact*(1+1e-9) || got < exact-.003 {
			t.Errorf("losses at %v: %v, exactly %v", level, got, exact)
		}
		if got := Tradeoff(ZCDP(.5), level); got > exact {
			t.Errorf("zCDP at %v: %v, more than the exact %v", level, got, exact)
		}
	}
	if a, b := Tradeoff(GDP(1), 0), Tradeoff(GDP(1), 1); a != 1 || b != 0 {
		t.Errorf("at the ends: %v, %v", a, b)
	}
	near(t, "advantage", Advantage(GDP(1)), 1-2*normal.Upper(.5), 1e-12)
}

func must1[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// TestTradeoffIsOne: it falls, is convex, lies between 0 and 1-level, and says no less than each (eps, delta) of its curve.
func TestTradeoffIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		curves := []Curve{GDP(rapid.Float64Range(.01, 6).Draw(t, "mu")), ZCDP(rapid.Float64Range(1e-3, 5).Draw(t, "rho")), must1(Basic{}.With(Approximate{rapid.Float64Range(0, 5).Draw(t, "eps"), rapid.Float64Range(0, .5).Draw(t, "delta")}))}
		c := curves[rapid.IntRange(0, 2).Draw(t, "curve")]
		a, b := rapid.Float64Range(0, 1).Draw(t, "a"), rapid.Float64Range(0, 1).Draw(t, "b")
		fa, fb, middle := Tradeoff(c, a), Tradeoff(c, b), Tradeoff(c, (a+b)/2)
		if a < b && fa < fb-1e-9 || middle > (fa+fb)/2+1e-9 || fa < 0 || fa > 1-a+1e-15 {
			t.Fatalf("%v: %v at %v, %v at %v, %v between", c, fa, a, fb, b, middle)
		}
		eps := rapid.Float64Range(0, 4).Draw(t, "at")
		if line := 1 - c.Delta(eps) - math.Exp(eps)*a; fa < line-.02 {
			t.Fatalf("%v at %v: %v, and epsilon %v alone says %v", c, a, fa, eps, line)
		}
	})
}

// TestReadings: the strongest test of a Gaussian release, simulated: of 40,000 tables with a unit and 40,000 without, it accuses no more of those that have
// it than the curve says, and as many as that (false alarm 1e-6 each); its accusations are right as often as Precision says.
func TestReadings(t *testing.T) {
	const runs, mu, level = 40_000, 1.5, .05
	s := noise.Seeded(1)
	threshold := smallest(0, 10, func(z float64) bool { return normal.Upper(z) <= level })
	var accused [2]int
	for with := range 2 {
		for range runs {
			x := float64(noise.RoundedNormal(s, 0x1p40))/0x1p40 + float64(with)*mu
			if x > threshold {
				accused[with]++
			}
		}
	}
	if err := stattest.Frequency(accused[0], runs, level, 1e-6); err != nil {
		t.Error(err)
	}
	if err := stattest.Frequency(accused[1], runs, 1-Tradeoff(GDP(mu), level), 1e-6); err != nil {
		t.Error(err)
	}
	precision := Precision(GDP(mu), .5, level)
	if err := stattest.Frequency(accused[1], accused[0]+accused[1], precision, 1e-6); err != nil {
		t.Error(err)
	}
	near(t, "posterior", Posterior(.5, math.Log(3)), .75, 1e-15)
	near(t, "posterior of a small prior", Posterior(1e-9, 1), 1e-9*math.E/(1+1e-9*(math.E-1)), 1e-12)
	if Posterior(0, 5) != 0 || Posterior(1, 5) != 1 || Posterior(.3, 0) != .3 {
		t.Error("a belief that is certain, or no release")
	}
	if Precision(GDP(0), .2, .1) > .2+1e-12 {
		t.Errorf("without a release: %v", Precision(GDP(0), .2, .1))
	}
	// No test does better than the posterior of the pure epsilon.
	for _, l := range []float64{1e-6, .01, .5, 1} {
		if p := Precision(must1(Basic{}.With(Approximate{1, 0})), .3, l); p > Posterior(.3, 1)*(1+1e-12) {
			t.Errorf("precision %v at level %v, the posterior is %v", p, l, Posterior(.3, 1))
		}
	}
}

// TestOdometer: an analyst who chooses noise by what the loss has been, and looks at every step for the moment at which the odometer is exceeded, succeeds
// with probability at most delta in 4,000 runs (false alarm 1e-6). Power: an odometer that turned the sum of rho into epsilon as if it had been fixed
// before, at the delta of one look, would be exceeded far more often, which the test demands to see.
func TestOdometer(t *testing.T) {
	const runs, steps, delta = 4000, 60, .05
	s := noise.Seeded(2)
	exceeded, naive := 0, 0
	for range runs {
		o, loss := NewOdometer(.01, delta), 0.
		var high, low bool
		for range steps {
			// The loss of a Gaussian release of sensitivity 1 is N(rho, 2 rho) on the table. Nearly exceeding, the analyst takes small steps; far from it
			// large ones.
			rho := .02
			if o.Spent() > 0 && loss > .8*o.Epsilon() {
				rho = .0005
			} else if loss < 0 {
				rho = .1
			}
			z := float64(noise.RoundedNormal(s, 0x1p40)) / 0x1p40
			loss += rho + math.Sqrt(2*rho)*z
			o.Spend(ZCDP(rho))
			high = high || loss > o.Epsilon()
			low = low || loss > float64(o.Spent())+math.Sqrt(2*float64(o.Spent()))*1.6448536
		}
		if high {
			exceeded++
		}
		if low {
			naive++
		}
	}
	if err := stattest.AtMost(exceeded, runs, delta, 1e-6); err != nil {
		t.Error(err)
	}
	if stattest.AtMost(naive, runs, delta, 1e-6) == nil {
		t.Errorf("looking all the time exceeded the quantile of one look %d times only", naive)
	}
	o := NewOdometer(1, 1e-6)
	if o.Epsilon() != 0 {
		t.Errorf("before the first release: %v", o.Epsilon())
	}
	before := 0.
	for range 50 {
		o.Spend(.3)
		if eps := o.Epsilon(); eps < before || eps < float64(o.Spent()) {
			t.Errorf("after %v: %v, before %v", o.Spent(), eps, before)
		}
		before = o.Epsilon()
	}
}

// The Gaussian noise of one count, read as an accusation: whoever tests who is in the table, and accuses one in a hundred wrongly, finds no more than this
// share of those who are.
func ExampleTradeoff() {
	release := GDP(0.5)
	fmt.Printf("finds at most %.1f%%; where one in ten is in it, an accusation is right with at most %.0f%%\n", 100*(1-Tradeoff(release, 0.01)), 100*Precision(release, 0.1, 0.01))
	// Output: finds at most 3.4%; where one in ten is in it, an accusation is right with at most 27%
}

// A training by DP-SGD and a count, as data, and by two accountants.
func ExampleReadEvent() {
	event, err := ReadEvent([]byte(`{"kind":"all","events":[
		{"kind":"times","times":1000,"event":{"kind":"poisson","rate":0.01,"event":{"kind":"gaussian","multiplier":1.1}}},
		{"kind":"laplace","multiplier":10}]}`))
	if err != nil {
		panic(err)
	}
	for _, accountant := range []Accountant{NewRenyi(), Losses{}} {
		account, err := accountant.With(event)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%.3f\n", account.Epsilon(1e-5))
	}
	// Output:
	// 1.753
	// 1.558
}
