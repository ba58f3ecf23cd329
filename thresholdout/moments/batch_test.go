package moments

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/dp/binomial"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// TestExactBatch: a question fixed beforehand, read by the sample's own mean and variance, at random laws and at the laws that an end fears
// most. Red where the bets' parts of the probability of error are more than all of it.
func TestExactBatch(t *testing.T) {
	for name, f := range map[string]struct {
		fault    func(*Batch, *float64)
		violates bool
	}{
		"as proved":                {func(*Batch, *float64) {}, false},
		"half as much again":       {func(b *Batch, _ *float64) { more(b.below, b.above) }, true},
		"four fifths of the level": {func(_ *Batch, level *float64) { *level *= 0.8 }, true},
	} {
		worst := 0.0
		r := rand.New(rand.NewChaCha8([32]byte{4, 17}))
		for i := range 120 {
			partial := r.IntN(2) == 0
			l, n := randomLaw(r, partial), 2+r.Int64N(9)
			level := 0.3 + 4*r.Float64()
			batch, err := PlanBatch(r.Float64(), r.Float64()*r.Float64()/4, float64(n)*r.Float64(), level*(0.5+r.Float64()), BestTilts)
			if err != nil {
				t.Fatal(err)
			}
			read := level
			f.fault(&batch, &read)
			if i%2 == 0 {
				y, j := 0.05+0.95*r.Float64(), n-r.Int64N(2)
				p := float64(j) / float64(n)
				low := batch.Low(NewSample(p*y, y*y*p*(1-p), float64(n)), read)
				share := max(low-2*gridError, 0) / y
				l = law{values: []int64{0, int64(y * grid)}, weights: []float64{0, 1 - share, share}}
			}
			truth := l.expectation()
			var below, above float64
			l.each(n, func(s Sums, probability float64) {
				low, high := batch.Interval(s.Sample(), read)
				if low > truth {
					below += probability
				}
				if high < truth {
					above += probability
				}
			})
			worst = max(worst, max(below, above)*math.Exp(level))
		}
		t.Logf("%s: largest probability times e^E: %.4f", name, worst)
		if f.violates != (worst > 1+1e-9) {
			t.Errorf("%s: the largest probability is %v times what is allowed", name, worst)
		}
	}
}

// more gives each bet half as much again of the probability of error.
func more(sides ...[]bet) {
	for _, bets := range sides {
		for i := range bets {
			bets[i].logShare += math.Log(1.5)
		}
	}
}

// TestExactBatchDifference: all samples of two groups of fixed sizes, read at their own means and variances: random laws, and laws at the edge of the
// interval of a sample. Red at half of the level.
func TestExactBatchDifference(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{21, 17}))
	worst, violated := 0.0, 0
	for range 20 {
		var laws [2]law
		var sizes [2]int64
		var plans [2]Batch
		level := 0.5 + 2.5*r.Float64()
		for i := range laws {
			y, p := int64((0.1+0.9*r.Float64())*grid), r.Float64()
			if r.IntN(3) > 0 {
				y, p = grid, 0.02+0.3*r.Float64()
				if i == 0 {
					p = 1 - p
				}
			}
			p = []float64{p, 1 - p}[r.IntN(2)]
			laws[i] = law{values: []int64{0, y}, weights: []float64{0, 1 - p, p}}
			sizes[i] = 1 + r.Int64N(3)
			var err error
			if plans[i], err = PlanBatch(r.Float64(), r.Float64()/4, float64(sizes[i])*(0.5+r.Float64()), level, BestTilts); err != nil {
				t.Fatal(err)
			}
		}
		d := PlanBatchDifference(plans[0], plans[1], level*(0.5+r.Float64()))
		faulty := PlanBatchDifference(plans[0], plans[1], level/8)
		truth := laws[0].expectation() - laws[1].expectation()
		var below, above, bad float64
		laws[0].each(sizes[0], func(a Sums, pa float64) {
			laws[1].each(sizes[1], func(b Sums, pb float64) {
				if pa*pb == 0 {
					return
				}
				if d.Low(a.Sample(), b.Sample(), level) > truth {
					below += pa * pb
				}
				if d.High(a.Sample(), b.Sample(), level) < truth {
					above += pa * pb
				}
				if faulty.Low(a.Sample(), b.Sample(), level/8) > truth {
					bad += pa * pb
				}
			})
		})
		if reached := max(below, above) * math.Exp(level); reached > 1+1e-9 {
			t.Fatalf("a side misses with %v times e^-%v: %+v, %+v", reached, level, laws, d)
		} else {
			worst = max(worst, reached)
		}
		if bad*math.Exp(level) > 1+1e-9 {
			violated++
		}
	}
	t.Logf("largest probability times e^E: %.4f; %d violations at an eighth of the level", worst, violated)
	if violated == 0 {
		t.Error("an eighth of the level goes unnoticed: the search is too weak")
	}
}

