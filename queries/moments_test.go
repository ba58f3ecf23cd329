package queries

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/internal/reference"
)

// A table of units for the tests of moments, quantiles and categories: numbers v and u, a condition w, a text s.
var people = dataset.Schema{Fields: []dataset.Field{{Name: "v", Kind: dataset.Number}, {Name: "u", Kind: dataset.Number}, {Name: "w", Kind: dataset.Bool},
	{Name: "s", Kind: dataset.Text}}}

func drawPeople(t *rapid.T, name string, grouped bool) []unit {
	units := make([]unit, rapid.IntRange(1, 12).Draw(t, name))
	number := rapid.OneOf(rapid.Float64Range(-80, 200), rapid.SampledFrom([]float64{-60, 0, 10, 180, 1e6}))
	for i := range units {
		rows := 1
		if grouped {
			rows = rapid.IntRange(1, 4).Draw(t, "rows")
		}
		for range rows {
			row := reference.Row{"v": number.Draw(t, "v"), "u": number.Draw(t, "u"), "w": rapid.SampledFrom([]any{nil, true, true, false}).Draw(t, "w"),
				"s": rapid.SampledFrom([]any{nil, "a", "b", "c", "d"}).Draw(t, "s")}
			for _, name := range []string{"v", "u"} {
				if rapid.IntRange(0, 6).Draw(t, "null") == 0 {
					row[name] = nil
				}
			}
			units[i] = append(units[i], row)
		}
	}
	return units
}

// vote is a row and its part in an answer.
type vote struct {
	row  reference.Row
	part float64
}

// votesOf are the rows in which where holds. With one vote a unit its rows share it; with rows, each has one.
func votesOf(units []unit, where func(reference.Row) bool, rows bool) (votes []vote) {
	total := 0.0
	for _, u := range units {
		var hold []reference.Row
		for _, r := range u {
			if where(r) {
				hold = append(hold, r)
			}
		}
		for _, r := range hold {
			part := 1.0
			if !rows {
				part /= float64(len(hold))
			}
			votes, total = append(votes, vote{r, part}), total+part
		}
	}
	for i := range votes {
		votes[i].part /= total
	}
	return votes
}

func weighted(votes []vote, x func(reference.Row) float64) (mean float64) {
	for _, v := range votes {
		mean += v.part * x(v.row)
	}
	return mean
}

func everyRow(reference.Row) bool                                  { return true }
func whereW(r reference.Row) bool                                  { return r["w"] == true }
func spreadOf(votes []vote, x func(reference.Row) float64) float64 { return covarianceIn(votes, x, x) }

func covarianceIn(votes []vote, x, y func(reference.Row) float64) float64 {
	mx, my := weighted(votes, x), weighted(votes, y)
	return weighted(votes, func(r reference.Row) float64 { return (x(r) - mx) * (y(r) - my) })
}

// column reads a number, clamped to the range of the tests, with nulls as another one.
func column(name string, null float64) func(reference.Row) float64 {
	return func(r reference.Row) float64 {
		x, ok := r[name].(float64)
		if !ok {
			x = null
		}
		return min(max(x, -60), 180)
	}
}

// clippedProduct is the mean of the product of z-scores with the constants of the training rows; false where there are none.
func clippedProduct(votes, training []vote, clip float64, scaled bool) (float64, bool) {
	x, y, null := column("v", math.NaN()), column("u", math.NaN()), func(name string) func(reference.Row) float64 { return column(name, 60) }
	mx, my := weighted(training, null("v")), weighted(training, null("u"))
	sx, sy := math.Sqrt(spreadOf(training, null("v"))), math.Sqrt(spreadOf(training, null("u")))
	if len(training) == 0 || sx < leastSpread*240*1.01 || sy < leastSpread*240*1.01 {
		return 0, false
	}
	mean := weighted(votes, func(r reference.Row) float64 {
		if r["v"] == nil || r["u"] == nil {
			return 0
		}
		return min(max((x(r)-mx)/sx*(y(r)-my)/sy, -clip), clip)
	})
	if scaled {
		mean *= sx * sy
	}
	return mean, true
}

const (
	ofV  = `"of":"v","range":[-60,180]`
	ofVU = `"x":"v","y":"u","range_x":[-60,180],"range_y":[-60,180]`
)

