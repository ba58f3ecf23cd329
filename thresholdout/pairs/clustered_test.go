package pairs

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// clusters draws units of several rows, and has the sums of their vectors.
type customer struct {
	with, without [2][]float64 // of each score, by bins
}

// drawCustomers are n units of 2.5 rows in the mean. A unit has an inclination of its own, from which its labels and scores follow.
func drawCustomers(r *rand.Rand, n, bins int, positive, cap float64, scores int) (all []customer) {
	shift := 0.0
	for lo, hi := -10.0, 10.0; hi-lo > 1e-6; {
		shift = (lo + hi) / 2
		if 0.5*math.Erfc(-shift/math.Sqrt(2*2)) < positive {
			lo = shift
		} else {
			hi = shift
		}
	}
	for range n {
		u := customer{}
		for s := range scores {
			u.with[s], u.without[s] = make([]float64, bins), make([]float64, bins)
		}
		own := r.NormFloat64()
		rows := 1
		for r.Float64() < 0.5946 && rows < 40 {
			rows++
		}
		w := 1 / max(cap, float64(rows))
		for range rows {
			x := own + r.NormFloat64() + shift
			label := x > 0
			common := r.NormFloat64()
			for s := range scores {
				score := own + 0.9*common + 0.3*r.NormFloat64()
				if label {
					score += 0.4
				}
				b := min(max(int(float64(bins)/2+score*float64(bins)/7), 0), bins-1)
				if label {
					u.with[s][b] += w
				} else {
					u.without[s][b] += w
				}
			}
		}
		all = append(all, u)
	}
	return all
}

// vectorsOf are the sums of the units' vectors, as a pass over a table has them.
func vectorsOf(c Curves, units []customer) Vectors {
	d := c.Size()
	v := Vectors{Units: int64(len(units)), Sums: make([]int64, d), Products: make([]*big.Int, d*(d+1)/2)}
	for i := range v.Products {
		v.Products[i] = new(big.Int)
	}
	sums := make([]uint64, len(v.Products)*2)
	for _, u := range units {
		var z []int64
		for _, bins := range [][]float64{u.with[0], u.without[0], u.with[1], u.without[1]} {
			at := len(z)
			sum := 0.0
			z = append(z, make([]int64, len(bins))...)
			for i := len(bins) - 1; i >= 0; i-- {
				sum += bins[i]
				z[at+i] = int64(math.Floor(sum*grid + 0.5))
			}
		}
		at := 0
		for i, x := range z {
			v.Sums[i] += x
			for _, y := range z[:i+1] {
				p := uint64(x) * uint64(y)
				if sums[at]+p < p {
					sums[at+1]++
				}
				sums[at] += p
				at += 2
			}
		}
	}
	for i := range v.Products {
		p := v.Products[i].SetUint64(sums[2*i+1])
		p.Lsh(p, 64).Or(p, new(big.Int).SetUint64(sums[2*i]))
	}
	return v
}

