package holdout

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

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
	// in four million rows, and memory stays bounded.
	dependenceRows = 1 << 22
	// dependenceCells bounds rows times (grouping, measure) pairs: about a second of one core.
	dependenceCells = 1 << 28
	// candidateCells bounds rows times columns that are tried as groupings, which takes hashing.
	candidateCells = 1 << 25
	// minDependence columns and pairs are looked at however long the table is.
	minDependence = 4
	// minGroups is the smallest number of values, nulls left out, that says anything: with fewer, the effect of a grouping
	// cannot be told from a few fixed categories.
	minGroups = 20
	// alikeRows is the intraclass correlation from which on members of a group are nearly copies of each other: rows of one customer, and not of one town.
	alikeRows = 0.5
	// alikeColumns of other columns must be alike in that way, or the label: one may be made of the grouping itself, as a price is of an article.
	alikeColumns = 2
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
	shared bool    // two units or more have a value, on average
	others float64 // units that a unit shares its group with, on average
	noName bool    // whole numbers that no name calls ids, but looksLikeKey does
}

// correlation is about the intraclass correlation that a design effect shows.
func (c *candidate) correlation(effect float64) float64 { return (effect - 1) / c.others }

// A measure is a number of each row, NaN where there is none: a column's, or whether that is above a number. Of units it is the mean of their rows'.
type measure struct {
	column *dataset.Column
	above  bool // the measure is 1 where the column is above the median, and 0 where it is not
	median float64
}

// estimateMedian looks for the median where the measure needs one, and makes it the column itself where there is none. It reads pages all over the column.
func (m *measure) estimateMedian() {
	if m.above {
		m.median, m.above = medianOf(m.column.Numbers)
	}
}

// measuredRows is how many numbers of a measure are made together; they stay in the first-level cache.
const measuredRows = 1 << 10

// numbers returns the measure of the rows from..to-1, in dst where they are not the column's own.
func (m *measure) numbers(dst []float64, from, to int) []float64 {
	if m.column.Kind == dataset.Number && !m.above {
		return m.column.Numbers[from:to]
	}
	dst = dst[:to-from]
	if m.column.Kind == dataset.Bool {
		for i, b := range m.column.Bools[from:to] {
			dst[i] = float64(b)
			if b >= dataset.NullBool {
				dst[i] = math.NaN()
			}
		}
		return dst
	}
	for i, v := range m.column.Numbers[from:to] {
		var one uint8 // half of the values are above the median: a jump would be guessed wrongly as often
		if v > m.median {
			one = 1
		}
		if dst[i] = float64(one); v != v {
			dst[i] = v
		}
	}
	return dst
}

