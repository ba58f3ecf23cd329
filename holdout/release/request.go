package release

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// Request is what is to be released, by public facts alone.
type Request struct {
	Epsilon     Millionths      `json:"epsilon"`                 // of the whole release
	RowsPerUnit int             `json:"rows_per_unit,omitempty"` // at most so many rows of a unit are kept, at random; 0 where rows are units
	Columns     []ColumnRequest `json:"columns"`
}

// ColumnRequest is what is to be released of one column.
type ColumnRequest struct {
	Name      string    `json:"name" doc:"of the column"`
	Low       *float64  `json:"low,omitempty" doc:"of a column of numbers, with high: the mean and quantiles are released too, of the values moved between these bounds"`
	High      *float64  `json:"high,omitempty" doc:"the upper bound"`
	Quantiles []float64 `json:"quantiles,omitempty" doc:"the ranks of the quantiles, from 0.005 to 0.995, in their order; default: 0.25, 0.5 and 0.75"`
	Edges     []float64 `json:"edges,omitempty" doc:"of a column of numbers, growing: how many rows are below the first, between each two, and from the last on"`
	Texts     []string  `json:"texts,omitempty" doc:"of a column of texts: how many rows have each of them, and how many have another text"`
}

// Limits of a request.
const (
	MaxColumns     = 200     // what a person reads
	MaxCells       = 1 << 11 // edges or texts of a column: each has a line of its own in what is released
	MaxQuantiles   = 99      // percentiles
	MaxRanks       = 600     // quantiles of all columns together, each of which takes a hundredth of a second: the quartiles of MaxColumns
	MinRank        = 0.005   // of a quantile, and 1-MinRank the greatest: what is released beyond is that of these (estimate.Quantiles)
	MaxResultBytes = 1 << 20 // of a result as JSON, by a bound that is known before a row is read: what a list of releases can show
	MaxRowsPerUnit = 1 << 10 // noise grows with it
	MaxTextBytes   = 1 << 10 // of a text, and of the name of a column
)

// Millionths is an epsilon in whole millionths: such sums are exact.
type Millionths int64

// Limits of an epsilon. Below the least a release is noise; above the greatest it protects nobody.
const (
	MinEpsilon Millionths = 1_000
	MaxEpsilon Millionths = 20_000_000
)

const perOne = 1_000_000

// ErrRequest is wrapped by all errors of a request.
var ErrRequest = errors.New("release: bad request")

// RequestError says what is wrong with a request.
type RequestError struct {
	Pointer string // a JSON pointer
	Detail  string
}

func (e *RequestError) Error() string { return "release: " + e.Pointer + ": " + e.Detail }

// Unwrap returns ErrRequest.
func (e *RequestError) Unwrap() error { return ErrRequest }

func wrong(pointer, format string, args ...any) error {
	return &RequestError{pointer, fmt.Sprintf(format, args...)}
}

// EpsilonOf is a number of at most six decimals as an Epsilon, also where it is off by the rounding of a sum; ok is false for others, and for those out of range.
func EpsilonOf(x float64) (e Millionths, ok bool) {
	if !(x >= MinEpsilon.Float() && x <= MaxEpsilon.Float()) {
		return 0, false
	}
	e = Millionths(math.Round(x * perOne))
	return e, math.Abs(e.Float()-x) <= 1e-12*(1+x)
}

// Float is the epsilon as a number.
func (e Millionths) Float() float64 { return float64(e) / perOne }

// MarshalJSON writes it as a number.
func (e Millionths) MarshalJSON() ([]byte, error) { return json.Marshal(e.Float()) }

// Sorted is the request in its one form: columns and texts in their order, the ranks of quantiles named, one zero, and an empty list where there is none.
func (r Request) Sorted() Request {
	r.Columns = append([]ColumnRequest{}, r.Columns...)
	slices.SortFunc(r.Columns, func(a, b ColumnRequest) int { return strings.Compare(a.Name, b.Name) })
	for i := range r.Columns {
		c := &r.Columns[i]
		if c.Texts = slices.Sorted(slices.Values(c.Texts)); c.Low != nil {
			c.Quantiles = c.ranks()
		}
		c.Low, c.High, c.Edges = plain(c.Low), plain(c.High), slices.Clone(c.Edges)
		for j := range c.Edges {
			c.Edges[j] = *plain(&c.Edges[j])
		}
	}
	return r
}

// plain is a number without the sign of zero, which the same bound has or has not.
func plain(x *float64) *float64 {
	if x == nil || *x != 0 {
		return x
	}
	return new(0.)
}

// Canonical is the text of the request in its one form: requests for the same have the same text. Check has found nothing against it.
func (r Request) Canonical() []byte {
	text, err := json.Marshal(r.Sorted())
	if err != nil {
		panic(err) // finite numbers and texts
	}
	return text
}

