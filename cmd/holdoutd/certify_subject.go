package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/dp/learn"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries/model"
)

// subject is a model on a table: what is moved by noise, what stays, and what is predicted.
type subject struct {
	model    *model.Model     // nil where a predictor answers over HTTP
	remote   *remote          // that predictor
	features []subjectFeature // in the order in which the model reads them
	moved    []*dataset.Column
	rows     int

	names     []string // of labels
	threshold float64  // of a model with one output
	scores    bool     // expected probabilities instead of labels
	labels    []int    // the true ones; nil where they are not known
}

// subjectFeature is where a feature of the model comes from.
type subjectFeature struct {
	model.Feature
	column *dataset.Column
	moved  int // in subject.moved, -1 where it stays
}

// subject finds the model's columns in the table.
func (f *certifyFlags) subject(m *model.Model, table *dataset.Table, thresholdNamed bool) (*subject, error) {
	s := &subject{model: m, rows: table.Rows(), threshold: f.threshold, scores: f.of == "scores"}
	if own := m.Threshold(); own != nil && !thresholdNamed {
		s.threshold = *own
	}
	if f.rows > 0 {
		s.rows = min(f.rows, s.rows)
	}
	if err := s.outputs(m, thresholdNamed); err != nil {
		return nil, err
	}
	at := map[string]int{}
	for _, feature := range m.Features() {
		column, ok := table.Lookup(feature.Column)
		if !ok {
			return nil, fmt.Errorf("the model reads the column %q, which the file does not have%s", feature.Column, columnHint(table, feature.Column))
		}
		if text := column.Kind == dataset.Text; text != (feature.Texts != nil) {
			return nil, fmt.Errorf("the column %q holds %ss, the model reads it as %s", feature.Column, column.Kind,
				map[bool]string{true: "a number", false: "texts"}[text])
		}
		sf := subjectFeature{feature, column, -1}
		number := column.Kind == dataset.Number || column.Kind == dataset.Time
		if number && !slices.Contains(f.fixed, feature.Column) {
			if _, seen := at[feature.Column]; !seen {
				at[feature.Column] = len(s.moved)
				s.moved = append(s.moved, column)
			}
			sf.moved = at[feature.Column]
		}
		s.features = append(s.features, sf)
	}
	return s, f.completeSubject(s, table)
}

// completeSubject checks which columns move, and reads the true labels.
func (f *certifyFlags) completeSubject(s *subject, table *dataset.Table) error {
	for _, name := range f.fixed {
		if _, ok := table.Lookup(name); !ok {
			return misuse("--fixed names the column %q, which the file does not have%s", name, columnHint(table, name))
		}
	}
	if len(s.moved) == 0 {
		return errors.New("the model reads no numbers that can change, so there is nothing to add noise to")
	}
	if f.label != "" {
		return s.readLabels(table, f.label)
	}
	return nil
}

// nearlyHalf is how near a model's threshold is to one half that decides ties alone, as an exported booster's of scikit-learn.
const nearlyHalf = 1e-12

// outputs names the labels.
func (s *subject) outputs(m *model.Model, thresholdNamed bool) error {
	for _, class := range m.Classes() {
		s.names = append(s.names, class.Text)
	}
	switch {
	case s.names == nil:
		s.names = []string{"0", "1"}
		if m.Link() != model.Logit && !thresholdNamed && m.Threshold() == nil {
			return errors.New(`the model predicts a number, not a class; with --threshold it predicts 1 above it and 0 elsewhere, with "link": "logit" a probability`)
		}
		if m.Link() != model.Logit && s.scores {
			return misuse("--of scores needs probabilities, the model predicts a number")
		}
		if s.scores && thresholdNamed {
			return misuse("--threshold is for --of labels; with --of scores the larger expected probability is predicted")
		}
		if own := m.Threshold(); s.scores && own != nil && math.Abs(*own-0.5) > nearlyHalf {
			return fmt.Errorf("the model says yes above %v, and with --of scores the larger expected probability is predicted: ask --of labels", *own)
		}
	case thresholdNamed:
		return misuse("--threshold is for models with one output; this has %d classes", len(s.names))
	}
	return nil
}

// columnHint says which column was probably meant, and which there are.
func columnHint(table *dataset.Table, name string) string {
	var names []string
	for _, field := range table.Schema().Fields {
		names = append(names, field.Name)
	}
	return hint(nearest.Name(name, names), "it has "+columnNames(table))
}

func columnNames(table *dataset.Table) string {
	const most = 12
	var names []string
	for _, field := range table.Schema().Fields {
		if len(names) == most {
			return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", table.Columns()-most)
		}
		names = append(names, field.Name)
	}
	return strings.Join(names, ", ")
}

// readLabels reads the true label of each row.
func (s *subject) readLabels(table *dataset.Table, name string) error {
	column, ok := table.Lookup(name)
	if !ok {
		return misuse("--label names the column %q, which the file does not have%s", name, columnHint(table, name))
	}
	classes := s.classes()
	s.labels = make([]int, s.rows)
	for row := range s.labels {
		if column.Null(row) {
			return fmt.Errorf("row %d has no label in column %q", row, name)
		}
		shown, is := labelOf(column, row)
		label := slices.IndexFunc(classes, is)
		if label < 0 {
			return fmt.Errorf("row %d has the label %s in column %q, which is no class of the model; its classes are %s", row, shown, name, strings.Join(s.names, ", "))
		}
		s.labels[row] = label
	}
	return nil
}