// ofUnits is the measure of units as a measure of rows, of which each is one: sums and counts are of their length.
func (m *measure) ofUnits(sums, counts []float64, g grouping) measure {
	var room [measuredRows]float64
	clear(sums)
	clear(counts)
	for from := 0; from < len(g.of); from += measuredRows {
		for i, v := range m.numbers(room[:], from, min(from+measuredRows, len(g.of))) {
			if v == v {
				u := g.of[from+i]
				sums[u] += v
				counts[u]++
			}
		}
	}
	for u := range sums {
		sums[u] /= counts[u] // 0/0 is NaN: no value
	}
	return measure{column: &dataset.Column{Field: dataset.Field{Name: m.column.Name, Kind: dataset.Number}, Numbers: sums}}
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
// are looked at. Of customers with two rows each the training part has hardly one twice, and the effect is small, but those that it has are alike throughout: an
// intraclass correlation of alikeRows in the label, or in alikeColumns columns, counts as well.
//
// Data cannot tell whether a population is "other flights of these airports" or "other airports", and a holdout has one unit. So there is one warning, about
// one grouping: days before others, for a model is used on days to come, then what is alike throughout, for a model knows it again, and then the largest effect. Others are named in it.
//
// It calls after behind columns that it has read, whose memory can be given back.
func dependenceWarnings(columns []dataset.Column, g grouping, unit unitRule, label string, after func()) ([]Warning, error) {
	found, err := dependences(columns, g, unit, label, after)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return []Warning{dependenceWarning(found, unit)}, nil
}

// A dependence is a grouping whose members are alike.
type dependence struct {
	candidate
	effect float64
	by     string // the measure that shows it
	alike  bool   // throughout: see alikeRows
}

// dependences are the groupings that count, the one to recommend first. It fails where a mapped column cannot be read.
func dependences(columns []dataset.Column, g grouping, unit unitRule, label string, after func()) ([]dependence, error) {
	if len(columns) == 0 || g.n == 0 {
		return nil, nil
	}
	columns, g = firstRows(columns, g, dependenceRows)
	candidates := candidatesOf(columns, g, unit, label, after)
	if len(candidates) == 0 {
		return nil, nil
	}
	measures := measuresOf(columns, label)
	pairs := min(max(minDependence, dependenceCells/g.n), len(measures)*len(candidates))
	asked, left := make([][]bool, len(measures)), max(minDependence, dependenceCells/g.n)
	for m := range measures {
		asked[m] = make([]bool, len(candidates))
		for i, c := range candidates {
			if c.column != measures[m].column.Name && left > 0 {
				asked[m][i] = true
				left--
			}
		}
	}
	best := make([]dependence, len(candidates))
	alike := make([][]string, len(candidates)) // columns
	differences, err := compare(measures, candidates, asked, g, after)
	if err != nil {
		return nil, err
	}
	for m, of := range differences {
		column := measures[m].column.Name
		for i, c := range candidates {
			d, p := of[i].effect, of[i].p
			if p > FalseWarning/float64(pairs) {
				continue
			}
			if !c.isTime && c.correlation(d) >= alikeRows && !slices.Contains(alike[i], column) {
				alike[i] = append(alike[i], column)
			}
			if d > best[i].effect {
				best[i] = dependence{candidate: c, effect: d, by: column}
			}
		}
	}
	var found []dependence
	for i, d := range best {
		d.alike = len(alike[i]) >= alikeColumns || !d.noName && label != "" && slices.Contains(alike[i], label)
		if d.alike || d.shared && !d.noName && d.effect > DesignEffectWarning {
			found = append(found, d)
		}
	}
	rank := func(d dependence) int {
		switch {
		case d.isTime:
			return 0
		case d.alike:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(found, func(a, b dependence) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.effect, a.effect))
	})
	return found, nil
}

