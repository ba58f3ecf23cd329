package choose_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dp/choose"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

const falseAlarm = 1e-6

var one = choose.Rule{Epsilon: noise.Epsilon{Num: 1, Den: 1}, Sensitivity: 1}

// exponentialLaw is the law of the exponential mechanism, by its definition.
func exponentialLaw(r choose.Rule, scores []int64) []float64 {
	law, total := make([]float64, len(scores)), 0.0
	for i, score := range scores {
		law[i] = math.Exp(rate(r) * float64(score))
		total += law[i]
	}
	for i := range law {
		law[i] /= total
	}
	return law
}

func rate(r choose.Rule) float64 {
	if r.Monotone {
		return r.Epsilon.Float() / float64(r.Sensitivity)
	}
	return r.Epsilon.Float() / (2 * float64(r.Sensitivity))
}

// permuteLaw is the law of permute-and-flip, by going through all orders.
func permuteLaw(r choose.Rule, scores []int64) []float64 {
	law, most := make([]float64, len(scores)), scores[0]
	for _, score := range scores {
		most = max(most, score)
	}
	var walk func(left []int, p float64)
	walk = func(left []int, p float64) {
		for i, at := range left {
			keep := math.Exp(rate(r) * float64(scores[at]-most))
			first := p / float64(len(left))
			law[at] += first * keep
			if keep < 1 {
				walk(append(append([]int{}, left[:i]...), left[i+1:]...), first*(1-keep))
			}
		}
	}
	all := make([]int, len(scores))
	for i := range all {
		all[i] = i
	}
	walk(all, 1)
	return law
}

// maxLaw is the law of report-noisy-max, by summing over the winner's noise.
func maxLaw(r choose.Rule, scores []int64) []float64 {
	a := math.Exp(-rate(r))
	mass := func(x int64) float64 { return (1 - a) / (1 + a) * math.Pow(a, math.Abs(float64(x))) }
	below := func(x int64) float64 { // P(noise <= x)
		if x >= 0 {
			return 1 - math.Pow(a, float64(x)+1)/(1+a)
		}
		return math.Pow(a, float64(-x)) / (1 + a)
	}
	law := make([]float64, len(scores))
	for i, score := range scores {
		for x := int64(-200); x <= 200; x++ {
			p := mass(x)
			for j, other := range scores {
				if j < i {
					p *= below(score + x - other - 1)
				} else if j > i {
					p *= below(score + x - other)
				}
			}
			law[i] += p
		}
	}
	return law
}

type mechanism struct {
	name string
	draw func(choose.Rule, *noise.Stream, []int64) (int, error)
	law  func(choose.Rule, []int64) []float64
}

var mechanisms = []mechanism{
	{"exponential", choose.Rule.Exponential, exponentialLaw},
	{"permute-and-flip", choose.Rule.PermuteAndFlip, permuteLaw},
	{"noisy max", choose.Rule.NoisyMax, maxLaw},
}

// TestReference: the laws that the draws are compared with are those that were computed elsewhere.
func TestReference(t *testing.T) {
	for i, want := range [][]float64{{.18632372322584762, .3071958857184984, .506480391055654}, {.14675136056098284, .2660769698315784, .5871716696074388}} {
		for k, p := range mechanisms[i].law(one, []int64{1, 2, 3}) {
			if math.Abs(p-want[k]) > 1e-10 {
				t.Errorf("%s takes candidate %d with %v, want %v", mechanisms[i].name, k, p, want[k])
			}
		}
	}
}

