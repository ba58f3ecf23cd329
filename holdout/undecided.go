package holdout

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/holdoutd/holdoutd/dataset"
)

// An owner who says nothing of the unit gets rows. Where a column names customers and each has several rows, that split puts rows of one customer on both sides: a model
// that has seen some of them knows the others, and looks better than it is with customers who are new. So such a table is not taken before its owner has said what one
// observation is: unit=COLUMN, or unit=row, of which the card keeps a warning.
//
// This is decided by public facts of the whole table: the names and kinds of its columns, whether their numbers are whole, how many rows there are, and how many nulls and
// distinct values, both rounded up to three binary digits (coarse). A warning that is about what the rows say is another one (dependenceWarnings), and comes later.

const (
	// repeatedRows is the least number of rows a value at which values come again. A twentieth is ten standard errors of the count.
	repeatedRows = 1.05
	// maxNamedColumns bounds how many columns are counted; each takes a pass over its rows.
	maxNamedColumns = 16
	// countedValues is how many values are remembered to count them. So many are counted exactly, and more with a standard error of half a percent.
	countedValues = 1 << 16
	// coarseDigits is the number of leading binary digits that are said of a count.
	coarseDigits = 3
)

// UnitChoice is what one observation may be, and what that would give.
type UnitChoice struct {
	Unit      string   `json:"unit"`                 // the value of the setting unit
	Units     int64    `json:"units"`                // of the table; of a column about, rounded up
	Rows      float64  `json:"rows"`                 // a unit has on average, to two digits
	HalfWidth *float64 `json:"half_width,omitempty"` // of a share's planned interval with these settings, where they can be planned
}

// unitChoices are the columns that name something of which each has several rows, the coarsest first.
func (c *creation) unitChoices() []UnitChoice {
	var named, found []UnitChoice
	for _, f := range c.schema().Fields {
		if f.Kind != dataset.Text && f.Kind != dataset.Number || f.Name == c.settings.Label || !namesUnits(f.Name) || len(named) == maxNamedColumns {
			continue
		}
		choice, ok := c.count(f.Name)
		named = append(named, choice)
		if ok {
			found = append(found, choice)
		}
	}
	slices.SortStableFunc(found, func(a, b UnitChoice) int { return cmp.Compare(a.Units, b.Units) })
	return found
}

// count counts the values of a column in all parts of an upload. ok is false where they do not come again, or are too few or no whole numbers.
func (c *creation) count(column string) (choice UnitChoice, ok bool) {
	values, rows, nulls := distinct{}, 0, 0
	for _, part := range allParts {
		t := c.tables[part]
		if t == nil {
			continue
		}
		place := slices.IndexFunc(t.Schema().Fields, func(f dataset.Field) bool { return f.Name == column })
		if place < 0 {
			return choice, false
		}
		without, whole := values.addAll(t.Column(place), t.Pieces(place))
		if !whole {
			return choice, false
		}
		rows += t.Rows()
		nulls += without
	}
	choice = UnitChoice{Unit: column, Units: coarse(min(values.count(), int64(rows-nulls)))} // numbers can be chosen so that they seem to be more
	if choice.Units == 0 {
		return choice, false
	}
	each := float64(rows-min(rows, int(coarse(int64(nulls))))) / float64(choice.Units)
	choice.Rows, choice.HalfWidth = twoDigits(each), c.planned(choice.Units)
	return choice, choice.Units >= minGroups && each >= repeatedRows
}

// planned is the half-width that the settings would plan with so many units in the table, nil where that cannot be planned.
func (c *creation) planned(units int64) *float64 {
	of := func(rows int) int64 { return int64(float64(rows) * float64(units) / float64(max(1, c.rows()))) }
	set, n := c.settings, Counts{}
	if set.Split == splitGiven {
		size := func(part string) int64 {
			if t := c.tables[part]; t != nil {
				return of(t.Rows())
			}
			return 0
		}
		n = Counts{Training: size(partTraining), Check: size(partCheck), Holdout: size(partHoldout)}
	} else {
		size, err := holdoutSize(set.Holdout, int(units))
		if err != nil {
			return nil
		}
		check, err := checkSize(set.Check, set.defaultCheck(), int(units), size)
		if err != nil {
			return nil
		}
		n = Counts{Training: units - int64(size) - int64(check), Check: int64(check), Holdout: int64(size)}
	}
	g, err := set.guarantee(n)
	if err != nil || !(g.HalfWidth > 0) {
		return nil
	}
	return &g.HalfWidth
}

// rows is how many rows the upload has.
func (c *creation) rows() (n int) {
	for _, t := range c.tables {
		n += t.Rows()
	}
	return n
}

// decideUnit refuses an upload of which nobody said what one observation is, where a column names something that has several rows.
func (c *creation) decideUnit(unit unitRule) error {
	if unit.Column != "" {
		return nil
	}
	choices := c.unitChoices()
	if len(choices) == 0 {
		return nil
	}
	first := choices[0]
	if c.rowsMeant || c.settings.knowsNoUnits() {
		w := Warning{Code: repeatedUnits, Column: first.Unit, Unit: first.Unit,
			Detail: fmt.Sprintf("there are about %v rows of each %s, and one observation is a row here: rows of one %s are on both sides of the split. What a model is said to reach is not what it reaches for values of %s that are new.",
				first.Rows, first.Unit, first.Unit, first.Unit)}
		c.card.Warnings, c.early = append(c.card.Warnings, w), append(c.early, w)
		return nil
	}
	rows := int64(c.rows())
	byRow := UnitChoice{Unit: rowUnit, Units: rows, Rows: 1, HalfWidth: c.planned(rows)}
	var columns []string
	for _, choice := range choices {
		columns = append(columns, "unit="+choice.Unit+choice.said())
	}
	return &Error{Kind: UnitUndecided, Pointer: "unit", Members: map[string]any{"choices": append(choices, byRow)},
		Detail: fmt.Sprintf("what is one observation? Values of %s come again, about %v rows each. Say %s, and all rows of one value are on the same side of the split; or unit=row%s, if rows that share a value are not alike. "+
			"Split by rows, a model that has seen some rows of a value looks better than it is. Nothing was kept", first.Unit, first.Rows, strings.Join(columns, " or "), byRow.said())}
}