// TestMomentsMeanWhatTheySay: from exact means of its row functions the answer is the statistic by its definition in words, computed
// from the rows directly, whatever the center is.
func TestMomentsMeanWhatTheySay(t *testing.T) {
	v, u := column("v", -60), column("u", -60)
	variance := func(votes, _ []vote) (float64, bool) { return spreadOf(votes, v), true }
	deviation := func(votes, _ []vote) (float64, bool) { return math.Sqrt(spreadOf(votes, v)), true }
	covariance := func(votes, _ []vote) (float64, bool) { return covarianceIn(votes, v, u), true }
	pearson := func(votes, _ []vote) (float64, bool) {
		s := math.Sqrt(spreadOf(votes, v) * spreadOf(votes, u))
		return covarianceIn(votes, v, u) / s, s > 1 // nearly constant columns: checked by value only where that is well conditioned
	}
	clipped := func(clip float64, scaled bool) func(votes, training []vote) (float64, bool) {
		return func(votes, training []vote) (float64, bool) { return clippedProduct(votes, training, clip, scaled) }
	}
	for _, c := range []struct {
		body string
		want func(votes, training []vote) (float64, bool)
	}{
		{`"type":"variance",` + ofV, variance},
		{`"type":"variance","null":7,` + ofV, func(votes, _ []vote) (float64, bool) { return spreadOf(votes, column("v", 7)), true }},
		{`"type":"stddev",` + ofV, deviation},
		{`"type":"covariance","form":"exact",` + ofVU, covariance},
		{`"type":"correlation","form":"exact",` + ofVU, pearson},
		{`"type":"correlation",` + ofVU, clipped(3, false)},
		{`"type":"correlation","clip":1.5,` + ofVU, clipped(1.5, false)},
		{`"type":"covariance",` + ofVU, clipped(3, true)},
		{`"type":"mean","weights":{"of":"u","range":[0,200]},` + ofV, weightedMean(0, 200)},
		{`"type":"mean","weights":{"of":"u","range":[5,50]},"null":7,` + ofV, weightedMean(5, 50)},
		{`"type":"correlation","center_x":10,"scale_x":20,"center_y":30,"scale_y":40,` + ofVU, func(votes, _ []vote) (float64, bool) {
			return weighted(votes, func(r reference.Row) float64 {
				if r["v"] == nil || r["u"] == nil {
					return 0
				}
				return min(max((v(r)-10)/20*(u(r)-30)/40, -3), 3)
			}), true
		}},
	} {
		for _, more := range []string{"", `,"where":"w"`, `,"weight":"row"`, `,"where":"w","weight":"row"`} {
			q := mustParse(t, "{"+c.body+more+"}")
			t.Run(c.body+more, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					grouped := rapid.Bool().Draw(t, "grouped")
					units, training := drawPeople(t, "units", grouped), drawPeople(t, "training", grouped)
					where, rows := everyRow, strings.Contains(more, "row") && grouped
					if strings.Contains(more, "where") {
						where = whereW
					}
					votes := votesOf(units, where, rows)
					want, ok := c.want(votes, votesOf(training, where, rows))
					options := []Option{Grouped(grouped), Training(inMemory{training})}
					if !strings.Contains(c.body, `"form"`) && strings.Contains(c.body, `"x"`) {
						if !ok {
							return // constants that do not exist are refused: TestAssociationRefused
						}
					} else if rapid.Bool().Draw(t, "no training") {
						options = options[:1]
					}
					p, err := q.Compile(context.Background(), people, options...)
					if err != nil {
						t.Fatal(err)
					}
					got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
					if len(votes) == 0 {
						if got.Value != nil {
							t.Fatalf("no rows, and %v", *got.Value)
						}
						return
					}
					if ok {
						closeTo(t, got, want, 1e-9*240*240)
						free := p.Combine(Outcome{N: int64(len(units)), Parts: unbounded(exactParts(p, units))})
						if free.Low != nil || math.Abs(*free.Value-*got.Value) > 1e-3 {
							t.Fatalf("%v without intervals, %v with them", *free.Value, *got.Value)
						}
					}
				})
			})
		}
	}
}

// unbounded are parts of which no interval is known.
func unbounded(parts []Part) []Part {
	for i := range parts {
		parts[i].Bounded = false
	}
	return parts
}

// weightedMean is the mean of v with weights u, clamped to a range; the second case has nulls at 7.
func weightedMean(low, high float64) func(votes, _ []vote) (float64, bool) {
	return func(votes, _ []vote) (float64, bool) {
		sum, total := 0.0, 0.0
		for _, v := range votes {
			w, null := low, map[float64]float64{0: -60, 5: 7}[low]
			if u, ok := v.row["u"].(float64); ok {
				w = min(max(u, low), high)
			}
			sum, total = sum+v.part*w*column("v", null)(v.row), total+v.part*w
		}
		return sum / total, total > 1e-3
	}
}

// closeTo checks an answer from exact parts: the variance of the rounding of a square root is the root of that.
func closeTo(t *rapid.T, got Result, want, tolerance float64) {
	if math.Abs(want) < 1 {
		tolerance = math.Sqrt(tolerance)
	}
	if got.Value == nil || math.Abs(*got.Value-want) > tolerance {
		t.Fatalf("got %v, want %v", show(got.Value), want)
	}
	if *got.Low > want+tolerance || *got.High < want-tolerance || *got.Low > *got.Value || *got.Value > *got.High {
		t.Fatalf("the interval of exact parts is [%v, %v] around %v", *got.Low, *got.High, want)
	}
}