// Parts are among how many an epsilon is shared: the number of units, that of kept rows where it is another, and of each column the counts of its cells and, with
// bounds, the mean and the quantiles.
func (r Request) Parts(single bool) int {
	n := 1 + len(r.Columns)
	if !single && r.RowsPerUnit > 1 {
		n++
	}
	for _, c := range r.Columns {
		if c.Low != nil {
			n += 2
		}
	}
	return n
}

// Work is about how many nanoseconds of a processor and bytes of memory a release takes of a table of so many rows, by public facts: what is asked for counts, not what is found.
func (r Request) Work(rows int64, single bool) (steps, memory int64) {
	steps, memory = 20*rows, 32*rows
	if !single {
		steps, memory = steps+200*rows, memory+320*rows // whose rows are whose
	}
	for _, c := range r.Columns {
		cells := int64(len(c.Edges) + len(c.Texts) + 3)
		steps += rows*(60+6*int64(bits.Len64(uint64(cells)))) + cells*cellSteps
		if c.Low != nil {
			steps += 60*rows + int64(len(c.ranks()))*rankSteps
		}
	}
	return steps, memory + int64(len(r.Columns))*columnBytes + 4*MaxResultBytes
}

// What Work counts, in nanoseconds of one processor. 7,920 ranks of 80 columns took 65 s, which is 8 ms each; the others are small beside it.
const (
	cellSteps   = 2_000      // of noise, and of JSON
	rankSteps   = 12_000_000 // of an interval, whose law is looked up again and again
	columnBytes = 1 << 13
)

// each is the epsilon of one part, exactly.
func (r Request) each(single bool) noise.Epsilon {
	return noise.Epsilon{Num: uint64(r.Epsilon), Den: uint64(perOne * r.Parts(single))}
}

// quartiles are the ranks where none are asked for.
var quartiles = []float64{.25, .5, .75}

func (c ColumnRequest) ranks() []float64 {
	if len(c.Quantiles) == 0 {
		return quartiles
	}
	return c.Quantiles
}

// Check says what is wrong with a request about a table of these columns, of which single says that each row is a unit: a *RequestError. It looks at no row.
func (r Request) Check(fields []dataset.Field, single bool) error {
	switch {
	case r.Epsilon < MinEpsilon || r.Epsilon > MaxEpsilon:
		return wrong("/epsilon", "epsilon must be from %v to %v, with at most six decimals", MinEpsilon.Float(), MaxEpsilon.Float())
	case single && r.RowsPerUnit != 0:
		return wrong("/rows_per_unit", "the units are rows, so rows_per_unit must be left out")
	case !single && (r.RowsPerUnit < 1 || r.RowsPerUnit > MaxRowsPerUnit):
		return wrong("/rows_per_unit", "rows_per_unit must be from 1 to %d: at most so many rows of a unit count", MaxRowsPerUnit)
	case len(r.Columns) > MaxColumns:
		return wrong("/columns", "%d columns, at most %d", len(r.Columns), MaxColumns)
	}
	seen, ranks, size := map[string]bool{}, 0, statisticBytes*2
	for i, c := range r.Columns {
		pointer := fmt.Sprintf("/columns/%d", i)
		at := slices.IndexFunc(fields, func(f dataset.Field) bool { return f.Name == c.Name })
		switch {
		case len(c.Name) > MaxTextBytes || at < 0:
			return wrong(pointer+"/name", "the table has no column %.100q", c.Name)
		case seen[c.Name]:
			return wrong(pointer+"/name", "the column %q is named twice; say all that is wanted of it at once", c.Name)
		}
		seen[c.Name] = true
		if err := c.check(pointer, fields[at].Kind); err != nil {
			return err
		}
		if c.Low != nil {
			ranks += len(c.ranks())
		}
		if ranks > MaxRanks {
			return wrong(pointer+"/quantiles", "more than %d quantiles of all columns together; ask for fewer, or for the rest in a release of its own", MaxRanks)
		}
		if size += c.resultBytes(); size > MaxResultBytes {
			return wrong(pointer, "the release could have more than %d bytes; ask for fewer edges, texts or columns, or for the rest in a release of its own", MaxResultBytes)
		}
	}
	return r.rehearse(single)
}

// What the parts of a result have as JSON at most: a number has 24 bytes.
const (
	statisticBytes = 140
	cellBytes      = 2*statisticBytes + 100 // with its two ends
)

// resultBytes is more than a column's part of the result has as JSON.
func (c ColumnRequest) resultBytes() int {
	n := cellBytes + quoted(c.Name) + (len(c.Edges)+len(c.Texts)+2)*cellBytes
	for _, text := range c.Texts {
		n += quoted(text)
	}
	if c.Low != nil {
		n += (1 + len(c.ranks())) * (statisticBytes + 40)
	}
	return n
}

// quoted is the length of a text as JSON.
func quoted(text string) int {
	b, _ := json.Marshal(text) // no error of a string
	return len(b)
}

