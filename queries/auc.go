package queries

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/interval"
	"github.com/holdoutd/holdoutd/queries/model"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Bins of an AUC. Each costs a question, and what lies within one bin is a tie; with ten equally full ones the AUC of the binned
// score is rarely off by a hundredth of that of the score itself.
const (
	DefaultAUCBins = 10
	MaxAUCBins     = 100
)

var aucKind = kind{
	name: "auc",
	doc: "The area under the ROC curve of a score that is counted in bins: how probable it is that a row with the label has a score in a higher bin " +
		"than a row without it, where a tie counts one half. The edges of the bins are declared, or are quantiles of the score in the training part. " +
		"B bins cost B questions under gaussian and 2B-1 under other mechanisms; where costs one more.",
	examples: []string{
		`{"type":"auc","label":"delay > 15","model":{"linear":{"intercept":-1.5,"weights":{"distance":0.0002},"link":"logit"}},"edges":[0.2,0.3,0.4]}`,
		`{"type":"auc","label":"delay > 15","prediction":"distance","edges":[200,400,800,1600],"where":"origin == 'SFO'"}`,
	},
	needsOne: needsPrediction,
	make:     func() body { return new(auc) },
}

// auc is {"type":"auc"}.
type auc struct {
	prediction
	Edges []float64
	Bins  *float64
	Where *expr.Syntax
}

func (q *auc) members() []member {
	return append(q.prediction.members("the truth: a condition"),
		optional("edges", binEdges{&q.Edges}, fmt.Sprintf("the edges of the bins of the prediction, after its link: 1 to %d rising numbers; a bin is (e, e'] for neighbours", MaxAUCBins-1)),
		optional("bins", orElseForm{number{into: &q.Bins}, DefaultAUCBins}, fmt.Sprintf("how many bins to make of the training part's scores, 2 to %d; default: %d", MaxAUCBins, DefaultAUCBins)),
		optional("where", expression{&q.Where}, "a condition: only rows for which it holds count; costs one more question"),
	)
}

func (q *auc) rules(v *violations, pointer string) {
	q.prediction.rules(v, pointer)
	if q.Bins != nil && (*q.Bins != math.Floor(*q.Bins) || *q.Bins < 2 || *q.Bins > MaxAUCBins) {
		v.add(pointer+"/bins", fmt.Sprintf("must be a whole number from 2 to %d", MaxAUCBins))
	}
	if q.Bins != nil && q.Edges != nil {
		v.add(pointer+"/bins", "goes without edges")
	}
}

// compile asks, for both labels and each edge e, v = 1 in rows with the label and a score at most e, -1 in those with the label
// and a higher score, 0 in the others; and 1 in rows with the label, else 0.
//
// As one vector of numbers in [0,1] a row is (1+v)/2 at each edge, so it is at one half but for the edges of its own
// label: its squared distance from the middle of the cube is (B-1)/4 over the edges and 1/4 for the label itself, in
// all B/4 for B bins. The mean of a unit's rows is no farther from the middle, for a ball is convex. The variances add up to at most the mean
// squared distance from any fixed point. Cumulative shares as such would need twice that. v is made smaller by gridRoom, so that the
// grid's rounding does not carry a mean farther out.
func (q *auc) compile(c *compiler) *Plan {
	p, ok := q.predictor(c)
	label, where := c.condition("label", q.Label), c.condition("where", q.Where)
	if !ok || label == nil || !c.oneOutput(p) {
		return nil
	}
	above, edges := q.above(c, p, where)
	if above == nil || len(c.list) > 0 || c.failed != nil {
		return nil
	}
	groups := [2]*rowfn.Node{rowfn.Not(label), label}
	plan := &Plan{Range: Range{0, 1}}
	for g, holds := range groups {
		if where != nil {
			groups[g] = rowfn.And(holds, where)
		}
		for _, higher := range above {
			v := rowfn.If(groups[g], rowfn.If(higher, rowfn.Const(-1), rowfn.Const(1)), rowfn.Const(0))
			plan.Functions = append(plan.Functions, RowFunction{Value: v, Lo: -1 - gridRoom, Hi: 1 + gridRoom})
		}
	}
	plan.Functions = append(plan.Functions, RowFunction{Value: groups[1], Lo: 0, Hi: 1})
	if where != nil {
		plan.Functions = append(plan.Functions, RowFunction{Value: groups[0], Lo: 0, Hi: 1})
	}
	k := len(above)
	plan.releases = []Release{{Kind: Vector, Count: len(plan.Functions), Variance: float64(k+len(plan.Functions)-2*k) / 4}}
	plan.combine = func(o Outcome) Result { return aucOf(o.Parts, k) }
	q.say(c, plan, edges)
	return plan
}

