package promises

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// compositions calls visit with every way to draw n units of the given weights: counts and probability.
func compositions(weights []float64, n int, visit func(counts []int, probability float64)) {
	counts := make([]int, len(weights))
	var walk func(i, left int, p float64)
	walk = func(i, left int, p float64) {
		if i == len(weights)-1 {
			counts[i] = left
			visit(counts, p*math.Pow(weights[i], float64(left)))
			return
		}
		ways := 1.0
		for k := 0; k <= left; k++ {
			counts[i] = k
			walk(i+1, left-k, p*ways*math.Pow(weights[i], float64(k)))
			ways *= float64(left-k) / float64(k+1)
		}
	}
	walk(0, n, 1)
}

// sample is a law of a unit's value and a promise about n of them.
type sample struct {
	values, weights []float64
	n               int
	kind            Kind
	bound           float64
}

func (s sample) mu() (mu float64) {
	for i, x := range s.values {
		mu += s.weights[i] * x
	}
	return mu
}

// of are the holdout mean and the promise's statistic.
func (s sample) of(counts []int) (mean, statistic float64) {
	n := float64(s.n)
	for i, c := range counts {
		mean += float64(c) * s.values[i] / n
	}
	for i, c := range counts {
		switch s.kind {
		case SmallMean:
			statistic = mean
		case Disagreement:
			statistic += float64(c) * math.Abs(s.values[i]) / n
		case Variance:
			statistic += float64(c) * square(s.values[i]-mean) / n
		}
	}
	return mean, statistic
}

func randomSample(r *rand.Rand) sample {
	s := sample{n: 1 + r.IntN(12), kind: []Kind{SmallMean, Disagreement, Variance}[r.IntN(3)]}
	for range 2 + r.IntN(2) {
		x := []float64{r.Float64(), 0, 1}[r.IntN(3)]
		if s.kind == Disagreement {
			x = []float64{2*r.Float64() - 1, -1, 0, 1}[r.IntN(4)]
		}
		s.values = append(s.values, x)
		s.weights = append(s.weights, math.Exp(-5*r.Float64()))
	}
	sum := 0.0
	for _, w := range s.weights {
		sum += w
	}
	for i := range s.weights {
		s.weights[i] /= sum
	}
	s.bound = r.Float64() * s.kind.most()
	return s
}

// up is the rate of a holdout mean of mu+t or more, down of mu-t or less.
func (s sample) up(t float64) float64 {
	mu := s.mu()
	switch s.kind {
	case SmallMean:
		if mu+t > s.bound {
			return math.Inf(1)
		}
		return kl(mu+t, mu)
	case Disagreement:
		return disagreementRate(mu+t, mu, s.bound)
	}
	return varianceRate(t, s.bound, mu)
}

func (s sample) down(t float64) float64 {
	mu := s.mu()
	switch s.kind {
	case SmallMean:
		return kl(min(mu-t, s.bound), mu)
	case Disagreement:
		return disagreementRate(t-mu, -mu, s.bound)
	}
	return varianceRate(t, s.bound, 1-mu)
}

// TestRatesAreTails enumerates samples: a deviation of t or more together with a promise that holds is as improbable as the rates say, at every
// t that occurs. The same samples must show that the promise is needed: without it the rates are violated.
func TestRatesAreTails(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{7, 17}))
	worst, without := 0.0, 0
	for range 4000 {
		s := randomSample(r)
		mu := s.mu()
		type drawn struct{ mean, statistic, p float64 }
		var all []drawn
		compositions(s.weights, s.n, func(counts []int, p float64) {
			mean, statistic := s.of(counts)
			all = append(all, drawn{mean, statistic, p})
		})
		for range 6 {
			at := all[r.IntN(len(all))].mean
			dev := math.Abs(at - mu)
			if dev < 1e-9 {
				continue
			}
			held, any := 0.0, 0.0
			for _, d := range all {
				if at > mu && d.mean >= at-1e-12 || at < mu && d.mean <= at+1e-12 {
					any += d.p
					if d.statistic <= s.bound {
						held += d.p
					}
				}
			}
			rate := s.up(dev - 1e-12)
			if at < mu {
				rate = s.down(dev - 1e-12)
			}
			ratio := held * math.Exp(float64(s.n)*rate)
			if held == 0 {
				ratio = 0
			}
			if ratio > 1+1e-6 {
				t.Fatalf("%+v: a deviation to %v with the promise has probability %v, %v times what the rate %v says", s, at, held, ratio, rate)
			}
			worst = max(worst, ratio)
			if any*math.Exp(float64(s.n)*min(rate, 1e3)) > 1+1e-6 {
				without++
			}
		}
	}
	t.Logf("largest probability over bound %.4f; %d violations without the promise", worst, without)
	if worst < 0.99 || without == 0 {
		t.Errorf("the bound is reached to %v only, or the promise makes no difference (%d)", worst, without)
	}
}

