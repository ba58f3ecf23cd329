package interval

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// TestContainsExactResults: the exact result (in rationals of 2000 bits) for any two points of the operands is inside.
// Rounding to nearest instead of outward fails here.
func TestContainsExactResults(t *testing.T) {
	number := rapid.OneOf(rapid.Float64Range(-1e6, 1e6), rapid.Float64Range(-1, 1), rapid.Just(0.0), rapid.Just(1.0/3))
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (Interval, float64) {
			a, b := number.Draw(t, name), number.Draw(t, name)
			i := Interval{min(a, b), max(a, b)}
			x := rapid.SampledFrom([]float64{i.Low, i.High, i.Low/2 + i.High/2}).Draw(t, name+" point")
			return i, min(max(x, i.Low), i.High)
		}
		a, x := draw("a")
		b, y := draw("b")
		X, Y := exact(x), exact(y)
		check := func(name string, got Interval, want *big.Float) {
			if exact(got.Low).Cmp(want) > 0 || exact(got.High).Cmp(want) < 0 {
				t.Fatalf("%s of %v in %v and %v in %v: %v is outside of %v", name, x, a, y, b, want, got)
			}
		}
		check("add", a.Add(b), exact(0).Add(X, Y))
		check("sub", a.Sub(b), exact(0).Sub(X, Y))
		check("mul", a.Mul(b), exact(0).Mul(X, Y))
		check("square", a.Square(), exact(0).Mul(X, X))
		if x >= 0 {
			check("sqrt", a.Sqrt(), exact(0).Sqrt(X))
		}
		if q := a.Div(b); y != 0 && !math.IsInf(q.Low, 0) && !math.IsInf(q.High, 0) {
			check("div", q, exact(0).Quo(X, Y))
		} else if !b.Contains(0) && min(math.Abs(b.Low), math.Abs(b.High)) > 1e-290 { // nearer to 0 the quotient may be beyond all numbers
			t.Fatalf("%v / %v is %v", a, b, q)
		}
	})
}

func exact(x float64) *big.Float {
	if math.IsInf(x, 0) {
		return new(big.Float).SetPrec(2000).SetInf(x < 0)
	}
	return new(big.Float).SetPrec(2000).SetFloat64(x)
}

func TestDivByZeroIsWhole(t *testing.T) {
	for _, b := range []Interval{{0, 1}, {-1, 0}, {-1, 1}, {0, 0}} {
		if got := Point(1).Div(b); got != Whole() {
			t.Errorf("1 / %v is %v", b, got)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct{ in, want Interval }{
		{Interval{-1, 2}, Interval{0, 1}}, {Interval{0.2, 0.3}, Interval{0.2, 0.3}}, {Interval{2, 3}, Interval{1, 1}}, {Interval{-3, -2}, Interval{0, 0}},
	} {
		if got := c.in.Clip(0, 1); got != c.want {
			t.Errorf("%v is clipped to %v, want %v", c.in, got, c.want)
		}
	}
}

func TestSquareAndSqrtAreNotNegative(t *testing.T) {
	if got := (Interval{-2, 1}).Square(); got.Low != 0 || got.High < 4 {
		t.Error(got)
	}
	if got := (Interval{-2, -1}).Sqrt(); got.Low != 0 || got.High > 1e-300 {
		t.Error(got)
	}
}

func TestWholeStaysWhole(t *testing.T) {
	for _, got := range []Interval{Whole().Add(Whole()), Whole().Sub(Whole()), Whole().Mul(Whole()), Point(0).Add(Whole())} {
		if got != Whole() {
			t.Error(got)
		}
	}
}
