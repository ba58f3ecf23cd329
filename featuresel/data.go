package featuresel

import "math"

// Data is one part of the data: rows with a label and numbers. Columns are read one at a time, so that a large part
// need not be held, or even made, at once.
type Data interface {
	Rows() int
	Columns() int
	Label() []float64            // Rows values, -1 or 1; not to be changed
	Column(dst []float64, j int) // fills Rows values
}

// Table is Data in memory.
type Table struct {
	X [][]float64 // by column
	Y []float64
}

var _ Data = Table{}

// Rows implements [Data].
func (t Table) Rows() int { return len(t.Y) }

// Columns implements [Data].
func (t Table) Columns() int { return len(t.X) }

// Label implements [Data].
func (t Table) Label() []float64 { return t.Y }

// Column implements [Data].
func (t Table) Column(dst []float64, j int) { copy(dst, t.X[j]) }

// Correlations are the means of every column times the label.
func Correlations(d Data) []float64 {
	column, label := make([]float64, d.Rows()), d.Label()
	out := make([]float64, d.Columns())
	for j := range out {
		d.Column(column, j)
		out[j] = dot(column, label) / float64(len(label))
	}
	return out
}

// Classifier predicts the sign of the sum of its columns, each times its sign.
type Classifier struct {
	Columns []int
	Signs   []float64 // -1 or 1, one for each column
}

// First is the classifier of the first k columns, or of all where there are fewer.
func (c Classifier) First(k int) Classifier {
	k = min(k, len(c.Columns))
	return Classifier{c.Columns[:k], c.Signs[:k]}
}

// margins adds to dst, for every row, label times the sum of the classifier's columns: a row is predicted rightly where
// that is positive.
func (c Classifier) margins(dst []float64, d Data) {
	column, label := make([]float64, d.Rows()), d.Label()
	for i, j := range c.Columns {
		d.Column(column, j)
		addProduct(dst, c.Signs[i], column, label)
	}
}

// Accuracy is the share of rows that the classifier predicts rightly. One without columns predicts nothing.
func Accuracy(d Data, c Classifier) float64 {
	margins := make([]float64, d.Rows())
	c.margins(margins, d)
	return positive(margins)
}

// Path is the accuracy of the classifiers of the first k columns, for increasing ks, read in one pass over the columns.
func Path(d Data, c Classifier, ks []int) []float64 {
	margins := make([]float64, d.Rows())
	out := make([]float64, len(ks))
	before := 0
	for i, k := range ks {
		k = min(k, len(c.Columns))
		Classifier{c.Columns[before:k], c.Signs[before:k]}.margins(margins, d)
		out[i], before = positive(margins), k
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// addProduct adds scale*a*b to dst.
func addProduct(dst []float64, scale float64, a, b []float64) {
	for i := range dst {
		dst[i] += scale * a[i] * b[i]
	}
}

// positive is the share of values above 0.
func positive(values []float64) float64 {
	count := 0
	for _, v := range values {
		if v > 0 {
			count++
		}
	}
	return float64(count) / float64(len(values))
}

func sign(v float64) float64 { return math.Copysign(1, v) }