// clustered are the sums of two halves of units.
func clustered(t *testing.T, c Curves, first, second []customer) ClusteredSums {
	t.Helper()
	s, err := Clustered(c, vectorsOf(c, first), vectorsOf(c, second))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pairOf is A and B of two units, by a loop over their bins.
func pairOf(c Curves, x, y customer) (a, b float64) {
	area := func(score int) (sum float64) {
		for i := range x.with[score] {
			for j := range x.with[score] {
				sum += (x.with[score][i]*y.without[score][j] + y.with[score][i]*x.without[score][j]) * float64(1+sign(i-j)) / 2
			}
		}
		return sum
	}
	for i := range x.with[0] {
		for j := range x.with[0] {
			b += x.with[0][i]*y.without[0][j] + y.with[0][i]*x.without[0][j]
		}
	}
	if a = area(0); c.Second > 0 {
		a = (a - area(1) + b) / 2
	}
	return a, b
}

// byPairs are the ratio, the mean of B and the spreads of A-gB and B, by a loop over all pairs.
func byPairs(c Curves, first, second []customer, g float64) (mean, size float64, spreads [3][3]float64) {
	n1, n0 := float64(len(first)), float64(len(second))
	var rows, columns, all [3]float64
	down := make([][2]float64, len(second))
	for _, x := range first {
		var row [2]float64
		for j, y := range second {
			a, b := pairOf(c, x, y)
			a -= g * b
			mean, size = mean+a/(n1*n0), size+b/(n1*n0)
			row[0], row[1] = row[0]+a/n0, row[1]+b/n0
			down[j][0], down[j][1] = down[j][0]+a/n1, down[j][1]+b/n1
			all[0], all[1], all[2] = all[0]+a*a/(n1*n0), all[1]+a*b/(n1*n0), all[2]+b*b/(n1*n0)
		}
		rows[0], rows[1], rows[2] = rows[0]+row[0]*row[0]/n1, rows[1]+row[0]*row[1]/n1, rows[2]+row[1]*row[1]/n1
	}
	for _, column := range down {
		columns[0], columns[1], columns[2] = columns[0]+column[0]*column[0]/n0, columns[1]+column[0]*column[1]/n0, columns[2]+column[1]*column[1]/n0
	}
	for i, of := range [3]float64{mean * mean, mean * size, size * size} {
		spreads[0][i], spreads[1][i], spreads[2][i] = rows[i]-of, columns[i]-of, all[i]-rows[i]
	}
	return mean, size, spreads
}

// TestSumsOfClusteredPairs: what follows from the halves' sums of vectors and of products is what a loop over all pairs of units says, of one score and of the difference of two.
func TestSumsOfClusteredPairs(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{31, 17}))
	for round := range 60 {
		c := Curves{First: 2 + r.IntN(5)}
		if round%2 == 1 {
			c.Second = c.First
		}
		units := drawCustomers(r, 8+r.IntN(12), c.First, 0.2+0.6*r.Float64(), 1+float64(r.IntN(3)), 1+round%2)
		cut := 2 + r.IntN(5)
		all, some := vectorsOf(c, units), vectorsOf(c, units[:cut])
		s, err := Clustered(c, some, all.Less(some))
		if err != nil {
			t.Fatal(err)
		}
		g := r.Int64N(grid)
		mean, size, want := byPairs(c, units[:cut], units[cut:], float64(g)/grid)
		ratio, b, ok := s.Ratio()
		if got := s.spreadNumbers(g); size > 0 {
			for i := range got {
				for j := range got[i] {
					if math.Abs(got[i][j]-want[i][j]) > 4*blur {
						t.Fatalf("%+v: spread %d %d is %v, want %v", c, i, j, got[i][j], want[i][j])
					}
				}
			}
			if !ok || math.Abs(b-size) > blur || math.Abs((ratio-float64(g)/grid)*b-mean) > blur {
				t.Fatalf("%+v: a ratio of %v of %v, want means of %v and %v", c, ratio, b, mean, size)
			}
		}
		// The pairs of a unit with itself.
		whole := clustered(t, c, units, units)
		ownA, ownB := 0.0, 0.0
		for _, u := range units {
			a, b := pairOf(c, u, u)
			ownA, ownB = ownA+a, ownB+b
		}
		n := float64(len(units) * len(units))
		if a, b := quotient(whole.OwnA, whole.Unit), quotient(whole.OwnB, whole.Unit); math.Abs(a-ownA) > n*blur || math.Abs(b-ownB) > n*blur {
			t.Fatalf("%+v: %v and %v of units by themselves, want %v and %v", c, a, b, ownA, ownB)
		}
	}
	for name, v := range map[string][2]Vectors{"no vectors": {}, "another length": {vectorsOf(Curves{First: 2}, nil), vectorsOf(Curves{First: 3}, nil)}} {
		if s, err := Clustered(Curves{First: 2}, v[0], v[1]); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// kindsOfCustomers are few kinds of units with few rows, in two bins.
func kindsOfCustomers(r *rand.Rand, kinds int) (all []customer) {
	for range kinds {
		u := customer{with: [2][]float64{make([]float64, 2)}, without: [2][]float64{make([]float64, 2)}}
		rows := 1 + r.IntN(3)
		for range rows {
			into := u.with[0]
			if r.IntN(2) == 0 {
				into = u.without[0]
			}
			into[r.IntN(2)] += 1 / float64(rows)
		}
		all = append(all, u)
	}
	return all
}

// halvesOf calls with all samples of so many units of each kind in a half, and their number of ways times the kinds' probabilities.
func halvesOf(n int, p []float64, each func(count []int, probability float64)) {
	count := make([]int, len(p))
	var walk func(k, left int, probability float64)
	walk = func(k, left int, probability float64) {
		if k == len(p)-1 {
			count[k] = left
			each(count, probability*math.Pow(p[k], float64(left)))
			return
		}
		ways := 1.0
		for c := 0; c <= left; c++ {
			count[k] = c
			walk(k+1, left-c, probability*ways*math.Pow(p[k], float64(c)))
			ways *= float64(left-c) / float64(c+1)
		}
	}
	walk(0, n, 1)
}

// sampleOf are units of the kinds.
func sampleOf(kinds []customer, count []int) (all []customer) {
	for k, n := range count {
		for range n {
			all = append(all, kinds[k])
		}
	}
	return all
}

// TestClusteredExactly goes through all samples of two halves, of 3 to 6 units of three kinds or of 15 to 22 of two kinds. What excludes the true ratio at the highest level that it does is true with
// probability at most 2 e^-E, for the projection and its event D; read at a fifth of the level that is violated. Ratios beyond what the matchings say have
// e^-E at one size, which is proved, and e^(1-E) at the sample's own; all outcomes of a check e^-E together.
func TestClusteredExactly(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{32, 17}))
	c := Curves{First: 2}
	worst, atFifth, statements, matched, chained, outcomes := 0.0, 0.0, 0, 0.0, 0.0, 0.0
	for round := range 40 {
		few := 2 + round%2 // of two kinds there can be more units
		kinds := kindsOfCustomers(r, few)
		if round%4 == 0 { // all pairs count alike
			kinds = []customer{{with: [2][]float64{{0, 0.5}}, without: [2][]float64{{0.5, 0}}}, {with: [2][]float64{{0.5, 0}}, without: [2][]float64{{0, 0.5}}}}
		}
		p, total := make([]float64, few), 0.0
		for k := range p {
			p[k] = math.Exp(-3 * r.Float64())
			total += p[k]
		}
		truth, all := 0.0, 0.0
		for k := range p {
			p[k] /= total
		}
		for k := range p {
			for l := range p {
				a, b := pairOf(c, kinds[k], kinds[l])
				truth, all = truth+p[k]*p[l]*a, all+p[k]*p[l]*b
			}
		}
		if truth /= all; !(all > 0.05 && truth > 0.02 && truth < 0.98) {
			continue
		}
		n := 6 + r.IntN(7) // both halves
		if few == 2 {
			n = 30 + r.IntN(16)
		}
		type half struct {
			vectors     Vectors
			probability float64
		}
		halves := [2][]half{}
		for side, units := range []int{n / 2, n - n/2} {
			halvesOf(units, p, func(count []int, probability float64) {
				halves[side] = append(halves[side], half{vectorsOf(c, sampleOf(kinds, count)), probability})
			})
		}
		type sample struct {
			sums        ClusteredSums
			probability float64
			ratio, size float64
		}
		var samples []sample
		level := 0.5 + 4*r.Float64()
		beyond := 0.0
		for _, x := range halves[0] {
			for _, y := range halves[1] {
				s, err := Clustered(c, x.vectors, y.vectors)
				if err != nil {
					t.Fatal(err)
				}
				ratio, size, ok := s.Ratio()
				if !ok {
					continue
				}
				one := sample{s, x.probability * y.probability, ratio, size}
				samples = append(samples, one)
				if low, _ := Matchings(ratio, ratio, size*float64(n/2), level); low > truth {
					beyond += one.probability
				}
			}
		}
		matched = max(matched, beyond*math.Exp(level))
		// At one size all ratios are one event: the chain.
		for range 5 {
			least := samples[r.IntN(len(samples))].size
			beyond := 0.0
			for _, one := range samples {
				if one.size < least {
					continue
				}
				if low, _ := Matchings(one.ratio, one.ratio, least*float64(n/2), level); low > truth {
					beyond += one.probability
				}
			}
			chained = max(chained, beyond*math.Exp(level))
		}
		for range 30 {
			at := samples[r.IntN(len(samples))]
			guess := int64(at.ratio * grid)
			if r.IntN(2) == 0 {
				guess = r.Int64N(grid)
			}
			loose := 1 + r.Float64()
			of := func(x [3]float64) Spread {
				up := func(v float64) int64 { return int64(min(math.Ceil(v*loose*squares)+1e6, squares/4)) }
				return Spread{Own: up(x[0]), Low: -up(-x[1] / loose), High: up(x[1] / loose), Size: up(x[2])}
			}
			numbers := at.sums.spreadNumbers(guess)
			check := ClusteredCheck{N1: int64(n / 2), N0: int64(n - n/2), Guess: guess, Cells: 1, First: of(numbers[0]), Second: of(numbers[1]), Rest: of(numbers[2]),
				Ranks: []ClusteredRank{{0, int64(at.size * grid)}}}
			projected := check.projection()
			excluded := func(level float64) bool { return projected.excluded(truth, at.ratio, 0, level, level) }
			level, most := 0.0, 60.0
			for range 20 {
				if mid := (level + most) / 2; excluded(mid) {
					level = mid
				} else {
					most = mid
				}
			}
			if level < 0.3 {
				continue
			}
			statements++
			probability := 0.0
			for _, s := range samples {
				if s.ratio >= at.ratio-1e-12 && s.size >= at.size-1e-12 && s.sums.within(check) {
					probability += s.probability
				}
			}
			if probability > 2*math.Exp(-level)+1e-12 {
				t.Fatalf("a statement that excludes %v at %v is true with probability %v: %+v, kinds %v of %v", truth, level, probability, check, kinds, p)
			}
			// All outcomes of a check with this plan, a failure's and a wide pass's among them.
			check.Cells, check.Ranks[0].Away = 1+r.Int64N(4), r.Int64N(grid/20)
			if r.IntN(2) == 0 {
				check.Ranks = append(check.Ranks, ClusteredRank{2 * check.Ranks[0].Away, check.Ranks[0].Size * 3 / 4})
			}
			low, missed, own := 0.1+2*r.Float64(), 0.0, 0.0
			said := map[Outcome]bool{}
			for _, s := range samples {
				o, err := check.Outcome(s.sums)
				if err != nil {
					t.Fatal(err)
				}
				wrong, known := said[o]
				if !known {
					end, _ := check.Interval(o, low)
					wrong = end > truth
					said[o] = wrong
				}
				if wrong {
					missed += s.probability
				}
				if end, _, err := check.Exact(s.sums, low); err != nil {
					t.Fatal(err)
				} else if end > truth {
					own += s.probability
				}
			}
			outcomes = max(outcomes, missed*math.Exp(low), own*math.Exp(low))
			worst, atFifth = max(worst, probability*math.Exp(level)/2), max(atFifth, probability*math.Exp(5*level)/2)
		}
	}
	t.Logf("%d statements: at most %.4f of what is promised, read at a fifth of the level %.1f; matchings %.4f, at one size %.4f; all outcomes %.4f", statements, worst, atFifth, matched, chained, outcomes)
	if statements < 100 || atFifth <= 1 || matched > math.E || matched < 0.001 || chained > 1 || chained < 0.001 || outcomes > 1 || outcomes < 0.001 {
		t.Error("faults go unnoticed, or matchings miss too often")
	}
}