// TestBatchDifferenceCovers: two groups with rare large values, at an E of ln 20 a side, in simulation: no more misses than promised (false alarm
// 1e-6), and the half-width is within two times a textbook's at that level.
func TestBatchDifferenceCovers(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{22, 17}))
	const n, runs = 4000, 40
	level := math.Log(20)
	missed, wide := 0, 0.0
	for range runs {
		draw := func() Sample {
			values := make([]int64, n)
			for i := range values {
				if r.Float64() < 0.05 {
					values[i] = int64(math.Min(r.ExpFloat64()/5, 1) * grid)
				}
			}
			return Of(values).Sample()
		}
		a, b := draw(), draw()
		plan := func() Batch {
			s := draw()
			p, err := PlanBatch(s.Mean, s.Variance, n, level, BestTilts)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		d := PlanBatchDifference(plan(), plan(), level)
		low, high := d.Low(a, b, level), d.High(a, b, level)
		if low > 0 || high < 0 {
			missed++
		}
		wide = max(wide, (high-low)/2/(1.645*math.Sqrt((a.Variance+b.Variance)/n)))
	}
	t.Logf("%d of %d miss; at most %.2f times a textbook's half-width", missed, runs, wide)
	if err := stattest.AtMost(missed, runs, 2*math.Exp(-level), 1e-6); err != nil {
		t.Error(err)
	}
	if wide > 2.2 {
		t.Errorf("an interval is %v times a textbook's", wide)
	}
}

// TestFractionIntervalCounts: for every count of up to 120 units both ends are where the binomial tail, summed term by term, is as improbable as the level says, or a unit beyond the share. A count that is made of a share again is one too
// many where 1 minus the share is rounded up, as of 97 of 100: its interval is too narrow.
func TestFractionIntervalCounts(t *testing.T) {
	const level = 8.294
	tail := func(n, count int64, p float64) float64 { // ln P(Bin(n, p) <= count)
		total := 0.0
		for i := range count + 1 {
			total += math.Exp(binomial.LogProbability(float64(n), float64(i), p))
		}
		return math.Log(total)
	}
	for n := int64(1); n <= 120; n++ {
		for count := range n + 1 {
			low, high, err := FractionInterval(n, count, level)
			if err != nil {
				t.Fatal(err)
			}
			if count < n && high < 1 && tail(n, count, high) > -level*(1-1e-6) {
				t.Fatalf("%d of %d: the upper end %v is reached with ln %v, at the level %v", count, n, high, tail(n, count, high), level)
			}
			if count > 0 && low > 0 && tail(n, n-count, 1-low) > -level*(1-1e-6) {
				t.Fatalf("%d of %d: the lower end %v is reached with ln %v, at the level %v", count, n, low, tail(n, n-count, 1-low), level)
			}
			if mirrorLow, mirrorHigh, _ := FractionInterval(n, n-count, level); math.Abs(mirrorLow+high-1) > 1e-15 || math.Abs(mirrorHigh+low-1) > 1e-15 {
				t.Fatalf("%d of %d: [%v, %v], of the others [%v, %v]", count, n, low, high, mirrorLow, mirrorHigh)
			}
		}
	}
}

// TestPairsHaveBothRanges: what bets on two groups together must come to is planned for all that a unit may win or lose, whichever group it is in and whatever is expected up to the planned end, and the shares
// of all pairs add up to no more than all. Red for the first group's range, and for the larger of both.
func TestPairsHaveBothRanges(t *testing.T) {
	many, err := PlanBatch(0.3, 0.2, 20_000, 5, BestTilts)
	if err != nil {
		t.Fatal(err)
	}
	few, err := PlanBatch(0.4, 0.1, 200, 5, BestTilts)
	if err != nil {
		t.Fatal(err)
	}
	rare, err := PlanBatch(0.1, 0.05, 2000, 5, BestTilts)
	if err != nil {
		t.Fatal(err)
	}
	frequent, err := PlanBatch(0.9, 0.05, 6000, 5, BestTilts)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []pairBets{betsOn(many, few, 5), betsOn(few, many, 5), betsOn(rare, frequent, 5)} {
		shares := 0.0
		for i, b := range p.first {
			shares += math.Exp(b.logShare)
			least, most := 0.0, 0.0
			for _, one := range []bet{b, p.second[i]} {
				for _, r := range []float64{0, one.upTo / 2, one.upTo} {
					least, most = min(least, math.Log(1-one.stake*r)), max(most, math.Log(1+one.stake*(1-r)))
				}
			}
			if b.apart() && math.Abs(b.width-(most-least)) > 1e-12 {
				t.Errorf("pair %d is planned for a range of %v, its bets have %v", i, b.width, most-least)
			}
		}
		if shares > 1+1e-12 {
			t.Errorf("pairs share %v of the probability of error", shares)
		}
	}
}