// rehearse releases a table without rows, with noise that is no secret: so whatever dp/estimate would say against the settings is said before a row is read.
func (r Request) rehearse(single bool) error {
	k := &maker{stream: noise.Seeded(0), each: estimate.Laplace{Epsilon: r.each(single)}, account: account.Basic{}}
	var owners []unit.Owner
	if !single {
		owners = []unit.Owner{}
	}
	err := k.keep(0, owners, r.RowsPerUnit)
	if err == nil {
		_, err = k.sizes()
	}
	if err != nil {
		return wrong("/epsilon", "a part of the release has an epsilon of %.3g: that is too little for so many rows of a unit (%v); ask for more, for fewer columns, or for fewer rows_per_unit", k.each.Epsilon.Float(), err)
	}
	guard, empty := estimate.Guard{Protection: k.protection, Noise: k.each}, estimate.Table{Owners: owners}
	for i, c := range r.Columns {
		_, err := estimate.Histogram{Guard: guard, Edges: wholes(2), Confidence: joint}.Release(empty, k.stream)
		if err == nil && c.Low != nil {
			_, err = estimate.CentredMean{Guard: guard, Low: *c.Low, High: *c.High, Confidence: Confidence}.Release(empty, k.stream)
			if err == nil {
				_, err = estimate.Quantiles{Guard: guard, Low: *c.Low, High: *c.High, Confidence: Confidence}.Intervals(empty, c.ranks()[:1], k.stream)
			}
		}
		if err != nil {
			return wrong(fmt.Sprintf("/columns/%d", i), "no statistics of %q can be released with these bounds and an epsilon of %.3g for each part (%v); take bounds that are further apart, more epsilon, or fewer rows_per_unit", c.Name, k.each.Epsilon.Float(), err)
		}
	}
	return nil
}

func (c ColumnRequest) check(pointer string, kind dataset.Kind) error {
	finite := func(x *float64) bool { return x != nil && !math.IsNaN(*x) && !math.IsInf(*x, 0) }
	bounded := c.Low != nil || c.High != nil
	switch {
	case kind != dataset.Number && bounded:
		return wrong(pointer+"/low", "the column %q holds no numbers, so it has no bounds", c.Name)
	case kind != dataset.Number && len(c.Edges) > 0:
		return wrong(pointer+"/edges", "the column %q holds no numbers, so it has no edges", c.Name)
	case kind != dataset.Text && len(c.Texts) > 0:
		return wrong(pointer+"/texts", "the column %q holds no texts", c.Name)
	case len(c.Quantiles) > 0 && !bounded:
		return wrong(pointer+"/quantiles", "quantiles of %q need low and high: bounds that are known without a look at the rows", c.Name)
	case bounded && !(finite(c.Low) && finite(c.High) && *c.Low < *c.High):
		return wrong(pointer+"/low", "low and high of %q must both be given, low below high", c.Name)
	case bounded && max(math.Abs(*c.Low), math.Abs(*c.High)) > maxBound:
		return wrong(pointer+"/low", "low and high of %q must be within %v: sums of them must be finite", c.Name, float64(maxBound))
	case len(c.Quantiles) > MaxQuantiles:
		return wrong(pointer+"/quantiles", "%d quantiles, at most %d", len(c.Quantiles), MaxQuantiles)
	case len(c.Edges) > MaxCells:
		return wrong(pointer+"/edges", "%d edges, at most %d", len(c.Edges), MaxCells)
	case len(c.Texts) > MaxCells:
		return wrong(pointer+"/texts", "%d texts, at most %d", len(c.Texts), MaxCells)
	}
	for i, q := range c.Quantiles {
		if !(q >= MinRank && q <= 1-MinRank) || i > 0 && q <= c.Quantiles[i-1] {
			return wrong(fmt.Sprintf("%s/quantiles/%d", pointer, i), "ranks must be from %v to %v, and grow", MinRank, 1-MinRank)
		}
	}
	for i := range c.Edges {
		if !finite(&c.Edges[i]) || i > 0 && c.Edges[i] <= c.Edges[i-1] {
			return wrong(fmt.Sprintf("%s/edges/%d", pointer, i), "edges must grow")
		}
	}
	seen := map[string]bool{}
	for i, text := range c.Texts {
		if seen[text] || len(text) > MaxTextBytes || !utf8.ValidString(text) {
			return wrong(fmt.Sprintf("%s/texts/%d", pointer, i), "texts must differ, be UTF-8, and have at most %d bytes", MaxTextBytes)
		}
		seen[text] = true
	}
	return nil
}

// maxBound keeps sums of 2^31 numbers, and squares, finite.
const maxBound = 1e100

// index of a column that Check has found.
func index(t *dataset.Table, name string) int {
	for i := range t.Columns() {
		if t.Column(i).Name == name {
			return i
		}
	}
	panic("release: column " + name)
}
