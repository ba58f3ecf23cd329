package holdout

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
)

// trial is a table whose law is known: standard normal columns of which ten matter, and a label that is true where their weighted sum and normal noise are above 0. So
// the accuracy of a linear classifier on fresh rows is known exactly, without any.
type trial struct {
	columns [][]float64
	label   []bool
	weights []float64
	noise   float64
}

func newTrial(rows, columns int, seed uint64) *trial {
	r := rand.New(rand.NewPCG(seed, 99))
	d := &trial{weights: make([]float64, columns), noise: 1.2, label: make([]bool, rows)}
	for j := range columns {
		if d.columns = append(d.columns, make([]float64, rows)); j < 10 {
			d.weights[j] = 0.5 / (1 + 0.3*float64(j))
		}
		for i := range rows {
			d.columns[j][i] = r.NormFloat64()
		}
	}
	for i := range rows {
		d.label[i] = d.score(d.weights, i)+d.noise*r.NormFloat64() > 0
	}
	return d
}

func (d *trial) score(weights []float64, row int) (sum float64) {
	for j, w := range weights {
		sum += w * d.columns[j][row]
	}
	return sum
}

// fresh is the accuracy of a classifier on fresh rows: the correlation r of two normal scores makes them agree in sign with the probability 1 - arccos(r)/π.
func (d *trial) fresh(weights []float64) float64 {
	both, one, other := 0.0, 0.0, d.noise*d.noise
	for j, w := range weights {
		both, one, other = both+w*d.weights[j], one+w*w, other+d.weights[j]*d.weights[j]
	}
	return 1 - math.Acos(both/math.Sqrt(one*other))/math.Pi
}

func (d *trial) table(t *testing.T) *dataset.Table {
	t.Helper()
	label := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	id := dataset.Column{Field: dataset.Field{Name: "row", Kind: dataset.Number, Source: "INT64"}}
	for i, late := range d.label {
		label.Bools, id.Numbers = append(label.Bools, map[bool]uint8{true: 1}[late]), append(id.Numbers, float64(i))
	}
	columns := []dataset.Column{id, label}
	for j, x := range d.columns {
		columns = append(columns, dataset.Column{Field: dataset.Field{Name: fmt.Sprint("x", j), Kind: dataset.Number, Source: "DOUBLE"}, Numbers: slices.Clone(x)})
	}
	table, err := dataset.FromColumns(columns...)
	must(t, err)
	return table
}

// fit is a linear classifier on some columns by least squares over some rows.
func (d *trial) fit(rows, columns []int) []float64 {
	n := len(columns)
	a := make([][]float64, n) // the normal equations, with the right side as the last column
	for j := range a {
		a[j] = make([]float64, n+1)
	}
	for _, i := range rows {
		y := -1.0
		if d.label[i] {
			y = 1
		}
		for j := range n {
			x := d.columns[columns[j]][i]
			for k := j; k < n; k++ {
				a[j][k] += x * d.columns[columns[k]][i]
			}
			a[j][n] += x * y
		}
	}
	for j := range n { // elimination of a symmetric, positive matrix
		for k := j + 1; k < n; k++ {
			f := a[j][k] / a[j][j]
			for l := k; l <= n; l++ {
				a[k][l] -= f * a[j][l]
			}
		}
	}
	weights := make([]float64, len(d.weights))
	for j := n - 1; j >= 0; j-- {
		v := a[j][n]
		for k := j + 1; k < n; k++ {
			v -= a[j][k] * weights[columns[k]]
		}
		weights[columns[j]] = v / a[j][j]
	}
	return weights
}

// accuracyOf asks for the accuracy of a classifier; more is of its other members.
func accuracyOf(weights []float64, more string) json.RawMessage {
	of := map[string]float64{}
	for j, w := range weights {
		if w != 0 {
			of[fmt.Sprint("x", j)] = w
		}
	}
	text, err := json.Marshal(of)
	if err != nil {
		panic(err)
	}
	return json.RawMessage(`{"type":"accuracy","label":"late","threshold":0,"model":{"linear":{"weights":` + string(text) + `}}` + more + `}`)
}

