package holdout

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
)

// What the search for dependent rows may cost and what it reports.
const (
	// DesignEffectWarning is the design effect above which the card warns: intervals are then narrower than
	// sqrt(2) times what they should be, or worse.
	DesignEffectWarning = 2
	// MaxDependenceWarnings keeps the card readable; the strongest groupings are named.
	MaxDependenceWarnings = 3

	// dependenceRows is how many rows of the training part are looked at, from its start: what a grouping does shows
	// in eight million rows, and memory stays bounded.
	dependenceRows = 1 << 23
	// dependenceCells bounds rows times (grouping, measure) pairs: about a second of one core.
	dependenceCells = 1 << 28
	// candidateCells bounds rows times columns that are tried as groupings, which takes hashing.
	candidateCells = 1 << 25
	// minDependence columns and pairs are looked at however long the table is.
	minDependence = 4
	// minGroups is the smallest number of groups that says anything: with fewer, the effect of a grouping cannot be
	// told from a few fixed categories.
	minGroups = 20
	// medianSample is how many rows the median of a column is estimated from; the indicator needs no better one.
	medianSample = 4096
)

// A candidate groups units that may be alike.
type candidate struct {
	column string
	rule   unitRule
	of     []uint32 // the group of each unit
	groups int
	isTime bool
}

// A measure is a number of each unit, NaN where there is none.
type measure struct {
	column string
	values []float64
}

// dependenceWarnings looks in the training part for columns whose values group units that are alike. For a grouping g
// and a measure x with mean m the design effect (Kish 1965; Moulton 1986 for regressions) is
//
//	deff = sum over groups of (sum in the group of (x - m))^2  /  sum over units of (x - m)^2,
//
// the variance of the sum under sampling of whole groups over that under sampling of units. It is about 1 where group
// members are independent. An interval that assumes independent units is about sqrt(deff) times too narrow for a
// population of other groups. Measures are numbers and conditions and, for numbers, being above the median, which a few
// huge values cannot mask; of a candidate the largest effect over the measures counts. Limits on rows and columns keep the search short; within them it is exact.
//
// Data cannot tell whether a population is "other flights of these airports" or "other airports": the warning names the
// grouping, the owner decides.
func dependenceWarnings(columns []dataset.Column, g grouping, unit unitRule, label string) []Warning {
	if len(columns) == 0 || g.n == 0 {
		return nil
	}
	columns, g = firstRows(columns, g, dependenceRows)
	candidates := candidatesOf(columns, g, unit)
	if len(candidates) == 0 {
		return nil
	}
	pairs := max(minDependence, dependenceCells/g.n)
	effects, by := make([]float64, len(candidates)), make([]string, len(candidates))
	for m := range measuresOf(columns, g, label) {
		for i, c := range candidates {
			if c.column == m.column || pairs == 0 {
				continue
			}
			pairs--
			if d := designEffect(m.values, c.of, c.groups); d > effects[i] {
				effects[i], by[i] = d, m.column
			}
		}
		if pairs == 0 {
			break
		}
	}
	var found []Warning
	for i, c := range candidates {
		if effects[i] > DesignEffectWarning {
			found = append(found, dependenceWarning(c, unit, effects[i], by[i]))
		}
	}
	// Times first: a day or a date is what rows are most often sampled by. Then the strongest.
	slices.SortStableFunc(found, func(a, b Warning) int { return cmp.Compare(b.Effect, a.Effect) })
	slices.SortStableFunc(found, func(a, b Warning) int {
		return cmp.Compare(rank(candidates, a.Column), rank(candidates, b.Column))
	})
	return found[:min(len(found), MaxDependenceWarnings)]
}

func rank(candidates []candidate, column string) int {
	for _, c := range candidates {
		if c.column == column && c.isTime {
			return 0
		}
	}
	return 1
}

func dependenceWarning(c candidate, unit unitRule, effect float64, by string) Warning {
	effect = math.Round(effect*10) / 10
	return Warning{
		Code:   "dependent-rows",
		Column: c.column,
		Unit:   c.rule.String(),
		Effect: effect,
		Detail: fmt.Sprintf("%ss with the same %s are alike: in the training part the design effect of that grouping on %q is %.1f. "+
			"For a population of other values of %s, intervals that take %ss as independent are about %.1f times too narrow; create the holdout with unit=%s then.",
			unitNoun(unit), c.rule, by, effect, c.rule, unitNoun(unit), math.Sqrt(effect), c.rule),
	}
}

func unitNoun(u unitRule) string {
	if u.Column == "" {
		return "row"
	}
	return "unit"
}

