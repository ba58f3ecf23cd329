// Package release makes statistics of a table that may be shown to anybody: how many units and rows there are and, of each column, the share of nulls, the
// rows in each declared cell, the mean and quantiles within declared bounds, each with an interval. A release is epsilon-private for each unit, by pure
// differential privacy: two tables that differ in one unit more or less give it with probabilities that differ by a factor of at most e^epsilon; where one unit
// is replaced by another, the factor is e^(2 epsilon).
//
// It is no mechanism of its own: the parts are released by dp/estimate with exact two-sided geometric noise, each with an equal share of epsilon, and
// dp/account adds the shares up: a release that spent more would fail. Whose rows belong together is protected by dp/unit. Bounds, edges and texts are the request's: they must be public, or chosen without
// a look at the rows. Nothing of the table is read but its rows; the columns' names and kinds are public.
package release

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/account"
	"github.com/holdoutd/holdoutd/dp/estimate"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// Confidence is that of every interval by itself, and of those of the shares and counts of one column together.
const Confidence = 0.95

// joint is the confidence of the intervals of counts, and of the number of rows: a share is made of both.
const joint = 1 - (1-Confidence)/2

// Statistic is a released number, with where the table's own lies.
type Statistic struct {
	Value float64 `json:"value" doc:"with its noise, moved into what is possible"`
	Low   float64 `json:"low" doc:"the lower end of the interval"`
	High  float64 `json:"high" doc:"its upper end"`
}

// Result is what is released.
type Result struct {
	Units   Statistic          `json:"units" doc:"how many units there are"`
	Rows    *Statistic         `json:"rows,omitempty" doc:"how many rows were kept of them, where several of a unit may be"`
	Columns []ColumnStatistics `json:"columns" doc:"in the order of their names"`
}

// ColumnStatistics is what is released of a column.
type ColumnStatistics struct {
	Name      string     `json:"name"`
	Nulls     Statistic  `json:"nulls" doc:"the share of the rows that have no value"`
	Cells     []Cell     `json:"cells,omitempty" doc:"the rows in each cell; with the nulls, all rows"`
	Mean      *Statistic `json:"mean,omitempty" doc:"of the values, those outside of the bounds moved to them; it says nothing where no row has a value"`
	Quantiles []Quantile `json:"quantiles,omitempty" doc:"of the values, those outside of the bounds moved to them; they say nothing where no row has a value"`
}

// Cell is one cell of a column: a text or a truth value, a stretch of numbers, or all other values.
type Cell struct {
	Text  *string   `json:"text,omitempty" doc:"the rows with this text"`
	Bool  *bool     `json:"bool,omitempty" doc:"the rows with this value"`
	From  *float64  `json:"from,omitempty" doc:"the rows with numbers from this one on; absent: with any below to"`
	To    *float64  `json:"to,omitempty" doc:"and below this one; absent: any"`
	Other bool      `json:"other,omitempty" doc:"true: the rows with any text that is not declared"`
	Count Statistic `json:"count" doc:"how many rows"`
	Share Statistic `json:"share" doc:"of all rows"`
}

// Quantile is a quantile.
type Quantile struct {
	Rank float64 `json:"rank" doc:"such as 0.5 for the median"`
	Statistic
}

// ErrTable is wrapped by errors of a table that the request does not fit.
var ErrTable = errors.New("release: the request does not fit the table")

// Of releases a table: owners say whose each row is, nil where each is protected by itself. The guarantee needs a stream of a secret key that is used for
// nothing else but this request about this table. Request.Check has found nothing against the request.
func Of(ctx context.Context, t *dataset.Table, owners []unit.Owner, r Request, s *noise.Stream) (*Result, error) {
	fields := make([]dataset.Field, t.Columns())
	for i := range fields {
		fields[i] = t.Column(i).Field
	}
	if err := r.Check(fields, owners == nil); err != nil {
		return nil, err
	}
	if owners != nil && len(owners) != t.Rows() {
		return nil, fmt.Errorf("%w: %d owners of %d rows", ErrTable, len(owners), t.Rows())
	}
	if t.Rows() > estimate.MaxRows {
		return nil, fmt.Errorf("%w: %d rows, at most %d", ErrTable, t.Rows(), estimate.MaxRows)
	}
	k := &maker{ctx: ctx, stream: s, each: estimate.Laplace{Epsilon: r.each(owners == nil)}, account: account.Basic{}}
	if err := k.keep(t.Rows(), owners, r.RowsPerUnit); err != nil {
		return nil, err
	}
	out, err := k.sizes()
	if err != nil {
		return nil, err
	}
	for _, c := range r.Columns {
		column, err := k.column(t, c)
		if err != nil {
			return nil, fmt.Errorf("release: column %q: %w", c.Name, err)
		}
		out.Columns = append(out.Columns, column)
	}
	if err := k.within(r.Epsilon); err != nil {
		return nil, err
	}
	return out, nil
}