// selection is one analyst at one holdout, who goes by docs/SELECTING-MODELS.md.
type selection struct {
	t       *testing.T
	service *Service
	trial   *trial
	card    Card
	rows    []int // of the training part, as it is downloaded
	random  *rand.Rand
}

func (s *selection) number(rows []float64) (places []int) {
	for _, v := range rows {
		places = append(places, int(v))
	}
	return places
}

func newSelection(t *testing.T, service *Service, set Settings, rows, columns int, seed uint64) *selection {
	t.Helper()
	d := newTrial(rows, columns, seed)
	set.Label, set.Mechanism = "late", "auto"
	s := &selection{t: t, service: service, trial: d, card: create(t, service, set, d.table(t)), random: rand.New(rand.NewPCG(seed, 3))}
	s.rows = s.number(numbers(t, training(t, service, s.card.ID), "row"))
	return s
}

// best asks for the accuracy of all models in one batch and returns the one with the largest value, as answered.
func (s *selection) best(models [][]float64) (model []float64, a answered) {
	s.t.Helper()
	var asked []json.RawMessage
	for _, m := range models {
		asked = append(asked, accuracyOf(m, ""))
	}
	b, err := s.service.AskBatch(s.t.Context(), analyst, s.card.ID, asked, false, "")
	must(s.t, err)
	for i, item := range b.Answers {
		if item.Body == nil {
			continue // the tokens are spent: there is nothing to compare
		}
		if x := read(s.t, item.Body); model == nil || *x.Value > *a.Value {
			model, a = models[i], x
		}
	}
	return model, a
}

// fitted are models on random sets of at least half of the columns.
func (s *selection) fitted(n int) (models [][]float64) {
	columns := len(s.trial.weights)
	for range n {
		models = append(models, s.trial.fit(s.rows, s.random.Perm(columns)[:columns/2+s.random.IntN(columns/2+1)]))
	}
	return models
}

// final is the number to report: the holdout's own, measured.
func (s *selection) final(model []float64) answered {
	s.t.Helper()
	b, err := s.service.AskBatch(s.t.Context(), analyst, s.card.ID, []json.RawMessage{accuracyOf(model, `,"measure":true`)}, false, "")
	must(s.t, err)
	a := read(s.t, b.Answers[0].Body)
	if a.ValueFrom != session.ValueFromHoldout {
		s.t.Fatalf("the final number is of %s", a.ValueFrom)
	}
	return a
}

// bias of a number that is said of a model, in textbook standard errors of the holdout. What the draw of the holdout does to every model alike is taken out, by what it does to the
// true law's own classifier, of which it is known: so the numbers of a few tables say as much as those of many.
func (s *selection) bias(said float64, model []float64, ofHoldout bool) float64 {
	n, truth := float64(s.card.Rows.Holdout), s.trial.fresh(model)
	b := said - truth
	if ofHoldout {
		right := 0.0
		for _, row := range s.number(stored(s.t, s.service, s.card.ID, "row")) {
			if (s.trial.score(s.trial.weights, row) > 0) == s.trial.label[row] {
				right++
			}
		}
		b -= right/n - s.trial.fresh(s.trial.weights)
	}
	return b / math.Sqrt(truth*(1-truth)/n)
}

