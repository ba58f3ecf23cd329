package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
)

// curve is a function of a prediction that is linear between points and constant beyond them, as of an isotonic calibration. Every prediction takes the same steps to
// its place, whatever it is.
type curve struct {
	x     []float64 // increasing; filled up with infinities to a power of two
	y     []float64 // at each x
	slope []float64 // from each x to the next; 0 at the last
	last  float64   // the last x
	half  int       // half the length of x
}

// curve reads the member "curve" of a mixture's model: a list of points [prediction, becomes]. nil if it is absent.
func (r *reader) curve(pointer string, in any) (*curve, any) {
	if in == nil {
		return nil, nil
	}
	points, ok := in.([]any)
	if !ok || len(points) < 2 {
		r.add(pointer, "must be a list of 2 points or more, each [prediction, what it becomes]")
		return nil, nil
	}
	if r.weights += len(points); r.weights > MaxWeights {
		r.add(pointer, "there are more than %d weights, points of curves among them", MaxWeights)
		return nil, nil
	}
	size := 1 << bits.Len(uint(len(points)-1))
	c := &curve{x: make([]float64, size), y: make([]float64, len(points)), slope: make([]float64, len(points)), half: size / 2}
	form := make([]any, len(points))
	for i := range c.x {
		c.x[i] = math.Inf(1)
	}
	for i, p := range points {
		at := fmt.Sprintf("%s/%d", pointer, i)
		pair, ok := p.([]any)
		if !ok || len(pair) != 2 || !isNumber(pair[0]) || !isNumber(pair[1]) {
			r.add(at, "must be a point of two numbers, [prediction, what it becomes]")
			return nil, nil
		}
		c.x[i], c.y[i] = r.number(at+"/0", pair[0], 0), r.number(at+"/1", pair[1], 0)
		form[i] = []any{c.x[i], c.y[i]}
		if i == 0 {
			continue
		}
		c.slope[i-1] = (c.y[i] - c.y[i-1]) / (c.x[i] - c.x[i-1])
		if !(c.x[i] > c.x[i-1]) || math.IsInf(c.slope[i-1], 0) {
			r.add(at, "predictions of points must increase, and not by so little that what is between them is no number")
			return nil, nil
		}
	}
	c.last = c.x[len(points)-1]
	return c, form
}

func isNumber(in any) bool {
	_, ok := in.(json.Number)
	return ok
}

// steps is about how many nanoseconds block takes for a row.
func (c *curve) steps() int64 { return treeSteps*int64(bits.Len(uint(c.half))) + curveSteps }

// curveSteps is what a line takes once its place is known.
const curveSteps = 4

// block puts what predictions become in their place. NaN stays NaN.
func (c *curve) block(predictions []float64) {
	for i, v := range predictions {
		v = min(max(v, c.x[0]), c.last)
		at := 0
		for step := c.half; step > 0; step >>= 1 {
			at += step * int(bit(v >= c.x[at+step]))
		}
		predictions[i] = float64(c.slope[at]*(v-c.x[at])) + c.y[at] // rounded twice, on every processor
	}
}