// classes are what a label may be. A predictor over HTTP says 1 and "1" alike: the column decides which of them it means.
func (s *subject) classes() (classes []model.Class) {
	if s.remote != nil {
		for _, name := range s.names {
			number, err := strconv.ParseFloat(name, 64)
			classes = append(classes, model.Class{Text: name, Numeric: err == nil, Number: number})
		}
		return classes
	}
	if classes = s.model.Classes(); classes == nil {
		classes = []model.Class{{Numeric: true, Number: 0}, {Numeric: true, Number: 1}}
	}
	return classes
}

// labelOf shows the value of a label and tells the class that it is.
func labelOf(column *dataset.Column, row int) (shown string, is func(model.Class) bool) {
	if column.Kind == dataset.Text {
		text := column.Dictionary.Text(int(column.Codes[row]) - 1)
		return fmt.Sprintf("%q", text), func(c model.Class) bool { return !c.Numeric && c.Text == text }
	}
	number := 0.0
	if column.Kind == dataset.Bool {
		number = float64(column.Bools[row])
	} else {
		number = column.Numbers[row]
	}
	return fmt.Sprint(number), func(c model.Class) bool { return c.Numeric && c.Number == number }
}

// deviations are the standard deviations of the moved columns, over the whole file. All columns without one are named at once.
func (s *subject) deviations() ([]float64, error) {
	out := make([]float64, len(s.moved))
	var constant []string
	for j, column := range s.moved {
		var values []float64
		for _, v := range column.Numbers {
			if !math.IsNaN(v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			out[j] = stat.StdDev(values, nil)
		}
		if !(out[j] > 0) || math.IsInf(out[j], 1) {
			constant = append(constant, column.Name)
		}
	}
	if len(constant) > 0 {
		return nil, fmt.Errorf("no standard deviation to measure changes by: %s has one value throughout, or none; hold it fixed with --fixed %s, or use --units raw",
			strings.Join(constant, ", "), strings.Join(constant, ","))
	}
	return out, nil
}

// unsmoothed is what the model itself predicts of each row that is finished, without noise.
func (s *subject) unsmoothed(finished []bool) ([]int, error) {
	labels, c := make([]int, s.rows), s.classifier()
	scores := make([]float64, len(s.names))
	for i := range labels {
		if !finished[i] {
			continue
		}
		c.Begin(i)
		switch {
		case c.Labels != nil:
			if err := c.Labels(labels[i:i+1], s.Row(i)); err != nil {
				return nil, err
			}
		case c.Scores != nil:
			c.Scores(scores, s.Row(i))
			labels[i] = learn.Predict(scores)
		default:
			if labels[i] = c.Label(s.Row(i)); labels[i] < 0 {
				return nil, fmt.Errorf("row %d: %w", i, certify.ErrLabel)
			}
		}
	}
	return labels, nil
}

// Len implements certify.Rows.
func (s *subject) Len() int { return s.rows }

// Row implements certify.Rows: the numbers that noise moves, 0 where there is none to move.
func (s *subject) Row(i int) []float64 {
	out := make([]float64, len(s.moved))
	for j, column := range s.moved {
		if v := column.Numbers[i]; !math.IsNaN(v) {
			out[j] = v
		}
	}
	return out
}

// classifier is the model for one goroutine: Begin puts what stays of a row in place, and a call adds the moved numbers.
func (s *subject) classifier() certify.Classifier {
	if s.remote != nil {
		return s.remoteClassifier()
	}
	in, out := make([][]float64, len(s.features)), make([][]float64, s.model.Scorer().Outputs())
	scratch := s.model.Scorer().MakeScratch()
	for i := range in {
		in[i] = make([]float64, 1)
	}
	for k := range out {
		out[k] = make([]float64, 1)
	}
	type source struct {
		to   []float64
		from int
	}
	var moved []source // of the row: a null stays
	begin := func(row int) {
		moved = moved[:0]
		for i := range s.features {
			f := &s.features[i]
			in[i][0] = f.value(row)
			if f.moved >= 0 && !math.IsNaN(in[i][0]) {
				moved = append(moved, source{in[i], f.moved})
			}
		}
	}
	score := func(x []float64) {
		for _, m := range moved {
			m.to[0] = x[m.from]
		}
		s.model.Scorer().BlockIn(scratch, out, in)
	}
	c := certify.Classifier{Classes: len(s.names), Begin: begin}
	if s.scores {
		c.Scores = func(dst, x []float64) {
			score(x)
			s.probabilities(dst, out)
		}
	} else {
		c.Label = func(x []float64) int {
			score(x)
			return s.predict(out)
		}
	}
	return c
}

// predict is the label of scores, -1 where one of them is no number.
func (s *subject) predict(scores [][]float64) int {
	best := 0
	for k := range scores {
		switch v := scores[k][0]; {
		case math.IsNaN(v):
			return -1
		case v > scores[best][0]:
			best = k
		}
	}
	if len(scores) > 1 {
		return best
	}
	if s.model.Link().Of(scores[0][0]) > s.threshold {
		return 1
	}
	return 0
}

func (s *subject) probabilities(dst []float64, scores [][]float64) {
	if len(scores) == 1 { // logit
		dst[0], dst[1] = logistic(-scores[0][0]), logistic(scores[0][0])
		return
	}
	for k := range scores {
		dst[k] = scores[k][0]
	}
	if s.model.Link() == model.Softmax {
		learn.SoftmaxTo(dst, dst)
	}
}

func logistic(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// value is the feature at a row, as the model reads it.
func (f *subjectFeature) value(row int) float64 {
	switch f.column.Kind {
	case dataset.Text:
		if f.column.Null(row) {
			return f.Null
		}
		return f.Texts[f.column.Dictionary.Text(int(f.column.Codes[row])-1)]
	case dataset.Bool:
		if f.column.Null(row) {
			return math.NaN()
		}
		return float64(f.column.Bools[row])
	}
	return f.column.Numbers[row]
}