// TestMomentIdentities pins canonical forms: other spellings, orders of members and defaults that are said are the same question.
func TestMomentIdentities(t *testing.T) {
	for _, c := range [][2]string{
		{`{"range":[-6e1,180.0],"ddof":0,"null":-60,"weight":"unit","of":"(v)","note":"x","type":"variance"}`, `{"of":"v","range":[-60,180],"type":"variance"}`},
		{`{"type":"stddev","ddof":1.0,"of":"v","range":[-60,180]}`, `{"ddof":1,"of":"v","range":[-60,180],"type":"stddev"}`},
		{`{"type":"correlation","form":"clipped","clip":3.0,"scale_x":2e1,` + ofVU + `}`, `{"range_x":[-60,180],"range_y":[-60,180],"scale_x":20,"type":"correlation","x":"v","y":"u"}`},
		// What was asked without a form has the identity that it always had. The form that is named is another question, unless it is the only one that there can be.
		{`{"type":"correlation",` + ofVU + `}`, `{"range_x":[-60,180],"range_y":[-60,180],"type":"correlation","x":"v","y":"u"}`},
		{`{"type":"correlation","form":"clipped",` + ofVU + `}`, `{"form":"clipped","range_x":[-60,180],"range_y":[-60,180],"type":"correlation","x":"v","y":"u"}`},
		{`{"type":"correlation","clip":3.0,` + ofVU + `}`, `{"form":"clipped","range_x":[-60,180],"range_y":[-60,180],"type":"correlation","x":"v","y":"u"}`},
		{`{"type":"correlation","clip":2.0,` + ofVU + `}`, `{"clip":2,"range_x":[-60,180],"range_y":[-60,180],"type":"correlation","x":"v","y":"u"}`},
		{`{"type":"covariance","form":"exact","where":"w  ",` + ofVU + `}`, `{"form":"exact","range_x":[-60,180],"range_y":[-60,180],"type":"covariance","where":"w","x":"v","y":"u"}`},
		{`{"type":"quantile","p":5e-1,"resolution":1.50,` + ofV + `}`, `{"of":"v","p":0.5,"range":[-60,180],"resolution":1.5,"type":"quantile"}`},
		{`{"type":"median",` + ofV + `}`, `{"of":"v","range":[-60,180],"type":"median"}`},
		{`{"type":"histogram","edges":[-0.0, 1e1],"of":"v + 1.0"}`, `{"edges":[0,10],"of":"v + 1","type":"histogram"}`},
		{`{"type":"frequencies","values":["\u0062","a"],"of":"s"}`, `{"of":"s","type":"frequencies","values":["b","a"]}`},
		{`{"type":"groups","null":-60,"by":"(s)",` + ofV + `}`, `{"by":"s","of":"v","range":[-60,180],"type":"groups"}`},
		{`{"type":"mean","weights":{"range":[0,1.0],"of":"2*u"},` + ofV + `}`, `{"of":"v","range":[-60,180],"type":"mean","weights":{"of":"u * 2","range":[0,1]}}`},
	} {
		q := mustParse(t, c[0])
		if got := string(q.Canonical()); got != c[1] {
			t.Errorf("%s:\n got %s\nwant %s", c[0], got, c[1])
		}
		if again := mustParse(t, c[1]); again.ID() != q.ID() {
			t.Errorf("%s is not its own form", c[1])
		}
	}
}

func TestDdof(t *testing.T) {
	p := compiled(t, `{"type":"variance","ddof":1,`+ofV+`}`, people)
	parts := []Part{{Value: 0.5}, {Value: 0.25}}
	if got := p.Combine(Outcome{N: 5, Parts: parts}); math.Abs(*got.Value-0.25*120*120*5/4) > 1e-9 || got.Low != nil {
		t.Errorf("%v", *got.Value)
	}
	if got := p.Combine(Outcome{N: 5, Parts: []Part{{Value: 0.5, Low: 0.5, High: 0.5, Bounded: true}, {Value: 0.25, Low: 0.25, High: 0.25, Bounded: true}}}); *got.Value > *got.High {
		t.Errorf("%v is above its own interval, which ends at %v", *got.Value, *got.High)
	}
	if got := mustParse(t, `{"type":"variance","ddof":0,`+ofV+`}`).Canonical(); strings.Contains(string(got), "ddof") {
		t.Errorf("%s says a default", got)
	}
}

func compiled(t testing.TB, body string, schema dataset.Schema, options ...Option) *Plan {
	t.Helper()
	p, err := mustParse(t, body).Compile(context.Background(), schema, options...)
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return p
}

