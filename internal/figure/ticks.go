package figure

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"

	"github.com/holdoutd/holdoutd/internal/printed"
)

// LogTicks labels 1, 2 and 5 times the powers of ten.
var LogTicks = labelled(func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }, 1, 2, 5)

// PlusMinusTicks labels them ±0.01, ±0.02, ±0.05 …
var PlusMinusTicks = labelled(func(v float64) string { return "±" + strconv.FormatFloat(v, 'g', 1, 64) }, 1, 2, 5)

// CountTicks labels the powers of ten: 1, 10, 100, 1,000 …
var CountTicks = labelled(func(v float64) string { return printed.Thousands(int64(math.Round(v))) }, 1)

// labelled has ticks at 1 to 9 times the powers of ten, with labels at those times them. An axis that does not begin above 0 or does not end has none: its logarithms are no numbers.
func labelled(label func(v float64) string, times ...int) plot.TickerFunc {
	return func(low, high float64) []plot.Tick {
		var ticks []plot.Tick
		if !(low > 0 && high < math.MaxFloat64/10) { // such an axis has no logarithms, or no end
			return nil
		}
		for exponent := int(math.Floor(math.Log10(low))); math.Pow10(exponent) <= high*1.001; exponent++ {
			for i := 1; i < 10; i++ {
				v := float64(i) * math.Pow10(exponent)
				if v < low*0.999 || v > high*1.001 {
					continue
				}
				tick := plot.Tick{Value: v}
				for _, t := range times {
					if i == t {
						tick.Label = label(v)
					}
				}
				ticks = append(ticks, tick)
			}
		}
		return ticks
	}
}

// EvenTicks labels about five multiples of one, two or five times a power of ten.
var EvenTicks = plot.TickerFunc(func(low, high float64) []plot.Tick {
	decade := math.Pow(10, math.Floor(math.Log10((high-low)/4)))
	step := decade
	for _, times := range []float64{2, 5} {
		if times*decade <= (high-low)/4 {
			step = times * decade
		}
	}
	decimals := max(0, -int(math.Floor(math.Log10(step))))
	var ticks []plot.Tick
	for i := math.Ceil(low/step - 1e-9); i*step <= high+1e-9*step; i++ {
		value := i*step + 0 // no -0
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'f', decimals, 64)})
	}
	return ticks
})

// Widen gives a logarithmic axis of a single value some room: the plot's own way is to subtract 1.
func Widen(a *plot.Axis) {
	if a.Min == a.Max {
		a.Min, a.Max = a.Min/2, a.Max*2
	}
}
