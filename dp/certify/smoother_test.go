package certify

import (
	"context"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/internal/stattest"
)

const falseAlarm = 1e-6 // of each statistical check

// halfPlane predicts 1 where x[0] > cut.
func halfPlane(cut float64) Classifier {
	return Classifier{Classes: 2, Label: func(x []float64) int {
		if x[0] > cut {
			return 1
		}
		return 0
	}}
}

// slope scores label 1 by how far x[0] is on the way from -1 to 1.
func slope() Classifier {
	return Classifier{Classes: 2, Scores: func(dst, x []float64) {
		dst[1] = min(max((x[0]+1)/2, 0), 1)
		dst[0] = 1 - dst[1]
	}}
}

// TestBoundsCover: each end misses with probability at most alpha, for means near 0 and in the middle, labels and scores; and an
// end at a tenth of the level is noticed.
func TestBoundsCover(t *testing.T) {
	const runs, n, alpha = 4000, 60, 0.05
	random := rand.New(rand.NewPCG(1, 2))
	draws := map[string]func(p float64) float64{
		"label": func(p float64) float64 {
			if random.Float64() < p {
				return 1
			}
			return 0
		},
		"score": func(p float64) float64 { return distuv.Beta{Alpha: 2 * p, Beta: 2 * (1 - p), Src: random}.Rand() },
	}
	noticed := false
	for kind, draw := range draws {
		for _, p := range []float64{0.02, 0.3, 0.5} {
			misses := map[Bound][2]int{}
			for range runs {
				sum, squares := 0.0, 0.0
				for range n {
					v := draw(p)
					sum += v
					squares += v * v
				}
				for b := ClopperPearson; b <= EmpiricalBernstein; b++ {
					if b == ClopperPearson && kind == "score" {
						continue
					}
					low, high, err := b.Ends(sum, squares, n, alpha)
					if err != nil {
						t.Fatal(err)
					}
					m := misses[b]
					if low > p {
						m[0]++
					}
					if high < p {
						m[1]++
					}
					misses[b] = m
				}
			}
			for b, m := range misses {
				for end, count := range m {
					if err := stattest.AtMost(count, runs, alpha, falseAlarm); err != nil {
						t.Errorf("%v of %ss with mean %v, end %d: %v", b, kind, p, end, err)
					}
					noticed = noticed || stattest.AtMost(count, runs, alpha/10, falseAlarm) != nil
				}
			}
		}
	}
	if !noticed {
		t.Error("no bound misses as often as a tenth of what it may: this test could not see one that is too narrow")
	}
}

// TestClopperPearsonIsExact: at each end the binomial tail is alpha, also far out, where inverses of the beta distribution go astray, and
// never more. Tails are summed from their largest term, apart from any beta function.
func TestClopperPearsonIsExact(t *testing.T) {
	// tail is ln P(Bin(n,p) >= c) for c above the mean.
	tail := func(n, c int, p float64) float64 {
		choose := func(k float64) float64 {
			a, _ := math.Lgamma(float64(n) + 1)
			b, _ := math.Lgamma(k + 1)
			d, _ := math.Lgamma(float64(n) - k + 1)
			return a - b - d
		}
		first := choose(float64(c)) + float64(c)*math.Log(p) + float64(n-c)*math.Log1p(-p)
		sum, term := 1.0, 1.0
		for k := c; k < n && term > 1e-18*sum; k++ {
			term *= float64(n-k) / float64(k+1) * p / (1 - p)
			sum += term
		}
		return first + math.Log(sum)
	}
	for _, n := range []int{2, 60, 1000, 10_000, 1_000_000} {
		for _, part := range []float64{0, 1e-5, 0.001, 0.05, 0.5, 0.9, 0.999, 1} {
			for _, alpha := range []float64{0.025, 0.001, 5e-9, 1e-12} {
				c := int(math.Round(part * float64(n)))
				low, high, err := ClopperPearson.Ends(float64(c), 0, int64(n), alpha)
				if err != nil {
					t.Fatal(err)
				}
				want := math.Log(alpha)
				if c > 0 {
					if got := tail(n, c, low); got > want+1e-6 || got < want-1e-4 {
						t.Errorf("%d of %d at %v: low end %v has the tail e^%v, want e^%v", c, n, alpha, low, got, want)
					}
				}
				if c < n && 1-high > 1e-9 { // nearer to 1 a float64 does not say where it is
					if got := tail(n, n-c, 1-high); got > want+1e-6 || got < want-1e-4 {
						t.Errorf("%d of %d at %v: high end %v has the tail e^%v, want e^%v", c, n, alpha, high, got, want)
					}
				}
				if c == 0 && low != 0 || c == n && high != 1 {
					t.Errorf("%d of %d at %v: %v to %v", c, n, alpha, low, high)
				}
			}
		}
	}
}

