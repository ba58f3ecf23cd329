package account

import "math"

// fixedSize is the Gaussian mechanism on a sample of a fixed size, without replacement, a share rate of the rows; neighbours differ in one replaced row,
// and the multiplier is over the sensitivity to that.
//
// Its divergence of an integer order a is at most ln A / (a-1) with (Wang, Balle and Kasiviswanathan, arXiv 1808.00087, Theorem 27)
//
//	A = 1 + C(a,2) q² min(4 (e^{d(2)}-1), 2 e^{d(2)}) + sum over j from 3 to a of C(a,j) q^j min(4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), 2 e^{(j-1) d(j)})
//
// where d(j) = j/(2 s²) is the divergence of the mechanism itself and B(l) = E (e^L - 1)^l, L ~ N(-1/(2s²), 1/s²): for an even l an integral of what is
// never negative. The bound with B is used for orders up to maxForward; beyond, and where there is so little noise that it is the larger one, the other. ln
// A is convex in a and 0 at 1, so between integers a chord bounds it (their Corollary 10).
type fixedSize struct {
	rate, multiplier float64
	forward          map[int]float64 // ln B(l)
}

// maxForward bounds the work. Below leastForward e^L - 1 is next to e^L wherever it counts, so that 4 B is more than 2 e^{(j-1) d(j)}.
const (
	maxForward   = 256
	leastForward = .2
)

// FixedSizeGaussian adds steps that each take a sample of taken of rows rows, all such samples alike, and add Gaussian noise of multiplier times the
// sensitivity. Neighbours differ in one replaced row. It is a bound, and not exact as SubsampledGaussian is.
func (r *RDP) FixedSizeGaussian(taken, rows int, multiplier float64, steps int) {
	must(taken >= 1 && taken <= rows, "a sample of %d of %d rows", taken, rows)
	must(multiplier > 0 && !math.IsInf(multiplier, 1), "multiplier %v is not positive and finite", multiplier)
	s := fixedSize{float64(taken) / float64(rows), multiplier, map[int]float64{}}
	r.add(steps, s.divergence)
}

func (s fixedSize) divergence(a float64) float64 {
	if s.rate == 1 {
		return a * float64(GaussianZCDP(1, s.multiplier))
	}
	low := math.Floor(a)
	first := s.logA(int(low))
	if a == low {
		return min(first/(a-1), s.whole(a))
	}
	return min(((low+1-a)*first+(a-low)*s.logA(int(low)+1))/(a-1), s.whole(a))
}

// whole is the divergence without sampling, which no sample exceeds: it is a mixture of the mechanism on neighbours and equals (quasi-convexity).
func (s fixedSize) whole(a float64) float64 { return a * float64(GaussianZCDP(1, s.multiplier)) }

func (s fixedSize) logA(a int) float64 {
	if a == 1 {
		return 0
	}
	var sum logSum
	own := 1 / (s.multiplier * s.multiplier) // d(2)
	coefficient := 0.0                       // ln C(a,j) q^j
	for j := 1; j <= a; j++ {
		coefficient += math.Log(float64(a-j+1)/float64(j)) + math.Log(s.rate)
		other := math.Ln2 + float64(j)*float64(j-1)*own/2
		switch {
		case j == 1:
			continue
		case j == 2:
			other = min(other, 2*math.Ln2+logExpm1(own))
		case a <= maxForward && s.multiplier >= leastForward:
			other = min(other, 2*math.Ln2+(s.logB(j-j%2)+s.logB(j+j%2))/2)
		}
		sum.add(coefficient + other)
	}
	return sum.log1p()
}

// logB is ln E (e^L - 1)^l for an even l, by the trapezoidal rule: the integrand is entire and falls like the normal density about centres in [0, l/s], and
// steps of 0.05 leave next to nothing.
func (s fixedSize) logB(l int) float64 {
	if v, ok := s.forward[l]; ok {
		return v
	}
	const reach, step = 14, .05
	var sum logSum
	for x := -reach + step/2; x < float64(l)/s.multiplier+reach; x += step {
		loss := x/s.multiplier - 1/(2*s.multiplier*s.multiplier)
		size := math.Abs(math.Expm1(loss))
		if loss > 40 {
			size = 0
			sum.add(float64(l)*loss - x*x/2)
			continue
		}
		if size > 0 {
			sum.add(float64(l)*math.Log(size) - x*x/2)
		}
	}
	v := sum.scale + math.Log(sum.sum) + math.Log(step/math.Sqrt(2*math.Pi))
	s.forward[l] = v
	return v
}