// said is what a choice would give.
func (u UnitChoice) said() string {
	if u.HalfWidth == nil {
		return fmt.Sprintf(" (%d units)", u.Units)
	}
	return fmt.Sprintf(" (%d units, intervals of about ±%.2g)", u.Units, *u.HalfWidth)
}

// repeatedUnits is the code of the warning that units are rows where a column says more.
const repeatedUnits = "repeated-units"

// Words of columns that name who or what is observed.
var (
	idWords     = []string{"id", "uuid", "guid"}
	numberWords = []string{"no", "nr", "number", "num", "key", "code", "hash", "ref", "name"}
	unitWords   = []string{
		"account", "acct", "animal", "borrower", "buyer", "caller", "client", "contract", "cookie", "cust", "customer", "device", "donor", "driver", "email", "employee", "guest", "household", "family",
		"login", "machine", "member", "msisdn", "owner", "participant", "patient", "person", "player", "pupil", "respondent", "seller", "sensor", "session", "student", "subject", "subscriber",
		"tenant", "user", "usr", "vehicle", "visitor", "worker",
	}
)

// namesUnits reports whether a column is named as one that says who or what a row is about: a word of it at an end is id, the last one is as customer, or another is and the
// last one is as number. Words end at other signs than letters and digits, and before a capital: customer_id, patientNo, user, "ID Kunde", userid.
func namesUnits(column string) bool {
	words := wordsOf(column)
	if len(words) == 0 {
		return false
	}
	first, last := words[0], words[len(words)-1]
	isUnit := func(word string) bool { return slices.Contains(unitWords, word) }
	for _, id := range idWords {
		if first == id || last == id {
			return true
		}
	}
	for _, word := range slices.Concat(idWords, numberWords) {
		if stem, ok := strings.CutSuffix(last, word); ok && isUnit(stem) {
			return true
		}
	}
	return isUnit(last) || slices.Contains(numberWords, last) && slices.ContainsFunc(words[:len(words)-1], isUnit)
}

// wordsOf splits a name into its words, in small letters.
func wordsOf(name string) (words []string) {
	var word []rune
	end := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
		}
		word = nil
	}
	before := ' '
	for _, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
		case unicode.IsUpper(r) && !unicode.IsUpper(before):
			end()
			word = append(word, r)
		default:
			word = append(word, r)
		}
		before = r
	}
	end()
	return words
}

// distinct counts different values in bounded memory, by Wegman's adaptive sampling (Flajolet 1990): of the hashes that end in level zeros all are kept, and there are 2^level times
// as many in all. The zero value has none.
type distinct struct {
	kept  map[uint64]struct{}
	level int
}

// addAll adds a column's values, piece by piece, and returns how many are null. Where they are numbers that are not all whole it stops, and whole is false.
func (d *distinct) addAll(c *dataset.Column, pieces iter.Seq2[int, int]) (nulls int, whole bool) {
	if c.Kind != dataset.Text {
		for from, to := range pieces {
			if !wholeNumbers(c.Numbers[from:to]) {
				return 0, false
			}
			for _, v := range c.Numbers[from:to] {
				if v != v {
					nulls++
					continue
				}
				d.add(mixed(math.Float64bits(v)))
			}
		}
		return nulls, true
	}
	used := make([]bool, c.Dictionary.Len()+1)
	for from, to := range pieces {
		for _, code := range c.Codes[from:to] {
			used[code] = true
			if code == 0 {
				nulls++
			}
		}
	}
	marks := c.Dictionary.Marks()
	for code := 1; code < len(used); code++ {
		if used[code] {
			d.add(marks[code].Low)
		}
	}
	return nulls, true
}

// add adds the hash of a value.
func (d *distinct) add(hash uint64) {
	if bits.TrailingZeros64(hash) < d.level {
		return
	}
	if d.kept == nil {
		d.kept = map[uint64]struct{}{}
	}
	d.kept[hash] = struct{}{}
	for len(d.kept) > countedValues {
		d.level++
		maps.DeleteFunc(d.kept, func(hash uint64, _ struct{}) bool { return bits.TrailingZeros64(hash) < d.level })
	}
}

func (d *distinct) count() int64 {
	if d.level > 62-bits.Len(uint(countedValues)) {
		return math.MaxInt64
	}
	return int64(len(d.kept)) << d.level
}

// mixed is a bijection whose every bit depends on each bit of x (SplitMix64; Steele, Lea and Flood 2014).
func mixed(x uint64) uint64 {
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// coarse rounds a count up to coarseDigits binary digits.
func coarse(n int64) int64 {
	shift := max(0, bits.Len64(uint64(n))-coarseDigits)
	unit := int64(1) << shift
	return (n + unit - 1) / unit * unit
}

// twoDigits rounds a number of rows to two digits.
func twoDigits(x float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64)
	return rounded
}
