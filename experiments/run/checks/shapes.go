package checks

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// spreadTest is about the ratio of two standard deviations.
type spreadTest struct {
	ratio      float64 // of variances: measured over expected
	own, other float64 // degrees of freedom; other is infinite for an expectation that is known exactly
}

// Spread is a comparison of the standard deviations of two independent samples: F with degrees of freedom by the larger kurtosis.
func Spread(what string, reference, s Sample) Comparison {
	kurtosis := max(s.kurtosisOr(3), reference.kurtosisOr(3))
	return Comparison{What: what, Expected: reference.SD, Got: s.SD, Low: s.SD, High: s.SD,
		hypothesis: spreadTest{ratio: s.SD * s.SD / (reference.SD * reference.SD), own: s.spreadFreedom(kurtosis), other: reference.spreadFreedom(kurtosis)}}
}

// SpreadIs is a comparison of a standard deviation with a known one: chi-square with degrees of freedom by the kurtosis.
func SpreadIs(what string, expected float64, s Sample) Comparison {
	return Comparison{What: what, Expected: expected, Got: s.SD, Low: s.SD, High: s.SD,
		hypothesis: spreadTest{ratio: s.SD * s.SD / (expected * expected), own: s.spreadFreedom(s.kurtosisOr(3)), other: math.Inf(1)}}
}

func (s Sample) kurtosisOr(otherwise float64) float64 {
	if s.Kurtosis == 0 {
		return otherwise
	}
	return s.Kurtosis
}

// cdf is the law of the ratio if the deviations are equal.
func (t spreadTest) cdf(x float64) float64 {
	if math.IsInf(t.other, 1) {
		return distuv.ChiSquared{K: t.own}.CDF(x * t.own)
	}
	return distuv.F{D1: t.own, D2: t.other}.CDF(x)
}

func (t spreadTest) quantile(p float64) float64 {
	if math.IsInf(t.other, 1) {
		return distuv.ChiSquared{K: t.own}.Quantile(p) / t.own
	}
	return distuv.F{D1: t.own, D2: t.other}.Quantile(p)
}

func (t spreadTest) p() float64 {
	if math.IsNaN(t.ratio) {
		return 1 // both are constant
	}
	if math.IsInf(t.ratio, 1) || t.ratio == 0 {
		return 0
	}
	below := t.cdf(t.ratio)
	above := 1 - below
	if above < 1e-9 && !math.IsInf(t.other, 1) { // the other tail without cancellation
		above = distuv.F{D1: t.other, D2: t.own}.CDF(1 / t.ratio)
	}
	return min(1, 2*min(below, above))
}

func (t spreadTest) criterion() string { return "an equal standard deviation" }

func (t spreadTest) test() string {
	if math.IsInf(t.other, 1) {
		return fmt.Sprintf("chi-square, %.0f degrees of freedom", t.own)
	}
	return fmt.Sprintf("F, %.0f and %.0f degrees of freedom", t.own, t.other)
}

func (t spreadTest) notices(level float64) (float64, string) {
	if level <= 0 {
		return math.Inf(1), "nothing"
	}
	larger := math.Sqrt(t.quantile(1-level/2) / t.quantile(1-Detection))
	smaller := math.Sqrt(t.quantile(level/2) / t.quantile(Detection))
	return larger, fmt.Sprintf("a deviation of %.2g or %.2g times this", smaller, larger)
}

// shapeTest is the chi-square test of two histograms with the same edges.
type shapeTest struct {
	statistic float64
	freedom   int
	bins      int
	effective float64 // runs of a sample that is compared with a known law and tells as much
}

// leastExpected is how many runs a bin needs on average in each sample for the chi-square law; smaller bins are put together.
const leastExpected = 5

