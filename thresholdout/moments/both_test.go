package moments

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawnGroup are values of so many units, whose distribution is drawn, and their mean and variance.
func drawnGroup(r *rand.Rand, units int) (values []float64, mean, variance float64) {
	middle, spread := r.Float64(), r.Float64()*r.Float64()
	for range units {
		x := middle + spread*(r.Float64()-0.5)
		if r.IntN(3) == 0 {
			x = math.Round(x)
		}
		values = append(values, min(max(x, 0), 1))
	}
	for _, x := range values {
		mean += x / float64(units)
	}
	for _, x := range values {
		variance += (x - mean) * (x - mean) / float64(units)
	}
	return values, mean, variance
}

// TestBothLemma: whatever two samples satisfy a statement, the bets of one slope win on them at least what is said, at every slope and against every pair. The line of what the statement allows
// goes through the samples' means, or ends at them. Red where one end of the line alone is looked at, where a parabola forgets the variance, and where a group whose bet loses is taken to
// have no more units than the statement demands.
func TestBothLemma(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{31, 17}))
	near := 0
	for range 60_000 {
		n, m := 1+r.IntN(6), 1+r.IntN(6)
		first, h1, v1 := drawnGroup(r, n)
		second, h2, v2 := drawnGroup(r, m)
		// Room below the samples' own numbers, on either side of the line.
		a, b := r.Float64()*r.Float64()*0.3, r.Float64()*r.Float64()*0.3
		slack := 0.0
		if r.IntN(2) == 0 {
			slack = 0.05 * r.Float64()
		}
		j := both{first: Group{From: h1 - a, Variance: v1 * (1 + slack), Units: float64(1 + r.IntN(n))},
			second: Group{From: h2 - b, Variance: v2 * (1 + slack), Units: float64(1 + r.IntN(m))},
			most:   [2]float64{float64(n + r.IntN(2)), float64(m + r.IntN(2))}, sum: h1 + h2 - slack}
		if !j.says(1) {
			continue
		}
		x, y := 0.01+0.98*r.Float64(), 0.01+0.98*r.Float64()
		slope := math.Exp(4*r.Float64()-2) * (j.first.Units + j.second.Units)
		said, won := j.wins(x, y, slope), 0.0
		for _, phi := range first {
			won += math.Log1p(min(slope*x/j.first.Units, mostStake) * (phi/x - 1))
		}
		for _, phi := range second {
			won += math.Log1p(min(slope*y/j.second.Units, mostStake) * (phi/y - 1))
		}
		if said > won+1e-9*(1+math.Abs(won)) {
			t.Fatalf("%v is said of what wins %v: %+v against %v, %v; %v %v", said, won, j, x, y, first, second)
		}
		if said > won-0.05 {
			near++
		}
	}
	if near < 100 {
		t.Errorf("what is said is near what is won in %d cases only: the test is too weak", near)
	}
}