// TestLaw holds the draws against the laws, and against those of 1.2 times the epsilon, which must be noticed.
func TestLaw(t *testing.T) {
	for m, mechanism := range mechanisms {
		for i, c := range []struct {
			rule   choose.Rule
			scores []int64
		}{
			{one, []int64{1, 2, 3}},
			{choose.Rule{Epsilon: noise.Eps(2.5), Sensitivity: 3}, []int64{0, -4, 3, 3, 1}},
			{choose.Rule{Epsilon: noise.Eps(.7), Sensitivity: 2, Monotone: true}, []int64{5, 1, 0, 6}},
		} {
			const n = 150_000
			counts, s := make([]int, len(c.scores)), noise.Seeded(uint64(10*m+i))
			for range n {
				at, err := mechanism.draw(c.rule, s, c.scores)
				if err != nil {
					t.Fatal(err)
				}
				counts[at]++
			}
			against := func(r choose.Rule) error {
				expected := mechanism.law(r, c.scores)
				for k := range expected {
					expected[k] *= n
				}
				return stattest.ChiSquare(counts, expected, falseAlarm)
			}
			if err := against(c.rule); err != nil {
				t.Errorf("%s of %+v: %v", mechanism.name, c.rule, err)
			}
			wrong := c.rule
			wrong.Epsilon = noise.Eps(1.2 * c.rule.Epsilon.Float())
			if against(wrong) == nil {
				t.Errorf("%s of %+v: an epsilon that is 20%% larger went unnoticed", mechanism.name, c.rule)
			}
		}
	}
}

// TestTop: the best two, in order, have the law of two exponential mechanisms, the second among those that are left, and the largest two scores with Gumbel
// noise have it, too. It notices an epsilon that is 20% larger, and a second choice from all.
func TestTop(t *testing.T) {
	const n = 150_000
	rule, scores := choose.Rule{Epsilon: noise.Eps(1.5), Sensitivity: 2}, []int64{0, 7, 3, 3, -2}
	law := func(r choose.Rule) (expected []float64) {
		first := exponentialLaw(r, scores)
		for i, p := range first {
			for j, q := range first {
				if i != j {
					expected = append(expected, n*p*q/(1-p))
				}
			}
		}
		return expected
	}
	cell := func(i, j int) int {
		if j > i {
			j--
		}
		return i*(len(scores)-1) + j
	}
	s, random := noise.Seeded(41), rand.New(rand.NewPCG(4, 1))
	drawn, gumbel := make([]int, 20), make([]int, 20)
	for range n {
		top, err := rule.Top(s, scores, 2)
		if err != nil || len(top) != 2 {
			t.Fatal(top, err)
		}
		drawn[cell(top[0], top[1])]++
		noisy := make([]float64, len(scores))
		order := make([]int, len(scores))
		for i, score := range scores {
			noisy[i], order[i] = float64(score)*rate(rule)-math.Log(random.ExpFloat64()), i
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(noisy[b], noisy[a]) })
		gumbel[cell(order[0], order[1])]++
	}
	for name, observed := range map[string][]int{"Top": drawn, "Gumbel noise": gumbel} {
		if err := stattest.ChiSquare(observed, law(rule), falseAlarm); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wrong := rule
		wrong.Epsilon = noise.Eps(1.2 * rule.Epsilon.Float())
		if stattest.ChiSquare(observed, law(wrong), falseAlarm) == nil {
			t.Errorf("%s: an epsilon that is 20%% larger went unnoticed", name)
		}
	}
	if all, err := rule.Top(s, scores, len(scores)); err != nil || len(all) != len(scores) {
		t.Errorf("all: %v, %v", all, err)
	} else if slices.Sort(all); !slices.Equal(all, []int{0, 1, 2, 3, 4}) {
		t.Errorf("all are %v", all)
	}
	for _, k := range []int{0, 6} {
		if _, err := rule.Top(s, scores, k); !errors.Is(err, choose.ErrSettings) {
			t.Errorf("the best %d of 5: %v", k, err)
		}
	}
}

