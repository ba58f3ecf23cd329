package certify

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

type reference struct {
	Name     string
	Inputs   map[string]any
	Expected any
}

func references(t *testing.T, name string) (found []reference) {
	t.Helper()
	raw, err := os.ReadFile("testdata/reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []reference
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Name == name {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no reference %s", name)
	}
	return found
}

func (r reference) in(name string) float64  { return r.Inputs[name].(float64) }
func (r reference) out(name string) float64 { return r.Expected.(map[string]any)[name].(float64) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-6*math.Abs(want)) {
		t.Errorf("%s: %.12g, want %.12g", what, got, want)
	}
}

func TestReferenceBounds(t *testing.T) {
	for _, r := range references(t, "pixeldp_clopper_pearson") {
		each := r.in("alpha") / r.in("bonferroni")
		low, _, err := ClopperPearson.Ends(r.in("count"), 0, int64(r.in("n")), each)
		_, high, err2 := ClopperPearson.Ends(400, 0, int64(r.in("n")), each)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		near(t, "lower", low, r.out("lower"))
		near(t, "upper", high, r.out("upper_of_400"))
	}
	for _, r := range references(t, "pixeldp_hoeffding") {
		low, high, err := Hoeffding.Ends(5000, 5000, int64(r.in("n")), r.in("alpha")/r.in("bonferroni"))
		if err != nil {
			t.Fatal(err)
		}
		near(t, "half-width", (high-low)/2, r.Expected.(float64))
	}
	// By hand: n = 1001, 500 ones, alpha = 0.05: V = 500 501/(1001 1000), ln(2/alpha) = 3.688879454.
	low, high, err := EmpiricalBernstein.Ends(500, 500, 1001, 0.05)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "empirical Bernstein", (high-low)/2, math.Sqrt(2*500*501./(1001*1000)*3.688879454/1001)+7*3.688879454/3000)
}

// ends of the counts of the published example: the label with 9200, the next with 400, ten labels.
func published(t *testing.T, r reference) (top, rest float64) {
	t.Helper()
	counts := r.Inputs["counts"].([]any)
	each := r.in("eta") / float64(len(counts))
	top, _, err := ClopperPearson.Ends(counts[0].(float64), 0, 10_000, each)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, err = ClopperPearson.Ends(counts[1].(float64), 0, 10_000, each)
	if err != nil {
		t.Fatal(err)
	}
	return top, rest
}

func TestReferenceRadii(t *testing.T) {
	for _, r := range references(t, "pixeldp_condition") {
		if PixelDPHolds(r.in("lb"), r.in("ub"), r.in("eps"), r.in("delta")) != r.Expected.(map[string]any)["certified"].(bool) {
			t.Error("the condition is decided otherwise")
		}
		near(t, "the condition's right side", math.Exp(2*r.in("eps"))*r.in("ub")+(1+math.Exp(r.in("eps")))*r.in("delta"), r.out("rhs"))
	}
	for _, r := range references(t, "pixeldp_radius_laplace") {
		top, rest := published(t, r)
		near(t, "PixelDP, Laplace", PixelDPLaplace(top, rest, r.in("L")/r.in("eps")), r.Expected.(float64))
	}
	for _, r := range references(t, "pixeldp_radius_gaussian") {
		top, rest := published(t, r)
		sigma := r.in("L") * math.Sqrt(2*math.Log(1.25/r.in("delta"))) / r.in("eps")
		near(t, "PixelDP, Gaussian, by the published search", publishedSearch(top, rest, sigma), r.Expected.(float64))
		// The published code stops at eps = 1023/1024 and at steps of 0.001 in delta.
		if got := PixelDPGaussian(top, rest, sigma); got < r.Expected.(float64) || got > 1.002*r.Expected.(float64) {
			t.Errorf("the full search gives %v, the published one %v", got, r.Expected)
		}
	}
	for _, r := range references(t, "gaussian_radius_analytic") {
		near(t, "two-sided", SmoothingGaussian(r.in("p_lb"), r.in("p_ub"), r.in("sigma")), r.out("cohen_two_sided"))
		near(t, "one-sided", SmoothingGaussian(r.in("p_lb"), 1-r.in("p_lb"), r.in("sigma")), r.out("cohen_binary"))
	}
	for _, r := range references(t, "cohen_certify") {
		o, err := Options{Noise: Noise{Scale: r.in("sigma")}, Alpha: r.in("alpha"), Samples: int(r.in("n"))}.Defaults()
		if err != nil {
			t.Fatal(err)
		}
		c, err := o.Certify(&Tally{N: int64(r.in("n")), Sums: []float64{r.in("nA"), 0}, Squares: []float64{r.in("nA"), 0}})
		if err != nil {
			t.Fatal(err)
		}
		near(t, "Cohen's lower bound", c.Top, r.out("pA_lower"))
		near(t, "Cohen's radius", c.Radius, r.out("radius"))
	}
	for _, r := range references(t, "li_renyi_certificate") {
		got := RenyiGaussian(r.in("p1"), r.in("p2"), r.in("sigma"))
		near(t, "Rényi", got, r.out("optimised_alpha"))
		near(t, "the same by Cohen", SmoothingGaussian(r.in("p1"), r.in("p2"), r.in("sigma")), r.out("cohen_same_inputs"))
	}
	// n = 100,000 with 99,900 at alpha 0.001 and sigma 0.25; the maximum for (0.9, 0.05, 0.5).
	low, _, _ := ClopperPearson.Ends(99_900, 0, 100_000, 0.001)
	near(t, "Cohen, n = 100,000", SmoothingGaussian(low, 1-low, 0.25), 0.750050247)
	near(t, "Rényi", RenyiGaussian(0.9, 0.05, 0.5), 0.624687)
	near(t, "Cohen", SmoothingGaussian(0.9, 0.05, 0.5), 0.731601)
}