// gridRoom is by how much values are kept within a range whose ends would otherwise be reached, relative to it. The grid's
// rounding moves each coordinate by at most 2^-31, the middle of a vector of MaxGradient coordinates by at most 2^-25.
const gridRoom = 0x1p-20

func (q *auc) say(c *compiler, plan *Plan, edges string) {
	in := ""
	if q.Where != nil {
		in = " where " + q.Where.Canonical()
	}
	of, unit := fmt.Sprintf("%s%s", q.Label.Canonical(), in), ""
	if c.grouped {
		unit = "the mean over the unit's rows of "
	}
	over := ""
	if q.Where != nil {
		over = " over the rows in which " + q.Where.Canonical()
	}
	plan.describe = Description{
		Functions: []string{
			fmt.Sprintf("%sfor each edge %s of %s: 1 in rows without %s whose score is not above the edge, -1 in those whose score is, 0 in the others", unit, edges, q.name(), of),
			fmt.Sprintf("%sthe same in rows with %s", unit, of), unit + "1 where " + of + ", else 0"},
		Combine: "the area under the curve through the shares of both labels whose scores are above each edge, made of the means; undefined where a label has no rows",
		Null:    "a null in a condition makes it false; a prediction that is null is in the lowest bin",
		Target:  c.target("the area under the ROC curve of %s in bins that end at %s, for %s, ties counting one half%s%s", q.name(), edges, q.Label.Canonical(), over, rowsOf(c, nil, WeightUnit)),
	}
	if q.Where != nil {
		plan.describe.Functions = append(plan.describe.Functions, unit+"1 in rows without "+of+", else 0")
	}
}

// above are the conditions that the prediction is above each edge, with the edges in words; nil with a violation.
func (q *auc) above(c *compiler, p predictor, where *rowfn.Node) (above []*rowfn.Node, said string) {
	if q.Edges != nil {
		x := p.number()
		for i, e := range q.Edges {
			above = append(above, rowfn.CompareTo(rowfn.OpGreater, x, e))
			said = listed(said, i, e)
		}
		return above, said
	}
	score := p.number()
	if p.condition == nil {
		score = p.scores[0] // the link keeps the order
	}
	edges := trainingQuantiles(c, "edges", score, where, int(*orDefault(q.Bins, DefaultAUCBins)))
	for i, e := range edges {
		above = append(above, rowfn.CompareTo(rowfn.OpGreater, score, e))
		if p.condition == nil && p.link == model.Logit {
			e = 1 / (1 + math.Exp(-e))
		}
		said = listed(said, i, e)
	}
	return above, said
}

func listed(said string, i int, x float64) string {
	if i > 0 {
		said += ", "
	}
	return said + edge(x)
}