// TestPrivate computes the largest privacy loss over all neighbours of small scores: it is at most epsilon. A mechanism that divides by the sensitivity
// once loses twice as much, which is noticed.
func TestPrivate(t *testing.T) {
	for _, mechanism := range mechanisms {
		worst, careless := 0.0, 0.0
		for code := range 81 { // three scores of -1, 0, 1 and three changes of them
			scores := []int64{int64(code%3) - 1, int64(code/3%3) - 1, 0}
			for change := range 27 {
				other := []int64{scores[0] + int64(change%3) - 1, scores[1] + int64(change/3%3) - 1, scores[2] + int64(change/9) - 1}
				p, q := mechanism.law(one, scores), mechanism.law(one, other)
				twice := one
				twice.Monotone = true
				u, v := mechanism.law(twice, scores), mechanism.law(twice, other)
				for k := range p {
					worst, careless = max(worst, math.Log(p[k]/q[k])), max(careless, math.Log(u[k]/v[k]))
				}
			}
		}
		if worst > 1+1e-9 || worst < .6 {
			t.Errorf("%s loses %v, promised is 1", mechanism.name, worst)
		}
		if careless < 1.2 {
			t.Errorf("%s without the factor 2 loses %v: the check would not notice it", mechanism.name, careless)
		}
	}
}

// TestBetter: the expected score of permute-and-flip is at least that of the exponential mechanism.
func TestBetter(t *testing.T) {
	s := noise.Seeded(77)
	for range 200 {
		scores := make([]int64, 2+s.Below(4))
		for i := range scores {
			scores[i] = int64(s.Below(12))
		}
		mean := func(law []float64) (m float64) {
			for i, p := range law {
				m += p * float64(scores[i])
			}
			return m
		}
		if pf, em := mean(permuteLaw(one, scores)), mean(exponentialLaw(one, scores)); pf < em-1e-12 {
			t.Errorf("%v: permute-and-flip expects %v, the exponential mechanism %v", scores, pf, em)
		}
	}
}

// TestFar: a candidate that is worse by more than anybody can count does not come up, and takes no time. No error tells of scores that are too large: they
// are secrets.
func TestFar(t *testing.T) {
	s := noise.Seeded(3)
	for _, mechanism := range mechanisms {
		for range 200 {
			if at, err := mechanism.draw(one, s, []int64{math.MinInt64, math.MaxInt64}); err != nil || at != 1 {
				t.Fatalf("%s: %d, %v", mechanism.name, at, err)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	good := []int64{1, 2}
	for _, c := range []struct {
		rule   choose.Rule
		scores []int64
	}{
		{choose.Rule{Sensitivity: 1}, good},
		{choose.Rule{Epsilon: noise.Eps(1)}, good},
		{choose.Rule{Epsilon: noise.Eps(1), Sensitivity: 1 << 63}, good},
		{choose.Rule{Epsilon: noise.Eps(65), Sensitivity: 1}, good},
		{one, nil},
		{choose.Rule{Epsilon: noise.Epsilon{Num: 1, Den: 1 << 30}, Sensitivity: 1 << 24}, good}, // noise of a scale of 2^55
	} {
		for _, mechanism := range mechanisms {
			if _, err := mechanism.draw(c.rule, noise.Seeded(1), c.scores); !errors.Is(err, choose.ErrSettings) {
				t.Errorf("%s of %+v and %v: %v", mechanism.name, c.rule, c.scores, err)
			}
		}
	}
}

func BenchmarkPermuteAndFlip(b *testing.B) {
	s, scores := noise.Seeded(1), make([]int64, 100)
	for i := range scores {
		scores[i] = int64(i)
	}
	for b.Loop() {
		if _, err := one.PermuteAndFlip(s, scores); err != nil {
			b.Fatal(err)
		}
	}
}

// The most common of four diagnoses, by counts of 1000 patients of whom each has one.
func Example() {
	rule := choose.Rule{Epsilon: noise.Eps(0.1), Sensitivity: 1}
	at, err := rule.PermuteAndFlip(noise.Seeded(1), []int64{190, 410, 260, 140})
	fmt.Println(at, err)
	// Output: 1 <nil>
}

// Scores are in tenths, of which a row moves one by 0.3 at most: on this grid the sensitivity is 3.
func ExampleRule_NoisyMax() {
	rule := choose.Rule{Epsilon: noise.Eps(1), Sensitivity: 3}
	at, err := rule.NoisyMax(noise.Seeded(2), []int64{1200, 1275, 910})
	fmt.Println(at, err)
	// Output: 1 <nil>
}