// TestClusteredMatchings goes through all samples of halves of one to three units, each with rows of one label alone, where matchings are nearly all that there is: what they say at one size is as improbable as promised, and what
// they say at the sample's own at most e times as much. It would notice half a unit of the level.
func TestClusteredMatchings(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{37, 17}))
	c := Curves{First: 2}
	none := []float64{0, 0}
	kinds := []customer{
		{with: [2][]float64{{0, 1}}, without: [2][]float64{none}}, {with: [2][]float64{{1, 0}}, without: [2][]float64{none}},
		{with: [2][]float64{none}, without: [2][]float64{{0, 1}}}, {with: [2][]float64{none}, without: [2][]float64{{1, 0}}},
	}
	atOneSize, own := 0.0, 0.0
	for round := range 300 {
		p, total := make([]float64, len(kinds)), 0.0
		for k := range p {
			p[k] = math.Exp(-4 * r.Float64())
			total += p[k]
		}
		for k := range p {
			p[k] /= total
		}
		truth, all := 0.0, 0.0
		for k := range p {
			for l := range p {
				a, b := pairOf(c, kinds[k], kinds[l])
				truth, all = truth+p[k]*p[l]*a, all+p[k]*p[l]*b
			}
		}
		truth /= all
		units := 1 + round%3
		type sample struct{ probability, ratio, size, level float64 }
		var samples []sample
		halvesOf(units, p, func(first []int, one float64) {
			x := vectorsOf(c, sampleOf(kinds, first))
			halvesOf(units, p, func(second []int, other float64) {
				s, err := Clustered(c, x, vectorsOf(c, sampleOf(kinds, second)))
				if err != nil {
					t.Fatal(err)
				}
				ratio, size, ok := s.Ratio()
				if !ok {
					return
				}
				// level is the highest at which matchings say that the ratio is above the truth: bets on a W of N at the odds of the truth.
				pairs, level := float64(units)*size, 0.0
				if ratio > truth {
					level = pairs * (plogp(ratio, truth) + plogp(1-ratio, 1-truth))
				}
				if level > 0.01 {
					below, _ := Matchings(ratio, ratio, pairs, level*(1-1e-6))
					above, _ := Matchings(ratio, ratio, pairs, level*(1+1e-6))
					if below <= truth || above > truth {
						t.Fatalf("matchings of %v pairs say %v and %v of a ratio of %v at the level %v, where the truth is %v", pairs, below, above, ratio, level, truth)
					}
				}
				samples = append(samples, sample{one * other, ratio, size, level})
			})
		})
		for _, at := range samples {
			chain, all := 0.0, 0.0
			for _, one := range samples {
				if one.size >= at.size-1e-12 && one.ratio >= at.ratio-1e-12 {
					chain += one.probability
				}
				if one.level >= at.level-1e-9 {
					all += one.probability
				}
			}
			if at.level > 0.01 {
				atOneSize, own = max(atOneSize, chain*math.Exp(at.level)), max(own, all*math.Exp(at.level))
			}
		}
	}
	t.Logf("at one size %.4f of what is promised, at the sample's own %.4f", atOneSize, own)
	if atOneSize > 1 || own > math.E || atOneSize < math.Exp(-0.5) {
		t.Error("matchings miss too often, or half a unit of the level goes unnoticed")
	}
}