// publishedSearch is the grid of delta and the ten halvings of eps in [0,1] of the code beside arXiv:1802.03471.
func publishedSearch(top, rest, sigma float64) float64 {
	best := 0.0
	for i := 1; i < 300; i++ {
		delta, low, high := float64(i)/1000, 0.0, 1.0
		for high-low > 0.001 {
			if middle := (low + high) / 2; PixelDPHolds(top, rest, middle, delta) {
				low = middle
			} else {
				high = middle
			}
		}
		best = max(best, sigma*low/math.Sqrt(2*math.Log(1.25/delta)))
	}
	return best
}

// line is a classifier of numbers: the label of x is labels[number of cuts below x]. Everything about its smoothed version is
// known.
type line struct {
	cuts   []float64
	labels []int
}

func (l line) label(x []float64) int {
	i := 0
	for i < len(l.cuts) && x[0] > l.cuts[i] {
		i++
	}
	return l.labels[i]
}

// expected frequencies of labels at x.
func (l line) expected(x float64, n Noise) []float64 {
	cdf := func(z float64) float64 {
		if n.Family == Laplace {
			return distuv.Laplace{Mu: 0, Scale: n.Scale}.CDF(z)
		}
		return distuv.Normal{Mu: 0, Sigma: n.Scale}.CDF(z)
	}
	p := make([]float64, 4)
	below := 0.0
	for i, label := range l.labels {
		upTo := 1.0
		if i < len(l.cuts) {
			upTo = cdf(l.cuts[i] - x)
		}
		p[label] += upTo - below
		below = upTo
	}
	return p
}

// reach is how far the smoothed prediction at 0 stays the same, seen at steps of 1/200 up to 6.
func (l line) reach(n Noise) (label int, reach float64) {
	label = largest(l.expected(0, n))
	for i := 1; i <= 1200; i++ {
		for _, side := range []float64{-1, 1} {
			if largest(l.expected(side*float64(i)/200, n)) != label {
				return label, float64(i) / 200
			}
		}
	}
	return label, 6
}

func anyLine(t *rapid.T) line {
	n := rapid.IntRange(1, 6).Draw(t, "cuts")
	l := line{labels: []int{rapid.IntRange(0, 3).Draw(t, "label")}}
	at := -3.0
	for range n {
		at += rapid.Float64Range(0.05, 2.5).Draw(t, "gap")
		l.cuts = append(l.cuts, at)
		l.labels = append(l.labels, rapid.IntRange(0, 3).Draw(t, "label"))
	}
	return l
}

// radii of all certificates from exact expectations.
func radii(top, rest float64, n Noise) map[string]float64 {
	if n.Family == Laplace {
		return map[string]float64{"PixelDP": PixelDPLaplace(top, rest, n.Scale), "two-sided": SmoothingLaplace(top, rest, n.Scale),
			"smoothing": SmoothingLaplace(top, 1-top, n.Scale)}
	}
	return map[string]float64{"PixelDP": PixelDPGaussian(top, rest, n.Scale), "two-sided": SmoothingGaussian(top, rest, n.Scale),
		"smoothing": SmoothingGaussian(top, 1-top, n.Scale), "Rényi": RenyiGaussian(top, rest, n.Scale)}
}