// firstRows cuts columns and units to the first units that together have at most limit rows. The rows of a unit must
// be contiguous.
func firstRows(columns []dataset.Column, g grouping, limit int) ([]dataset.Column, grouping) {
	rows := columns[0].Len()
	if rows <= limit {
		return columns, g
	}
	if g.of == nil {
		rows, g = limit, groupByRow(limit)
	} else {
		g.n, _ = slices.BinarySearch(g.first, uint32(limit))
		g.n = max(1, g.n-1) // the last of them may reach beyond the limit
		rows = limit
		if g.n < len(g.first) {
			rows = int(g.first[g.n])
		}
		g = grouping{of: g.of[:rows], first: g.first[:g.n], n: g.n}
	}
	columns = slices.Clone(columns)
	for i := range columns {
		c := &columns[i]
		c.Numbers, c.Bools, c.Codes = c.Numbers[:min(rows, len(c.Numbers))], c.Bools[:min(rows, len(c.Bools))], c.Codes[:min(rows, len(c.Codes))]
	}
	return columns, g
}

// candidatesOf lists the groupings to try: the days of times, and texts and whole numbers with at least minGroups values
// which on average two units or more share. A column that differs within a unit does not group units.
func candidatesOf(columns []dataset.Column, g grouping, unit unitRule) []candidate {
	var found []candidate
	tries := max(minDependence, candidateCells/columns[0].Len())
	for _, kind := range []dataset.Kind{dataset.Time, dataset.Text, dataset.Number} {
		for i := range columns {
			c, day := &columns[i], kind == dataset.Time
			if c.Kind != kind || c.Name == unit.Column || kind == dataset.Number && !wholeNumbers(c.Numbers) {
				continue
			}
			if tries--; tries < 0 {
				return found
			}
			rows := groupBy(*c, day)
			if rows.n < minGroups || rows.n > c.Len()/2 {
				continue
			}
			of, groups, ok := groupUnits(rows, g)
			if !ok || groups > g.n/2 {
				continue
			}
			found = append(found, candidate{column: c.Name, rule: unitRule{Column: c.Name, Day: day}, of: of, groups: groups, isTime: day})
		}
	}
	return found
}

// groupUnits turns a grouping of rows into one of units, if no unit is in two groups.
func groupUnits(rows, g grouping) (of []uint32, groups int, ok bool) {
	if g.of == nil {
		return rows.of, rows.n, true
	}
	of = make([]uint32, g.n)
	for u, row := range g.first {
		of[u] = rows.of[row]
	}
	for row, u := range g.of {
		if rows.of[row] != of[u] {
			return nil, 0, false
		}
	}
	return of, rows.n, true
}

func wholeNumbers(values []float64) bool {
	for _, v := range values {
		if v == v && v != math.Floor(v) {
			return false
		}
	}
	return true
}

// measuresOf yields the label's measures first, then the other numbers and conditions in the order of the columns.
func measuresOf(columns []dataset.Column, g grouping, label string) iter.Seq[measure] {
	of := func(c *dataset.Column, yield func(measure) bool) bool {
		switch c.Kind {
		case dataset.Number:
			return yield(measure{c.Name, unitMeans(c.Numbers, g)}) && yield(measure{c.Name, unitMeans(aboveMedian(c.Numbers), g)})
		case dataset.Bool:
			values := make([]float64, len(c.Bools))
			for i, b := range c.Bools {
				values[i] = float64(b)
				if b >= dataset.NullBool {
					values[i] = math.NaN()
				}
			}
			return yield(measure{c.Name, unitMeans(values, g)})
		}
		return true
	}
	return func(yield func(measure) bool) {
		for i := range columns {
			if columns[i].Name == label && !of(&columns[i], yield) {
				return
			}
		}
		for i := range columns {
			if columns[i].Name != label && !of(&columns[i], yield) {
				return
			}
		}
	}
}

// aboveMedian is 1 where a value is above the (sampled) median, 0 where it is not, NaN where it is null.
func aboveMedian(values []float64) []float64 {
	var sample []float64
	for i := 0; i < len(values); i += max(1, len(values)/medianSample) {
		if v := values[i]; v == v {
			sample = append(sample, v)
		}
	}
	if len(sample) == 0 {
		return values
	}
	slices.Sort(sample)
	median := sample[len(sample)/2]
	dst := make([]float64, len(values))
	for i, v := range values {
		switch {
		case v != v:
			dst[i] = math.NaN()
		case v > median:
			dst[i] = 1
		}
	}
	return dst
}

// unitMeans is the mean of a unit's values that are not null.
func unitMeans(values []float64, g grouping) []float64 {
	if g.of == nil {
		return values
	}
	sums, counts := make([]float64, g.n), make([]float64, g.n)
	for row, v := range values {
		if v == v {
			sums[g.of[row]] += v
			counts[g.of[row]]++
		}
	}
	for u := range sums {
		sums[u] /= counts[u] // 0/0 is NaN: no value
	}
	return sums
}

// designEffect of a grouping on x; 0 where x does not vary.
func designEffect(x []float64, of []uint32, groups int) float64 {
	n, mean := 0.0, 0.0
	for _, v := range x {
		if v == v {
			n++
			mean += (v - mean) / n
		}
	}
	sums, square := make([]float64, groups), 0.0
	for i, v := range x {
		if v == v {
			d := v - mean
			sums[of[i]] += d
			square += d * d
		}
	}
	between := 0.0
	for _, s := range sums {
		between += s * s
	}
	if !(square > 0) || math.IsInf(square, 0) || math.IsInf(between, 0) {
		return 0
	}
	return between / square
}