// TestExactBoth: all samples of two groups of few units, at laws whose difference is just below the low end: a statement of both groups together, through a sample that is possible, is true with a
// probability of at most e^-E. Red where the printed end is that of half the level.
func TestExactBoth(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{32, 17}))
	worst, half, narrower := 0.0, 0.0, 0
	for range 250 {
		level := 0.2 + 2.5*r.Float64()
		// Each group has its values on two places; 1 minus its values stand for the second's.
		var units [2]int
		var places, u [2][2]float64 // of u: the mean of the sample that the statement goes through, and the group's own margin
		var most [2]float64
		variance, sum := 0.0, 0.0
		for g := range 2 {
			units[g] = 1 + r.IntN(6)
			places[g] = [2]float64{r.Float64() * float64(r.IntN(2)), 1}
			if r.IntN(2) == 0 {
				places[g][1] = places[g][0] + r.Float64()*(1-places[g][0])
			}
			share := float64(1+r.IntN(units[g])) / float64(units[g])
			width := places[g][1] - places[g][0]
			u[g] = [2]float64{places[g][0] + share*width, r.Float64() * 0.4}
			variance = max(variance, share*(1-share)*width*width)
			sum += u[g][0]
			most[g] = float64(units[g] + r.IntN(3))
		}
		v := variance + 1e-12
		if r.IntN(3) == 0 {
			v = 1
		}
		least := [2]float64{float64(1 + r.IntN(units[0])), float64(1 + r.IntN(units[1]))}
		if r.IntN(2) == 0 {
			least = [2]float64{float64(units[0]), float64(units[1])}
		}
		first, second := Group{u[0][0] - u[0][1], 1, v, least[0], BestTilts}, Group{0, 1 - u[1][0] + u[1][1], v, least[1], BestTilts}
		truth := func(difference float64, i int) float64 { // how often the statement is true
			x := 1 + difference // the means of both groups' values add up to it
			from, to := max(places[0][0], x-places[1][1]), min(places[0][1], x-places[1][0])
			if from > to {
				return 0
			}
			means := [2]float64{from + float64(i)/20*(to-from)}
			means[1] = x - means[0]
			total := 0.0
			for a := 0; a <= units[0]; a++ {
				for b := 0; b <= units[1]; b++ {
					p, h, holds := 1.0, 0.0, true
					for g, k := range [2]int{a, b} {
						width, n := places[g][1]-places[g][0], float64(units[g])
						share, expected := float64(k)/n, 0.0
						if width > 0 {
							expected = min(max((means[g]-places[g][0])/width, 0), 1)
						}
						lg := func(x int) float64 { y, _ := math.Lgamma(float64(x) + 1); return y }
						p *= math.Exp(lg(units[g])-lg(k)-lg(units[g]-k)) * math.Pow(expected, float64(k)) * math.Pow(1-expected, n-float64(k))
						mean := places[g][0] + share*width
						h += mean
						holds = holds && mean >= u[g][0]-u[g][1]-1e-12 && share*(1-share)*width*width <= v
					}
					if holds && h >= sum-1e-12 {
						total += p
					}
				}
			}
			return total
		}
		low, faulty := BothLow(first, second, most, sum-1, level), BothLow(first, second, most, sum-1, level/2)
		if low > DifferenceLow(first, second, level)+1e-6 {
			narrower++
		}
		for i := range 21 {
			worst = max(worst, truth(low-1e-9, i)*math.Exp(level))
			half = max(half, truth(faulty-1e-9, i)*math.Exp(level))
		}
	}
	t.Logf("largest probability times e^E: %.4f, at half the level %.4f; %d ends are above those of the groups apart", worst, half, narrower)
	if worst > 1+1e-9 {
		t.Errorf("a statement is true %v times as often as it may be", worst)
	}
	if half < 1 || narrower < 100 {
		t.Errorf("half the level reaches %v, and %d ends are above those of the groups apart: the test is too weak", half, narrower)
	}
}

// TestBothOutcome: whether both groups' sums satisfy what is said of both together is decided as in rational numbers, at the edges, too; and sums that satisfy what is said of each group alone do not pass.
func TestBothOutcome(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{33, 17}))
	seen := [2]int{}
	for range 3000 {
		n, m := 1+r.Int64N(1<<20), 1+r.Int64N(1<<20)
		first, second := Sums{Units: n, Sum: r.Int64N(n*grid + 1)}, Sums{Units: m, Sum: r.Int64N(m*grid + 1)}
		c := DifferenceCheck{First: Check{Guess: r.Int64N(grid + 1)}, Second: Check{Guess: r.Int64N(grid + 1)}}
		mean := func(s Sums) *big.Rat { return big.NewRat(s.Sum, s.Units) }
		off := new(big.Rat).Sub(mean(first), mean(second))
		shift := r.Int64N(grid) - grid/2
		off.Sub(off, big.NewRat(c.First.Guess-c.Second.Guess+shift, 1)).Abs(off)
		away, _ := off.Float64()
		rank := BothRank{Away: int64(away) + r.Int64N(3) - 1, Shift: shift, Most: [2]int64{n, m}}
		want := off.Cmp(big.NewRat(rank.Away, 1)) <= 0
		if got := c.together(first, second, rank); got != want {
			t.Fatalf("%v, in rationals %v: %+v %+v %+v", got, want, first, second, rank)
		}
		rank.Most[r.IntN(2)]--
		if c.together(first, second, rank) {
			t.Fatal("more units than are said to be")
		}
		if want {
			seen[0]++
		} else {
			seen[1]++
		}
	}
	if min(seen[0], seen[1]) < 500 {
		t.Errorf("outcomes seen: %v", seen)
	}
	plan := Training{All: 1000, Units: 300, Mean: 0.5, Second: 0.04, Fourth: 0.005, Guess: 0.5, Partial: true}
	_, joint, err := PlanDifference(plan, plan, 1000, 3)
	if err != nil {
		t.Fatal(err)
	}
	at := func(steps int64) Sums { // 300 units of this mean, half of them .2 above it
		var values []int64
		for i := range int64(300) {
			values = append(values, grid/2+steps+(i%2*2-1)*grid/5)
		}
		return Of(values)
	}
	away := joint.Both[0].Away / 2
	for _, c := range []struct {
		first, second int64
		rank          int
	}{{away, -away, 1}, {away + 2, -away, 2}, {joint.First.Ranks[0].Away, joint.First.Ranks[0].Away, 1}, {joint.First.Ranks[0].Away + 1, joint.First.Ranks[0].Away, 2}} {
		if o, err := joint.Outcome(at(c.first), at(c.second)); err != nil || o.Rank != c.rank {
			t.Errorf("means %d and %d steps off: %+v, %v, want rank %d", c.first, c.second, o, err, c.rank)
		}
	}
}