// noisy releases means with an error, in intervals that hold them.
type noisy struct {
	t     *rapid.T
	means []Part
	width float64
	asked []int
}

func (n *noisy) Together() bool { return true }

func (n *noisy) Number(function int) (Part, error) {
	n.asked = append(n.asked, function)
	return n.part(function), nil
}

func (n *noisy) part(function int) Part {
	m := n.means[function].Value
	off := rapid.Float64Range(-n.width, n.width).Draw(n.t, "noise")
	return Part{Value: m + off, Low: min(m, m+off) - n.width/8, High: max(m, m+off) + n.width/8, Bounded: true}
}

func (n *noisy) Vector(first, count int, _ float64) (parts []Part, err error) {
	for i := range count {
		parts = append(parts, n.part(first+i))
	}
	return parts, nil
}

func (n *noisy) Select(int, int, int64) (Choice, error) { return Choice{}, errors.New("no selections") }

// TestMomentIntervalsHold: if every released interval holds the true mean, the answer's intervals hold what the exact means make.
func TestMomentIntervalsHold(t *testing.T) {
	for _, body := range []string{
		`{"type":"variance",` + ofV + `}`, `{"type":"stddev","where":"w",` + ofV + `}`,
		`{"type":"covariance","form":"exact",` + ofVU + `}`, `{"type":"correlation","form":"exact",` + ofVU + `}`,
		`{"type":"correlation","form":"exact","where":"w",` + ofVU + `}`, `{"type":"covariance","center_x":0,"scale_x":40,"center_y":10,"scale_y":40,"where":"w",` + ofVU + `}`,
		`{"type":"quantile","p":0.7,"resolution":9,` + ofV + `}`, `{"type":"median","resolution":9,"where":"w",` + ofV + `}`,
		`{"type":"mean","weights":{"of":"u","range":[0,100]},"where":"w",` + ofV + `}`,
		`{"type":"histogram","of":"v","edges":[0,10,50]}`, `{"type":"histogram","of":"v","edges":[0,10,50],"where":"w"}`,
		`{"type":"frequencies","of":"s","values":["a","b"],"where":"w"}`, `{"type":"groups","by":"s","values":["a","b","c"],` + ofV + `}`,
	} {
		t.Run(body, func(t *testing.T) {
			q := mustParse(t, body)
			rapid.Check(t, func(t *rapid.T) {
				grouped := rapid.Bool().Draw(t, "grouped")
				units := drawPeople(t, "units", grouped)
				p, err := q.Compile(context.Background(), people, Grouped(grouped))
				if err != nil {
					t.Fatal(err)
				}
				parts, width := exactParts(p, units), rapid.SampledFrom([]float64{0, 1e-6, 0.01, 0.3}).Draw(t, "width")
				got, truth := released(t, p, &noisy{t: t, means: parts, width: width}), released(t, p, &noisy{t: t, means: parts})
				if strings.Contains(body, "w") && truth.Value == nil && len(truth.Items) == 0 {
					return // nothing to ask about
				}
				if len(got.Items) == 0 {
					truth.Items, got.Items = []Item{{Value: truth.Value}}, []Item{{Value: got.Value, Low: got.Low, High: got.High}}
				}
				for i, item := range got.Items {
					want := truth.Items[i].Value
					if item.Value != nil && (*item.Value < *item.Low || *item.Value > *item.High) {
						t.Fatalf("%s: %v is outside of its interval [%v, %v]", item.Of, *item.Value, *item.Low, *item.High)
					}
					const slack = 1e-6 // of the rounding in exact parts, whose own intervals are points
					if want != nil && (*item.Low > *want+slack || *item.High < *want-slack) {
						t.Fatalf("%s: [%v, %v] does not hold %v", item.Of, *item.Low, *item.High, *want)
					}
				}
			})
		})
	}
}

func released(t *rapid.T, p *Plan, r Releaser) Result {
	o, err := p.Release(1000, r)
	if err != nil {
		t.Fatal(err)
	}
	return p.Combine(o)
}

// TestCenterNarrows: the half-width of a variance is (s² + 2|c - mean|·width) times that of a mean to first order, with s the
// larger distance of the center c from an end of the range, which is least at the mean.
func TestCenterNarrows(t *testing.T) {
	units := []unit{{reference.Row{"v": -50.0}}, {reference.Row{"v": -30.0}}}
	width := func(options ...Option) float64 {
		p := compiled(t, `{"type":"variance","of":"v","range":[-500,180]}`, people, options...)
		parts := exactParts(p, units)
		for i := range parts {
			parts[i].Low -= 1e-6
			parts[i].High += 1e-6
		}
		r := p.Combine(Outcome{N: 2, Parts: parts})
		return *r.High - *r.Low
	}
	middle, trained := width()/1e-6, width(Training(inMemory{units}))/1e-6
	if math.Abs(trained/(460*460*2)-1) > 1e-3 || math.Abs(middle/((340*340+2*120*680)*2)-1) > 1e-3 {
		t.Errorf("±%v about the mean, ±%v about the middle", trained/2, middle/2)
	}
}

