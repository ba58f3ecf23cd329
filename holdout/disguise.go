package holdout

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
)

// A column that tells the label by itself is often the label in disguise: the date of a cancellation, where whether somebody cancels is to be predicted. Nobody has it of a new row. So the card warns of it, and
// so does the answer about a model that reads it.

// LabelInDisguise is the code of the warning.
const LabelInDisguise = "label-in-disguise"

// What a disguise is.
const (
	// disguiseErrors is the largest share of rows in which it is wrong: an honest feature that is right this often leaves nothing to predict.
	disguiseErrors = 1e-3
	// disguiseGain is by what factor it must be wrong less often than the most frequent label is: where that is right in 99.9% of all rows, everything is.
	disguiseGain = 20
	// disguiseBase is how many rows at least have another label than the most frequent: of fewer a column is right by accident.
	disguiseBase = 20
	// disguiseRows is how many rows are looked at, from the start of the training part: a share of a thousandth shows in them.
	disguiseRows = 1 << 17
	// disguiseValues is how many different values a column, or a label, has at most that is looked at value by value. One with more, such as a name, tells rows apart, and with them everything.
	disguiseValues = 20
	// disguiseCells bounds rows times columns: some seconds of one core, where none is ruled out by its first rows.
	disguiseCells = 1 << 24
	// leastRows are looked at however many columns there are: of fewer a share of a thousandth is no row.
	leastRows = 4096
	// firstRowsOfLabel are the fewest rows by which a column is ruled out.
	firstRowsOfLabel = 256
	// maxDisguises are named.
	maxDisguises = 5
)

// disguises are the columns that tell the label by themselves, in the order of the table: whether there is a value, the value itself where there are few, or on which side of one cut a number or a time lies.
// The columns are those of the training part; unit is no feature.
func disguises(columns []dataset.Column, label, unit string) (found []string) {
	at := slices.IndexFunc(columns, func(c dataset.Column) bool { return c.Name == label })
	if at < 0 {
		return nil
	}
	rows := min(columns[at].Len(), disguiseRows, max(leastRows, disguiseCells/len(columns)))
	of, count, ok := fewValues(&columns[at], rows)
	if !ok {
		return nil
	}
	all := newClasses(of, count)
	base := all.n - slices.Max(append(all.counts(0, rows), 0))
	if base < disguiseBase {
		return nil
	}
	most := min(int(disguiseErrors*float64(all.n)), base/disguiseGain)
	// The best rule for all rows is wrong in no more of the first ones: those rule out nearly all columns, for little.
	var stages []labelClasses
	for n := firstRowsOfLabel; n < rows; n *= 4 {
		stages = append(stages, newClasses(of[:n], count))
	}
	stages = append(stages, all)
	for i := range columns {
		c := &columns[i]
		tells := func(l labelClasses) bool { return l.errorsBy(c) <= most }
		if i != at && c.Name != unit && len(found) < maxDisguises && !slices.ContainsFunc(stages, func(l labelClasses) bool { return !tells(l) }) {
			found = append(found, c.Name)
		}
	}
	return found
}

// labelClasses are the classes of the rows that are looked at.
type labelClasses struct {
	of    []int // the class of each row; -1 without a label
	count int   // of classes
	n     int   // rows with a label
}

func newClasses(of []int, count int) labelClasses {
	l := labelClasses{of: of, count: count}
	for _, class := range of {
		if class >= 0 {
			l.n++
		}
	}
	return l
}

// counts are how many of the rows from a to b are of each class.
func (l labelClasses) counts(a, b int) []int {
	counts := make([]int, l.count)
	for _, class := range l.of[a:b] {
		if class >= 0 {
			counts[class]++
		}
	}
	return counts
}

// fewValues numbers the values of a column's first rows, with -1 for null; false where they are too many.
func fewValues(c *dataset.Column, rows int) (of []int, count int, ok bool) {
	of = make([]int, rows)
	seen := map[float64]int{}
	for row := range of {
		x, null := cell(c, row)
		if null {
			of[row] = -1
			continue
		}
		value, known := seen[x]
		if !known {
			if len(seen) == disguiseValues {
				return nil, 0, false
			}
			value = len(seen)
			seen[x] = value
		}
		of[row] = value
	}
	return of, len(seen), true
}

// cell is a value as a number that tells values apart, and orders numbers and times.
func cell(c *dataset.Column, row int) (x float64, null bool) {
	switch c.Kind {
	case dataset.Bool:
		return float64(c.Bools[row]), c.Bools[row] == dataset.NullBool
	case dataset.Text:
		return float64(c.Codes[row]), c.Codes[row] == 0
	}
	return c.Numbers[row], math.IsNaN(c.Numbers[row])
}

// errorsBy is in how many rows with a label the best rule by a column is wrong. Rows without a value are a group of their own.
func (l labelClasses) errorsBy(c *dataset.Column) int {
	if of, count, ok := fewValues(c, len(l.of)); ok {
		return l.errorsOf(of, count)
	}
	present := make([]int, len(l.of)) // 0, or -1 for null
	var rows []int
	for row, class := range l.of {
		if _, null := cell(c, row); null {
			present[row] = -1
		} else if class >= 0 {
			rows = append(rows, row)
		}
	}
	best := l.errorsOf(present, 1)
	if c.Kind == dataset.Text {
		return best
	}
	slices.SortStableFunc(rows, func(a, b int) int { return cmp.Compare(c.Numbers[a], c.Numbers[b]) })
	below, above := make([]int, l.count), make([]int, l.count)
	for _, row := range rows {
		above[l.of[row]]++
	}
	uncut := slices.Max(above)
	gain := 0
	for i, row := range rows {
		if i > 0 && c.Numbers[rows[i-1]] != c.Numbers[row] {
			gain = max(gain, slices.Max(below)+slices.Max(above)-uncut)
		}
		below[l.of[row]]++
		above[l.of[row]]--
	}
	return best - gain
}

// errorsOf is in how many rows the most frequent class of each value is wrong; -1 is a value, too.
func (l labelClasses) errorsOf(values []int, count int) int {
	counts := make([]int, (count+1)*l.count)
	for row, class := range l.of {
		if class >= 0 {
			counts[(values[row]+1)*l.count+class]++
		}
	}
	errors := l.n
	for group := range slices.Chunk(counts, l.count) {
		errors -= slices.Max(group)
	}
	return errors
}

// disguiseWarnings are the card's warnings of columns that tell the label by themselves.
func disguiseWarnings(columns []dataset.Column, label, unit string) (warnings []Warning) {
	for _, name := range disguises(columns, label, unit) {
		warnings = append(warnings, Warning{Code: LabelInDisguise, Column: name,
			Detail: fmt.Sprintf("%s alone tells %s in more than 99.9%% of the training part's rows: it may be made of it, or known only later. A model that reads it looks better than it is with new rows.", name, label)})
	}
	return warnings
}

// disguises are the columns that the card warns of.
func (card *Card) disguises() (columns []string) {
	for _, w := range card.Warnings {
		if w.Code == LabelInDisguise {
			columns = append(columns, w.Column)
		}
	}
	return columns
}
