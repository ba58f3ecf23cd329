package model

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
)

// curve is a function of a prediction: linear between points and constant beyond them, as of an isotonic calibration, or logistic, as of a sigmoid one. Every prediction
// takes the same steps to its place, whatever it is.
type curve struct {
	logistic *logistic // nil of points

	x     []float64 // increasing; filled up with infinities to a power of two
	y     []float64 // at each x
	slope []float64 // from each x to the next; 0 at the last
	last  float64   // the last x
	half  int       // half the length of x
}

// logistic is 1/(1+exp(-(slope · prediction + intercept))).
type logistic struct{ slope, intercept float64 }

// curve reads a curve of a mixture's model: a list of points [prediction, becomes], or {"slope": …, "intercept": …}.
func (r *reader) curve(pointer string, in any) (*curve, any) {
	if o, ok := in.(map[string]any); ok {
		r.object(pointer, in, "slope", "intercept")
		if o["slope"] == nil {
			r.add(pointer+"/slope", "must be a number")
		}
		if r.weights++; r.weights > MaxWeights {
			r.add(pointer, "there are more than %d weights, points of curves among them", MaxWeights)
		}
		l := &logistic{r.number(pointer+"/slope", o["slope"], 1), r.number(pointer+"/intercept", o["intercept"], 0)}
		form := map[string]any{"slope": l.slope}
		if l.intercept != 0 {
			form["intercept"] = l.intercept
		}
		return &curve{logistic: l}, form
	}
	points, ok := in.([]any)
	if !ok || len(points) < 2 {
		r.add(pointer, `must be a list of 2 points or more, each [prediction, what it becomes], or {"slope": a, "intercept": b}`)
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
func (c *curve) steps() int64 {
	if c.logistic != nil {
		return exponentialSteps
	}
	return halfSteps*int64(bits.Len(uint(c.half))) + curveSteps
}

// What a curve takes: each half of its points, and a line once its place is known.
const (
	halfSteps  = 2
	curveSteps = 4
)

// block puts what predictions become in their place. NaN stays NaN.
func (c *curve) block(predictions []float64) {
	if l := c.logistic; l != nil {
		for i, v := range predictions {
			predictions[i] = Logit.Of(math.FMA(l.slope, v, l.intercept))
		}
		return
	}
	for i, v := range predictions {
		v = min(max(v, c.x[0]), c.last)
		at := 0
		for step := c.half; step > 0; step >>= 1 {
			at += step * int(bit(v >= c.x[at+step]))
		}
		predictions[i] = float64(c.slope[at]*(v-c.x[at])) + c.y[at] // rounded twice, on every processor
	}
}