// TestCorrelationTellsItsSign: where a variance may be 0 as far as is known, a covariance that is surely positive still says so.
func TestCorrelationTellsItsSign(t *testing.T) {
	p := compiled(t, `{"type":"correlation","form":"exact","x":"v","y":"u","range_x":[-1,1],"range_y":[-1,1]}`, people)
	part := func(low, high float64) Part {
		return Part{Value: (low + high) / 2, Low: low, High: high, Bounded: true}
	}
	got := p.Combine(Outcome{N: 10, Parts: []Part{part(0.5, 0.5), part(0.5, 0.5), part(0.7, 0.8), part(0, 0.8), part(0.3, 0.8)}})
	if math.Abs(*got.Low-0.4/0.8) > 1e-9 || *got.High != 1 {
		t.Errorf("[%v, %v]", *got.Low, *got.High)
	}
}

func TestAssociationRefused(t *testing.T) {
	constant := Training(inMemory{[]unit{{reference.Row{"v": 3.0, "u": 4.0, "w": false}}, {reference.Row{"v": 3.0, "u": 5.0, "w": false}}}})
	for _, c := range []struct {
		body, want string
		options    []Option
	}{
		{`{"type":"correlation",` + ofVU + `}`, "/x: is needed: this holdout has no training part to take it from; declare center_x and scale_x", nil},
		{`{"type":"correlation",` + ofVU + `}`, "/x: hardly varies in the training part, within its range; declare scale_x", []Option{constant}},
		{`{"type":"correlation","center_x":3,"scale_x":1,"where":"w",` + ofVU + `}`, "/where: holds nowhere in the training part; declare center_y and scale_y", []Option{constant}},
		{`{"type":"variance","of":"s","range":[0,1]}`, "/of: 1:1: ", nil},
		{`{"type":"mean","weights":{"of":"w","range":[0,1]},` + ofV + `}`, "/weights/of: 1:1: this is a condition", nil},
		{`{"type":"covariance","x":"w","y":"u","range_x":[0,1],"range_y":[0,1]}`, "/x: 1:1: this is a condition", nil},
		{`{"type":"frequencies","of":"v"}`, "/of: must be a text column", nil},
		{`{"type":"frequencies","of":"s == 'a'"}`, "/of: must be the name of a text column", nil},
		{`{"type":"frequencies","of":"t"}`, `/of: 1:1: unknown column "t"`, nil},
		{`{"type":"frequencies","of":"s"}`, "/values: is missing: this holdout has no training part", nil},
		{`{"type":"frequencies","of":"s"}`, "/values: is missing: the column is null in all of the training part", []Option{constant}},
		{`{"type":"groups","by":"v",` + ofV + `}`, "/values: is missing, or edges: this holdout has no training part", nil},
		{`{"type":"groups","by":"v + u",` + ofV + `}`, "/values: is missing, or edges: by is computed", nil},
		{`{"type":"groups","by":"v","values":["a"],` + ofV + `}`, "/values: must be numbers, as by is", nil},
		{`{"type":"groups","by":"s","values":[1],` + ofV + `}`, "/values: must be texts, as by is", nil},
		{`{"type":"groups","by":"s","edges":[1,2],` + ofV + `}`, "/edges: are of a number", nil},
		{`{"type":"groups","by":"w","values":[1],` + ofV + `}`, "/by: is a condition, whose groups are true and false", nil},
		{`{"type":"groups","by":"w","of":"v"}`, `/range: is missing: a number needs "range": [low, high]`, nil},
		{`{"type":"groups","by":"s","of":"w","range":[0,1],"values":["a"]}`, "/range: a condition is 1 or 0", nil},
		{`{"type":"groups","by":"S","of":"w"}`, `/by: 1:1: unknown column "S"`, nil},
		{`{"type":"histogram","of":"s","edges":[0,1]}`, "/of: 1:1: ", nil},
		{`{"type":"quantile","p":0.5,"of":"w","range":[0,1]}`, "/of: 1:1: this is a condition", nil},
	} {
		_, err := mustParse(t, c.body).Compile(context.Background(), people, c.options...)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s:\n got %v\nwant %s", c.body, err, c.want)
		}
	}
}