// plogp is p ln(p/q), and 0 where p is 0.
func plogp(p, q float64) float64 {
	if p == 0 {
		return 0
	}
	return p * math.Log(p/q)
}

// TestClusteredOutcomesArePaidFor: a question's failures are no more than its price pays for, and what an outcome says is true.
func TestClusteredOutcomesArePaidFor(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{33, 17}))
	c := Curves{First: 2}
	seen := [losses + 2]int{}
	for range 60 {
		kinds := kindsOfCustomers(r, 3)
		check := ClusteredCheck{N1: 4, N0: 4, Guess: r.Int64N(grid), Cells: 1 + r.Int64N(6)}
		any := func() Spread {
			return Spread{Own: r.Int64N(squares / 8), Low: -r.Int64N(squares / 64), High: r.Int64N(squares / 64), Size: r.Int64N(squares / 8)}
		}
		check.First, check.Second, check.Rest = any(), any(), any()
		check.Ranks = []ClusteredRank{{r.Int64N(grid / 4), r.Int64N(grid / 3)}}
		if r.IntN(4) > 0 {
			check.Ranks = append(check.Ranks, ClusteredRank{2 * check.Ranks[0].Away, check.Ranks[0].Size / 2})
		}
		failures := map[Outcome]bool{}
		for range 150 {
			draw := func() (units []customer) {
				for range 4 {
					units = append(units, kinds[r.IntN(len(kinds))])
				}
				return units
			}
			first, second := draw(), draw()
			o, err := check.Outcome(clustered(t, c, first, second))
			if err != nil {
				t.Fatal(err)
			}
			g := float64(check.Guess) / grid
			mean, size, got := byPairs(c, first, second, g)
			const near = 1e-7
			steady := true
			for i, limits := range []Spread{check.First, check.Second, check.Rest} {
				x := got[i]
				steady = steady && x[0] <= float64(limits.Own)/squares+near && x[1] >= float64(limits.Low)/squares-near && x[1] <= float64(limits.High)/squares+near && x[2] <= float64(limits.Size)/squares+near
			}
			large := func(r ClusteredRank) bool { return size >= float64(r.Size)/grid-near }
			if o.Failed() {
				failures[o] = true
				seen[o.Loss]++
				k, ratio := float64(check.Cells), g+mean/size
				if o.Loss < 2 && (ratio < float64(o.Cell)/k-1e-6 || ratio > float64(o.Cell+1)/k+1e-6 || !large(check.Ranks[0])) || o.Loss == 0 && !steady {
					t.Fatalf("%+v of %+v is not true: %v of %v", o, check, mean, size)
				}
			} else {
				seen[losses+o.Rank-1]++
				if rank := check.Ranks[o.Rank-1]; math.Abs(mean) > float64(rank.Away)/grid+near || !large(rank) || o.Rank == 1 && !steady {
					t.Fatalf("%+v of %+v is not true: %v of %v", o, check, mean, size)
				}
			}
		}
		if most := math.Exp(check.Dearest().Float()); float64(len(failures)) > most+1e-3 {
			t.Fatalf("%d failures, %v are paid for", len(failures), most)
		}
	}
	for i, n := range seen {
		if n == 0 {
			t.Errorf("outcome %d was never seen: %v", i, seen)
		}
	}
}

