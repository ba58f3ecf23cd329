package thresholdout_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// What follows, up to tenthKind, is a whole mechanism as an outsider would write it, with nothing but what the package exports. It is played
// from the plan to the last token below: whoever makes a new mechanism need more than one file and one line fails this test.

// tenth says of a mean whether it is near one half, and only where it is not, for a token, in which cell of [0,1] it lies. What it can have
// told is one of at most 2^j C^f transcripts after j questions and f tokens, so a union over them pays for any analyst.
type tenth struct {
	thresholdout.Head
	Cells int64 `json:"cells" doc:"C"`
}

// told is its memory.
type told struct {
	Nats float64 `json:"nats"` // the logarithm of how many transcripts there could have been
}

var tenthKind = thresholdout.Kind{
	Name:     "tenth",
	Says:     "tells means far from one half to the nearest cell, for a token",
	Takes:    []string{thresholdout.ParamTokens},
	Assumes:  "most means are near one half",
	Variants: []thresholdout.Variant{{Is: (*tenth)(nil)}},
	Methods:  []thresholdout.Method{{Name: "tenth-union", Formula: "1/(2C) + sqrt((ln(2k/β) + j ln 2 + f ln C)/(2n))", Source: "a test"}},
	Plan: func(s thresholdout.Spec) (thresholdout.Mechanism, error) {
		if s.Questions == 0 {
			s.Questions = 10
		}
		if s.Tokens == 0 {
			s.Tokens = 2
		}
		m := &tenth{Head: s.Head(), Cells: 16}
		m.HalfWidth = m.halfWidth(0)
		return m, nil
	},
	Read: thresholdout.ReadAs[tenth],
}

func (m *tenth) halfWidth(nats float64) float64 {
	return 1/float64(2*m.Cells) + math.Sqrt((math.Log(2*float64(m.Questions)/m.Beta())+nats)/float64(2*m.N))
}

func (m *tenth) Release(s thresholdout.State, in thresholdout.Input, _ thresholdout.Noise) (thresholdout.Output, thresholdout.Memory, error) {
	before, _ := s.Memory.(told)
	out := thresholdout.Output{Value: 0.5, Source: thresholdout.FromHoldout, Interval: m.Preview(s, 0.5)}
	after := told{before.Nats + math.Ln2}
	mean := float64(in.Holdout.Sum) / float64(in.Holdout.N) / (1 << 30)
	if math.Abs(mean-0.5) > 1/float64(2*m.Cells) {
		cell := min(math.Floor(mean*float64(m.Cells)), float64(m.Cells-1))
		out.Value, out.Tokens = (cell+0.5)/float64(m.Cells), 1
		out.Interval = m.Preview(s, out.Value)
		after.Nats += math.Log(float64(m.Cells))
	}
	return out, after, nil
}

func (m *tenth) Preview(s thresholdout.State, value float64) *thresholdout.Interval {
	before, _ := s.Memory.(told)
	w := m.halfWidth(before.Nats)
	return &thresholdout.Interval{Low: max(0, value-w), High: min(1, value+w), Bound: "tenth-union"}
}

func (m *tenth) Promise(thresholdout.State) (thresholdout.Promise, bool) {
	return thresholdout.Promise{HalfWidth: m.HalfWidth, Parts: map[string]float64{"sampling": m.HalfWidth}}, true
}

func (m *tenth) ReadMemory(text []byte) (thresholdout.Memory, error) {
	var t told
	err := json.Unmarshal(text, &t)
	return t, err
}

// columns is a holdout of rows with means 0.5, 0.9 and 0.1.
func columns(t *testing.T, rows int) (*dataset.Table, *engine.Table) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	var columns []dataset.Column
	means := map[string]float64{"half": 0.5, "high": 0.9, "low": 0.1}
	for _, name := range slices.Sorted(maps.Keys(means)) { // in one order, for they draw from one source
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}}
		for range rows {
			c.Numbers = append(c.Numbers, coin(r, means[name]))
		}
		columns = append(columns, c)
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	source, err := engine.NewTable(table, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return table, source
}