// TestCalendar: groups by a part of a time that has few values are told all of them, and are asked by them then.
func TestCalendar(t *testing.T) {
	timed := dataset.Schema{Fields: append([]dataset.Field{{Name: "day", Kind: dataset.Time}}, people.Fields...)}
	for part, want := range map[string]string{
		"getMonth": "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11", "getDayOfWeek": "0, 1, 2, 3, 4, 5, 6",
		"getDate":       "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
		"getDayOfMonth": "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30",
		"getHours":      "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23", "getFullYear": "", "getMinutes": "",
	} {
		by := `{"type":"groups","of":"w","by":"day.` + part + `()"`
		_, err := mustParse(t, by+"}").Compile(context.Background(), timed)
		var e *Error
		if !errors.As(err, &e) || len(e.Violations) != 1 {
			t.Fatalf("%s: %v", part, err)
		}
		_, list, said := strings.Cut(e.Violations[0].Detail, "; all values are [")
		if said != (want != "") || said && list != want+"]" {
			t.Errorf("%s: %s", part, e.Violations[0].Detail)
		}
		if !said {
			continue
		}
		if _, err := mustParse(t, by+`,"values":[`+list+"}").Compile(context.Background(), timed); err != nil {
			t.Errorf("%s: with what it is told: %v", part, err)
		}
	}
}

func TestMomentsRefused(t *testing.T) {
	quantile := func(more string) string { return `{"type":"quantile",` + ofV + more + `}` }
	for _, c := range [][2]string{
		{`{"type":"variance","where":"w","ddof":1,` + ofV + `}`, "/ddof: goes without where"},
		{`{"type":"variance","ddof":2,` + ofV + `}`, "/ddof: must be 0 or 1"},
		{`{"type":"stddev","null":181,` + ofV + `}`, "/null: must lie in the range"},
		{`{"type":"correlation","form":"exact","center_x":3,` + ofVU + `}`, `/center_x: goes with "form":"clipped"`},
		{`{"type":"correlation","form":"exact","clip":2,` + ofVU + `}`, `/clip: goes with "form":"clipped"`},
		{`{"type":"correlation","clip":1e7,` + ofVU + `}`, `/clip: must lie in`},
		{`{"type":"correlation","center_x":-61,` + ofVU + `}`, "/center_x: must lie in the range"},
		{`{"type":"correlation","scale_y":0.001,` + ofVU + `}`, "/scale_y: must be between"},
		{`{"type":"correlation","scale_y":0,` + ofVU + `}`, "/scale_y: must be more than 0"},
		{`{"type":"correlation","guess":3.5,` + ofVU + `}`, "/guess: must lie in the range"},
		{`{"type":"covariance","half_width":0,` + ofVU + `}`, "/half_width: must be more than 0"},
		{`{"type":"groups","by":"s","guess":0.5,` + ofV + `}`, "/guess: must be an object of numbers by the names of the answer's items"},
		{`{"type":"groups","by":"s","guess":{},` + ofV + `}`, "/guess: must have 1 to"},
		{`{"type":"groups","by":"s","guess":{"a/b":"1"},` + ofV + `}`, "/guess/a~1b: must be a finite number"},
		{quantile(``), `"p" is missing`}, {quantile(`,"p":0`), "/p: must be more than 0"}, {quantile(`,"p":1`), "/p: must be less than 1"},
		{quantile(`,"p":0.5,"resolution":240`), "/resolution: must be less than the width"},
		{quantile(`,"p":0.5,"resolution":0.01`), "/resolution: divides the range into more than 4095 cells"},
		{`{"type":"median","p":0.5,` + ofV + `}`, "/p: unknown member"},
		{`{"type":"mean","weights":3,` + ofV + `}`, `/weights: must be an object: {"of": …, "range": […]}, not a number`},
		{`{"type":"mean","weights":{"off":"u","range":[-1,1]},` + ofV + `}`, `/weights: "of" is missing: the weight: a row expression; a null counts as the low end of the range; /weights/off: unknown member; weights have of and range; did you mean of?; /weights/range: must not hold negative`},
		{`{"type":"histogram","of":"v","edges":[1]}`, "/edges: must be a list of 2"},
		{`{"type":"histogram","of":"v","edges":[1,1]}`, "/edges/1: must be more than the number before"},
		{`{"type":"histogram","of":"v","edges":[1,"2"]}`, "/edges/1: must be a finite number"},
		{`{"type":"frequencies","of":"s","values":[]}`, "/values: must be a list of 1"},
		{`{"type":"frequencies","of":"s","values":["a","a"]}`, "/values/1: occurs twice"},
		{`{"type":"frequencies","of":"s","values":["a",2]}`, "/values/1: must be a text"},
		{`{"type":"groups","by":"s","null":200,` + ofV + `}`, "/null: must lie in the range"},
		{`{"type":"groups","by":"v","values":[1,"a"],` + ofV + `}`, "/values/1: must be a number, as the first is"},
		{`{"type":"groups","by":"v","values":[1,1.0],` + ofV + `}`, "/values/1: occurs twice"},
		{`{"type":"groups","by":"v","values":[1],"edges":[0,1],` + ofV + `}`, "/edges: goes without values"},
	} {
		_, err := Parse([]byte(c[0]))
		var e *Error
		if !errors.As(err, &e) || e.Kind != Invalid || !strings.Contains(e.Error(), c[1]) {
			t.Errorf("%s:\n got %v\nwant %s", c[0], err, c[1])
		}
	}
}