// TestClusteredCovers: what a check of 300 units that are drawn from a known list says, at e^-E = 1/20 a side: planned from 700 such units, with margins that fail often (false alarm 1e-6). Taking all rows of
// a unit for units of their own misses in most runs.
func TestClusteredCovers(t *testing.T) {
	const n, runs = 300, 150
	r := rand.New(rand.NewChaCha8([32]byte{34, 17}))
	c := Curves{First: 4}
	kinds := drawCustomers(r, 30, 4, 0.4, 1, 1)
	truth := 0.0
	{
		mean, size, _ := byPairs(c, kinds, kinds, 0)
		truth = mean / size
	}
	draw := func(n int) (units []customer) {
		for range n {
			units = append(units, kinds[r.IntN(len(kinds))])
		}
		return units
	}
	level := math.Log(20)
	missed, wrong := 0, 0
	ranks := map[int]int{}
	for range runs {
		units := draw(700)
		told := clustered(t, c, units, units)
		g, _ := told.Others()
		check, err := PlanClustered(told, int64(g*grid), n, 1.2)
		if err != nil {
			t.Fatal(err)
		}
		held := draw(n)
		s := clustered(t, c, held[:n/2], held[n/2:])
		o, err := check.Outcome(s)
		if err != nil {
			t.Fatal(err)
		}
		ranks[o.Rank]++
		if low, high := check.Interval(o, level); low > truth || high < truth {
			missed++
		}
		// The fault: fifty times as many units.
		exact, _, _ := s.Ratio()
		more := check
		more.N1, more.N0 = 50*check.N1, 50*check.N0
		if low, high := more.Foreseen(exact, level); low > truth || high < truth {
			wrong++
		}
	}
	t.Logf("%d of %d miss; %d with more units; ranks %v", missed, runs, wrong, ranks)
	if err := stattest.AtMost(missed, runs, 2*math.Exp(-level), 1e-6); err != nil {
		t.Error(err)
	}
	if stattest.AtMost(wrong, runs, 2*math.Exp(-level), 1e-6) == nil || len(ranks) < 3 {
		t.Errorf("more units go unnoticed: %d misses, ranks %v", wrong, ranks)
	}
}