// trainingQuantiles are rising numbers that cut the training part's values into about equally full bins: one less than bins, or
// fewer where values are equal, at least one. nil with a violation where there is no training part.
//
// The numbers are found by counting: between powers of two of either sign first, then twice between neighbours.
func trainingQuantiles(c *compiler, name string, x, where *rowfn.Node, bins int) []float64 {
	var probes []float64
	for k := -20; k <= 40; k++ {
		probes = append(probes, math.Ldexp(1, k), -math.Ldexp(1, k))
	}
	known := []point{}
	for range 3 {
		slices.Sort(probes)
		functions := []RowFunction{{Value: truthOr(where), Lo: 0, Hi: 1}}
		for _, at := range probes {
			below := rowfn.Not(rowfn.CompareTo(rowfn.OpGreater, x, at))
			if where != nil {
				below = rowfn.And(below, where)
			}
			functions = append(functions, RowFunction{Value: below, Lo: 0, Hi: 1})
		}
		means := c.trainingMeans(name, "declare them", functions...)
		if means == nil {
			return nil
		}
		if means[0] == 0 {
			c.add(c.pointer+"/where", "holds nowhere in the training part, so that it has no "+name+"; declare them")
			return nil
		}
		for i, at := range probes {
			known = append(known, point{at, means[i+1] / means[0]})
		}
		slices.SortFunc(known, func(a, b point) int {
			if a.at < b.at {
				return -1
			}
			return 1
		})
		probes = between(known, bins)
		if len(probes) == 0 {
			break
		}
	}
	var edges []float64
	for i := 1; i < bins; i++ {
		e := nearestTo(known, float64(i)/float64(bins))
		if len(edges) == 0 || e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	return edges
}

func truthOr(where *rowfn.Node) *rowfn.Node {
	if where == nil {
		return rowfn.True()
	}
	return where
}

// point is a number and the share of the training part that is not above it.
type point struct{ at, share float64 }

// finer is how many parts the neighbours of a quantile are cut into.
const finer = 16

// between are new numbers in the gaps of the known ones that hold quantiles.
func between(known []point, bins int) []float64 {
	var probes []float64
	last := -1
	for i := 1; i < bins; i++ {
		q := float64(i) / float64(bins)
		at := slices.IndexFunc(known, func(p point) bool { return p.share >= q })
		if at <= 0 || at == last {
			continue
		}
		last = at
		low, high := known[at-1].at, known[at].at
		for j := 1; j < finer; j++ {
			if x := low + (high-low)*float64(j)/finer; x > low && x < high && (len(probes) == 0 || x > probes[len(probes)-1]) {
				probes = append(probes, x)
			}
		}
	}
	return probes
}

// nearestTo is the known number whose share is nearest to q, the lowest of several.
func nearestTo(known []point, q float64) float64 {
	best := known[0]
	for _, p := range known[1:] {
		if math.Abs(p.share-q) < math.Abs(best.share-q) {
			best = p
		}
	}
	return best.at
}

// aucOf computes the area from the means of v at k edges for the rows without and with the label, the share of rows with it
// and, where it is not the rest, that of rows without.
func aucOf(parts []Part, k int) Result {
	r := Range{0, 1}
	bounded := true
	for _, p := range parts {
		bounded = bounded && p.Bounded
	}
	yes := parts[2*k]
	no, rest := Part{Value: 1 - yes.Value}, true
	if len(parts) > 2*k+1 {
		no, rest = parts[2*k+1], false
	}
	value, defined := 0.0, yes.Value > 0 && no.Value > 0
	if defined {
		value = area(curve(parts[:k], func(p Part) float64 { return half(p.Value) / no.Value }), curve(parts[k:2*k], func(p Part) float64 { return half(p.Value) / yes.Value }))
	}
	if !bounded {
		return answer(value, interval.Interval{}, false, defined, r)
	}
	bounds := interval.Interval{Low: 1, High: 0}
	within := interval.Interval{Low: 0, High: 1}
	for _, y := range pieces(yes.interval()) {
		others := []interval.Interval{within.Clip(1-y.High, 1-y.Low)}
		if !rest {
			others = pieces(no.interval())
		}
		for _, n := range others {
			low, high := areas(parts, k, y, n)
			bounds.Low, bounds.High = min(bounds.Low, low), max(bounds.High, high)
		}
	}
	return answer(value, bounds, true, defined, r)
}

// sharePieces is into how many pieces the interval of a label's share is cut. Within a piece both bounds take the worst share for each
// edge, so that pieces make the interval narrower; the union of all is valid.
const sharePieces = 16

func pieces(of interval.Interval) []interval.Interval {
	all := make([]interval.Interval, sharePieces)
	at := of.Low
	for i := range all {
		next := of.Low + of.Width()*float64(i+1)/sharePieces
		if i == sharePieces-1 {
			next = of.High
		}
		all[i] = interval.Interval{Low: at, High: max(at, next)}
		at = all[i].High
	}
	return all
}

// half is the mean of v/2 that a released mean stands for.
func half(mean float64) float64 { return (mean - 0.5) * (1 + gridRoom) }

// curve is the cumulative distribution of one label's scores over the bins: with m the mean of v/2 at an edge and s the share of
// the label, the share of its rows that is not above the edge is (m + s/2)/s = 1/2 + m/s.
func curve(parts []Part, quotient func(Part) float64) []float64 {
	c := make([]float64, len(parts)+2)
	for j, p := range parts {
		c[j+1] = min(max(0.5+quotient(p), 0), 1)
	}
	c[len(c)-1] = 1
	return c
}

// areas bounds the area where the shares of both labels lie in y and n. The area falls where more of the rows with the label
// are below an edge, and rises where more of those without are: between distributions that is so at every edge by itself. So its
// extremes over all distributions within bands are at the bands' own edges, made monotone.
func areas(parts []Part, k int, y, n interval.Interval) (low, high float64) {
	bands := func(parts []Part, share interval.Interval) (least, most []float64) {
		least = curve(parts, func(p Part) float64 {
			m := half(p.interval().Low) - rounding
			return quotient(m, share, m < 0)
		})
		most = curve(parts, func(p Part) float64 {
			m := half(p.interval().High) + rounding
			return quotient(m, share, m > 0)
		})
		for j := 1; j < len(least); j++ {
			least[j] = max(least[j], least[j-1])
		}
		for j := len(most) - 2; j >= 0; j-- {
			most[j] = min(most[j], most[j+1])
		}
		return least, most
	}
	least0, most0 := bands(parts[:k], n)
	least1, most1 := bands(parts[k:2*k], y)
	return area(least0, most1) - rounding, area(most0, least1) + rounding
}

// rounding is far more than float64 loses in a sum of MaxAUCBins products of numbers in [0,1].
const rounding = 1e-12

// quotient is m by the least share if so far as possible from 0, else by the largest.
func quotient(m float64, share interval.Interval, far bool) float64 {
	s := share.High
	if far {
		s = share.Low
	}
	switch {
	case s > 0:
		return m / s
	case m == 0:
		return 0
	}
	return math.Inf(1) * m
}

// area is the area under the ROC curve of two distributions over bins: the probability of a higher bin, and half that of the same.
func area(without, with []float64) float64 {
	sum := 0.0
	for j := 1; j < len(with); j++ {
		sum += (without[j] - without[j-1]) * (1 - (with[j]+with[j-1])/2)
	}
	return sum
}

// binEdges is a list of at least one rising number.
type binEdges struct{ into *[]float64 }

func (f binEdges) read(v *violations, pointer string, in *value) {
	if in.kind != listValue || len(in.items) < 1 || len(in.items) >= MaxAUCBins {
		v.add(pointer, fmt.Sprintf("must be a list of 1 to %d rising numbers", MaxAUCBins-1))
		return
	}
	var edges []float64
	for i, item := range in.items {
		x, ok := item.float()
		if !ok || i > 0 && x <= edges[i-1] {
			v.add(fmt.Sprintf("%s/%d", pointer, i), "must be a finite number above the one before it")
			return
		}
		edges = append(edges, x)
	}
	*f.into = edges
}

func (f binEdges) canonical() any {
	if *f.into == nil {
		return nil
	}
	return *f.into
}

func (f binEdges) schema() map[string]any {
	return map[string]any{"type": "array", "items": map[string]any{"type": "number"}, "minItems": 1, "maxItems": MaxAUCBins - 1}
}
