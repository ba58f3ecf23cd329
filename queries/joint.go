package queries

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/shape"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Spreads, associations and R² as one question, for a mechanism whose intervals follow how much values vary. Their formulas are of means that need not be those of
// the plan's other form: a quotient a/b, which the training part says is about r, is r + E(A - r·B)/b. A - r·B varies less than A, and the error of b counts for little,
// since what it divides is near 0. So r, like a center, changes the interval and not the target.

// Shares of a question's probability of error on each side. Most is for the mean whose error the answer has in full; a few percent cost the others little, for their errors
// enter as products.
var (
	varianceShares    = []float64{0.1, 0.9}
	covarianceShares  = []float64{0.05, 0.05, 0.9}
	slopeShares       = []float64{0.85, 0.05, 0.05, 0.05}
	correlationShares = []float64{0.8, 0.08, 0.06, 0.03, 0.03}
	r2Shares          = []float64{0.85, 0.1, 0.05}
)

// pairMoments are the training part's second moments of two numbers about its means; the zero pairMoments where there are none.
type pairMoments struct{ x, y, xy float64 }

// pair are the centers of two numbers, and their second moments in units of the distances from these to the farther ends of the ranges.
func (c *compiler) pair(where *rowfn.Node, weight Weight, x, y *rowfn.Node, rx, ry Range) (zx, zy shape.Centered, m pairMoments) {
	middle := func(r Range) float64 { return r.Low/2 + r.High/2 }
	ax, ay := shape.CenteredAt(x, rx, middle(rx)), shape.CenteredAt(y, ry, middle(ry))
	at, about := c.centersAnd([]RowFunction{ax.Square(), ay.Square(), ax.Product(ay)}, "x", where, weight, []Range{rx, ry}, x, y)
	zx, zy = shape.CenteredAt(x, rx, at[0]), shape.CenteredAt(y, ry, at[1])
	if about != nil {
		dx, dy := (at[0]-ax.Center)/ax.Scale, (at[1]-ay.Center)/ay.Scale
		fx, fy := ax.Scale/zx.Scale, ay.Scale/zy.Scale
		m = pairMoments{max(about[0]-dx*dx, 0) * fx * fx, max(about[1]-dy*dy, 0) * fy * fy, (about[2] - dx*dy) * fx * fy}
	}
	return zx, zy, m
}

// slope is that of y on x in the training part; 0 where x does not vary.
func (m pairMoments) slope() float64 {
	if !(m.x > leastSpread*leastSpread) {
		return 0
	}
	return m.xy / m.x
}

// scales are a factor of y, with which it varies as x does and goes with it and not against it, and then the quotient of the variances of x - y and of x + y.
func (m pairMoments) scales() (factor, quotient float64) {
	if !(m.x > leastSpread*leastSpread && m.y > leastSpread*leastSpread) {
		return 1, 1
	}
	rho := min(math.Abs(m.xy)/math.Sqrt(m.x*m.y), 1)
	return math.Copysign(math.Sqrt(m.x/m.y), m.xy), (1 - rho) / (1 + rho)
}

// centered is the second moment about its own mean of a number, from the means of its square and of itself.
func centered(square, mean shape.Moment) shape.Moment {
	return shape.Moment{Value: square.Value - mean.Value*mean.Value, Bounds: square.Bounds.Sub(mean.Bounds.Square()).Clip(0, math.Inf(1))}
}

// beyond is r + excess/of, where of is known not to be negative: without a bound on the sides where it may be 0.
func beyond(r float64, excess, of shape.Moment) shape.Moment {
	bounds, at := interval.Whole(), interval.Point(r)
	switch {
	case of.Bounds.Low > 0:
		bounds = at.Add(excess.Bounds.Div(of.Bounds))
	case of.Bounds.High > 0 && excess.Bounds.Low > 0:
		bounds.Low = at.Add(interval.Point(excess.Bounds.Low).Div(interval.Point(of.Bounds.High))).Low
	case of.Bounds.High > 0 && excess.Bounds.High < 0:
		bounds.High = at.Add(interval.Point(excess.Bounds.High).Div(interval.Point(of.Bounds.High))).High
	}
	return shape.Moment{Value: r + excess.Value/of.Value, Bounds: bounds}
}