// TestPlannedClusteredPass: an honest plan passes at rank 1 in nearly all holdouts of 12,000 rows of 4,866 units, and its intervals are what the design promised, in half-widths of the textbook's for
// clusters: 5.3 for a check of a hundred, 3.3 of it without the margin; 6.8 and 4.8 of a difference of two areas.
func TestPlannedClusteredPass(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{35, 17}))
	const n, training, questions = 4866, 11354, 100
	level := moments.Urn{Questions: questions, Beta: 0.05, Half: true}.Level(0, 0, 0, 0)
	for _, x := range []struct {
		name           string
		curves         Curves
		check, exactly float64
	}{{"area", Curves{First: 10}, 5.3, 3.3}, {"difference", Curves{10, 10}, 6.8, 4.8}} {
		name := x.name
		scores := 1
		if x.curves.Second > 0 {
			scores = 2
		}
		passed := 0
		for range 4 {
			units := drawCustomers(r, training, 10, 0.3, 1, scores)
			told := clustered(t, x.curves, units, units)
			g, _ := told.Others()
			check, err := PlanClustered(told, int64(g*grid), n, moments.Deviations(questions))
			if err != nil {
				t.Fatal(err)
			}
			check.OneSide = true
			held := drawCustomers(r, n, 10, 0.3, 1, scores)
			s := clustered(t, x.curves, held[:n/2], held[n/2:])
			o, err := check.Outcome(s)
			if err != nil {
				t.Fatal(err)
			}
			if o.Rank == 1 {
				passed++
			}
			_, size, _ := s.Ratio()
			numbers := s.spreadNumbers(check.Guess)
			textbook := 1.96 * math.Sqrt(numbers[0][0]/(n/2)+numbers[1][0]/(n/2)) / size
			low, high := check.Interval(Outcome{Rank: 1}, level)
			el, eh, err := check.Exact(s, level)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %+v, ±%.4f: %.2f textbooks; exact %.2f", name, o, (high-low)/2, (high-low)/2/textbook, (eh-el)/2/textbook)
			if (high-low)/2 > x.check*textbook || o.Rank == 1 && (eh-el)/2 > x.exactly*textbook {
				t.Errorf("%s: [%v, %v] and [%v, %v]; the textbook's half-width is %v", name, low, high, el, eh, textbook)
			}
			if l, h := check.Foreseen(g, level); l < low || h > high {
				t.Errorf("%s: what is foreseen without a margin, [%v, %v], is not within [%v, %v]", name, l, h, low, high)
			}
		}
		if passed < 3 {
			t.Errorf("%s: %d of 4 pass", name, passed)
		}
	}
}

