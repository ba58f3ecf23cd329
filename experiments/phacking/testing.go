package phacking

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// attributes are the columns of the table that queries are about, in the order of tables.Groups. A value is the number of its group among those of the attribute.
var attributes = []string{"hour", "weekday", "month", "distance", "origin", "destination"}

// lateColumn says of a flight whether it is late.
const lateColumn = "late"

// tester asks what the other methods ask as a row function with the query type that tests: of the flights that a condition picks, is the share of late ones that of all flights? It is
// asked in the query language, as a server is.
type tester struct {
	local *session.Local
	rate  float64
	sizes []int
}

func newTester(g thresholdout.Guarantee, t *tables.Groups, holdout, training *part, seed uint64) (*tester, error) {
	var schema dataset.Schema
	var scanned [2]*engine.Table
	for i, p := range []*part{holdout, training} {
		rows, err := p.table()
		if err != nil {
			return nil, fmt.Errorf("experiments: p-hacking: %w", err)
		}
		schema = rows.Schema()
		if scanned[i], err = engine.NewTable(rows, nil, 1); err != nil {
			return nil, fmt.Errorf("experiments: p-hacking: %w", err)
		}
	}
	return &tester{rate: t.Rate, sizes: t.Sizes, local: &session.Local{Session: session.Session{Guarantee: g, Noise: session.Seeded(seed), RandomSplit: true},
		Schema: schema, Holdout: scanned[0], Training: scanned[1]}}, nil
}

// table is the part as a server has it.
func (p *part) table() (*dataset.Table, error) {
	var columns []dataset.Column
	for a, codes := range p.codes {
		numbers := make([]float64, p.n)
		for i, c := range codes {
			numbers[i] = float64(c)
		}
		columns = append(columns, dataset.Column{Field: dataset.Field{Name: attributes[a], Kind: dataset.Number}, Numbers: numbers})
	}
	late := make([]uint8, p.n)
	for i := range late {
		late[i] = uint8(p.late[i/64] >> (i % 64) & 1)
	}
	return dataset.FromColumns(append(columns, dataset.Column{Field: dataset.Field{Name: lateColumn, Kind: dataset.Bool}, Bools: late})...)
}

// in is the condition that a flight is in a group.
func (t *tester) in(group int) string {
	a := 0
	for group >= t.sizes[a] {
		group -= t.sizes[a]
		a++
	}
	return attributes[a] + " == " + strconv.Itoa(group)
}

// all is the condition that a flight is in all of the groups.
func (t *tester) all(groups []int) string {
	var each []string
	for _, g := range groups {
		each = append(each, t.in(g))
	}
	return strings.Join(each, " && ")
}

// positive is the condition that the weights of a flight's groups have a positive sum.
func (t *tester) positive(weights []float64) string {
	var each []string
	for g, w := range weights {
		each = append(each, fmt.Sprintf("(%s ? %s : 0)", t.in(g), strconv.FormatFloat(w, 'g', -1, 64)))
	}
	return strings.Join(each, " + ") + " > 0"
}

// verdict is what a test says of a group.
type verdict struct {
	found   bool
	value   float64 // share of late flights, as told
	valued  bool
	pValued bool // the p-value rejects
}

// test asks about the flights that a condition picks.
func (t *tester) test(where string) (v verdict, err error) {
	text, err := json.Marshal(map[string]any{"type": "test", "test": "proportion", "of": lateColumn, "where": where, "equals": t.rate})
	if err != nil {
		return v, err
	}
	a, err := t.local.Ask(context.Background(), text)
	if err != nil {
		return v, err
	}
	if a.Value != nil {
		v.value, v.valued = *a.Value, true
	}
	v.found = a.Verdict == queries.Yes
	v.pValued = a.PValue != nil && *a.PValue <= level
	return v, nil
}