// TestTenthMechanism: one type and one line are a mechanism. It is planned, refused what it does not take, stored and read again, asked
// through package session, previewed, paid in its meters, remembered, and listed by the planner. It would notice a place that knows the
// mechanisms by their names.
func TestTenthMechanism(t *testing.T) {
	defer thresholdout.Register(tenthKind)()
	const n = 4000
	var wrong *thresholdout.ParamError
	if _, err := thresholdout.Plan(thresholdout.Spec{Mechanism: "tenth", N: n, Rounds: 2}); !errors.As(err, &wrong) || wrong.Field != "rounds" {
		t.Errorf("rounds: %v", err)
	}
	if _, err := thresholdout.Plan(thresholdout.Spec{Mechanism: "eleventh", N: n}); err == nil || !strings.Contains(err.Error(), "ladder or tenth") {
		t.Errorf("the mechanisms that there are: %v", err)
	}
	planned, err := thresholdout.Plan(thresholdout.Spec{Mechanism: "tenth", N: n, Questions: 5})
	if err != nil {
		t.Fatal(err)
	}
	var g thresholdout.Guarantee // as a server has it: read from a card
	text, err := json.Marshal(planned)
	if err == nil {
		err = json.Unmarshal(text, &g)
	}
	if err != nil || !strings.HasPrefix(string(text), `{"version":1,"mechanism":"tenth","n":4000,`) || !strings.HasSuffix(string(text), `,"cells":16}`) {
		t.Fatalf("%s, %v", text, err)
	}
	if meters := g.Meters(); len(meters) != 2 || meters[1] != (thresholdout.Meter{Name: thresholdout.MeterTokens, Limit: 2}) {
		t.Errorf("meters %v", meters)
	}
	table, rows := columns(t, n)
	l := session.Local{Session: session.Session{Holdout: "ho_tenth", Guarantee: g, Noise: session.Seeded(1)}, Schema: table.Schema(), Holdout: rows}
	ask := func(column string) (session.Answer, error) {
		return l.Ask(context.Background(), []byte(`{"type":"mean","of":"`+column+`","range":[0,1]}`))
	}
	for i, c := range []struct {
		of, seen string
		value    float64
		cost     session.Cost
	}{
		{"half", "half", 0.5, session.Cost{Questions: 1}},
		{"high", "half, high", 0.9, session.Cost{Questions: 1, Tokens: 1}},
		{"low", "half, high, low", 0.1, session.Cost{Questions: 1, Tokens: 1}},
	} {
		previewed := g.Preview(l.State, c.value)
		a, err := ask(c.of)
		if err != nil {
			t.Fatalf("%s: %v", c.of, err)
		}
		if math.Abs(*a.Value-c.value) > 1.0/16 || *a.Interval.Low > c.value || *a.Interval.High < c.value || a.Interval.Bound != "tenth-union" || a.Cost != c.cost ||
			a.Mechanism != "tenth" || math.Abs((*a.Interval.High-*a.Interval.Low)-(previewed.High-previewed.Low)) > 0.1 {
			t.Errorf("%s: %+v in %+v for %+v; previewed %+v", c.of, *a.Value, a.Interval, a.Cost, previewed)
		}
		state, err := json.Marshal(l.State)
		if err != nil {
			t.Fatal(err)
		}
		read, err := g.ReadState(state)
		if err != nil || read != l.State || read.Memory.(told).Nats <= float64(i)*math.Ln2 {
			t.Errorf("after %s the state %s reads as %+v, %v", c.seen, state, read, err)
		}
	}
	if b := l.Budget(l.State); b.Questions != (session.Meter{Left: 2, Of: 5}) || *b.Tokens != (session.Meter{Left: 0, Of: 2}) {
		t.Errorf("left %+v, %+v", b.Questions, b.Tokens)
	}
	var short *session.ShortError
	if _, err := l.Ask(context.Background(), []byte(`{"type":"mean","of":"1.0 - half","range":[0,1]}`)); !errors.As(err, &short) || short.Reason != session.TokensExhausted {
		t.Errorf("without tokens: %v", err)
	}
	var refused *session.WrongError
	if _, err := l.Ask(context.Background(), []byte(`{"type":"mean","of":"half","range":[0,1],"guess":0.5}`)); !errors.As(err, &refused) || refused.Pointer != "/guess" || !strings.Contains(err.Error(), "the mechanism tenth of this holdout takes no guess") {
		t.Errorf("a guess: %v", err)
	}
	report, err := compare.Plan(context.Background(), compare.Request{N: n, Questions: 5, Confidence: 0.95})
	if err != nil {
		t.Fatal(err)
	}
	if last := report.Methods[len(report.Methods)-1]; last.Method != "tenth-union" || last.Mechanism != "tenth" || math.Abs(*last.HalfWidth-g.HalfWidth) > 1e-12 {
		t.Errorf("the planner says %+v", last)
	}
}

// coin is 1 with this probability, else 0.
func coin(r *rand.Rand, p float64) float64 {
	if r.Float64() < p {
		return 1
	}
	return 0
}