// run is a transcript of answers about few rows, every sample of which is enumerated: the forced run in which all promises are to hold.
type run struct {
	n, m    int
	weights []float64 // of the values that a row can have
	q       [][]float64
	kinds   []Kind
	bounds  []float64
	sigma   []float64 // of the released answers, promised noise included
	answers []float64
}

func randomRun(r *rand.Rand) run {
	x := run{n: 2 + r.IntN(4)}
	x.m = 1 + r.IntN(x.n-1)
	values := 2 + r.IntN(2)
	sum := 0.0
	for range values {
		w := math.Exp(-3 * r.Float64())
		x.weights = append(x.weights, w)
		sum += w
	}
	for i := range x.weights {
		x.weights[i] /= sum
	}
	for range 1 + r.IntN(2) {
		s := sample{kind: []Kind{SmallMean, Disagreement, Variance}[r.IntN(3)]}
		var q []float64
		for range values {
			y := []float64{r.Float64(), 0, 1}[r.IntN(3)]
			if s.kind == Disagreement {
				y = []float64{2*r.Float64() - 1, -1, 0, 1}[r.IntN(4)]
			}
			q = append(q, y)
		}
		x.q, x.kinds = append(x.q, q), append(x.kinds, s.kind)
		p := Promise{Kind: s.kind, Bound: int64((0.02 + 0.98*r.Float64()) * s.kind.most() * s.kind.steps())}
		x.bounds = append(x.bounds, p.bound())
		x.sigma = append(x.sigma, p.Noise(math.Exp(3*r.Float64()-2.5)/math.Sqrt(float64(x.n))))
		x.answers = append(x.answers, r.Float64()*1.5-0.25)
	}
	return x
}

// mean and statistic of question j over the rows whose values are given.
func (x run) mean(j int, rows []int) (mean, statistic float64) {
	s := sample{values: x.q[j], n: len(rows), kind: x.kinds[j]}
	counts := make([]int, len(x.weights))
	for _, v := range rows {
		counts[v]++
	}
	return s.of(counts)
}

func (x run) density(rows []int) float64 {
	log := 0.0
	for j, a := range x.answers {
		mean, _ := x.mean(j, rows)
		log -= square(a-mean) / (2 * square(x.sigma[j]))
	}
	return math.Exp(log)
}

// ratio is the left side of the lemma over its right side, with share of the price charged, and with or without the indicator.
func (x run) ratio(share float64, checked bool) float64 {
	lambda := float64(x.n) / float64(x.m)
	price := 0.0
	for j := range x.q {
		p := Promise{Kind: x.kinds[j]}
		p.Bound = int64(math.Round(x.bounds[j] * p.Kind.steps()))
		price += share * p.V() / (2 * square(x.sigma[j]) * float64(x.n-1))
	}
	left, right := 0.0, 0.0
	rows := make([]int, x.n)
	var walk func(i int, p float64)
	walk = func(i int, p float64) {
		if i == x.n {
			held := true
			for j := range x.q {
				_, statistic := x.mean(j, rows)
				held = held && statistic <= x.bounds[j]
			}
			if held || !checked {
				left += p * math.Pow(x.density(rows), lambda)
			}
			subsets, sum := 0.0, 0.0
			for set := range 1 << x.n {
				var some []int
				for i, v := range rows {
					if set>>i&1 == 1 {
						some = append(some, v)
					}
				}
				if len(some) == x.m {
					subsets++
					sum += x.density(some)
				}
			}
			right += p * sum / subsets
			return
		}
		for v, w := range x.weights {
			rows[i] = v
			walk(i+1, p*w)
		}
	}
	walk(0, 1)
	if left == 0 {
		return 0
	}
	return math.Pow(left, 1/lambda) / (math.Exp((lambda-1)*price) * right)
}

// TestLemma enumerates every sample and every subset of small forced runs, and climbs over transcripts: with the indicator that all promises hold,
// the variance that they promise is enough for the price. The same search finds violations without the indicator, and at half of the
// price.
func TestLemma(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{8, 17}))
	worst, without, half := 0.0, 0, 0
	for range 600 {
		x := randomRun(r)
		reached := x.ratio(1, true)
		for range 12 {
			y := x
			y.answers = append([]float64{}, x.answers...)
			for j := range y.answers {
				y.answers[j] += x.sigma[j] * r.NormFloat64() / 2
			}
			if next := y.ratio(1, true); next > reached {
				x, reached = y, next
			}
		}
		if reached > 1+1e-9 {
			t.Fatalf("the ratio is %v: %+v", reached, x)
		}
		worst = max(worst, reached)
		if x.ratio(1, false) > 1+1e-9 {
			without++
		}
		if x.ratio(0.5, true) > 1+1e-9 {
			half++
		}
	}
	t.Logf("largest ratio %.6f; %d violations without the check, %d at half of the price", worst, without, half)
	if without == 0 || half == 0 {
		t.Error("the search is too weak")
	}
}