// TestClusteredAgainstReference: ends are those of a second program, which tries all stakes and all means of class 0. No test of coverage notices halves that are interchanged, a missing event D or a covariance of
// the wrong side: these rows do.
func TestClusteredAgainstReference(t *testing.T) {
	raw, err := os.ReadFile("testdata/reference_clustered.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Name                                                     string
		Guess, Size, N1, N0, From, Away, Level, Other, Low, High float64
		First, Second, Rest                                      [4]float64
	}
	if err := json.Unmarshal(raw, &rows); err != nil || len(rows) < 9 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		p := projection{r.Guess, r.Size, r.N1, r.N0, r.First, r.Second, r.Rest}
		low, high := p.low(r.From, r.Away, r.Level, r.Other, 0), 1-p.mirror().low(1-r.From, r.Away, r.Level, r.Other, 0)
		if math.Abs(low-r.Low) > 3e-6 || math.Abs(high-r.High) > 3e-6 {
			t.Errorf("%s: [%v, %v], want [%v, %v]", r.Name, low, high, r.Low, r.High)
		}
	}
	sum := func(levels ...float64) (sum float64) {
		for _, l := range levels {
			sum += math.Exp(-l)
		}
		return sum
	}
	if all := sum(passLevel, deviationLevel, clusteredFailedLevel, clusteredFailedDeviationLevel, clusteredMatchingsLevel, clusteredMatchingsLevel); math.Abs(all-1) > 1e-12 {
		t.Errorf("the shares of a side add up to %v", all)
	}
	// Of all that the sample itself may say, e times what its level says is proved.
	if of := sum(clusteredOwnMatchingsLevel - 1); math.Abs(of-sum(clusteredMatchingsLevel)) > 1e-12 {
		t.Errorf("the sample's own sizes have %v of a side", of)
	}
	// A pass that is read as what misses on one side has its .8 of both sides' e^-E, once; all else is as it was.
	c := ClusteredCheck{N1: 2433, N0: 2433, Guess: grid / 2, Cells: 64, Ranks: []ClusteredRank{{grid / 100, grid / 3}}, First: Spread{squares / 200, 0, 0, squares / 200}, Second: Spread{squares / 200, 0, 0, squares / 200}, Rest: Spread{squares / 40, 0, 0, squares / 20}}
	const level = 7
	for name, o := range map[string]struct {
		Outcome
		beyond, other float64
	}{"pass": {Outcome{Rank: 1}, passLevel - math.Ln2, deviationLevel}, "failure": {Outcome{Cell: 32}, clusteredFailedLevel, clusteredFailedDeviationLevel}} {
		c.OneSide = true
		from, away := 0.5, float64(c.Ranks[0].Away)/grid
		if o.Failed() {
			away = 0
		}
		want := c.projection().low(from, away, level+o.beyond, level+o.other, 0) - slack
		if low, _ := c.Interval(o.Outcome, level); math.Abs(low-want) > 3e-9 {
			t.Errorf("%s: ends at %v, want %v", name, low, want)
		}
	}
	c.Ranks = append(c.Ranks, ClusteredRank{grid / 50, grid / 4})
	matched := func(from, away, size, level float64) float64 {
		low, _ := Matchings(from-(away+2*blur)/(size-blur), 1, 2433*(size-blur), level)
		return low
	}
	first, second := float64(c.Ranks[0].Size)/grid, float64(c.Ranks[1].Size)/grid
	for _, x := range []struct {
		oneEvent bool
		beyond   float64
	}{{true, matchingsLevel}, {false, clusteredMatchingsLevel}} {
		c.OneEvent = x.oneEvent
		for name, o := range map[string]struct {
			Outcome
			want float64
		}{
			"a wide pass": {Outcome{Rank: 2}, matched(0.5, float64(grid/50)/grid, second, level+x.beyond)},
			"a failure":   {Outcome{Cell: 40, Loss: 1}, matched(40./64, 0, first, level+x.beyond)},
		} {
			if low, _ := c.Interval(o.Outcome, level); math.Abs(low-o.want) > 1e-9 {
				t.Errorf("%s ends at %v, want %v", name, low, o.want)
			}
		}
	}
}

