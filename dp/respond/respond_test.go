package respond_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/respond"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

const falseAlarm = 1e-6

// TestReference: probabilities and an estimate that were computed elsewhere (k-ary at ln 3 is no ratio; 1098612289/10^9 is within 1e-9 of it).
func TestReference(t *testing.T) {
	if got := (respond.Categories{K: 4, Epsilon: noise.Epsilon{Num: 1098612289, Den: 1e9}}).Truth(); math.Abs(got-.5) > 1e-9 {
		t.Errorf("the truth is said with %v, want .5", got)
	}
	shares, sd, err := respond.Categories{K: 2, Epsilon: noise.Epsilon{Num: 1, Den: 1}}.Estimate([]int64{400, 600})
	if err != nil || math.Abs(shares[1]-0.7163953413738653) > 1e-12 || math.Abs(sd[1]-0.03421510768955422) > 1e-12 {
		t.Errorf("%v, %v, %v: want a share of .71640 and a deviation of .034215", shares, sd, err)
	}
	if math.Abs(shares[0]+shares[1]-1) > 1e-12 {
		t.Errorf("the shares %v do not sum to 1", shares)
	}
}

// TestLaw holds what is said against the probabilities, and against those of an epsilon that is a tenth larger.
func TestLaw(t *testing.T) {
	for i, c := range []respond.Categories{{2, ratio(1, 1)}, {5, ratio(3, 2)}, {40, ratio(4, 1)}, {3, ratio(1, 4)}} {
		law := func(eps float64, n int) (expected []float64) {
			p := 1 / (1 + float64(c.K-1)*math.Exp(-eps))
			for k := range c.K {
				share := p
				if k != 1 {
					share = (1 - p) / float64(c.K-1)
				}
				expected = append(expected, share*float64(n))
			}
			return expected
		}
		const n = 400_000
		counts, s := make([]int, c.K), noise.Seeded(uint64(i)+1)
		for range n {
			counts[c.Say(s, 1)]++
		}
		if err := stattest.ChiSquare(counts, law(c.Epsilon.Float(), n), falseAlarm); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		if stattest.ChiSquare(counts, law(1.1*c.Epsilon.Float(), n), falseAlarm) == nil {
			t.Errorf("%+v: an epsilon a tenth too small went unnoticed", c)
		}
	}
}

// TestUnary holds both encodings against their probabilities, and these against the promise: the largest loss of two people's answers is epsilon.
func TestUnary(t *testing.T) {
	for i, u := range []respond.Unary{{6, ratio(1, 1), true}, {6, ratio(2, 1), false}} {
		p, q := u.Probabilities()
		// Answers of two people differ in two bits at most: the loss is largest where one says 1, 0 and the other 0, 1.
		if loss := math.Log(p/q) + math.Log((1-q)/(1-p)); math.Abs(loss-u.Epsilon.Float()) > 1e-12 {
			t.Errorf("%+v loses %v", u, loss)
		}
		const n = 100_000
		ones, s := make([]int, u.K), noise.Seeded(uint64(i)+10)
		for range n {
			for k, said := range u.Say(s, 2) {
				if said {
					ones[k]++
				}
			}
		}
		for k, count := range ones {
			want := q
			if k == 2 {
				want = p
			}
			if err := stattest.Frequency(count, n, want, falseAlarm); err != nil {
				t.Errorf("%+v, bit %d: %v", u, k, err)
			}
		}
	}
}