// TestIntervalsAgainstQuadrature: for a target mu, the answers whose interval excludes it come about with no more than the probability that W_f was
// planned for: the adaptive tail at the rates, with the best m for each noise, integrated over the noise. Random guarantees, positions,
// promises and targets. Red for the rate in the place of its minorant, for V alone, and for a promised interval at nine tenths of its width.
func TestIntervalsAgainstQuadrature(t *testing.T) {
	r := rand.New(rand.NewChaCha8([32]byte{9, 17}))
	worst := map[string]float64{}
	faults := map[string]func(p Promise, answer, width float64) (low, high float64){
		"as proved": Promise.Interval,
		"V alone": func(p Promise, answer, width float64) (float64, float64) {
			w := 2 * math.Sqrt(p.V()) * width
			return answer - w, answer + w
		},
		"nine tenths": func(p Promise, answer, width float64) (float64, float64) { return p.Interval(answer, 0.9*width) },
	}
	for range 140 {
		n := math.Round(math.Exp(math.Log(200) + r.Float64()*math.Log(500)))
		sigma := math.Exp(4*r.Float64()-2) / math.Sqrt(n)
		released := math.Exp(6*r.Float64() - 3)
		width := (math.Sqrt(released/2) + 1 + 4*r.Float64()) / math.Sqrt(n)
		claimed := bounds.PromisedMiss(n, width, sigma, released)
		if width >= 0.5 || claimed > 0.1 || claimed < 1e-9 {
			continue
		}
		kind := []Kind{SmallMean, Disagreement, Variance}[r.IntN(3)]
		p, err := New(kind, min(kind.most(), math.Exp(-6*r.Float64())*kind.most()))
		if err != nil {
			t.Fatal(err)
		}
		u := p.bound()
		mu := r.Float64()
		if kind == Disagreement {
			mu = 2*mu - 1
		}
		if r.IntN(3) > 0 { // where the promise may well hold
			mu = u * mu
		}
		s := sample{values: []float64{mu}, weights: []float64{1}, kind: kind, bound: u}
		limit := u
		if kind == Variance {
			limit = 1
		}
		for name, interval := range faults {
			excluded := func(a float64) bool { low, _ := interval(p, a, width); return low > mu }
			if mu >= limit || !excluded(limit) {
				continue
			}
			in, out := mu, limit
			for out-in > 1e-8 {
				if a := (in + out) / 2; excluded(a) {
					out = a
				} else {
					in = a
				}
			}
			got := missAt(n, sigma, released, func(z float64) float64 {
				dev := out - p.Noise(sigma)*z - mu
				if kind == Disagreement {
					dev = max(dev, -u-mu) // a mean of D below -u breaks the promise
				}
				if dev <= 0 {
					return 0
				}
				if kind != Variance && mu+dev > u || mu+dev > 1 {
					return math.Inf(1)
				}
				return s.up(dev)
			})
			worst[name] = max(worst[name], got/claimed)
		}
	}
	t.Logf("largest probability over what was planned: %v", worst)
	if worst["as proved"] > 1+1e-3 || worst["as proved"] < 0.5 {
		t.Errorf("an interval misses with %v times what was planned", worst["as proved"])
	}
	for name := range faults {
		if name != "as proved" && worst[name] < 1.05 {
			t.Errorf("%s goes unnoticed: %v", name, worst[name])
		}
	}
}

// missAt is the expectation over Z of min over m of exp((n/m-1) I - (1-m/n) n R(Z)), by quadrature.
func missAt(n, sigma, released float64, rate func(z float64) float64) float64 {
	const step = 1.0 / 16
	sum := 0.0
	for z := -8.0; z < 8; z += step {
		level, exponent := n*rate(z), 0.0
		if math.IsInf(level, 1) {
			continue
		}
		if level > released {
			at := math.Floor(n * math.Sqrt(released/level))
			for _, m := range []float64{at, at + 1} {
				x := min(max(m, 1), n-1) / n
				exponent = max(exponent, (1-x)*(level-released/x))
			}
		}
		sum += step * math.Exp(-z*z/2-exponent) / math.Sqrt(2*math.Pi)
	}
	return sum
}