// knownAgain is what is said of groupings that a model can learn, for a warning about groups that are alike throughout.
func (d *dependence) knownAgain(noun string) string {
	if !d.alike {
		return ""
	}
	return fmt.Sprintf(" A model that has seen some %ss of a value knows the others: split apart, they make it look better than it is.", noun)
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
	return Warning{Code: dependentRows, Column: first.column, Unit: first.rule.String(), Effect: effect, Detail: detail + "." + first.knownAgain(noun)}
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

// candidatesOf lists the groupings to try: the days of times, texts, and whole numbers that are named as ids or look like keys, with at least minGroups values
// that come again (repeatedRows). Other whole numbers are amounts and grades, which go along with other columns without anything being
// sampled by them; nor is anything sampled by the label. A column that differs within a unit does not group units.
func candidatesOf(columns []dataset.Column, g grouping, unit unitRule, label string, after func()) []candidate {
	var found []candidate
	tries, keys := max(minDependence, candidateCells/columns[0].Len()), keyColumns
	for _, pass := range []struct {
		kind   dataset.Kind
		noName bool
	}{{dataset.Time, false}, {dataset.Text, false}, {dataset.Number, false}, {dataset.Number, true}} {
		for i := range columns {
			c, day := &columns[i], pass.kind == dataset.Time
			if c.Kind != pass.kind || c.Name == unit.Column || c.Name == label || c.Kind == dataset.Number && (namedAsID(c.Name) == pass.noName || !wholeNumbers(headOf(c).Numbers)) {
				continue
			}
			if tries--; tries < 0 {
				return found
			}
			if pass.noName {
				if keys--; keys < 0 {
					return found
				}
				if !looksLikeKey(columns, i) { // most are not, and to group all rows takes memory
					after()
					continue
				}
			}
			if c.Kind == dataset.Number && !wholeNumbers(c.Numbers) {
				after()
				continue
			}
			rows, nulls := groupBy(*c, day), nullsOf(c)
			after()
			values, filled := rows.n-nulls, c.Len()-nulls
			if values < minGroups || float64(filled) < repeatedRows*float64(values) {
				continue
			}
			of, groups, ok := groupUnits(rows, g)
			others := othersOf(of, groups)
			if !ok || float64(groups-nulls)*repeatedRows > float64(g.n) || others == 0 {
				continue
			}
			found = append(found, candidate{column: c.Name, rule: unitRule{Column: c.Name, Day: day}, of: of, groups: groups, isTime: day, noName: pass.noName,
				shared: 2*values <= filled && 2*groups <= g.n, others: others})
		}
	}
	return found
}

// nullsOf counts the rows that have no value.
func nullsOf(c *dataset.Column) (n int) {
	for row := range c.Len() {
		if c.Null(row) {
			n++
		}
	}
	return n
}

// othersOf is how many others a member shares its group with, on average.
func othersOf(of []uint32, groups int) float64 {
	sizes, pairs := make([]float64, groups), 0.0
	for _, group := range of {
		pairs += 2 * sizes[group]
		sizes[group]++
	}
	return pairs / float64(max(1, len(of)))
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

// measuresOf lists the label's measures first, then the other numbers and conditions in the order of the columns.
func measuresOf(columns []dataset.Column, label string) (list []measure) {
	of := func(c *dataset.Column) {
		switch c.Kind {
		case dataset.Number:
			list = append(list, measure{column: c}, measure{column: c, above: true})
		case dataset.Bool:
			list = append(list, measure{column: c})
		}
	}
	for i := range columns {
		if columns[i].Name == label {
			of(&columns[i])
		}
	}
	for i := range columns {
		if columns[i].Name != label {
			of(&columns[i])
		}
	}
	return list
}

// medianOf is the median of a sample of the values; false where that has only nulls.
func medianOf(values []float64) (median float64, ok bool) {
	var sample []float64
	for i := 0; i < len(values); i += max(1, len(values)/medianSample) {
		if v := values[i]; v == v {
			sample = append(sample, v)
		}
	}
	if len(sample) == 0 {
		return 0, false
	}
	slices.Sort(sample)
	return sample[len(sample)/2], true
}

// A difference is what groupsDiffer returns.
type difference struct{ effect, p float64 }

// compare returns how the groups of each candidate differ in each measure, for the pairs that are asked for. Two measures are taken together, and several such at the same time.
func compare(measures []measure, candidates []candidate, asked [][]bool, g grouping, after func()) ([][]difference, error) {
	found := make([][]difference, len(measures))
	for m := range found {
		found[m] = make([]difference, len(candidates))
	}
	var next atomic.Int64
	work := func() {
		var sums [lanes][]float64
		var counts []float64
		for {
			first := int(next.Add(lanes)) - lanes
			if first >= len(measures) {
				return
			}
			last := min(first+lanes, len(measures))
			if !slices.ContainsFunc(asked[first:last], func(of []bool) bool { return slices.Contains(of, true) }) {
				continue
			}
			var both [lanes]measure
			for i := range both {
				both[i] = measures[min(first+i, last-1)]
				both[i].estimateMedian()
				if g.of != nil {
					if sums[i] == nil {
						sums[i] = make([]float64, g.n)
					}
					if counts == nil {
						counts = make([]float64, g.n)
					}
					both[i] = both[i].ofUnits(sums[i], counts, g)
				}
			}
			ns, means := meansOf(both, g.n)
			for i, c := range candidates {
				if !slices.ContainsFunc(asked[first:last], func(of []bool) bool { return of[i] }) {
					continue
				}
				differ := groupsDiffer(both, ns, means, c.of, c.groups)
				for m := first; m < last; m++ {
					if asked[m][i] {
						found[m][i] = differ[m-first]
					}
				}
			}
			after()
		}
	}
	var wait sync.WaitGroup
	faults := make([]error, runtime.GOMAXPROCS(0))
	for i := range faults {
		wait.Go(func() { faults[i] = dataset.Guarded(work) })
	}
	wait.Wait()
	return found, errors.Join(faults...)
}

// lanes is how many measures are gone through together. A mean waits for one division after the other, and so the processor has time for two.
const lanes = 2

// meansOf returns how many of n values are not null, and their mean, of each of two measures.
func meansOf(x [lanes]measure, n int) (ns, means [lanes]float64) {
	var rooms [lanes][measuredRows]float64
	var n0, n1, mean0, mean1 float64
	for from := 0; from < n; from += measuredRows {
		to := min(from+measuredRows, n)
		second := x[1].numbers(rooms[1][:], from, to)
		for i, v := range x[0].numbers(rooms[0][:], from, to) {
			if v == v {
				n0++
				mean0 += (v - mean0) / n0
			}
			if w := second[i]; w == w {
				n1++
				mean1 += (w - mean1) / n1
			}
		}
	}
	return [lanes]float64{n0, n1}, [lanes]float64{mean0, mean1}
}

// groupsDiffer returns, of each of two measures x with these means of so many values, the design effect of a grouping on x, 0 where x does not vary, and a p-value of the hypothesis that x is independent of
// the grouping: of the statistic
//
//	t = sum over groups of (sum in the group of (x - m))^2 / size / variance,
//
// whose law under permutations of x has about the mean groups-1 (Kruskal and Wallis 1952, on values instead of ranks) and the variance sum of 2 + (k-3)/size, k being the
// kurtosis of x. A gamma law with these two stands for it, by the cube root of Wilson and Hilferty (1931). A rare condition and a heavy tail have a large kurtosis, and so
// need more than a normal law would ask; it is never taken below 3.
func groupsDiffer(x [lanes]measure, ns, means [lanes]float64, of []uint32, groups int) (differ [lanes]difference) {
	var rooms [lanes][measuredRows]float64
	sums := make([]groupSums, groups)
	var square0, square1, fourth0, fourth1 float64
	for from := 0; from < len(of); from += measuredRows {
		to := min(from+measuredRows, len(of))
		second := x[1].numbers(rooms[1][:], from, to)
		for i, v := range x[0].numbers(rooms[0][:], from, to) {
			s := &sums[of[from+i]]
			if v == v {
				d := v - means[0]
				s.sums[0] += d
				s.sizes[0]++
				square0 += d * d
				fourth0 += d * d * d * d
			}
			if w := second[i]; w == w {
				d := w - means[1]
				s.sums[1] += d
				s.sizes[1]++
				square1 += d * d
				fourth1 += d * d * d * d
			}
		}
	}
	differ[0].effect, differ[0].p = designEffect(sums, 0, ns[0], square0, fourth0)
	differ[1].effect, differ[1].p = designEffect(sums, 1, ns[1], square1, fourth1)
	return differ
}

// groupSums are the sums of a group's values less their means, and how many they are.
type groupSums struct{ sums, sizes [lanes]float64 }

// designEffect is groupsDiffer of one measure of n values, whose differences from their mean have these sums of squares and of fourth powers.
func designEffect(groups []groupSums, lane int, n, square, fourth float64) (effect, p float64) {
	between, t, count, inverse := 0.0, 0.0, 0.0, 0.0
	for i := range groups {
		s, size := groups[i].sums[lane], groups[i].sizes[lane]
		between += s * s
		if size > 0 {
			t += s * s / size
			count++
			inverse += 1 / size
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