// TestNoRadiusReachesAnotherPrediction: for any function of one number, with exact expectations, no certificate goes further than
// the smoothed prediction does; and the two-sided one is never smaller than another.
func TestNoRadiusReachesAnotherPrediction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := anyLine(t)
		n := Noise{Family: Family(rapid.IntRange(0, 1).Draw(t, "family")), Scale: rapid.Float64Range(0.2, 2).Draw(t, "scale")}
		label, reach := l.reach(n)
		p := l.expected(0, n)
		top, rest := p[label], 0.0
		for i, v := range p {
			if i != label {
				rest = max(rest, v)
			}
		}
		all := radii(max(top-1e-12, 0), rest+1e-12, n) // expectations are rounded, and 1 means certainty
		for name, r := range all {
			if r >= reach && reach < 6 { // the prediction changed at reach, or before it
				t.Errorf("%s: radius %v, the prediction changes within %v", name, r, reach)
			}
			if r > all["two-sided"]*(1+1e-6) {
				t.Errorf("%s: radius %v is larger than the two-sided %v", name, r, all["two-sided"])
			}
		}
	})
}

// TestRadiiAreTight: where one cut divides two labels Cohen's radius is the distance of the cut, and Teng's likewise.
func TestRadiiAreTight(t *testing.T) {
	for _, distance := range []float64{0.01, 0.3, 1, 2.5} {
		for _, scale := range []float64{0.5, 1} {
			l := line{cuts: []float64{distance}, labels: []int{0, 1}}
			g, lap := Noise{Scale: scale}, Noise{Family: Laplace, Scale: scale}
			near(t, "Gaussian", SmoothingGaussian(l.expected(0, g)[0], l.expected(0, g)[1], scale), distance)
			near(t, "Laplace", SmoothingLaplace(l.expected(0, lap)[0], l.expected(0, lap)[1], scale), distance)
		}
	}
}

// TestPixelDPIsNeverLarger: the classical calibration of Gaussian noise is proved for eps below 1 and small delta; over all that the search
// tries, its certificate stays below what Gaussian differential privacy shows to be the largest. So does Rényi's.
func TestPixelDPIsNeverLarger(t *testing.T) {
	for i := 1; i < 100; i++ {
		for j := 1; i+j <= 100; j++ {
			top, rest := float64(i)/100, float64(j)/100-0.0099
			exact := SmoothingGaussian(top, rest, 1)
			if p, r := PixelDPGaussian(top, rest, 1), RenyiGaussian(top, rest, 1); p > exact || r > exact {
				t.Fatalf("%v and %v: PixelDP %v, Rényi %v, the largest is %v", top, rest, p, r, exact)
			}
		}
	}
}

func TestGaussianShift(t *testing.T) {
	// Cohen's radius is where the least of the top meets the most of the rest.
	top, rest, sigma := 0.7, 0.2, 0.5
	mu := SmoothingGaussian(top, rest, sigma) / sigma
	least, _ := GaussianShift(top, mu)
	_, most := GaussianShift(rest, mu)
	near(t, "the meeting point", least, most)
	if least, most := GaussianShift(0.5, 1); math.Abs(least-0.15865525393145707) > 1e-12 || math.Abs(most-0.8413447460685429) > 1e-12 {
		t.Errorf("one standard deviation from one half: %v, %v", least, most)
	}
}

func TestEdgesOfRadii(t *testing.T) {
	for name, r := range radii(0.4, 0.4, Noise{Scale: 1}) {
		if r != 0 {
			t.Errorf("%s: radius %v for a tie", name, r)
		}
	}
	for name, r := range radii(0.3, 0.5, Noise{Scale: 1}) {
		if r != 0 {
			t.Errorf("%s: radius %v for a label that loses", name, r)
		}
	}
	for name, r := range radii(0.6, 0.4-1e-15, Noise{Family: Laplace, Scale: 1}) {
		if !(r > 0 && r < 1) {
			t.Errorf("%s: radius %v", name, r)
		}
	}
	// A bound that says all: every certificate by quantiles and logarithms is without end, PixelDP's Gaussian one ends at eps = 1.
	if r := radii(1, 0, Noise{Scale: 1}); !math.IsInf(r["smoothing"], 1) || math.IsNaN(r["PixelDP"]) || math.IsNaN(r["Rényi"]) || r["PixelDP"] > 1 {
		t.Errorf("radii of certainty: %v", r)
	}
}
