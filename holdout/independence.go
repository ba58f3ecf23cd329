package holdout

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
)

// What the search for dependent rows may cost and what it reports.
const (
	// DesignEffectWarning is the design effect above which the card warns: intervals are then narrower than
	// sqrt(2) times what they should be, or worse.
	DesignEffectWarning = 2
	// FalseWarning is at most about the probability that a table of independent columns gets a warning, whatever the number of its columns:
	// each pair of a grouping and a measure has its share of it. At a thousandth an owner who sees one has a reason to believe it.
	FalseWarning = 1e-3
	// MaxOthers is how many further groupings the one warning names.
	MaxOthers = 3

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
	// fewGroups is a number of units that intervals get wide with.
	fewGroups = 200
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

// dependenceWarnings looks in rows for columns whose values group units that are alike. For a grouping g
// and a measure x with mean m the design effect (Kish 1965; Moulton 1986 for regressions) is
//
//	deff = sum over groups of (sum in the group of (x - m))^2  /  sum over units of (x - m)^2,
//
// the variance of the sum under sampling of whole groups over that under sampling of units. It is about 1 where group
// members are independent. An interval that assumes independent units is about sqrt(deff) times too narrow for a
// population of other groups. Measures are numbers and conditions and, for numbers, being above the median, which a few
// huge values cannot mask; of a candidate the largest effect over the measures counts. Limits on rows and columns keep the search short; within them it is exact.
//
// An effect counts if it is above DesignEffectWarning and no accident: its p-value (groupsDiffer) is at most FalseWarning divided by the number of pairs that
// are looked at.
//
// Data cannot tell whether a population is "other flights of these airports" or "other airports", and a holdout has one unit. So there is one warning, about
// one grouping: days before others, for a model is used on days to come, and then the largest effect. Others are named in it.
//
// It calls after behind each column that it has read, whose memory can be given back.
func dependenceWarnings(columns []dataset.Column, g grouping, unit unitRule, label string, after func()) []Warning {
	found := dependences(columns, g, unit, label, after)
	if len(found) == 0 {
		return nil
	}
	return []Warning{dependenceWarning(found, unit)}
}

// A dependence is a grouping whose members are alike.
type dependence struct {
	candidate
	effect float64
	by     string // the measure that shows it
}

// dependences are the groupings that count, the one to recommend first.
func dependences(columns []dataset.Column, g grouping, unit unitRule, label string, after func()) []dependence {
	if len(columns) == 0 || g.n == 0 {
		return nil
	}
	columns, g = firstRows(columns, g, dependenceRows)
	candidates := candidatesOf(columns, g, unit, label, after)
	if len(candidates) == 0 {
		return nil
	}
	most := max(minDependence, dependenceCells/g.n)
	measures := 0
	for i := range columns {
		switch columns[i].Kind {
		case dataset.Number:
			measures += 2
		case dataset.Bool:
			measures++
		}
	}
	pairs := min(most, measures*len(candidates))
	best := make([]dependence, len(candidates))
	for m := range measuresOf(columns, g, label, after) {
		for i, c := range candidates {
			if c.column == m.column || most == 0 {
				continue
			}
			most--
			d, p := groupsDiffer(m.values, c.of, c.groups)
			if d > DesignEffectWarning && p <= FalseWarning/float64(pairs) && d > best[i].effect {
				best[i] = dependence{c, d, m.column}
			}
		}
		if most == 0 {
			break
		}
	}
	found := slices.DeleteFunc(best, func(d dependence) bool { return d.effect == 0 })
	slices.SortStableFunc(found, func(a, b dependence) int {
		if a.isTime != b.isTime {
			if a.isTime {
				return -1
			}
			return 1
		}
		return cmp.Compare(b.effect, a.effect)
	})
	return found
}

func dependenceWarning(found []dependence, unit unitRule) Warning {
	first, noun := found[0], unitNoun(unit)
	effect := math.Round(first.effect*10) / 10
	detail := fmt.Sprintf("%ss with the same %s are alike: in the training part the design effect of that grouping on %q is %.1f. "+
		"For a population of other values of %s, intervals that take %ss as independent are about %.1f times too narrow. A holdout with unit=%s would leave about %d units for every %d %ss",
		noun, first.rule, first.by, effect, first.rule, noun, math.Sqrt(effect), first.rule, first.groups, len(first.of), noun)
	if first.groups < fewGroups {
		detail += ", which are few"
	}
	if others := found[1:]; len(others) > 0 {
		var names []string
		for _, o := range others[:min(len(others), MaxOthers)] {
			names = append(names, fmt.Sprintf("%s (%.1f, %d units)", o.rule, o.effect, o.groups))
		}
		detail += fmt.Sprintf(". Also alike are %ss with the same %s; a holdout has one unit, the one that is new in what you want to know about", noun, strings.Join(names, ", "))
	}
	return Warning{Code: dependentRows, Column: first.column, Unit: first.rule.String(), Effect: effect, Detail: detail + "."}
}

// dependentRows is the code of the warning.
const dependentRows = "dependent-rows"

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

// candidatesOf lists the groupings to try: the days of times, and texts and whole numbers that are named as ids, with at least minGroups values
// which on average two units or more share. Other whole numbers are amounts and grades, which go along with other columns without anything being
// sampled by them; nor is anything sampled by the label. A column that differs within a unit does not group units.
func candidatesOf(columns []dataset.Column, g grouping, unit unitRule, label string, after func()) []candidate {
	var found []candidate
	tries := max(minDependence, candidateCells/columns[0].Len())
	for _, kind := range []dataset.Kind{dataset.Time, dataset.Text, dataset.Number} {
		for i := range columns {
			c, day := &columns[i], kind == dataset.Time
			if c.Kind != kind || c.Name == unit.Column || c.Name == label || kind == dataset.Number && !(namedAsID(c.Name) && wholeNumbers(c.Numbers)) {
				continue
			}
			if tries--; tries < 0 {
				return found
			}
			rows := groupBy(*c, day)
			after()
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

// namedAsID reports whether a name ends with the word id, number, no, nr, key or code, as in customer_id, patientID, "order no".
func namedAsID(name string) bool {
	for _, word := range []string{"id", "number", "no", "nr", "key", "code"} {
		start := len(name) - len(word)
		if start < 0 || !strings.EqualFold(name[start:], word) {
			continue
		}
		if start == 0 {
			return true
		}
		before, first := name[start-1], name[start]
		letter := before >= 'a' && before <= 'z' || before >= 'A' && before <= 'Z' || before >= 0x80
		if !letter || before >= 'a' && first >= 'A' && first <= 'Z' { // a word of its own, or camel case
			return true
		}
	}
	return false
}

func wholeNumbers(values []float64) bool {
	for _, v := range values {
		if v == v && v != math.Floor(v) {
			return false
		}
	}
	return true
}

// measuresOf yields the label's measures first, then the other numbers and conditions in the order of the columns. The values of one are good until the next.
func measuresOf(columns []dataset.Column, g grouping, label string, after func()) iter.Seq[measure] {
	var each, sums, counts []float64 // of rows, and of units
	of := func(c *dataset.Column, yield func(measure) bool) bool {
		defer after()
		means := func(values []float64) measure {
			if g.of == nil {
				return measure{c.Name, values}
			}
			if sums == nil {
				sums, counts = make([]float64, g.n), make([]float64, g.n)
			}
			unitMeans(sums, counts, values, g)
			return measure{c.Name, sums}
		}
		switch c.Kind {
		case dataset.Number:
			if !yield(means(c.Numbers)) {
				return false
			}
			each = aboveMedian(each, c.Numbers)
			return yield(means(each))
		case dataset.Bool:
			each = slices.Grow(each[:0], len(c.Bools))[:len(c.Bools)]
			for i, b := range c.Bools {
				each[i] = float64(b)
				if b >= dataset.NullBool {
					each[i] = math.NaN()
				}
			}
			return yield(means(each))
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

// aboveMedian is 1 where a value is above the (sampled) median, 0 where it is not, NaN where it is null. It writes to dst where there is room.
func aboveMedian(dst, values []float64) []float64 {
	dst = slices.Grow(dst[:0], len(values))[:len(values)]
	var sample []float64
	for i := 0; i < len(values); i += max(1, len(values)/medianSample) {
		if v := values[i]; v == v {
			sample = append(sample, v)
		}
	}
	if len(sample) == 0 {
		copy(dst, values)
		return dst
	}
	slices.Sort(sample)
	median := sample[len(sample)/2]
	for i, v := range values {
		switch {
		case v != v:
			dst[i] = v
		case v > median:
			dst[i] = 1
		default:
			dst[i] = 0
		}
	}
	return dst
}

// unitMeans writes the means of the units' values that are not null to sums.
func unitMeans(sums, counts, values []float64, g grouping) {
	clear(sums)
	clear(counts)
	for row, v := range values {
		if v == v {
			sums[g.of[row]] += v
			counts[g.of[row]]++
		}
	}
	for u := range sums {
		sums[u] /= counts[u] // 0/0 is NaN: no value
	}
}

// groupsDiffer returns the design effect of a grouping on x, 0 where x does not vary, and a p-value of the hypothesis that x is independent of
// the grouping: of the statistic
//
//	t = sum over groups of (sum in the group of (x - m))^2 / size / variance,
//
// whose law under permutations of x has about the mean groups-1 (Kruskal and Wallis 1952, on values instead of ranks) and the variance sum of 2 + (k-3)/size, k being the
// kurtosis of x. A gamma law with these two stands for it, by the cube root of Wilson and Hilferty (1931). A rare condition and a heavy tail have a large kurtosis, and so
// need more than a normal law would ask; it is never taken below 3.
func groupsDiffer(x []float64, of []uint32, groups int) (effect, p float64) {
	n, mean := 0.0, 0.0
	for _, v := range x {
		if v == v {
			n++
			mean += (v - mean) / n
		}
	}
	sums, sizes := make([]float64, groups), make([]float64, groups)
	square, fourth := 0.0, 0.0
	for i, v := range x {
		if v == v {
			d := v - mean
			sums[of[i]] += d
			sizes[of[i]]++
			square += d * d
			fourth += d * d * d * d
		}
	}
	between, t, count, inverse := 0.0, 0.0, 0.0, 0.0
	for i, s := range sums {
		between += s * s
		if sizes[i] > 0 {
			t += s * s / sizes[i]
			count++
			inverse += 1 / sizes[i]
		}
	}
	if !(square > 0) || math.IsInf(fourth, 0) || math.IsInf(between, 0) || count < 2 {
		return 0, 1
	}
	kurtosis := max(3, n*fourth/(square*square))
	degrees := count - 1
	t *= n / square
	shape := degrees * degrees / (2*degrees + (kurtosis-3)*inverse) // mean^2 / variance
	z := (math.Cbrt(t/degrees) - (1 - 1/(9*shape))) * 3 * math.Sqrt(shape)
	return between / square, math.Erfc(z/math.Sqrt2) / 2
}