// TestEstimate: over 200 populations the estimates are on the true shares, and spread no more than is said. Each check is at 6 standard errors (1e-9), and
// a bias of a fortieth of a share would be noticed.
func TestEstimate(t *testing.T) {
	shares := []float64{.5, .3, .15, .05}
	const people, populations = 2000, 200
	for name, one := range map[string]func(s *noise.Stream) ([]float64, []float64, error){
		"categories": func(s *noise.Stream) ([]float64, []float64, error) {
			c, said := respond.Categories{K: 4, Epsilon: ratio(2, 1)}, make([]int64, 4)
			for i := range people {
				said[c.Say(s, of(shares, i, people))]++
			}
			return c.Estimate(said)
		},
		"unary": func(s *noise.Stream) ([]float64, []float64, error) {
			u, ones := respond.Unary{K: 4, Epsilon: ratio(2, 1)}, make([]int64, 4)
			for i := range people {
				for k, said := range u.Say(s, of(shares, i, people)) {
					if said {
						ones[k]++
					}
				}
			}
			return u.Estimate(ones, people)
		},
	} {
		s, mean, square, worst := noise.Seeded(99), make([]float64, 4), make([]float64, 4), make([]float64, 4)
		for range populations {
			got, sd, err := one(s)
			if err != nil {
				t.Fatal(err)
			}
			for k := range got {
				mean[k] += got[k] / populations
				square[k] += (got[k] - shares[k]) * (got[k] - shares[k]) / populations
				worst[k] = sd[k]
			}
		}
		for k := range shares {
			if math.Abs(mean[k]-shares[k]) > 6*worst[k]/math.Sqrt(populations) {
				t.Errorf("%s: the estimates of answer %d are %v on average, want %v", name, k, mean[k], shares[k])
			}
			if spread := math.Sqrt(square[k]); spread > 1.4*worst[k] || spread < worst[k]/4 {
				t.Errorf("%s: the estimates of answer %d spread by %v, said to by at most %v", name, k, spread, worst[k])
			}
		}
	}
}

// of is the true answer of person i of n: in these shares exactly.
func of(shares []float64, i, n int) int {
	at := (float64(i) + .5) / float64(n)
	for k, share := range shares {
		if at -= share; at < 0 {
			return k
		}
	}
	return len(shares) - 1
}

func TestRefused(t *testing.T) {
	for _, bad := range []respond.Categories{{1, ratio(1, 1)}, {2, ratio(0, 1)}, {2, ratio(1, 0)}, {2, ratio(65, 1)}, {2, ratio(1, 1<<41)}, {respond.MaxCategories + 1, ratio(1, 1)}} {
		if err := bad.Check(); !errors.Is(err, respond.ErrSettings) {
			t.Errorf("%+v: %v", bad, err)
		}
		if _, _, err := bad.Estimate(make([]int64, max(0, bad.K))); !errors.Is(err, respond.ErrSettings) {
			t.Errorf("%+v estimates: %v", bad, err)
		}
	}
	categories := respond.Categories{K: 2, Epsilon: ratio(1, 1)}
	for _, counts := range [][]int64{{1}, {0, 0}, {-1, 11}, {respond.MaxPeople + 1, 0}, {math.MaxInt64, math.MaxInt64}} {
		if _, _, err := categories.Estimate(counts); !errors.Is(err, respond.ErrSettings) {
			t.Errorf("%v: %v", counts, err)
		}
	}
	good := respond.Unary{K: 2, Epsilon: ratio(1, 1)}
	for _, counts := range [][]int64{{1}, {1, 11}, {-1, 2}} {
		if _, _, err := good.Estimate(counts, 10); !errors.Is(err, respond.ErrSettings) {
			t.Errorf("%v of 10: %v", counts, err)
		}
	}
}

// A survey of 10,000 people of whom 30% have done what is asked about; each answer alone says little.
func Example() {
	survey := respond.Categories{K: 2, Epsilon: noise.Epsilon{Num: 1, Den: 1}}
	s, said := noise.Seeded(1), make([]int64, 2)
	for person := range 10_000 {
		truth := 0
		if person < 3000 {
			truth = 1
		}
		said[survey.Say(s, truth)]++
	}
	shares, sd, _ := survey.Estimate(said)
	fmt.Printf("%.3f, give or take %.3f\n", shares[1], 2*sd[1])
	// Output: 0.302, give or take 0.022
}

func ratio(num, den uint64) noise.Epsilon { return noise.Epsilon{Num: num, Den: den} }

// Which of eight answers is given how often, where each person says eight bits, of which some are not true.
func ExampleUnary() {
	survey := respond.Unary{K: 8, Epsilon: noise.Epsilon{Num: 1, Den: 1}}
	const people = 20_000
	s, ones := noise.Seeded(1), make([]int64, 8)
	for person := range people {
		for k, bit := range survey.Say(s, min(person%16, 7)) { // the last is given by more than half
			if bit {
				ones[k]++
			}
		}
	}
	shares, sd, _ := survey.Estimate(ones, people)
	fmt.Println(shares[7]-3*sd[7] > 0.5, shares[0] < 3*sd[0]+0.0625)
	// Output: true true
}