// TestSharesMeanWhatTheySay: histogram, frequencies and groups against rows counted one by one.
func TestSharesMeanWhatTheySay(t *testing.T) {
	v := column("v", -60)
	text := func(want string) func(reference.Row) bool {
		return func(r reference.Row) bool { return r["s"] == want }
	}
	between := func(low, high float64) func(reference.Row) bool {
		return func(r reference.Row) bool { x, ok := r["v"].(float64); return ok && x >= low && x < high }
	}
	noText := func(r reference.Row) bool { return r["s"] == nil }
	is := func(name string, want any) func(reference.Row) bool {
		return func(r reference.Row) bool { return r[name] == want }
	}
	positive := func(r reference.Row) float64 { x, ok := r["v"].(float64); return indicator(ok && x > 0) }
	others := func(r reference.Row) bool { return r["s"] != nil && r["s"] != "a" && r["s"] != "b" }
	bins := []func(reference.Row) bool{between(math.Inf(-1), 0), between(0, 10), between(10, math.Nextafter(180, 181)), between(math.Nextafter(180, 181), math.Inf(1)),
		func(r reference.Row) bool { return r["v"] == nil }}
	for _, c := range []struct {
		body  string
		names string
		holds []func(reference.Row) bool
		value func(reference.Row) float64 // nil: shares
	}{
		{`"type":"histogram","of":"v","edges":[0,10,180]`, "below 0|[0, 10)|[10, 180]|above 180|null", bins, nil},
		{`"type":"frequencies","of":"s","values":["b","a"]`, "b|a|other|null", []func(reference.Row) bool{text("b"), text("a"), others, noText}, nil},
		{`"type":"groups","by":"s","values":["a","b"],` + ofV, "a|b|other|null", []func(reference.Row) bool{text("a"), text("b"), others, noText}, v},
		{`"type":"groups","by":"s","values":["a","b"],"of":"v > 0.0"`, "a|b|other|null", []func(reference.Row) bool{text("a"), text("b"), others, noText}, positive},
		{`"type":"groups","by":"v","edges":[0,10,180],` + ofV, "below 0|[0, 10)|[10, 180]|above 180|null", bins, v},
		{`"type":"groups","by":"v","values":[10,-60],` + ofV, "10|-60|other|null", []func(reference.Row) bool{is("v", 10.0), is("v", -60.0),
			func(r reference.Row) bool { return r["v"] != nil && r["v"] != 10.0 && r["v"] != -60.0 }, func(r reference.Row) bool { return r["v"] == nil }}, v},
		{`"type":"groups","by":"w",` + ofV, "true|false|null", []func(reference.Row) bool{is("w", true), is("w", false), is("w", nil)}, v},
		{`"type":"groups","by":"v > 0.0","of":"w"`, "true|false", []func(reference.Row) bool{func(r reference.Row) bool { return positive(r) == 1 }, func(r reference.Row) bool { return positive(r) == 0 }},
			func(r reference.Row) float64 { return indicator(whereW(r)) }},
	} {
		for _, more := range []string{"", `,"where":"w"`} {
			q := mustParse(t, "{"+c.body+more+"}")
			t.Run(c.body+more, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					grouped := rapid.Bool().Draw(t, "grouped")
					units := drawPeople(t, "units", grouped)
					p, err := q.Compile(context.Background(), people, Grouped(grouped))
					if err != nil {
						t.Fatal(err)
					}
					where := everyRow
					if more != "" {
						where = whereW
					}
					got := p.Combine(Outcome{N: int64(len(units)), Parts: exactParts(p, units)})
					var names []string
					for i, item := range got.Items {
						names = append(names, item.Of)
						want, defined := shareIn(units, where, c.holds[i], c.value)
						if !defined {
							if item.Value != nil && *item.Value != 0 {
								t.Fatalf("%s: %v of nothing", item.Of, *item.Value)
							}
							continue
						}
						closeTo(t, Result{Value: item.Value, Low: item.Low, High: item.High}, want, 1e-9)
					}
					if strings.Join(names, "|") != c.names {
						t.Fatalf("%q, want %s", names, c.names)
					}
					checkVariance(t, p, units)
				})
			})
		}
	}
}

