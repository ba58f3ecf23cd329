package moments

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// overshootTable has half-widths in parts of the normal law's, of intervals that miss on one side with probability e^-level: by Markov's inequality, and by bets of each range, rounded up as in the program.
const overshootTable = `
level Markov w=0.05 w=0.1 w=0.2 w=0.4 w=0.6 w=0.9 w=1.3
3.69  1.386  1.024  1.036 1.059 1.106 1.174 1.263 1.334
5.3   1.264  1.014  1.021 1.034 1.061 1.098 1.143 1.205
6.7   1.209  1.008  1.013 1.023 1.043 1.069 1.096 1.145
8.4   1.168  1.007  1.010 1.018 1.032 1.051 1.071 1.104
`

// TestOvershootTable: what the program makes of each level and range is the table above, and the factor of a small range is what docs/proofs/overshoot.md says.
func TestOvershootTable(t *testing.T) {
	text, err := os.ReadFile("../../docs/proofs/overshoot.md")
	if err != nil {
		t.Fatal(err)
	}
	page := strings.Join(strings.Fields(string(text)), " ")
	quotient := func(level, l float64) float64 { return math.Sqrt(2*l) / -distuv.UnitNormal.Quantile(math.Exp(-level)) }
	table := strings.Join(strings.Fields(overshootTable), " ")
	for _, level := range []float64{3.69, 5.3, 6.7, 8.4} {
		row := fmt.Sprintf("%v %.3f", level, quotient(level, level))
		for _, width := range []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.9, 1.3} {
			row += fmt.Sprintf(" %.3f", quotient(level, BestTilts.enough(level, width)))
		}
		if !strings.Contains(table, row) {
			t.Errorf("the program makes %q", row)
		}
	}
	most := 0.0
	for _, l := range []float64{2.16, 3.69, 6.3, 8.4} {
		most = max(most, BestTilts.overshoot(l, narrowestRange)/(math.Exp(l)*distuv.UnitNormal.Survival(math.Sqrt(2*l))))
	}
	if what := fmt.Sprintf("f is at most %.2f times what the normal law has", math.Ceil(100*most)/100); !strings.Contains(page, what) {
		t.Errorf("docs/proofs/overshoot.md does not say %q", what)
	}
	planned := func(units, level float64) string {
		b, err := PlanBatch(0.5, 0.01, units, level, BestTilts)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%.2f", b.below[0].width)
	}
	for _, c := range []struct {
		units, level float64
		width        string
	}{{30_000, 3.69, "0.12"}, {500, 3.69, "0.89"}, {30_000, 8.4, "0.20"}, {500, 8.4, "1.29"}} {
		if got := planned(c.units, c.level); got != c.width {
			t.Errorf("the planned bet of %v units at the level %v has the range %s, not %s", c.units, c.level, got, c.width)
		}
	}
}

// bets are so many alike, with a probability of winning.
type bets struct {
	n int
	p float64
}

// climbed is the largest probability times e^E at a level of E >= 1 at which the products that these bets of one range may come to are just enough. Each has an expectation of 1 and one of two values.
func climbed(width float64, classes []bets, enough func(level, width float64) float64) (worst float64) {
	law, least := []float64{1}, 0.0
	for _, c := range classes {
		least -= float64(c.n) * math.Log1p(c.p*math.Expm1(width))
		own := convolved(c.n, c.p, 0, 0.5)
		next := make([]float64, len(law)+c.n)
		for i, x := range law {
			for j, y := range own[:c.n+1] {
				next[i+j] += x * y
			}
		}
		law = next
	}
	beyond := 0.0
	for k := len(law) - 1; k >= 0; k-- {
		beyond += law[k]
		l := least + width*float64(k)
		if l < 0.5 {
			break
		}
		if beyond < 1e-12 {
			continue
		}
		low, high := l, l+6
		for range 30 {
			if middle := (low + high) / 2; enough(middle, width) <= l {
				low = middle
			} else {
				high = middle
			}
		}
		if low >= 1 {
			worst = max(worst, beyond*math.Exp(low))
		}
	}
	return worst
}

// TestClimbedProducts climbs from random products to the worst ones, of one or two kinds of bets, up to 3,000 of them. Red at a sixth of a nat more.
func TestClimbedProducts(t *testing.T) {
	for name, f := range map[string]struct {
		enough   func(level, width float64) float64
		violated bool
	}{
		"as proved":             {BestTilts.enough, false},
		"as in older versions":  {FirstTilts.enough, false},
		"a sixth of a nat more": {func(level, width float64) float64 { return max(BestTilts.enough(level, width)-1.0/6, 0) }, true},
	} {
		r := rand.New(rand.NewChaCha8([32]byte{41, 17}))
		worst := 0.0
		var at []bets
		for _, cell := range []int{-12, -8, -6, -4, -2} {
			width := math.Exp2(float64(cell)/rangeSteps) * (1 - 1e-12)
			var best []bets
			most := 0.0
			try := func(b []bets) {
				if m := climbed(width, b, f.enough); m > most {
					best, most = b, m
				}
			}
			for range 50 {
				p := []float64{r.Float64(), math.Exp(-8 * r.Float64())}[r.IntN(2)]
				if n := max(int(math.Exp(4*r.Float64()-1)/(width*width*p*(1-p))), 1); n <= 3000 {
					try([]bets{{n, p}})
				}
			}
			for range 120 {
				next := append([]bets(nil), best...)
				if len(next) == 1 && r.IntN(6) == 0 {
					next = append(next, bets{1 + r.IntN(3), r.Float64()})
				}
				b := &next[r.IntN(len(next))]
				b.n = min(max(1, int(float64(b.n)*math.Exp(0.3*r.NormFloat64()))), 3000)
				b.p = 1 / (1 + math.Exp(-math.Log(b.p/(1-b.p))-0.2*r.NormFloat64()))
				try(next)
			}
			if most > worst {
				worst, at = most, best
			}
		}
		t.Logf("%s: largest probability times e^E: %.4f, of %v", name, worst, at)
		if (worst > 1) != f.violated {
			t.Errorf("%s: the largest probability times e^E is %v", name, worst)
		}
	}
}
