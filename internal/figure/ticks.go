package figure

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// LogTicks labels 1, 2 and 5 times the powers of ten.
var LogTicks = labelled(func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }, 1, 2, 5)

// PlusMinusTicks labels them ±0.01, ±0.02, ±0.05 …
var PlusMinusTicks = labelled(func(v float64) string { return "±" + strconv.FormatFloat(v, 'g', 1, 64) }, 1, 2, 5)

// CountTicks labels the powers of ten: 1, 10, 100, 1,000 …
var CountTicks = labelled(func(v float64) string { return Thousands(int64(math.Round(v))) }, 1)

// labelled has ticks at 1 to 9 times the powers of ten, with labels at those times them.
func labelled(label func(v float64) string, times ...int) plot.TickerFunc {
	return func(low, high float64) []plot.Tick {
		var ticks []plot.Tick
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

// Thousands writes 4231 as 4,231.
func Thousands(count int64) string {
	s := strconv.FormatInt(count, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