// TestCertificatesCover: against a half-plane whose distance is known, a radius is too large with probability at most alpha, for
// every family, method and bound; that of Cohen comes near alpha, and radii a tenth larger would be noticed.
func TestCertificatesCover(t *testing.T) {
	const runs, alpha = 1500, 0.05
	for _, family := range []Family{Gaussian, Laplace} {
		for method := Smoothing; method <= Renyi; method++ {
			for bound := ClopperPearson; bound <= EmpiricalBernstein; bound++ {
				o := Options{Noise: Noise{Family: family, Scale: 0.5}, Select: 20, Samples: 400, Alpha: alpha, Method: method, Bound: bound}
				s, err := New(halfPlane(0.4), o)
				if method == Renyi && family == Laplace {
					if !errors.Is(err, ErrOptions) {
						t.Errorf("Rényi with Laplace noise: %v", err)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				tooLarge, larger, abstained := 0, 0, 0
				for seed := range uint64(runs) {
					c, err := s.Certify([]float64{0, 3}, seed)
					if err != nil {
						t.Fatal(err)
					}
					switch {
					case c.Prediction == Abstain:
						abstained++
					case c.Prediction != 0 || c.Radius > 0.4:
						tooLarge++
					}
					if c.Radius*1.1 > 0.4 {
						larger++
					}
				}
				if err := stattest.AtMost(tooLarge, runs, alpha, falseAlarm); err != nil {
					t.Errorf("%v %v %v: %v", family, method, bound, err)
				}
				if abstained > runs/50 { // 20 draws choose the wrong label that seldom
					t.Errorf("%v %v %v: %d of %d abstained at a margin of 0.8 scales", family, method, bound, abstained, runs)
				}
				if family == Gaussian && method == Smoothing && bound == ClopperPearson {
					if tooLarge < runs*alpha/3 {
						t.Errorf("Cohen's radius is too large in %d of %d runs: less than a third of alpha", tooLarge, runs)
					}
					if stattest.AtMost(larger, runs, alpha, falseAlarm) == nil {
						t.Error("a radius that is a tenth larger went unnoticed")
					}
				}
			}
		}
	}
}

// TestScores: expected scores are integrated, and certify a prediction whose smoothed boundary is at 0.
func TestScores(t *testing.T) {
	o := Options{Noise: Noise{Scale: 0.3}, Samples: 4000, Alpha: 1e-6, Method: TwoSided, Bound: EmpiricalBernstein}
	s, err := New(slope(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Certify([]float64{0.5}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if c.Prediction != 1 || !(c.Radius > 0.1 && c.Radius < 0.5) || !(c.Top > 0.65 && c.Top < 0.75) {
		t.Errorf("certificate of a slope at 0.5: %+v", c)
	}
	var tally Tally
	if err := s.Tally(&tally, []float64{0.5}, 7); err != nil {
		t.Fatal(err)
	}
	// The mean is 0.75 but for the rounding off at 1; five standard errors are 0.012.
	if mean := tally.Sums[1] / float64(tally.N); math.Abs(mean-0.747) > 0.013 || tally.Label != 1 || !tally.Scores {
		t.Errorf("tally %+v", tally)
	}
	if _, err := (Options{Alpha: 0.1, Noise: Noise{Scale: 1}}).Certify(&tally); !errors.Is(err, ErrOptions) {
		t.Errorf("Clopper-Pearson of scores: %v", err)
	}
}

// TestAbstains: on the boundary nothing is certified, and where three labels share the middle only bounds of all labels certify.
func TestAbstains(t *testing.T) {
	s, _ := New(halfPlane(0), Options{Noise: Noise{Scale: 1}, Samples: 1000})
	c, err := s.Certify([]float64{0}, 1)
	if err != nil || c.Prediction != Abstain || c.Radius != 0 || c.Label < 0 {
		t.Errorf("on the boundary: %+v, %v", c, err)
	}
	three := Classifier{Classes: 3, Label: (line{cuts: []float64{-0.5, 0.5}, labels: []int{0, 1, 2}}).label}
	for method, want := range map[Method]int{Smoothing: Abstain, TwoSided: 1} {
		s, _ := New(three, Options{Noise: Noise{Scale: 0.8}, Samples: 5000, Method: method})
		if c, err := s.Certify([]float64{0}, 1); err != nil || c.Prediction != want {
			t.Errorf("%v: %+v, %v", method, c, err)
		}
	}
}

// TestNoiseLaw: each coordinate has the law that its width says, in the norm that measures it.
func TestNoiseLaw(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	widths := []float64{1, 0.25, 8}
	x, noisy := []float64{-1, 0, 100}, make([]float64, 3)
	laws := map[Family]interface{ CDF(float64) float64 }{Gaussian: distuv.Normal{Mu: 0, Sigma: 0.5}, Laplace: distuv.Laplace{Mu: 0, Scale: 0.5}}
	for _, family := range slices.Sorted(maps.Keys(laws)) { // in one order, for they draw from one source
		law := laws[family]
		n := Noise{Family: family, Scale: 0.5, Widths: widths}
		samples := make([][]float64, 3)
		for range 20_000 {
			n.Add(noisy, x, random)
			for j := range x {
				samples[j] = append(samples[j], (noisy[j]-x[j])/widths[j])
			}
		}
		for j, sample := range samples {
			if err := stattest.Kolmogorov(sample, law.CDF, falseAlarm); err != nil {
				t.Errorf("%v, coordinate %d: %v", family, j, err)
			}
		}
	}
	if g, l := (Noise{Widths: widths}).Norm([]float64{3, 1, 0}), (Noise{Family: Laplace, Widths: widths}).Norm([]float64{3, -1, 0}); g != 5 || l != 7 {
		t.Errorf("norms %v and %v, want 5 and 7", g, l)
	}
}

// TestWidths: a coordinate that is measured in thousandths is certified the same.
func TestWidths(t *testing.T) {
	plain, _ := New(halfPlane(0.4), Options{Noise: Noise{Scale: 0.5}, Samples: 500})
	scaled, _ := New(halfPlane(400), Options{Noise: Noise{Scale: 0.5, Widths: []float64{1000, 5}}, Samples: 500})
	for seed := range uint64(20) {
		a, err := plain.Certify([]float64{0, 0}, seed)
		b, err2 := scaled.Certify([]float64{0, 0}, seed)
		if err != nil || err2 != nil || a != b {
			t.Fatalf("%+v and %+v, %v %v", a, b, err, err2)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	for name, c := range map[string]Classifier{"labels": halfPlane(0.1), "scores": slope()} {
		for method := Smoothing; method <= Renyi; method++ {
			s, err := New(c, Options{Noise: Noise{Scale: 1}, Samples: 50, Method: method, Bound: Hoeffding})
			if err != nil {
				t.Fatal(err)
			}
			x := []float64{0.3, 0.2}
			if n := testing.AllocsPerRun(20, func() {
				if _, err := s.Certify(x, 1); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%s, %v: %v allocations", name, method, n)
			}
		}
	}
}

func TestBatch(t *testing.T) {
	rows := make(Slice, 40)
	for i := range rows {
		rows[i] = []float64{float64(i-20) / 10, 1}
	}
	o := Options{Noise: Noise{Scale: 0.5}, Samples: 300}
	newClassifier := func() Classifier { return halfPlane(0) }
	run := func(cores int) []Certificate {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
		told := 0
		all, err := Batch(t.Context(), newClassifier, o, rows, 5, func(i int, c Certificate) { told++ })
		if err != nil || told != len(rows) {
			t.Fatal(told, err)
		}
		return all
	}
	one, four := run(1), run(4)
	if !slices.Equal(one, four) {
		t.Error("the number of cores changes certificates")
	}
	s, _ := New(halfPlane(0), o)
	alone, err := s.Certify(rows[3], SeedOf(5, 3))
	if err != nil || alone != one[3] {
		t.Errorf("row 3 alone is %+v, in the batch %+v, %v", alone, one[3], err)
	}
	labels := make([]int, len(rows))
	for i := range labels {
		if rows[i][0] > 0 {
			labels[i] = 1
		}
	}
	if all, none := Accuracy(one, labels, 0), Accuracy(one, labels, 1.9); !(all > 0.8 && all <= 1) || none != 0 {
		t.Errorf("certified accuracy %v at 0, %v at 1.9", all, none)
	}
	if !math.IsNaN(Accuracy(nil, nil, 0)) {
		t.Error("accuracy of nothing is a number")
	}
}

// TestBegin: the classifier is told of the row before it sees its inputs.
// TestLabelsOfABatch: a classifier of several inputs at once gives the certificates of one that takes them singly, for numbers of draws that are no whole batches, and its error ends it.
func TestLabelsOfABatch(t *testing.T) {
	single := halfPlane(0.2)
	most := 0
	several := Classifier{Classes: 2, Labels: func(dst []int, x []float64) error {
		most = max(most, len(dst))
		for i := range dst {
			dst[i] = single.Label(x[2*i : 2*i+2])
		}
		return nil
	}}
	for _, samples := range []int{50, BatchRows, 2*BatchRows + 300} {
		o := Options{Noise: Noise{Family: Laplace, Scale: 0.5}, Samples: samples}
		tally := func(c Classifier) (tally Tally) {
			s, err := New(c, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Tally(&tally, []float64{0.5, -1}, 7); err != nil {
				t.Fatal(err)
			}
			return tally
		}
		want, got := tally(single), tally(several)
		if got.Label != want.Label || !slices.Equal(got.Sums, want.Sums) || !slices.Equal(got.Squares, want.Squares) {
			t.Errorf("%d draws: %+v, singly %+v", samples, got, want)
		}
	}
	if most != BatchRows {
		t.Errorf("at most %d inputs at once, want %d", most, BatchRows)
	}
	gone := errors.New("gone")
	s, err := New(Classifier{Classes: 2, Labels: func([]int, []float64) error { return gone }}, Options{Noise: Noise{Scale: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.Certify([]float64{0}, 1); !errors.Is(err, gone) || c.Prediction != Abstain {
		t.Errorf("%+v, error %v", c, err)
	}
}

func TestBegin(t *testing.T) {
	rows := make(Slice, 30)
	for i := range rows {
		rows[i] = []float64{0}
	}
	newClassifier := func() Classifier {
		row := -1
		return Classifier{Classes: 30, Label: func([]float64) int { return row }, Begin: func(i int) { row = i }}
	}
	all, err := Batch(t.Context(), newClassifier, Options{Noise: Noise{Scale: 1}, Samples: 50}, rows, 1, nil)
	for i, c := range all {
		if c.Prediction != i {
			t.Errorf("row %d is predicted as %d", i, c.Prediction)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestBatchEnds(t *testing.T) {
	rows := make(Slice, 500)
	for i := range rows {
		rows[i] = []float64{1}
	}
	ctx, cancel := context.WithCancel(t.Context())
	told := 0
	all, err := Batch(ctx, func() Classifier { return halfPlane(0) }, Options{Noise: Noise{Scale: 0.5}}, rows, 5, func(int, Certificate) {
		if told++; told == 3 {
			cancel()
		}
	})
	finished := 0
	for _, c := range all {
		if c.Prediction != Abstain {
			finished++
		}
	}
	if !errors.Is(err, context.Canceled) || finished < 3 || finished > 3+runtime.GOMAXPROCS(0) {
		t.Errorf("after 3 of 500: %d finished, %v", finished, err)
	}
	rows[17] = []float64{math.NaN()}
	if _, err := Batch(t.Context(), func() Classifier { return halfPlane(0) }, Options{Noise: Noise{Scale: 0.5}, Samples: 10}, rows, 5, nil); !errors.Is(err, ErrInput) {
		t.Errorf("a NaN in row 17: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	fine := Noise{Scale: 1}
	for name, o := range map[string]Options{
		"no scale":         {},
		"negative scale":   {Noise: Noise{Scale: -1}},
		"endless scale":    {Noise: Noise{Scale: math.Inf(1)}},
		"NaN scale":        {Noise: Noise{Scale: math.NaN()}},
		"width 0":          {Noise: Noise{Scale: 1, Widths: []float64{1, 0}}},
		"family":           {Noise: Noise{Scale: 1, Family: 9}},
		"bound":            {Noise: fine, Bound: 9},
		"method":           {Noise: fine, Method: 9},
		"one draw":         {Noise: fine, Samples: 1},
		"negative draws":   {Noise: fine, Samples: -1},
		"too many draws":   {Noise: fine, Samples: MaxSamples + 1},
		"negative choices": {Noise: fine, Select: -1},
		"alpha 1":          {Noise: fine, Alpha: 1},
		"alpha NaN":        {Noise: fine, Alpha: math.NaN()},
	} {
		if _, err := New(halfPlane(0), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]Classifier{"nothing": {Classes: 2}, "one class": {Classes: 1, Label: halfPlane(0).Label},
		"both": {Classes: 2, Label: halfPlane(0).Label, Scores: slope().Scores}, "scores for Clopper-Pearson": slope()} {
		if _, err := New(c, Options{Noise: fine}); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	scores := func(values ...float64) Classifier {
		return Classifier{Classes: 2, Scores: func(dst, _ []float64) { copy(dst, values) }}
	}
	for name, test := range map[string]struct {
		c    Classifier
		x    []float64
		n    Noise
		want error
	}{
		"label 2 of 2":            {Classifier{Classes: 2, Label: func([]float64) int { return 2 }}, []float64{1}, fine, ErrLabel},
		"label -1":                {Classifier{Classes: 2, Label: func([]float64) int { return -1 }}, []float64{1}, fine, ErrLabel},
		"a score above 1":         {scores(1.5, 0), []float64{1}, fine, ErrScores},
		"a score below 0":         {scores(-0.1, 1), []float64{1}, fine, ErrScores},
		"a score that is NaN":     {scores(math.NaN(), 0), []float64{1}, fine, ErrScores},
		"scores that sum to more": {scores(0.7, 0.7), []float64{1}, fine, ErrScores},
		"NaN":                     {halfPlane(0), []float64{math.NaN()}, fine, ErrInput},
		"infinity":                {halfPlane(0), []float64{math.Inf(1)}, fine, ErrInput},
		"a width short":           {halfPlane(0), []float64{1, 2}, Noise{Scale: 1, Widths: []float64{1}}, ErrInput},
	} {
		s, err := New(test.c, Options{Noise: test.n, Bound: Hoeffding})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c, err := s.Certify(test.x, 1); !errors.Is(err, test.want) || c.Prediction != Abstain {
			t.Errorf("%s: %v, %+v", name, err, c)
		}
	}
	if _, _, err := Hoeffding.Ends(5, 5, 1, 0.1); !errors.Is(err, ErrOptions) {
		t.Errorf("one draw: %v", err)
	}
	if _, _, err := ClopperPearson.Ends(0.5, 0.25, 10, 0.1); !errors.Is(err, ErrOptions) {
		t.Errorf("half a count: %v", err)
	}
	if _, err := (Options{Noise: fine, Alpha: 0.1}).Certify(&Tally{Label: 2, N: 5, Sums: []float64{5, 0}, Squares: []float64{5, 0}}); !errors.Is(err, ErrLabel) {
		t.Errorf("a tally of label 2 of 2: %v", err)
	}
}

func TestNames(t *testing.T) {
	for m := Smoothing; m <= Renyi; m++ {
		if got, err := ParseMethod(m.String()); err != nil || got != m {
			t.Errorf("%v: %v, %v", m, got, err)
		}
	}
	for b := ClopperPearson; b <= EmpiricalBernstein; b++ {
		if got, err := ParseBound(b.String()); err != nil || got != b {
			t.Errorf("%v: %v, %v", b, got, err)
		}
	}
	for f := Gaussian; f <= Laplace; f++ {
		if got, err := ParseFamily(f.String()); err != nil || got != f {
			t.Errorf("%v: %v, %v", f, got, err)
		}
	}
	if _, err := ParseMethod("cohen"); !errors.Is(err, ErrOptions) || Method(9).String() != "Method(9)" {
		t.Error(err, Method(9))
	}
}

func BenchmarkCertify(b *testing.B) {
	weights := make([]float64, 64)
	for i := range weights {
		weights[i] = float64(i%7) - 3
	}
	c := Classifier{Classes: 2, Label: func(x []float64) int {
		sum := 0.0
		for i, w := range weights {
			sum += w * x[i]
		}
		if sum > 0 {
			return 1
		}
		return 0
	}}
	for _, family := range []Family{Gaussian, Laplace} {
		b.Run(family.String(), func(b *testing.B) {
			s, err := New(c, Options{Noise: Noise{Family: family, Scale: 1}})
			if err != nil {
				b.Fatal(err)
			}
			x := make([]float64, 64)
			x[0] = 1
			b.ReportAllocs()
			for i := range b.N {
				if _, err := s.Certify(x, uint64(i)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