// TestMarginBesideTheGuess: a margin that leaves less room on one side of the guess is one about another guess: the same outcomes, and the same intervals. Of a difference the first group's guess is moved
// by what the middle of both groups' margin is, and its own margin back. It would notice a margin that is compared about its middle and read about the guess, or the other way round.
func TestMarginBesideTheGuess(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{34, 17}))
	passes := 0
	for range 300 {
		n := 200 + r.Int64N(800)
		plan := Training{All: 2 * n, Units: n / 2, Mean: 0.3 + 0.4*r.Float64(), Second: 0.05, Fourth: 0.005, Partial: true}
		plan.Guess = plan.Mean
		_, c, err := PlanDifference(plan, plan, n, 3)
		if err != nil {
			t.Fatal(err)
		}
		shift := r.Int64N(2*c.Both[0].Away/3) - c.Both[0].Away/3
		c.Both[0].Away, c.Both[0].Shift = c.Both[0].Away-max(shift, -shift), shift
		if c.First.Ranks = slices.Clone(c.First.Ranks); r.IntN(2) == 0 { // so that the first group's own margin decides
			c.First.Ranks[0].Away = grid / 100
		}
		moved := c
		moved.First.Ranks, moved.Both = slices.Clone(c.First.Ranks), slices.Clone(c.Both)
		moved.First.Guess += shift
		for l := range moved.First.Ranks {
			moved.First.Ranks[l].Shift -= shift
			moved.Both[l].Shift -= shift
		}
		of := func(units int64, mean float64) Sums {
			var values []int64
			for i := range units {
				values = append(values, int64((mean+0.2*float64(i%2*2-1))*grid))
			}
			return Of(values)
		}
		first, second := of(n/4, plan.Mean+0.04*r.Float64()-0.02), of(n/4, plan.Mean)
		one, err := c.Outcome(first, second)
		if err != nil {
			t.Fatal(err)
		}
		other, err := moved.Outcome(first, second)
		if err != nil || one.Rank != other.Rank {
			t.Fatalf("%+v, moved %+v (%v): %+v", one, other, err, c)
		}
		passes += one.Rank
		for rank := 1; rank <= 2; rank++ {
			level := 1 + 10*r.Float64()
			low, high := c.Interval(DifferenceOutcome{Rank: rank}, level)
			otherLow, otherHigh := moved.Interval(DifferenceOutcome{Rank: rank}, level)
			if math.Abs(low-otherLow) > 1e-9 || math.Abs(high-otherHigh) > 1e-9 {
				t.Fatalf("rank %d: [%v, %v], moved [%v, %v]", rank, low, high, otherLow, otherHigh)
			}
		}
	}
	if passes < 100 {
		t.Errorf("%d passes", passes)
	}
}
