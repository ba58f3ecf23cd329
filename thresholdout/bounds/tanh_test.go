package bounds

import (
	"math"
	"math/rand/v2"
	"testing"
)

// finite is a mechanism with few transcripts on few rows of one law: chance[sample][transcript], samples counted in base letters.
type finite struct {
	n, letters int
	law        []float64
	chance     [][]float64
}

// randomFinite has the likelihoods that are worst for a private mechanism more often than others: e^0 or e^eps.
func randomFinite(r *rand.Rand, n, letters, transcripts int, eps float64) finite {
	f := finite{n: n, letters: letters, law: randomLaw(r, letters)}
	if letters == 2 && r.IntN(2) == 0 { // where the proof's fraction is largest
		f.law[0] = 1 / (1 + math.Exp(eps/2))
		f.law[1] = 1 - f.law[0]
	}
	for range int(math.Pow(float64(letters), float64(n))) {
		row, total := make([]float64, transcripts), 0.0
		for i := range row {
			row[i] = math.Exp(eps * float64(r.IntN(2)))
			if r.IntN(4) == 0 {
				row[i] = math.Exp(2 * eps * r.Float64())
			}
			total += row[i]
		}
		for i := range row {
			row[i] /= total
		}
		f.chance = append(f.chance, row)
	}
	return f
}

// letter is row i of a sample.
func (f finite) letter(sample, i int) int {
	for range i {
		sample /= f.letters
	}
	return sample % f.letters
}

// delta is the largest delta at eps over all pairs of samples that differ in one row; eps its smallest for delta 0 where found.
func (f finite) delta(eps float64) float64 {
	worst := 0.0
	for a := range f.chance {
		for b := range f.chance {
			different := 0
			for i := range f.n {
				if f.letter(a, i) != f.letter(b, i) {
					different++
				}
			}
			if different != 1 {
				continue
			}
			sum := 0.0
			for t, p := range f.chance[a] {
				sum += max(0, p-math.Exp(eps)*f.chance[b][t])
			}
			worst = max(worst, sum)
		}
	}
	return worst
}

// excess is the sum over transcripts of P(pi) max(0, q(Q_pi) - q(P) - price(q(P))), for the worst indicator q of each: what the
// proof's section 2 bounds by delta(eps).
func (f finite) excess(price func(p float64) float64) float64 {
	total := 0.0
	for t := range f.chance[0] {
		joint := make([]float64, f.letters) // of the transcript and a random row's letter
		transcript := 0.0
		for s := range f.chance {
			weight := f.chance[s][t]
			for i := range f.n {
				weight *= f.law[f.letter(s, i)]
			}
			transcript += weight
			for i := range f.n {
				joint[f.letter(s, i)] += weight / float64(f.n)
			}
		}
		worst := 0.0
		for set := range 1 << f.letters {
			p, q := 0.0, 0.0
			for x := range f.letters {
				if set>>x&1 == 1 {
					p += f.law[x]
					q += joint[x]
				}
			}
			worst = max(worst, q-transcript*(p+price(p)))
		}
		total += worst
	}
	return total
}

// TestTanhLemma looks for a violation of section 2 of docs/proofs/tanh-transfer.md among small mechanisms, exactly: with tanh(eps/4), and
// with the price that depends on the mean. The same search must find violations of a price four fifths as large.
func TestTanhLemma(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{31}))
	violated, pure := 0, 0.0
	for range 8000 {
		eps := math.Exp(r.Float64()*4 - 3)
		f := randomFinite(r, 1+r.IntN(3), 2+r.IntN(2), 2+r.IntN(4), eps)
		at := eps * math.Exp(r.Float64()-0.5)
		if r.IntN(2) == 0 { // pure privacy: the smallest eps with delta 0
			lo, hi := 0.0, 10.0
			for range 60 {
				if at = (lo + hi) / 2; f.delta(at) > 0 {
					lo = at
				} else {
					hi = at
				}
			}
			at = hi
		}
		delta := f.delta(at)
		tanh := func(float64) float64 { return math.Tanh(at / 4) }
		byMean := func(p float64) float64 { return tanhPrice(p, at) }
		for name, price := range map[string]func(float64) float64{"tanh": tanh, "by mean": byMean} {
			if got := f.excess(price); got > delta+1e-13 {
				t.Fatalf("%s: excess %v, delta(%v) is %v: %+v", name, got, at, delta, f)
			}
		}
		if f.excess(func(float64) float64 { return 0.8 * math.Tanh(at/4) }) > delta+1e-13 {
			violated++
		}
		if delta == 0 {
			for share := 0.9; share < 1 && f.excess(func(float64) float64 { return share * math.Tanh(at/4) }) > 1e-13; share += 0.001 {
				pure = max(pure, share)
			}
		}
	}
	t.Logf("%d violations of four fifths; deviations reach %.3f of tanh(eps/4)", violated, pure)
	if violated < 100 || pure < 0.99 {
		t.Errorf("%d violations of four fifths, deviations reach %.3f of the bound: the search is too weak", violated, pure)
	}
}
