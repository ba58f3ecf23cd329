// Package statements holds tests of what answers and explanations state: targets, prices and widths.
package statements

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dataset/ingest/ingesttest"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

func TestMain(m *testing.M) {
	ingesttest.Child()
	os.Exit(m.Run())
}

var (
	admin   = holdout.Principal{KeyID: "key_admin", Name: "admin", Scope: holdout.Admin}
	analyst = holdout.Principal{KeyID: "key_ana", Name: "ana", Scope: holdout.Analyst}
)

// open opens a service that is closed with the test.
func open(t *testing.T) *holdout.Service {
	t.Helper()
	stattest.Secrets(t)
	s, err := holdout.Open(t.Context(), holdout.Options{Dir: t.TempDir(), AnyFileSystem: true, Decoder: ingesttest.Decoder(t), Version: "test", AllowNaive: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// parquet is a table as an uploaded file.
func parquet(t *testing.T, table *dataset.Table) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return &b
}

// create makes a holdout of a table.
func create(t *testing.T, s *holdout.Service, set holdout.Settings, table *dataset.Table) holdout.Card {
	t.Helper()
	card, _, err := s.Create(t.Context(), admin, set, holdout.SingleUpload(parquet(t, table)), "")
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// What an answer prints about its interval is true: the target is recomputed from a population that is known, by its definition in words and by code that shares
// nothing with queries and kernels. Who votes how much is read off the printed sentence.

// person is one row.
type person struct {
	x    float64 // within [0,10], NaN where it is null
	y, s float64 // within [-2,2] and [0,1]
	g    string  // a, b, c or d
	w, z bool
}

// clinic is a kind of unit, which is drawn with this probability.
type clinic struct {
	probability float64
	people      []person
}

// population draws kinds of units, of one row or of up to five. In some of them w holds in few rows, and y is larger: how units vote matters. In a heavy
// population one unit in some thousands has so many rows that they are two thirds of all, unlike the others: most training parts have no such unit.
func population(r *rand.Rand, grouped, heavy bool) (all []clinic) {
	draw := func(often, shift float64) person {
		p := person{x: math.Round(40*r.Float64()) / 4, y: math.Round(8*(r.Float64()-0.5)*r.Float64()*16)/16 + shift, s: math.Round(20*r.Float64()) / 20,
			g: []string{"a", "a", "b", "b", "c", "d"}[r.IntN(6)], w: r.Float64() < often}
		p.y = min(max(p.y, -2), 2)
		p.z = r.Float64() < 0.2+0.6*p.s
		if r.IntN(10) == 0 {
			p.x = math.NaN()
		}
		return p
	}
	const kinds, rare = 60, 0.0003
	for range kinds {
		c := clinic{probability: 1.0 / kinds}
		size := 1
		if grouped {
			size = 1 + r.IntN(5)
		}
		often, shift := 0.9, -0.5
		if r.IntN(2) == 0 {
			often, shift = 0.2, 0.9
		}
		for range size {
			c.people = append(c.people, draw(often, shift))
		}
		all = append(all, c)
	}
	if heavy {
		for i := range all {
			all[i].probability *= 1 - rare
		}
		big := clinic{probability: rare}
		for range 20_000 {
			p := draw(0.5, 1.5)
			p.x, p.w, p.z, p.g = 9, true, true, "d"
			big.people = append(big.people, p)
		}
		all = append(all, big)
	}
	return all
}

// sampled draws units of a population into a table; ids are the units' own.
func sampled(t *testing.T, r *rand.Rand, from []clinic, units int) *dataset.Table {
	t.Helper()
	number := func(name string) dataset.Column {
		return dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}}
	}
	id, x, y, s := number("ward"), number("x"), number("y"), number("s")
	w := dataset.Column{Field: dataset.Field{Name: "w", Kind: dataset.Bool, Source: "BOOLEAN"}}
	z := dataset.Column{Field: dataset.Field{Name: "z", Kind: dataset.Bool, Source: "BOOLEAN"}}
	var g []string
	bit := func(b bool) uint8 {
		if b {
			return 1
		}
		return 0
	}
	for u := range units {
		at := r.Float64()
		i := 0
		for ; i < len(from)-1 && at >= from[i].probability; i++ {
			at -= from[i].probability
		}
		for _, p := range from[i].people {
			id.Numbers, x.Numbers, y.Numbers, s.Numbers = append(id.Numbers, float64(u)), append(x.Numbers, p.x), append(y.Numbers, p.y), append(s.Numbers, p.s)
			w.Bools, z.Bools, g = append(w.Bools, bit(p.w)), append(z.Bools, bit(p.z)), append(g, p.g)
		}
	}
	table, err := dataset.FromColumns(id, x, y, s, w, z, dataset.NewText("g", g, func(int) bool { return false }))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// vote is a row of the population with its weight.
type vote struct {
	weight float64
	person
	unit int
	own  bool // the unit has one vote, which the rows that are asked about share
}

type votes []vote

// capped is what a target says of rows that vote, with the cap; without one it has no digits.
var capped = regexp.MustCompile(`every row having (?:one vote|its weight as its vote), (?:units of more than (\d+) rows? counting as \d+ rows?|no unit having more than \d+ rows?, as declared|.*)`)

// votesBy are the votes of the rows in which where holds, as the printed target says that they are.
func votesBy(target string, grouped bool, from []clinic, where func(person) bool) (all votes) {
	for u, c := range from {
		asked, own := 0.0, false
		for _, p := range c.people {
			if where(p) {
				asked++
			}
		}
		m, weight := float64(len(c.people)), 0.0
		said := capped.FindStringSubmatch(target)
		switch {
		case !grouped:
			weight = 1
		case said != nil && said[1] != "":
			largest, _ := strconv.ParseFloat(said[1], 64)
			weight = min(m, largest) / m
		case said != nil:
			weight = 1
		case strings.Contains(target, "each unit's own"), strings.Contains(target, "every unit that has one having one vote"),
			strings.Contains(target, "divided by the number of these rows in its unit"):
			weight, own = 1/asked, true
		default: // a unit counts by the share of its rows
			weight = 1 / m
		}
		for _, p := range c.people {
			if where(p) {
				all = append(all, vote{c.probability * weight, p, u, own})
			}
		}
	}
	return all
}

// mean is that of f over the votes.
func (v votes) mean(f func(person) float64) float64 {
	sum, total := 0.0, 0.0
	for _, one := range v {
		sum, total = sum+one.weight*f(one.person), total+one.weight
	}
	return sum / total
}

func (v votes) share(holds func(person) bool) float64 {
	return v.mean(func(p person) float64 { return indicatorOf(holds(p)) })
}

// in are the votes of the rows in which holds does. A unit's own vote is then shared among these.
func (v votes) in(holds func(person) bool) (some votes) {
	before, after := map[int]float64{}, map[int]float64{}
	for _, one := range v {
		before[one.unit] += one.weight
		if holds(one.person) {
			after[one.unit] += one.weight
			some = append(some, one)
		}
	}
	for i, one := range some {
		if one.own {
			some[i].weight *= before[one.unit] / after[one.unit]
		}
	}
	return some
}

func (v votes) covariance(a, b func(person) float64) float64 {
	return v.mean(func(p person) float64 { return a(p) * b(p) }) - v.mean(a)*v.mean(b)
}

// quantile is the least value at which the distribution function reaches q.
func (v votes) quantile(q float64, of func(person) float64) float64 {
	slices.SortFunc(v, func(a, b vote) int {
		switch x, y := of(a.person), of(b.person); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	total, sum := 0.0, 0.0
	for _, one := range v {
		total += one.weight
	}
	for _, one := range v {
		if sum += one.weight / total; sum >= q-1e-12 {
			return of(one.person)
		}
	}
	return math.Inf(1)
}

// kendallBody is answered under guess_and_check where units are rows.
const kendallBody = `{"type":"kendall","x":"s","y":"y","edges_x":[0.3,0.6],"edges_y":[-1,0,1],"where":"w"}`

// above is how many edges x is above.
func above(x float64, edges []float64) (bin int) {
	for _, e := range edges {
		if x > e {
			bin++
		}
	}
	return bin
}

// area is the area under the ROC curve of a score in bins, for the label z.
func (v votes) area(score func(person) float64, edges ...float64) float64 {
	with, without := make([]float64, len(edges)+1), make([]float64, len(edges)+1)
	for _, one := range v {
		if one.z {
			with[above(score(one.person), edges)] += one.weight
		} else {
			without[above(score(one.person), edges)] += one.weight
		}
	}
	sum, pairs := 0.0, 0.0
	for i, a := range with {
		for j, b := range without {
			pairs += a * b
			switch {
			case i > j:
				sum += a * b
			case i == j:
				sum += a * b / 2
			}
		}
	}
	return sum / pairs
}

// tau is Kendall's tau_a of two numbers in bins.
func (v votes) tau(x func(person) float64, ofX []float64, y func(person) float64, ofY []float64) float64 {
	cells := map[[2]int]float64{}
	for _, one := range v {
		cells[[2]int{above(x(one.person), ofX), above(y(one.person), ofY)}] += one.weight
	}
	sum, pairs := 0.0, 0.0
	for a, p := range cells {
		for b, q := range cells {
			pairs += p * q
			switch along := (a[0] - b[0]) * (a[1] - b[1]); {
			case along > 0:
				sum += p * q
			case along < 0:
				sum -= p * q
			}
		}
	}
	return sum / pairs
}

func indicatorOf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// between clamps.
func between(x, low, high float64) float64 { return min(max(x, low), high) }

// xAs is x within a range, with a number for null.
func xAs(low, high, null float64) func(person) float64 {
	return func(p person) float64 {
		if math.IsNaN(p.x) {
			return null
		}
		return between(p.x, low, high)
	}
}

func yOf(p person) float64 { return p.y }
func sOf(p person) float64 { return p.s }
func isW(p person) bool    { return p.w }
func isZ(p person) bool    { return p.z }
func anyone(person) bool   { return true }
func no(person) bool       { return false }

func over(limit float64) func(person) bool { return func(p person) bool { return p.x > limit } }

func inG(g string) func(person) bool { return func(p person) bool { return p.g == g } }

func not(f func(person) bool) func(person) bool { return func(p person) bool { return !f(p) } }

// statement is a query with what its target is, from the votes of the rows in which where holds: one number, or one for each item. n is the
// number of rows of the holdout.
type statement struct {
	body  string
	where func(person) bool
	is    func(v votes, n float64) []float64
}

func one(f func(votes) float64) func(votes, float64) []float64 {
	return func(v votes, _ float64) []float64 { return []float64{f(v)} }
}

func meanOf(f func(person) float64) func(votes, float64) []float64 {
	return one(func(v votes) float64 { return v.mean(f) })
}

func sharesOf(cells ...func(person) bool) func(votes, float64) []float64 {
	return func(v votes, _ float64) (all []float64) {
		for _, c := range cells {
			all = append(all, v.share(c))
		}
		return all
	}
}

// statements are queries of every type and with every kind of member. Those of a plain pair are asked with one vote a unit and with one a row.
func statements() []statement {
	errorOf := func(p person) float64 { return p.y - (2*p.s - 1) }
	above := func(p person) bool { return p.s > 0.5 }
	right := func(p person) bool { return p.z == (p.s > 0.5) }
	logLoss := func(p person) float64 {
		q := between(p.s, 0.05, 0.95)
		if !p.z {
			q = 1 - q
		}
		return -math.Log(q)
	}
	variance := func(f func(person) float64) func(votes) float64 {
		return func(v votes) float64 { return v.covariance(f, f) }
	}
	x := xAs(0, 8, 0)
	pairs := []statement{
		{`"type":"mean","of":"x","range":[0,8]`, nil, meanOf(x)},
		{`"type":"mean","of":"x","range":[2,9],"null":5`, nil, meanOf(xAs(2, 9, 5))},
		{`"type":"mean","of":"y","range":[-2,2]`, nil, meanOf(yOf)},
		{`"type":"mean","of":"y","range":[-2,2],"weights":{"of":"x","range":[1,6]}`, nil, one(func(v votes) float64 {
			weight := xAs(1, 6, 1)
			return v.mean(func(p person) float64 { return weight(p) * p.y }) / v.mean(weight)
		})},
		{`"type":"fraction","of":"x > 4.0"`, nil, sharesOf(over(4))},
		{`"type":"variance","of":"y","range":[-2,2]`, nil, one(variance(yOf))},
		{`"type":"stddev","of":"x","range":[0,8]`, nil, one(func(v votes) float64 { return math.Sqrt(max(0, v.covariance(x, x))) })},
		{`"type":"covariance","x":"y","y":"s","range_x":[-2,2],"range_y":[0,1],"form":"exact"`, nil, one(func(v votes) float64 { return v.covariance(yOf, sOf) })},
		{`"type":"covariance","x":"y","y":"s","range_x":[-2,2],"range_y":[0,1],"center_x":0.1,"scale_x":0.7,"center_y":0.5,"scale_y":0.3,"clip":1.5`, nil,
			meanOf(func(p person) float64 { return 0.7 * 0.3 * between((p.y-0.1)/0.7*((p.s-0.5)/0.3), -1.5, 1.5) })},
		{`"type":"correlation","x":"y","y":"s","range_x":[-2,2],"range_y":[0,1],"center_x":0.1,"scale_x":0.7,"center_y":0.5,"scale_y":0.3,"clip":1.5`, nil,
			meanOf(func(p person) float64 { return between((p.y-0.1)/0.7*((p.s-0.5)/0.3), -1.5, 1.5) })},
		{`"type":"correlation","x":"x","y":"s","range_x":[0,8],"range_y":[0,1],"form":"exact"`, nil, one(func(v votes) float64 {
			return v.covariance(x, sOf) / math.Sqrt(v.covariance(x, x)*v.covariance(sOf, sOf))
		})},
		{`"type":"compare","a":{"type":"accuracy","label":"z","prediction":"s > 0.5"},"b":{"type":"fraction","of":"w"}`, nil,
			meanOf(func(p person) float64 { return indicatorOf(p.w) - indicatorOf(right(p)) })},
		{`"type":"accuracy","label":"z","prediction":"s > 0.5"`, nil, sharesOf(right)},
		{`"type":"precision","label":"z","prediction":"s > 0.5"`, nil, one(func(v votes) float64 { return v.in(above).share(isZ) })},
		{`"type":"recall","label":"z","prediction":"s"`, nil, one(func(v votes) float64 { return v.in(isZ).share(above) })},
		{`"type":"f1","label":"z","prediction":"s > 0.5"`, nil, one(func(v votes) float64 {
			j := v.in(func(p person) bool { return p.z || above(p) }).share(func(p person) bool { return p.z && above(p) })
			return 2 * j / (1 + j)
		})},
		{`"type":"loss","loss":"log","label":"z","prediction":"s","clip":0.05`, nil, meanOf(logLoss)},
		{`"type":"loss","loss":"brier","label":"z","prediction":"s"`, nil, meanOf(func(p person) float64 { return (indicatorOf(p.z) - p.s) * (indicatorOf(p.z) - p.s) })},
		{`"type":"loss","loss":"zero_one","label":"z","prediction":"s","threshold":0.3`, nil, sharesOf(func(p person) bool { return p.z != (p.s > 0.3) })},
		{`"type":"loss","loss":"squared","label":"y","prediction":"2.0 * s - 1.0","range":[0,4]`, nil, meanOf(func(p person) float64 { return between(errorOf(p)*errorOf(p), 0, 4) })},
		{`"type":"loss","loss":"pinball","quantile":0.8,"label":"y","prediction":"x / 8.0","range":[0,2]`, nil, meanOf(func(p person) float64 {
			if math.IsNaN(p.x) {
				return 2
			}
			e := p.y - p.x/8
			return between(max(0.8*e, -0.2*e), 0, 2)
		})},
		{`"type":"rmse","label":"y","prediction":"2.0 * s - 1.0","max_error":2`, nil, one(func(v votes) float64 {
			return math.Sqrt(v.mean(func(p person) float64 { e := between(errorOf(p), -2, 2); return e * e }))
		})},
		{`"type":"r2","label":"y","prediction":"2.0 * s - 1.0","range":[-2,2]`, nil, one(func(v votes) float64 {
			return max(-1, 1-v.mean(func(p person) float64 { return errorOf(p) * errorOf(p) })/v.covariance(yOf, yOf))
		})},
	}
	var all []statement
	for _, p := range pairs {
		for _, where := range []string{"", `,"where":"w"`} {
			for _, weight := range []string{"", `,"weight":"row"`} {
				s := statement{"{" + p.body + where + weight + "}", anyone, p.is}
				if where != "" {
					s.where = isW
				}
				all = append(all, s)
			}
		}
	}
	gradient := func(v votes, _ float64) []float64 {
		term := func(k int) func(person) float64 {
			return func(p person) float64 {
				error := 1/(1+math.Exp(-(-0.5+0.8*p.s+0.2*p.y))) - indicatorOf(p.z)
				g := []float64{error, error * p.s, error * p.y}
				length := math.Sqrt(g[0]*g[0] + g[1]*g[1] + g[2]*g[2])
				return g[k] / max(1, length/0.7)
			}
		}
		return []float64{v.mean(term(0)), v.mean(term(1)), v.mean(term(2))}
	}
	confusion := func(v votes, _ float64) (items []float64) {
		for _, label := range []bool{false, true} {
			for _, predicted := range []bool{false, true} {
				items = append(items, v.share(func(p person) bool { return p.z == label && (p.s > 0.5) == predicted }))
			}
		}
		return items
	}
	calibration := func(v votes, _ float64) (items []float64) {
		for _, bin := range [][2]float64{{0, 0.3}, {0.3, 0.6}, {0.6, 1}} {
			holds := func(p person) bool { return p.s >= bin[0] && (p.s < bin[1] || bin[1] == 1) }
			in := v.in(holds)
			items = append(items, v.share(holds), in.share(isZ), in.mean(sOf))
		}
		return items
	}
	gaps := func(v votes, _ float64) (items []float64) {
		for _, bin := range [][2]float64{{0, 0.3}, {0.3, 0.6}, {0.6, 1}} {
			in := v.in(func(p person) bool { return p.s >= bin[0] && (p.s < bin[1] || bin[1] == 1) })
			items = append(items, in.share(isZ)-in.mean(sOf))
		}
		return items
	}
	area := func(v votes, _ float64) []float64 {
		bin := func(p person) int {
			return int(indicatorOf(p.s > 0.2) + indicatorOf(p.s > 0.5) + indicatorOf(p.s > 0.7))
		}
		with, without, value := v.in(isZ), v.in(not(isZ)), 0.0
		for i := range 4 {
			below := without.share(func(p person) bool { return bin(p) < i })
			same := without.share(func(p person) bool { return bin(p) == i })
			value += with.share(func(p person) bool { return bin(p) == i }) * (below + same/2)
		}
		return []float64{value}
	}
	independence := func(v votes, _ float64) (items []float64) {
		for _, a := range []func(person) bool{isW, not(isW)} {
			for _, b := range []func(person) bool{over(5), not(over(5))} {
				items = append(items, v.share(func(p person) bool { return a(p) && b(p) })-v.share(a)*v.share(b))
			}
		}
		return items
	}
	difference := func(a, b func(person) bool, f func(person) float64) func(votes, float64) []float64 {
		return one(func(v votes) float64 { return v.in(a).mean(f) - v.in(b).mean(f) })
	}
	byG := func(v votes, _ float64) []float64 {
		other := func(p person) bool { return p.g > "b" }
		return []float64{v.in(inG("a")).mean(yOf), v.in(inG("b")).mean(yOf), v.in(other).mean(yOf), math.NaN()} // no row has none
	}
	return append(all, []statement{
		{`{"type":"count","of":"z","where":"w"}`, anyone, func(v votes, n float64) []float64 {
			return []float64{n * v.share(func(p person) bool { return p.w && p.z })}
		}},
		{`{"type":"sum","of":"y","range":[-2,2],"where":"w"}`, anyone, func(v votes, n float64) []float64 {
			return []float64{n * v.mean(func(p person) float64 { return p.y * indicatorOf(p.w) })}
		}},
		{`{"type":"screen","label":"z","features":["y","s"],"statistic":"product","range":[-2,2]}`, anyone, func(v votes, _ float64) []float64 {
			sign := func(p person) float64 { return 2*indicatorOf(p.z) - 1 }
			return []float64{v.mean(func(p person) float64 { return sign(p) * p.y }), v.mean(func(p person) float64 { return sign(p) * p.s })}
		}},
		{`{"type":"median","of":"x","range":[0,8],"resolution":0.25}`, anyone, one(func(v votes) float64 { return v.quantile(0.5, x) })},
		{`{"type":"quantile","p":0.8,"of":"x","range":[0,8],"resolution":0.5,"null":5,"where":"w"}`, isW, one(func(v votes) float64 { return v.quantile(0.8, xAs(0, 8, 5)) })},
		{`{"type":"histogram","of":"y","edges":[-2,-0.5,0.5,2]}`, anyone, sharesOf(no, func(p person) bool { return p.y < -0.5 }, func(p person) bool { return p.y >= -0.5 && p.y < 0.5 }, func(p person) bool { return p.y >= 0.5 }, no, no)},
		{`{"type":"frequencies","of":"g","values":["a","b"],"where":"w"}`, isW, sharesOf(inG("a"), inG("b"), func(p person) bool { return p.g > "b" }, no)},
		{`{"type":"groups","of":"y","range":[-2,2],"by":"g","values":["a","b"]}`, anyone, byG},
		{`{"type":"argmax","of":[{"type":"fraction","of":"w"},{"type":"fraction","of":"z"},{"type":"fraction","of":"x > 4.0"}],"names":["w","z","x"]}`, anyone, func(v votes, _ float64) []float64 {
			return []float64{v.share(isW), v.share(isZ), v.share(over(4))}
		}},
		{`{"type":"passes","of":{"type":"fraction","of":"z"},"above":0.3}`, anyone, sharesOf(isZ)},
		{`{"type":"difference","of":"y","range":[-2,2],"between":["w","z"]}`, anyone, difference(isW, func(p person) bool { return p.z && !p.w }, yOf)},
		{`{"type":"difference","of":"z","between":["s > 0.5"]}`, anyone, difference(func(p person) bool { return p.s > 0.5 }, func(p person) bool { return p.s <= 0.5 }, func(p person) float64 { return indicatorOf(p.z) })},
		{`{"type":"auc","label":"z","prediction":"s","edges":[0.2,0.5,0.7]}`, anyone, area},
		{`{"type":"balanced_accuracy","label":"z","prediction":"s > 0.5"}`, anyone, one(func(v votes) float64 { return (v.in(isZ).share(above) + v.in(not(isZ)).share(not(above))) / 2 })},
		{`{"type":"compare","a":{"type":"balanced_accuracy","label":"z","prediction":"s > 0.5"},"b":{"type":"balanced_accuracy","label":"z","prediction":"y > 0.0"},"where":"w"}`, isW, one(func(v votes) float64 {
			up := func(p person) bool { return p.y > 0 }
			with, without := v.in(isZ), v.in(not(isZ))
			return (with.share(up)+without.share(not(up)))/2 - (with.share(above)+without.share(not(above)))/2
		})},
		{`{"type":"compare","a":{"type":"auc","label":"z","prediction":"s","edges":[0.2,0.5,0.7]},"b":{"type":"auc","label":"z","prediction":"y","edges":[-0.5,0.5]},"where":"w"}`, isW, one(func(v votes) float64 {
			return v.area(yOf, -0.5, 0.5) - v.area(sOf, 0.2, 0.5, 0.7)
		})},
		{kendallBody, isW, one(func(v votes) float64 { return v.tau(sOf, []float64{0.3, 0.6}, yOf, []float64{-1, 0, 1}) })},
		{`{"type":"calibration","label":"z","prediction":"s","edges":[0,0.3,0.6,1]}`, anyone, calibration},
		{`{"type":"calibration","label":"z","prediction":"s","edges":[0,0.3,0.6,1],"form":"gap"}`, anyone, gaps},
		{`{"type":"confusion","label":"z","prediction":"s","where":"w"}`, isW, confusion},
		{`{"type":"gradient","label":"z","model":{"linear":{"intercept":-0.5,"weights":{"s":0.8,"y":0.2},"link":"logit"}},"clip":0.7}`, anyone, gradient},
		{`{"type":"test","test":"mean","of":"y","range":[-2,2],"equals":0.5}`, anyone, meanOf(yOf)},
		{`{"type":"test","test":"proportion","of":"z","where":"w"}`, isW, sharesOf(isZ)},
		{`{"type":"test","test":"two-sample","of":"y","range":[-2,2],"between":["w"]}`, anyone, difference(isW, not(isW), yOf)},
		{`{"type":"test","test":"two-proportions","of":"z","between":["w","s > 0.5"]}`, anyone, difference(isW, func(p person) bool { return p.s > 0.5 && !p.w }, func(p person) float64 { return indicatorOf(p.z) })},
		{`{"type":"test","test":"correlation","x":"y","y":"s","range_x":[-2,2],"range_y":[0,1]}`, anyone, one(func(v votes) float64 { return v.covariance(yOf, sOf) })},
		{`{"type":"test","test":"slope","x":"s","y":"y","range_x":[0,1],"range_y":[-2,2]}`, anyone, one(func(v votes) float64 { return v.covariance(sOf, yOf) / v.covariance(sOf, sOf) })},
		{`{"type":"test","test":"goodness-of-fit","cells":["w","z"],"expected":[0.5,0.25]}`, anyone, func(v votes, _ float64) []float64 {
			a, b := v.share(isW), v.share(func(p person) bool { return p.z && !p.w })
			return []float64{a - 0.5, b - 0.25, 1 - a - b - 0.25}
		}},
		{`{"type":"test","test":"independence","rows":["w"],"columns":["x > 5.0"]}`, anyone, independence},
		{`{"type":"test","test":"value","query":{"type":"median","of":"y","range":[-2,2],"resolution":0.25},"equals":1}`, anyone, one(func(v votes) float64 { return v.quantile(0.5, yOf) })},
	}...)
}

// stated is an answer with all that it states.
type stated struct {
	Value    *float64
	Interval *struct {
		Low, High *float64
		Target    string
	}
	Items    []holdout.Item
	Selected string
	Regret   *float64
}

// misses are the statements of an answer that are not true.
func (s statement) misses(a stated, grouped bool, from []clinic, n float64) (wrong []string) {
	want := s.is(votesBy(a.Interval.Target, grouped, from, s.where), n)
	check := func(what string, low, high *float64, truth float64) {
		slack := 1e-7 * max(1, math.Abs(truth))
		if low != nil && high != nil && (*low > truth+slack || *high < truth-slack) {
			wrong = append(wrong, fmt.Sprintf("%s %s: [%v, %v] misses %v: %s", s.body, what, *low, *high, truth, a.Interval.Target))
		}
	}
	if a.Selected != "" {
		if regret := slices.Max(want) - want[strings.Index("wzx", a.Selected)]; a.Regret == nil || regret > *a.Regret+1e-7 {
			wrong = append(wrong, fmt.Sprintf("%s: the regret of %s is %v, at most %v: %s", s.body, a.Selected, regret, a.Regret, a.Interval.Target))
		}
		if len(a.Items) == 0 {
			return wrong
		}
	}
	if len(a.Items) == 0 {
		if len(want) != 1 {
			return []string{s.body + ": no items"}
		}
		check("", a.Interval.Low, a.Interval.High, want[0])
		return wrong
	}
	if len(a.Items) != len(want) {
		return []string{fmt.Sprintf("%s: %d items, want %d", s.body, len(a.Items), len(want))}
	}
	for i, item := range a.Items {
		check(item.Of, item.Low, item.High, want[i])
	}
	return wrong
}

// TestPrintedTargets: every interval of every query type holds what its printed target says, of rows and of units of very different sizes, under all mechanisms. All
// intervals of a holdout hold together but for a probability of 1e-6, so a false alarm of the whole test is below 1e-4. A target that forgets the cap of units
// misses wherever a unit larger than the training part's is likely.
func TestPrintedTargets(t *testing.T) {
	s := open(t)
	r := rand.New(rand.NewPCG(9, 4))
	all := statements()
	checked, types := 0, map[string]bool{}
	for _, mechanism := range []holdout.Settings{
		{Mechanism: "gaussian", Questions: 120},
		{Mechanism: "gaussian", Questions: 120, Rounds: 2},
		{Mechanism: "gaussian", Questions: 1000, Rounds: 1},
		{Mechanism: "gaussian", Questions: 80, Bounds: "published"},
		{Mechanism: "guess_and_check", Questions: 200, Tokens: 60},
		{Mechanism: "thresholdout", Questions: 200, Tokens: 60},
		{Mechanism: "thresholdout", Form: "laplace", Questions: 80, Tokens: 40},
		{Mechanism: "split", Questions: 12},
	} {
		for _, kind := range []struct {
			unit     string
			heavy    bool
			declared int64
		}{{"", false, 0}, {"ward", false, 5}, {"ward", true, 0}} {
			from, set := population(r, kind.unit != "", kind.heavy), mechanism
			set.Unit, set.LargestUnit, set.Confidence, set.Holdout = kind.unit, kind.declared, 0.999999, 0.95
			set.Overlap = "accepted" // samples of one small population have rows in common
			set.Name = fmt.Sprintf("%s %s %v", set.Mechanism, kind.unit, kind.heavy)
			card := create(t, s, set, sampled(t, r, from, 20_000))
			order := r.Perm(len(all))
			for len(order) > 0 {
				most := 25
				if set.Rounds == 1 {
					most = len(order)
				}
				some := order[:min(len(order), most)]
				order = order[len(some):]
				var bodies []json.RawMessage
				for _, i := range some {
					search := strings.Contains(all[i].body, `"median"`) || strings.Contains(all[i].body, `"quantile","p"`)
					unanswered := all[i].body == kendallBody && (set.Mechanism != "guess_and_check" && set.Rounds != 1 || kind.unit != "")
					tested := strings.Contains(all[i].body, `"test"`)
					if !(search && (set.Rounds > 1 || set.Rounds > 0 && tested)) && !unanswered {
						bodies = append(bodies, json.RawMessage(all[i].body))
					}
				}
				b, err := s.AskBatch(t.Context(), analyst, card.ID, bodies, true, "", holdout.MaxQuestions(set.Questions))
				if kind := holdout.KindOf(err); err != nil && kind == holdout.BudgetExhausted {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", set.Name, err)
				}
				if card, err = s.Card(t.Context(), analyst, card.ID); err != nil { // of what is no draft any more, so that it says how many rows there are
					t.Fatal(err)
				}
				for i, item := range b.Answers {
					if item.NotAsked != "" {
						continue
					}
					var a stated
					if err := json.Unmarshal(item.Body, &a); err != nil || a.Interval == nil {
						t.Fatalf("%s: %v: %s", set.Name, err, item.Body)
					}
					at := slices.IndexFunc(all, func(s statement) bool { return s.body == string(bodies[i]) })
					for _, wrong := range all[at].misses(a, kind.unit != "", from, float64(card.Rows.Holdout)) {
						t.Errorf("%s: %s", set.Name, wrong)
					}
					checked++
					types[all[at].body[:24]] = true
				}
			}
		}
	}
	t.Logf("%d answers of %d forms", checked, len(types))
	if checked < 500 {
		t.Errorf("only %d answers were checked", checked)
	}
}
