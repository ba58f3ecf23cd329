package widths

import (
	"cmp"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
)

// question is one that a team asks, and how a textbook answers it from rows that it may look at.
type question struct {
	name  string // in the table and the figure
	query string // JSON
	statistic
}

// statistic is what a textbook makes of rows: the value, and the half-width of an interval of z standard errors.
type statistic func(f flights, rows []int, z float64) (value, halfWidth float64)

// flights are the columns, for the textbook.
type flights struct {
	delay, distance []float64
	hour            []float64
	origin          []string
}

func flightsOf(t *dataset.Table) flights {
	var f flights
	for i := range t.Columns() {
		switch c := t.Column(i); c.Name {
		case "delay":
			f.delay = c.Numbers
		case "distance":
			f.distance = c.Numbers
		case "date":
			for _, micros := range c.Numbers {
				f.hour = append(f.hour, math.Floor(math.Mod(micros, 86400e6)/3600e6))
			}
		case "origin":
			for _, code := range c.Codes {
				f.origin = append(f.origin, c.Dictionary.Text(int(code)-1))
			}
		}
	}
	return f
}

// The numbers of a flight that questions are about.
type (
	number    func(f flights, row int) float64
	condition func(f flights, row int) bool
)

func minutes(f flights, row int) float64 { return min(max(f.delay[row], -60), 180) }
func miles(f flights, row int) float64   { return min(f.distance[row], 3000) }
func late(f flights, row int) bool       { return f.delay[row] > 15 }
func every(flights, int) bool            { return true }

func from(airports ...string) condition {
	return func(f flights, row int) bool { return slices.Contains(airports, f.origin[row]) }
}

func share(of condition) number {
	return func(f flights, row int) float64 {
		if of(f, row) {
			return 1
		}
		return 0
	}
}

// hit is 1 where a flight is late exactly if it leaves from this hour on.
func hit(hour float64) number {
	return share(func(f flights, row int) bool { return (f.hour[row] >= hour) == late(f, row) })
}

// gain is how much better one rule is than another.
func gain(than, of number) number {
	return func(f flights, row int) float64 { return of(f, row) - than(f, row) }
}

// missed is the squared error of a delay that is predicted from the distance.
func missed(f flights, row int) float64 {
	e := min(max(f.delay[row]-f.distance[row]/100, -60), 60)
	return e * e
}

// surprise is the log loss of a probability that rises with the distance.
func surprise(f flights, row int) float64 {
	p := 1 / (1 + math.Exp(1.5-0.0002*f.distance[row]))
	if late(f, row) {
		return -math.Log(p)
	}
	return -math.Log1p(-p)
}

// product of z-scores, clamped.
func product(f flights, row int) float64 {
	return min(max((minutes(f, row)-7)/30*(miles(f, row)-700)/550, -3), 3)
}

// averageOf is the mean of a number over the rows that satisfy a condition, with the standard error of the sample.
func averageOf(of number, where condition) statistic {
	return func(f flights, rows []int, z float64) (float64, float64) {
		var n, sum, squares float64
		for _, row := range rows {
			if where(f, row) {
				v := of(f, row)
				n, sum, squares = n+1, sum+v, squares+v*v
			}
		}
		mean := sum / n
		return mean, z * math.Sqrt((squares/n-mean*mean)/(n-1))
	}
}

// rootOf is the square root of a mean, with the error of the delta method.
func rootOf(s statistic) statistic {
	return func(f flights, rows []int, z float64) (float64, float64) {
		mean, half := s(f, rows, z)
		return math.Sqrt(mean), half / (2 * math.Sqrt(mean))
	}
}

// differenceOf is one mean minus another of other rows.
func differenceOf(a, b statistic) statistic {
	return func(f flights, rows []int, z float64) (float64, float64) {
		first, one := a(f, rows, z)
		second, other := b(f, rows, z)
		return first - second, math.Hypot(one, other)
	}
}

// quantileOf is the p-quantile of a number, with the interval between order statistics.
func quantileOf(of number, p float64) statistic {
	return func(f flights, rows []int, z float64) (float64, float64) {
		values := make([]float64, len(rows))
		for i, row := range rows {
			values[i] = of(f, row)
		}
		slices.Sort(values)
		n := float64(len(values))
		at := func(rank float64) float64 { return values[int(min(max(math.Ceil(rank), 1), n))-1] }
		spread := z * math.Sqrt(n*p*(1-p))
		return at(n * p), max((at(n*p+spread+1)-at(n*p-spread))/2, 0.5) // the values are whole: a tie is known to half a step
	}
}