// within says whether all that was paid is within an epsilon.
func (k *maker) within(epsilon Millionths) error {
	if spent := k.account.Epsilon(0); !(spent <= epsilon.Float()*(1+1e-12)) { // the sum's last digits
		return fmt.Errorf("%w: its parts spend %v of %v", errOverspent, spent, epsilon.Float())
	}
	return nil
}

// errOverspent is a fault of this package: the parts of a release would spend more than it says.
var errOverspent = errors.New("release: overspent")

// maker is a release on its way.
type maker struct {
	ctx        context.Context
	stream     *noise.Stream
	each       estimate.Laplace // the noise of one part
	protection unit.Protection  // of rows
	account    account.Accountant
	owners     []unit.Owner // of the kept rows; nil where rows are units
	rows       []int        // that are kept; nil where all are
	n          int          // how many are kept
	total      Statistic    // how many, as released
}

// pay debits a part, and is what protects it.
func (k *maker) pay(of unit.Protection) (g estimate.Guard, err error) {
	k.account, err = k.account.With(k.each.Event())
	return estimate.Guard{Protection: of, Noise: k.each}, err
}

// keep chooses once the rows that the whole release is about: of each unit at most so many, at random.
func (k *maker) keep(rows int, owners []unit.Owner, most int) error {
	protection := unit.Protection{Unit: unit.Row{}, Neighbours: unit.AddedOrRemoved}
	k.n = rows
	if owners != nil {
		protection.Unit = unit.User{Most: most}
		kept, err := protection.Keep(owners, k.stream)
		if err != nil {
			return err
		}
		k.rows, k.n, k.owners = kept, len(kept), make([]unit.Owner, len(kept))
		for i, row := range kept {
			k.owners[i] = owners[row]
		}
	}
	k.protection = protection
	return nil
}

// row is the place of a kept row in the table.
func (k *maker) row(i int) int {
	if k.rows == nil {
		return i
	}
	return k.rows[i]
}

// sizes releases how many units there are, and how many rows were kept of them where those may be more.
func (k *maker) sizes() (*Result, error) {
	count := func(of unit.Protection, t estimate.Table) (Statistic, error) {
		g, err := k.pay(of)
		if err != nil {
			return Statistic{}, err
		}
		e, err := estimate.Count{Guard: g, Confidence: joint}.Release(t, k.stream)
		return counted(e), err
	}
	units := estimate.Table{Values: make([]float64, k.n)}
	single := k.protection
	if k.owners != nil { // a row for each unit
		seen, n := make(map[unit.Owner]bool), 0
		for _, o := range k.owners {
			if !seen[o] {
				seen[o] = true
				n++
			}
		}
		units.Values, single.Unit = units.Values[:n], unit.Row{}
	}
	n, err := count(single, units)
	out := &Result{Units: n, Columns: []ColumnStatistics{}}
	if k.total = n; err != nil || k.protection.Unit.Rows() == 1 {
		return out, err
	}
	k.total, err = count(k.protection, estimate.Table{Values: make([]float64, k.n), Owners: k.owners})
	out.Rows = &k.total
	return out, err
}

// column releases one column.
func (k *maker) column(t *dataset.Table, c ColumnRequest) (ColumnStatistics, error) {
	out := ColumnStatistics{Name: c.Name}
	values, cells, err := k.cells(t, c)
	if err != nil {
		return out, err
	}
	guard, err := k.pay(k.protection)
	if err != nil {
		return out, err
	}
	counts, err := estimate.Histogram{Guard: guard, Edges: wholes(len(cells) + 1), Confidence: joint}.Release(values, k.stream)
	if err != nil {
		return out, err
	}
	for i, e := range counts {
		cells[i].Count = counted(e)
		cells[i].Share = k.share(cells[i].Count)
	}
	if out.Nulls = cells[0].Share; len(cells) > 2 { // with two all that is not null is in the other
		out.Cells = cells[1:]
	}
	if c.Low == nil {
		return out, k.ctx.Err()
	}
	numbers, all := estimate.Table{}, t.Column(index(t, c.Name)).Numbers
	for i := range k.n {
		if err := k.stopped(i); err != nil {
			return out, err
		}
		if x := all[k.row(i)]; x == x {
			numbers.Values = append(numbers.Values, x)
			if k.owners != nil {
				numbers.Owners = append(numbers.Owners, k.owners[i])
			}
		}
	}
	if guard, err = k.pay(k.protection); err != nil {
		return out, err
	}
	mean, err := estimate.CentredMean{Guard: guard, Low: *c.Low, High: *c.High, Confidence: Confidence}.Release(numbers, k.stream)
	if err != nil {
		return out, err
	}
	out.Mean = &Statistic{mean.Value, mean.Low, mean.High}
	if guard, err = k.pay(k.protection); err != nil || k.ctx.Err() != nil {
		return out, errors.Join(err, k.ctx.Err())
	}
	quantiles, err := estimate.Quantiles{Guard: guard, Low: *c.Low, High: *c.High, Confidence: Confidence, Stop: k.ctx.Err}.Intervals(numbers, c.ranks(), k.stream)
	for i, q := range quantiles {
		out.Quantiles = append(out.Quantiles, Quantile{c.ranks()[i], Statistic{q.Value, q.Low, q.High}})
	}
	return out, errors.Join(err, k.ctx.Err())
}