// Shape is a comparison of two histograms with the same edges, of independent samples.
func Shape(what string, reference, counts []int) Comparison {
	a, b := sumOf(reference), sumOf(counts)
	type bin struct{ a, b float64 }
	var bins []bin
	var open bin
	enough := func(x bin) bool {
		return (x.a+x.b)*math.Min(a, b)/(a+b) >= leastExpected
	}
	for i := range reference {
		open.a += float64(reference[i])
		open.b += float64(counts[i])
		if enough(open) {
			bins, open = append(bins, open), bin{}
		}
	}
	if open.a+open.b > 0 {
		if len(bins) == 0 {
			bins = append(bins, open)
		} else {
			bins[len(bins)-1].a += open.a
			bins[len(bins)-1].b += open.b
		}
	}
	t := shapeTest{freedom: len(bins) - 1, bins: len(bins), effective: a * b / (a + b)}
	distance := 0.0 // in total variation, for the reader
	for _, x := range bins {
		share := (x.a + x.b) / (a + b)
		t.statistic += (x.a - a*share) * (x.a - a*share) / (a * share)
		t.statistic += (x.b - b*share) * (x.b - b*share) / (b * share)
		distance += math.Abs(x.a/a-x.b/b) / 2
	}
	return Comparison{What: what, Expected: 0, Got: distance, Low: distance, High: distance, hypothesis: t}
}

func sumOf(counts []int) (sum float64) {
	for _, c := range counts {
		sum += float64(c)
	}
	return sum
}

func (t shapeTest) p() float64 {
	if t.freedom < 1 {
		return 1
	}
	return distuv.ChiSquared{K: float64(t.freedom)}.Survival(t.statistic)
}

func (t shapeTest) criterion() string {
	return "the same histogram (shown: share of runs in other bins)"
}

func (t shapeTest) test() string { return fmt.Sprintf("chi-square, %d degrees of freedom", t.freedom) }

func (t shapeTest) notices(level float64) (float64, string) {
	if t.freedom < 1 || level <= 0 {
		return math.Inf(1), "nothing: too few runs for two bins"
	}
	k := float64(t.freedom)
	limit := distuv.ChiSquared{K: k}.Quantile(1 - level)
	// A noncentral chi-square variable is about normal with mean k+x and variance 2(k+2x): x so that it exceeds the limit with Detection.
	z := distuv.UnitNormal.Quantile(Detection)
	x := math.Max(0, limit-k)
	for range 50 {
		x = math.Max(0, limit-k+z*math.Sqrt(2*(k+2*x)))
	}
	// A share d of the runs that is in one of equal bins instead of another makes x = 2 effective bins d^2.
	moved := math.Sqrt(x / (2 * t.effective * float64(t.bins)))
	if moved > 1/float64(t.bins) { // more than a bin has: spread over half of the bins, x = 4 effective d^2
		moved = math.Min(1, math.Sqrt(x/(4*t.effective)))
	}
	return moved, fmt.Sprintf("%.0f%% of the runs in other bins", 100*moved)
}

// lawTest is about a sample and the distribution function that it should have.
type lawTest struct {
	distance float64
	runs     int
}

// Law is a comparison of values with a continuous distribution function, by their largest distance. The false-alarm probability is bounded for any
// number of values (Dvoretzky, Kiefer, Wolfowitz, Massart).
func Law(what string, values []float64, cdf func(float64) float64) Comparison {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	n, distance := float64(len(sorted)), 0.0
	for i, x := range sorted {
		f := cdf(x)
		distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
	}
	return Comparison{What: what, Got: distance, Low: distance, High: distance, hypothesis: lawTest{distance, len(sorted)}}
}

func (t lawTest) p() float64 {
	return math.Min(1, 2*math.Exp(-2*float64(t.runs)*t.distance*t.distance))
}

func (t lawTest) criterion() string {
	return "the law (shown: the largest distance of distribution functions)"
}
func (t lawTest) test() string { return fmt.Sprintf("Kolmogorov-Smirnov, %d runs", t.runs) }

func (t lawTest) notices(level float64) (float64, string) {
	if t.runs < 1 || level <= 0 {
		return math.Inf(1), "nothing"
	}
	n := float64(t.runs)
	d := math.Sqrt(math.Log(2/level)/(2*n)) + math.Sqrt(math.Log(1/(1-Detection))/(2*n))
	if d >= 1 {
		return math.Inf(1), fmt.Sprintf("nothing: %d runs are too few", t.runs)
	}
	return d, fmt.Sprintf("a law that is %.2g away", d)
}