// areaOf is the area under the ROC curve of a number that is counted in bins, with the standard error of DeLong, DeLong and Clarke-Pearson (1988).
func areaOf(score number, edges []float64, label condition) statistic {
	return func(f flights, rows []int, z float64) (float64, float64) {
		counts := [2][]float64{make([]float64, len(edges)+1), make([]float64, len(edges)+1)}
		for _, row := range rows {
			bin, _ := slices.BinarySearchFunc(edges, score(f, row), func(edge, v float64) int {
				return cmp.Compare(edge, v) // a bin is (e, e']
			})
			counts[int(share(label)(f, row))][bin]++
		}
		n := [2]float64{sumOf(counts[0]), sumOf(counts[1])}
		// The placement of a bin is the share of the other label's rows below it, ties as halves.
		spread, area := [2]float64{}, 0.0
		for label := range 2 {
			other, below := counts[1-label], 0.0
			var mean, square float64
			for bin, count := range counts[label] {
				place := (below + other[bin]/2) / n[1-label]
				below += other[bin]
				mean, square = mean+count*place/n[label], square+count*place*place/n[label]
			}
			spread[label], area = (square-mean*mean)/(n[label]-1), mean
		}
		return area, z * math.Sqrt(spread[0]+spread[1])
	}
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// questions are asked of the flights, each as the first question of a holdout of its own.
var questions = []question{
	{"mean delay", `{"type":"mean","of":"delay","range":[-60,180]}`, averageOf(minutes, every)},
	{"mean distance", `{"type":"mean","of":"distance","range":[0,3000]}`, averageOf(miles, every)},
	{"share late", `{"type":"fraction","of":"delay > 15"}`, averageOf(share(late), every)},
	{"share late, SFO", `{"type":"fraction","of":"delay > 15","where":"origin == 'SFO'"}`, averageOf(share(late), from("SFO"))},
	{"mean delay, SFO", `{"type":"mean","of":"delay","range":[-60,180],"where":"origin == 'SFO'"}`, averageOf(minutes, from("SFO"))},
	{"mean delay, three airports", `{"type":"mean","of":"delay","range":[-60,180],"where":"origin in ['ATL','ORD','DFW']"}`, averageOf(minutes, from("ATL", "ORD", "DFW"))},
	{"delay, ATL minus ORD", `{"type":"difference","of":"delay","range":[-60,180],"between":["origin == 'ATL'","origin == 'ORD'"]}`,
		differenceOf(averageOf(minutes, from("ATL")), averageOf(minutes, from("ORD")))},
	{"accuracy of a rule", `{"type":"accuracy","label":"delay > 15","prediction":"date.getHours() >= 20"}`, averageOf(hit(20), every)},
	{"compare two rules", `{"type":"compare","a":{"type":"accuracy","label":"delay > 15","prediction":"date.getHours() >= 20"},"b":{"type":"accuracy","label":"delay > 15","prediction":"date.getHours() >= 21"}}`,
		averageOf(gain(hit(20), hit(21)), every)},
	{"log loss", `{"type":"loss","loss":"log","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"clip":0.01}`, averageOf(surprise, every)},
	{"rmse", `{"type":"rmse","label":"delay","prediction":"distance / 100","max_error":60}`, rootOf(averageOf(missed, every))},
	{"clipped correlation", `{"type":"correlation","x":"delay","y":"distance","range_x":[-60,180],"range_y":[0,3000],"clip":3,"center_x":7,"scale_x":30,"center_y":700,"scale_y":550}`, averageOf(product, every)},
	{"median distance", `{"type":"median","of":"distance","range":[0,3000]}`, quantileOf(miles, 0.5)},
	{"90% quantile of distance", `{"type":"quantile","of":"distance","range":[0,3000],"p":0.9}`, quantileOf(miles, 0.9)},
	{"AUC of the hour", `{"type":"auc","label":"delay > 15","prediction":"date.getHours()","edges":[6,8,10,12,14,16,18,20]}`,
		areaOf(func(f flights, row int) float64 { return f.hour[row] }, []float64{6, 8, 10, 12, 14, 16, 18, 20}, late)},
}
