package bounds

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// instance is a small adaptive run: rows with values 0 to letters-1, each row with its own law, and k Gaussian answers of
// noise sigma[j]; query j depends on the signs of the answers before it.
type instance struct {
	n, letters int
	laws       [][]float64         // row, letter
	queries    []map[int][]float64 // question, signs of earlier answers -> value of each letter
	sigma      []float64
}

func randomInstance(r *rand.Rand) instance {
	in := instance{n: 2 + r.IntN(3), letters: 2 + r.IntN(2)}
	for range in.n {
		in.laws = append(in.laws, randomLaw(r, in.letters))
	}
	for j := range 1 + r.IntN(3) {
		byPast := map[int][]float64{}
		for past := range 1 << j {
			for range in.letters {
				v := r.Float64()
				if r.IntN(2) == 0 {
					v = math.Round(v) // extreme queries have the largest variance
				}
				byPast[past] = append(byPast[past], v)
			}
		}
		in.queries = append(in.queries, byPast)
		in.sigma = append(in.sigma, math.Exp(r.Float64()*3-2))
	}
	return in
}

func randomLaw(r *rand.Rand, letters int) []float64 {
	law, total := make([]float64, letters), 0.0
	for i := range law {
		law[i] = r.ExpFloat64()
		total += law[i]
	}
	for i := range law {
		law[i] /= total
	}
	return law
}

// logDensity is ln p(a|rows) without the Gaussian constants, which do not depend on the rows.
func (in instance) logDensity(a []float64, rows []int) float64 {
	past, sum := 0, 0.0
	for j, answer := range a {
		mean := 0.0
		for _, x := range rows {
			mean += in.queries[j][past][x] / float64(len(rows))
		}
		d := (answer - mean) / in.sigma[j]
		sum -= d * d / 2
		past <<= 1
		if answer > 0.5 {
			past |= 1
		}
	}
	return sum
}

// ratio is the left side of the lemma over its right side for one transcript, by enumeration of all samples and subsets.
// charge scales the information; 1 is what the lemma says.
func (in instance) ratio(a []float64, m int, charge float64) float64 {
	lambda := float64(in.n) / float64(m)
	released := 0.0
	for _, s := range in.sigma {
		released += charge * information(float64(in.n), s)
	}
	left, right := 0.0, 0.0
	rows := make([]int, in.n)
	in.samples(rows, 0, 1, func(p float64) {
		left += p * math.Exp(lambda*in.logDensity(a, rows))
		subsets, sum := 0.0, 0.0
		for set := range uint(1) << in.n {
			if bits.OnesCount(set) != m {
				continue
			}
			var some []int
			for i, x := range rows {
				if set>>i&1 == 1 {
					some = append(some, x)
				}
			}
			subsets++
			sum += math.Exp(in.logDensity(a, some))
		}
		right += p * sum / subsets
	})
	return math.Pow(left, 1/lambda) / (math.Exp((lambda-1)*released) * right)
}

func (in instance) samples(rows []int, i int, p float64, visit func(p float64)) {
	if i == in.n {
		visit(p)
		return
	}
	for x := range in.letters {
		rows[i] = x
		in.samples(rows, i+1, p*in.laws[i][x], visit)
	}
}

// TestLemma looks for a violation of the lemma of docs/proofs/adaptive-hoeffding.md, section 2, by hill climbing over
// transcripts of random small instances. The same search must find violations when less information is charged.
func TestLemma(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{2}))
	const cheap = 0.4
	worst, violated := 0.0, 0
	for range 3000 {
		in := randomInstance(r)
		m := 1 + r.IntN(in.n-1)
		a := make([]float64, len(in.sigma))
		for j := range a {
			a[j] = r.Float64()
		}
		reached := in.ratio(a, m, 1)
		for range 20 {
			b := make([]float64, len(a))
			for j := range b {
				b[j] = a[j] + in.sigma[j]*r.NormFloat64()/2
			}
			if next := in.ratio(b, m, 1); next > reached {
				a, reached = b, next
			}
		}
		if reached > 1+1e-12 {
			t.Fatalf("the ratio is %v: %+v, m=%d, transcript %v", reached, in, m, a)
		}
		worst = max(worst, reached)
		if in.ratio(a, m, cheap) > 1 {
			violated++
		}
	}
	t.Logf("largest ratio %v; %d violations when %v of the information is charged", worst, violated, cheap)
	if violated == 0 {
		t.Errorf("charging %v of the information went unnoticed: the search is too weak", cheap)
	}
}
