package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// A subject is a holdout that clients ask.
type subject struct {
	id        string
	mechanism string
	weight    int // how often it is asked, beside the others
	settings  client.Settings
	plain     bool         // its mechanism has questions about all rows alone
	asked     atomic.Int64 // questions have the numbers 1 to asked
}

// Sizes of tables in rows.
const (
	largeTable = 40_000
	smallTable = 2_000
)

// totalWeight is that of newSubjects.
const totalWeight = 20

// newSubjects are the holdouts of a run: each mechanism that answers one question after the other, and two budgets that are spent soon, so
// that clients meet their ends.
func newSubjects() []*subject {
	return []*subject{
		{mechanism: "gaussian", weight: 8, settings: client.Settings{Name: "soak gaussian", Holdout: 0.5, Mechanism: "gaussian", Questions: 5_000_000}},
		{mechanism: "guess_and_check", weight: 5, settings: client.Settings{Name: "soak guess_and_check", Holdout: 0.5, Mechanism: "guess_and_check", Questions: 1_000_000, Tokens: 1000}},
		{mechanism: "thresholdout", weight: 5, settings: client.Settings{Name: "soak thresholdout", Holdout: 0.5, Mechanism: "thresholdout", Questions: 1_000_000, Tokens: 1000}},
		{mechanism: "split", weight: 1, plain: true, settings: client.Settings{Name: "soak split", Holdout: 0.5, Mechanism: "split", Questions: 100}},
		{mechanism: "gaussian", weight: 1, settings: client.Settings{Name: "soak a small budget", Holdout: 0.5, Mechanism: "gaussian", Questions: 300}},
	}
}

// create uploads a table that nobody has uploaded before.
func (h *subject) create(ctx context.Context, admin *client.Client, random *rand.Rand, rows int) error {
	table, err := tableOf(random, rows)
	if err != nil {
		return err
	}
	card, err := admin.CreateHoldout(ctx, bytes.NewReader(table), h.settings)
	h.id = card.ID
	return err
}

// next is the number of a question that nobody has asked.
func (h *subject) next() int64 { return h.asked.Add(1) }

// earlier is the number of a question that was asked, or is being asked, unless it is the first.
func (h *subject) earlier(random *rand.Rand) int64 {
	return 1 + random.Int64N(max(1, h.asked.Load()))
}

// query is the question with a number. Each number is another query.
func (h *subject) query(number int64) any {
	at := fmt.Sprintf("0.%09d", number)
	fraction := map[string]any{"type": "fraction", "of": "x > " + at}
	if h.plain {
		return fraction
	}
	switch number % 8 {
	case 1:
		return map[string]any{"type": "mean", "of": "x * y", "range": []float64{0, 1}, "where": "y > " + at}
	case 2:
		return map[string]any{"type": "mean", "of": "abs(x - " + at + ")", "range": []float64{0, 1}}
	case 3:
		return map[string]any{"type": "fraction", "of": "g == 'b' && y > " + at}
	}
	return fraction
}

// tableOf is a Parquet file of two numbers in [0,1] and a text.
func tableOf(random *rand.Rand, rows int) ([]byte, error) {
	texts := dataset.NewDictionary("a", "b", "c", "d", "e")
	x, y, g := make([]float64, rows), make([]float64, rows), make([]uint32, rows)
	for i := range rows {
		x[i], y[i], g[i] = random.Float64(), random.Float64(), 1+random.Uint32N(5)
	}
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: x},
		dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: y},
		dataset.Column{Field: dataset.Field{Name: "g", Kind: dataset.Text, Source: "STRING"}, Codes: g, Dictionary: texts},
	)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = ingest.Export(&b, table)
	return b.Bytes(), err
}

func stringBody(s string) io.Reader {
	if s == "" {
		return nil
	}
	return strings.NewReader(s)
}