// cells are those of a column, the nulls first, and of each kept row the number of its cell.
func (k *maker) cells(t *dataset.Table, c ColumnRequest) (estimate.Table, []Cell, error) {
	column := t.Column(index(t, c.Name))
	cells := []Cell{{}}
	var of func(row int) int
	switch {
	case column.Kind == dataset.Bool:
		cells = append(cells, Cell{Bool: new(false)}, Cell{Bool: new(true)})
		of = func(row int) int {
			if b := column.Bools[row]; b < dataset.NullBool {
				return int(b) + 1
			}
			return 0
		}
	case column.Kind == dataset.Text && len(c.Texts) > 0:
		place := make(map[string]int, len(c.Texts))
		for i, text := range c.Texts {
			cells, place[text] = append(cells, Cell{Text: &c.Texts[i]}), i+1
		}
		cells = append(cells, Cell{Other: true})
		at := make([]int, column.Dictionary.Len()+1) // of a code
		for i := 1; i < len(at); i++ {
			if at[i] = place[column.Dictionary.Text(i-1)]; at[i] == 0 {
				at[i] = len(cells) - 1
			}
		}
		of = func(row int) int { return at[column.Codes[row]] }
	case column.Kind == dataset.Text:
		cells = append(cells, Cell{})
		of = func(row int) int { return int(min(column.Codes[row], 1)) }
	default:
		for i := range len(c.Edges) + 1 {
			cell := Cell{}
			if i > 0 {
				cell.From = &c.Edges[i-1]
			}
			if i < len(c.Edges) {
				cell.To = &c.Edges[i]
			}
			cells = append(cells, cell)
		}
		of = func(row int) int {
			x := column.Numbers[row]
			if x != x {
				return 0
			}
			return 1 + below(c.Edges, x)
		}
	}
	values := estimate.Table{Values: make([]float64, k.n), Owners: k.owners}
	for i := range k.n {
		if err := k.stopped(i); err != nil {
			return values, nil, err
		}
		values.Values[i] = float64(of(k.row(i)))
	}
	return values, cells, nil
}

// stopEvery is after how many rows a loop looks whether somebody still waits.
const stopEvery = 1 << 16

// stopped is why the release is to end at a row of a loop, or nil.
func (k *maker) stopped(i int) error {
	if i%stopEvery > 0 {
		return nil
	}
	return k.ctx.Err()
}

// below is how many edges a number has reached.
func below(edges []float64, x float64) int {
	low, high := 0, len(edges)
	for low < high {
		if mid := (low + high) / 2; edges[mid] <= x {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low
}

// wholes are 0, 1 and so on.
func wholes(n int) []float64 {
	all := make([]float64, n)
	for i := range all {
		all[i] = float64(i)
	}
	return all
}

// counted is a count, which is not below 0.
func counted(e estimate.Estimate) Statistic {
	return Statistic{max(0, e.Value), max(0, e.Low), max(0, e.High)}
}

// share is a count over all rows. Where there may be no rows at all it says nothing.
func (k *maker) share(count Statistic) Statistic {
	inside := func(x float64) float64 { return min(max(x, 0), 1) }
	s := Statistic{0, 0, 1}
	if k.total.High > 0 {
		s.Low = inside(math.Nextafter(count.Low/k.total.High, 0))
	}
	if k.total.Low > 0 {
		s.High = inside(math.Nextafter(count.High/k.total.Low, 2))
	}
	s.Value = min(max(count.Value/max(1, k.total.Value), s.Low), s.High)
	return s
}