// TestClusteredTable: with the sample's own spreads, and no margin, half-widths are those of the design (docs/proofs/pairs.md, section 4), in the textbook's for clusters, within a tenth.
func TestClusteredTable(t *testing.T) {
	const n = 4866
	c := Curves{First: 20}
	for name, x := range map[string]struct {
		positive, rows float64
		want           [2]float64 // at the levels 7.4 and 11.3
	}{"30% of rows, at most three a vote": {0.3, 3, [2]float64{2.75, 3.54}}, "5%, a vote a unit": {0.05, 1, [2]float64{2.95, 3.87}}} {
		units := drawCustomers(rand.New(rand.NewChaCha8([32]byte{36, 17})), n, 20, x.positive, x.rows, 1)
		s := clustered(t, c, units[:n/2], units[n/2:])
		g, size, _ := s.Ratio()
		numbers := s.spreadNumbers(int64(g * grid))
		own := func(v [3]float64) [4]float64 { return [4]float64{v[0], v[1], v[1], v[2]} }
		p := projection{g, size, n / 2, n - n/2, own(numbers[0]), own(numbers[1]), own(numbers[2])}
		textbook := 1.96 * math.Sqrt((numbers[0][0]+numbers[1][0])/(n/2)) / size
		for i, level := range []float64{7.4, 11.3} {
			low, high := p.low(g, 0, level+passLevel, level+deviationLevel, 0), 1-p.mirror().low(1-g, 0, level+passLevel, level+deviationLevel, 0)
			if got := (high - low) / 2 / textbook; math.Abs(got/x.want[i]-1) > 0.1 {
				t.Errorf("%s: %v textbooks at %v, want %v", name, got, level, x.want[i])
			}
		}
	}
}