// shareIn is the share of votes with which holds among those with where, or the mean of a value where holds; in groups a row has an
// equal share of the vote of all the unit's rows.
func shareIn(units []unit, where, holds func(reference.Row) bool, value func(reference.Row) float64) (float64, bool) {
	if value == nil {
		votes := votesOf(units, where, false)
		return weighted(votes, func(r reference.Row) float64 { return indicator(holds(r)) }), len(votes) > 0
	}
	sum, total := 0.0, 0.0
	for _, u := range units {
		for _, r := range u {
			if where(r) && holds(r) {
				sum, total = sum+value(r)/float64(len(u)), total+1/float64(len(u))
			}
		}
	}
	return sum / total, total > 0
}

// checkVariance holds the bound that a vector's price rests on.
func checkVariance(t *rapid.T, p *Plan, units []unit) {
	first := 0
	for _, r := range p.Releases() {
		total := 0.0
		for i := first; i < first+r.Count; i++ {
			sum, squares := 0.0, 0.0
			for _, u := range units {
				x := unitValue(p.Functions[i], u, 4)
				sum, squares = sum+x, squares+x*x
			}
			n := float64(len(units))
			total += squares/n - sum/n*sum/n
		}
		if r.Kind == Vector && total > r.Variance+1e-12 {
			t.Fatalf("variances add up to %v, declared are %v", total, r.Variance)
		}
		first += r.Count
	}
}

// TestVarianceIsReached: the declared bounds are no larger than needed.
func TestVarianceIsReached(t *testing.T) {
	for _, c := range []struct {
		body  string
		units []unit
	}{
		{`{"type":"frequencies","of":"s","values":["a","b"]}`, []unit{{{"s": "a"}}, {{"s": "b"}}, {{"s": "c"}}, {{"s": nil}}}},
		{`{"type":"frequencies","of":"s","values":["a","b"],"where":"w"}`, []unit{{{"s": "a", "w": true}}, {{"s": "b", "w": true}}, {{"s": "c", "w": true}}, {{"s": nil, "w": true}}, {{"w": false}}}},
		{`{"type":"groups","by":"s","values":["a"],` + ofV + `}`, []unit{{{"s": "a", "v": 180.0}}, {{"s": "b", "v": 180.0}}, {{"v": 180.0}}, {{"s": "a", "v": -60.0}}, {{"s": "b", "v": -60.0}}, {{"v": -60.0}}}},
	} {
		p := compiled(t, c.body, people)
		total := 0.0
		for _, part := range exactParts(p, c.units) {
			total += part.Value * (1 - part.Value) // every function is 0 or 1 here
		}
		if r := p.Releases()[0]; r.Kind != Vector || math.Abs(total-r.Variance) > 1e-7 {
			t.Errorf("%s: %v, declared %v", c.body, total, r.Variance)
		}
	}
}

// counted is a training part that has these texts, each as often as said.
type counted struct {
	texts []string
	often []float64
}

func (c counted) Means(_ context.Context, functions []RowFunction) ([]float64, error) {
	return c.often[:len(functions)], nil
}
func (c counted) Texts(string) []string { return c.texts }

// TestTrainingCategories: few values are all taken, of many the most frequent ones in their own order, and of too many none.
func TestTrainingCategories(t *testing.T) {
	c := counted{}
	for i := range maxDistinct {
		c.texts = append(c.texts, fmt.Sprintf("v%05d", i))
		c.often = append(c.often, float64(i%200)/1e5)
	}
	q := mustParse(t, `{"type":"frequencies","of":"s"}`)
	few := counted{c.texts[:MaxTrainingValues], nil}
	p, err := q.Compile(context.Background(), people, Training(few))
	if err != nil || len(p.Functions) != MaxTrainingValues+2 {
		t.Fatal(err)
	}
	if p, err = q.Compile(context.Background(), people, Training(c)); err != nil || len(p.Functions) != MaxTrainingValues+2 {
		t.Fatal(err)
	}
	parts := make([]Part, len(p.Functions))
	items := p.Combine(Outcome{N: 10, Parts: parts}).Items
	names := make([]string, len(items))
	for i := range items {
		names[i] = items[i].Of
	}
	// Five values are the most frequent, five come next, …; of every 200 that are the last 20.
	if names[0] != "v00180" || names[19] != "v00199" || names[20] != "v00380" || !slices.IsSorted(names[:MaxTrainingValues]) || names[MaxTrainingValues] != "other" {
		t.Errorf("%v", names)
	}
	c.texts, c.often = append(c.texts, "w"), append(c.often, 0)
	if _, err := q.Compile(context.Background(), people, Training(c)); err == nil || !strings.Contains(err.Error(), "more than 1000 values") {
		t.Error(err)
	}
}

// Column implements TrainingPart: nothing is known.
func (counted) Column(string) (ColumnFacts, bool) { return ColumnFacts{}, false }

// Numbers implements TrainingPart.
func (counted) Numbers(string, int) []float64 { return nil }
