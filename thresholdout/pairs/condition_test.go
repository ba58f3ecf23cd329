package pairs

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestQuantileOfACondition enumerates few units that are not alike, of two rows each of which may or may not satisfy a condition: each side of what may be
// printed misses with probability at most e^-E, all outcomes together, however many units were planned to count. Red for a bet that is read at a quarter of its level.
func TestQuantileOfACondition(t *testing.T) {
	const rows, values, parts = 2, 3, 1 << 21 // parts of a unit: rounding is taken off the counts
	r := rand.New(rand.NewChaCha8([32]byte{19, 17}))
	// A unit's rows: each has one of the values, or does not count.
	type unit struct{ below, upto [values]int64 }
	var kinds []unit
	var count []int64
	for a := range values + 1 {
		for b := range values + 1 {
			var u unit
			n := int64(0)
			for _, x := range []int{a, b} {
				if x == values {
					continue
				}
				n += parts / rows
				for v := range values {
					if x < v {
						u.below[v] += parts / rows
					}
					if x <= v {
						u.upto[v] += parts / rows
					}
				}
			}
			kinds, count = append(kinds, u), append(count, n)
		}
	}
	worst := 0.0
	for range 1500 {
		n := 1 + r.IntN(6)
		laws := make([][]float64, n)
		var all float64 // sums of expectations
		var below, upto [values]float64
		for i := range laws {
			laws[i] = make([]float64, len(kinds))
			sum := 0.0
			for k := range kinds {
				laws[i][k] = math.Exp(-7 * r.Float64())
				if r.IntN(8) > 0 {
					laws[i][k] = 0
				}
				sum += laws[i][k]
			}
			if i > 0 && r.IntN(4) > 0 { // often alike
				copy(laws[i], laws[0])
				sum = 1
			}
			if sum == 0 {
				laws[i][0], sum = 1, 1
			}
			for k, u := range kinds {
				laws[i][k] /= sum
				all += laws[i][k] * float64(count[k])
				for v := range values {
					below[v] += laws[i][k] * float64(u.below[v])
					upto[v] += laws[i][k] * float64(u.upto[v])
				}
			}
		}
		p := upto[r.IntN(values-1)] / all * (1 - 1e-12) // where the distribution function reaches it
		if !(p > 0.05 && p < 0.95) {
			continue
		}
		planned := 1 + r.Int64N(int64(n)+1)
		level := (0.3 + 1.3*r.Float64()) * float64(planned) * -math.Log(1-p) // about where no unit below is as improbable as that
		least, most := -1, -1
		for v := range values {
			if upto[v] >= p*all && least < 0 {
				least = v
			}
			if below[v] <= p*all {
				most = v
			}
		}
		if least < 0 || all == 0 {
			continue
		}
		q := Quantile{P: p, Points: []float64{0, 1, 2}, Ranks: []Span{{r.IntN(values), values - 1}}, Planned: planned}
		possible := 1
		for _, law := range laws {
			some := 0
			for _, w := range law {
				if w > 0 {
					some++
				}
			}
			possible *= some
		}
		if possible > 3000 {
			continue
		}
		under, over := 0.0, 0.0
		c := QuantileCounts{Unit: parts, Units: int64(n), Below: make([]int64, values), Upto: make([]int64, values)}
		var walk func(i int, probability float64)
		walk = func(i int, probability float64) {
			if i == n {
				o, err := q.Outcome(c, level)
				if err != nil {
					t.Fatal(err)
				}
				low, high := q.Interval(o)
				if low > float64(least) {
					under += probability
				}
				if high < float64(most) {
					over += probability
				}
				return
			}
			for k, w := range laws[i] {
				if w == 0 {
					continue
				}
				add := func(times int64) {
					c.N += times * count[k]
					for v := range values {
						c.Below[v] += times * kinds[k].below[v]
						c.Upto[v] += times * kinds[k].upto[v]
					}
				}
				add(1)
				walk(i+1, probability*w)
				add(-1)
			}
		}
		walk(0, 1)
		reached := max(under, over) * math.Exp(level)
		if reached > 1+1e-6 {
			t.Fatalf("a side misses with %v times e^-%v: p=%v, %d planned, laws %v", reached, level, p, q.Planned, laws)
		}
		worst = max(worst, reached)
	}
	t.Logf("largest probability times e^E: %.4f", worst)
	if worst < 0.8 {
		t.Errorf("the bound is reached to %v only: the search is too weak", worst)
	}
}

// TestBetIsChernoff: where as many units count as were planned, the bet's threshold is that of Chernoff's inequality; with more or fewer it moves with them.
func TestBetIsChernoff(t *testing.T) {
	for _, n := range []int64{30, 1000, 30000} {
		for _, p := range []float64{0.05, 0.5, 0.9} {
			for _, level := range []float64{1, 8.4, 20} {
				exact, _ := Thresholds(n, p, level, true)
				got := betOn(n, p, level).most(float64(n), level)
				if exact >= 0 && (got < float64(exact) || got > float64(exact)+1.001) && exact < int64(p*float64(n))-1 {
					t.Errorf("n=%d, p=%v, E=%v: %v, by Chernoff %d", n, p, level, got, exact)
				}
				if more := betOn(n, p, level).most(1.1*float64(n), level); exact > 0 && !(more > got) {
					t.Errorf("n=%d, p=%v, E=%v: %v for more units, %v for the planned ones", n, p, level, more, got)
				}
			}
		}
	}
}