// slopeBeyond is the slope, times a scale, of the means of u·w, u², u and w, with w = v - b·u: b and the slope of w.
func slopeBeyond(b, scale float64) shape.Formula {
	return func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		variance := centered(m[1], m[2])
		covariance := shape.Moment{Value: m[0].Value - m[2].Value*m[3].Value, Bounds: m[0].Bounds.Sub(m[2].Bounds.Mul(m[3].Bounds))}
		s := beyond(b, covariance, variance)
		return s.Value * scale, s.Bounds.Mul(interval.Point(scale)), variance.Value > 0
	}
}

// correlationBeyond is Pearson's correlation times sign, of the means of q² - r·p², p², u² - v², p and q, with p = u + v and q = u - v.
//
// With R the quotient of the variances of q and p, (1-R)/(1+R) is twice the covariance of u and v by the sum of their variances; with d the difference
// of these by their sum, the correlation is that by the square root of 1 - d².
func correlationBeyond(r, sign float64) shape.Formula {
	return func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		p, one := centered(m[1], m[3]), interval.Point(1)
		mp, mq := m[3], m[4]
		excess := shape.Moment{Value: m[0].Value - mq.Value*mq.Value + r*mp.Value*mp.Value,
			Bounds: m[0].Bounds.Sub(mq.Bounds.Square()).Add(interval.Point(r).Mul(mp.Bounds.Square()))}
		of := beyond(r, excess, p)
		of.Bounds = of.Bounds.Clip(0, math.Inf(1))
		vp := max(p.Value, 0) // where u and v move together, or against each other, exactly, rounding can bring one of the variances below 0
		vq := max(excess.Value+r*vp, 0)
		uneven := (m[2].Value - mp.Value*mq.Value) / ((vp + vq) / 2)
		value := sign * min(max((vp-vq)/(vp+vq)/math.Sqrt(1-uneven*uneven), -1), 1)
		defined := vp+vq > 0 && uneven*uneven < 1

		bounds := interval.Interval{Low: -1, High: 1} // of (1-R)/(1+R), which falls as R rises
		end := func(x float64) interval.Interval { return one.Sub(interval.Point(x)).Div(one.Add(interval.Point(x))) }
		if bounds.High = end(of.Bounds.Low).High; !math.IsInf(of.Bounds.High, 1) {
			bounds.Low = end(of.Bounds.High).Low
		}
		root := interval.Interval{Low: 0, High: 1}
		if p.Bounds.Low > 0 && !math.IsInf(of.Bounds.High, 1) {
			half := p.Bounds.Mul(one.Add(of.Bounds)).Div(interval.Point(2))
			d := m[2].Bounds.Sub(mp.Bounds.Mul(mq.Bounds)).Div(half).Clip(-1, 1)
			root = one.Sub(d.Square()).Clip(0, 1).Sqrt().Clip(0, 1)
		}
		least := root.Low
		wider := func(x float64, down bool) float64 { // away from 0, at most 1
			if least <= 0 {
				return math.Copysign(1, x)
			}
			if e := interval.Point(x).Div(interval.Point(least)); down {
				return e.Low
			} else {
				return e.High
			}
		}
		if bounds.Low < 0 {
			bounds.Low = wider(bounds.Low, true)
		}
		if bounds.High > 0 {
			bounds.High = wider(bounds.High, false)
		}
		return value, bounds.Mul(interval.Point(sign)).Clip(-1, 1), defined
	}
}

// determinationBeyond is 1 - times·E[e²]/Var[z], at least -1, of the means of e² - r·z², z² and z.
func determinationBeyond(r, times float64) shape.Formula {
	return func(m []shape.Moment, _ int64) (float64, interval.Interval, bool) {
		variance := centered(m[1], m[2])
		excess := shape.Moment{Value: m[0].Value + r*m[2].Value*m[2].Value, Bounds: m[0].Bounds.Add(interval.Point(r).Mul(m[2].Bounds.Square()))}
		missed := beyond(r, excess, variance)
		bounds := interval.Point(1).Sub(missed.Bounds.Clip(0, math.Inf(1)).Mul(interval.Point(times)))
		return 1 - times*missed.Value, bounds.Clip(-1, 1), variance.Value > 0
	}
}