// TestSelectingModels runs the recipe of docs/SELECTING-MODELS.md and measures how much too good the numbers are that are said of the chosen model, in textbook standard errors of the
// holdout. It would notice a model that is valued by the rows that it was fitted to, and a final number that is not the holdout's.
//
// A single number varies by about 1. So the mean of six that are not biased is beyond 1 with probability 1.5%, that of two with 16%, over the seeds: these are fixed, the split's key
// too, and guess_and_check has no noise, so here nothing is left to chance. The other way, a final number that is the check part's own, +3.6 too good, is taken for one within 1 with probability 0.02%;
// a training score, +1.9 too good and varying by 0.6, passes for less than 1.2 with 1%.
func TestSelectingModels(t *testing.T) {
	s := open(t, t.TempDir())
	copy(s.split[:], "the split of the tables below is fixed")
	const tables, searched = 6, 2
	var few, fewFinal, many, manyFinal, scored []float64
	covers := func(a answered, truth float64) {
		if a.Interval == nil || a.Interval.Low > truth || a.Interval.High < truth {
			t.Errorf("%+v is not about %v", a, truth)
		}
	}
	for seed := range uint64(tables) {
		a := newSelection(t, s, Settings{}, 2000, 60, 100+seed)
		model, said := a.best(a.fitted(60))
		if said.ValueFrom != session.ValueFromCheck || len(said.Warnings) > 0 {
			t.Fatalf("the value is of %s: %+v", said.ValueFrom, said.Warnings)
		}
		final := a.final(model)
		few, fewFinal = append(few, a.bias(*said.Value, model, false)), append(fewFinal, a.bias(*final.Value, model, true))
		covers(said, a.trial.fresh(model))
		covers(final, a.trial.fresh(model))

		if len(scored) == 4 {
			continue
		}
		b := newSelection(t, s, Settings{Check: new(0.0)}, 2000, 60, 200+seed)
		model, said = b.best(b.fitted(60))
		scored = append(scored, b.bias(*said.Value, model, false))
		covers(said, b.trial.fresh(model))
	}
	for seed := range uint64(searched) {
		a := newSelection(t, s, Settings{Questions: 2100}, 2000, 12, 300+seed)
		model, said := a.trial.fit(a.rows, a.random.Perm(12)), answered{Value: new(0.0)}
		for range 10 { // 2,000 looks, each generation near the best of those before
			near := [][]float64{model}
			for range 199 {
				m := slices.Clone(model)
				for j := range m {
					m[j] += 0.05 * a.random.NormFloat64()
				}
				near = append(near, m)
			}
			if m, x := a.best(near); *x.Value > *said.Value {
				model, said = m, x
			}
		}
		final := a.final(model)
		many, manyFinal = append(many, a.bias(*said.Value, model, false)), append(manyFinal, a.bias(*final.Value, model, true))
		covers(said, a.trial.fresh(model))
		covers(final, a.trial.fresh(model))
	}
	for _, c := range []struct {
		what        string
		least, most float64
		of          []float64
	}{
		{"the value of the best of 60", -1, 1, few},
		{"the final number of the best of 60", -1, 1, fewFinal},
		{"the final number after 2,000 looks", -1, 1, manyFinal},
		{"the value after 2,000 looks", 2, 6, many},
		{"the training score of the best of 60", 1.2, 4, scored},
	} {
		m, sd := meanAndSpread(c.of)
		t.Logf("%-40s %+.2f, single ones vary by %.2f: %.2f", c.what, m, sd, c.of)
		if !(m >= c.least && m <= c.most) {
			t.Errorf("%s is %+.2f standard errors too good, want %v to %v: %.2f", c.what, m, c.least, c.most, c.of)
		}
	}
}

// TestSelectingModelsPage: the requests of the page are of the language, and its last one is the first, measured.
func TestSelectingModelsPage(t *testing.T) {
	page, err := os.ReadFile("../docs/SELECTING-MODELS.md")
	must(t, err)
	var forms []map[string]any
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		q, err := queries.Parse(block[1])
		if err != nil {
			t.Fatalf("%s: %v", block[1], err)
		}
		form := map[string]any{}
		must(t, json.Unmarshal(q.Canonical(), &form))
		forms = append(forms, form)
	}
	if len(forms) != 2 || forms[1]["measure"] != true {
		t.Fatalf("%v", forms)
	}
	delete(forms[1], "measure")
	if !reflect.DeepEqual(forms[0], forms[1]) {
		t.Errorf("the final question is not the first: %v and %v", forms[0], forms[1])
	}
}

func meanAndSpread(x []float64) (mean, sd float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		sd += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, math.Sqrt(sd)
}
