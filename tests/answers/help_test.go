// Package answers tests what a service answers, as a caller of package holdout sees it.
package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dataset/ingest/ingesttest"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/stattest"
	"github.com/holdoutd/holdoutd/session"
)

func TestMain(m *testing.M) {
	ingesttest.Child()
	goleak.VerifyTestMain(m)
}

var (
	admin   = holdout.Principal{KeyID: "key_admin", Name: "admin", Scope: holdout.Admin}
	analyst = holdout.Principal{KeyID: "key_ana", Name: "ana", Scope: holdout.Analyst}
	rival   = holdout.Principal{KeyID: "key_bob", Name: "bob", Scope: holdout.Analyst}
)

// open opens a service on dir, which is closed with the test unless the test closes it.
func open(t testing.TB, dir string, change ...func(*holdout.Options)) *holdout.Service {
	t.Helper()
	stattest.Secrets(t)
	o := holdout.Options{Dir: dir, AnyFileSystem: true, Decoder: ingesttest.Decoder(t), Version: "test"}
	for _, f := range change {
		f(&o)
	}
	s, err := holdout.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// visits is a table of n rows: chart (four rows each), x in [0,1) whose mean over many is 1/2, late (x < 0.2), clinic (5
// texts), seen (a time, the later the larger the row), with some nulls in score.
func visits(t testing.TB, n int, seed uint64) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 7))
	number := func(name string, f func(i int) float64) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, n)}
		for i := range c.Numbers {
			c.Numbers[i] = f(i)
		}
		return c
	}
	x := number("x", func(int) float64 { return r.Float64() })
	late := dataset.Column{Field: dataset.Field{Name: "late", Kind: dataset.Bool, Source: "BOOLEAN"}}
	var clinics []string
	for i := range n {
		b := uint8(0)
		if x.Numbers[i] < 0.2 {
			b = 1
		}
		late.Bools = append(late.Bools, b)
		clinics = append(clinics, fmt.Sprintf("clinic %d", r.IntN(5)))
	}
	seen := number("seen", func(i int) float64 { return float64(i) * (86_400e6 / 50) })
	seen.Kind, seen.Source = dataset.Time, "TIMESTAMP"
	table, err := dataset.FromColumns(
		number("chart", func(i int) float64 { return float64(i / 4) }), x, late,
		dataset.NewText("clinic", clinics, func(int) bool { return false }), seen,
		number("score", func(i int) float64 {
			if i%10 == 3 {
				return math.NaN()
			}
			return math.Floor(r.Float64() * 100)
		}))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// parquet is a table as an uploaded file.
func parquet(t testing.TB, table *dataset.Table) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// create makes a holdout of visits that must come to be; gaussian unless the settings say otherwise, for whose answers tell most
// when noise, order or replay are wrong.
func create(t testing.TB, s *holdout.Service, set holdout.Settings, table *dataset.Table) holdout.Card {
	t.Helper()
	if set.Name == "" {
		set.Name = "visits"
	}
	if set.Mechanism == "" {
		set.Mechanism = "gaussian"
	}
	card, replayed, err := s.Create(t.Context(), admin, set, holdout.SingleUpload(bytes.NewReader(parquet(t, table))), "")
	if err != nil || replayed {
		t.Fatalf("create: %v, replayed %v", err, replayed)
	}
	return card
}

// ask asks a query that must be answered.
func ask(t *testing.T, s *holdout.Service, id, query string) holdout.Answer {
	t.Helper()
	a, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
	if err != nil {
		t.Fatalf("ask %s: %v", query, err)
	}
	return a
}

// answered is an answer as a client reads it.
type answered struct {
	ID, Holdout, Query, Mechanism, Source string

	ValueFrom session.ValueFrom `json:"value_from"`
	Warnings  []holdout.Warning

	Value    *float64
	Interval *struct {
		Low, High, Confidence float64
		Scope, Target, Bound  string
		Parts                 map[string]float64
	}
	Cost   holdout.Cost
	Ledger struct {
		Seq  int64
		Head string
	}
}

func read(t *testing.T, body json.RawMessage) (a answered) {
	t.Helper()
	if err := json.Unmarshal(body, &a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return a
}

// mean is a query that differs from any other i.
func mean(i int) string {
	return fmt.Sprintf(`{"type":"mean","of":"x","range":[0,%d]}`, i+1)
}

// wantKind fails unless err is of a kind.
func wantKind(t *testing.T, what string, err error, want holdout.Kind) {
	t.Helper()
	if err == nil || holdout.KindOf(err) != want {
		t.Errorf("%s: %v (kind %d), want kind %d", what, err, holdout.KindOf(err), want)
	}
}

func batchOf(queries ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(queries))
	for i, q := range queries {
		out[i] = json.RawMessage(q)
	}
	return out
}

// members of a budget refusal.
func wantExhausted(t *testing.T, what string, err error, requested, remaining, affordable int64) {
	t.Helper()
	wantKind(t, what, err, holdout.BudgetExhausted)
	var e *holdout.Error
	if errors.As(err, &e) && fmt.Sprint(e.Members["requested"], e.Members["remaining"], e.Members["affordable"]) != fmt.Sprint(requested, remaining, affordable) {
		t.Errorf("%s: members %v, want %d %d %d", what, e.Members, requested, remaining, affordable)
	}
}

// tableOf decodes a Parquet file as an upload is.
func tableOf(t *testing.T, s *holdout.Service, r io.Reader) *dataset.Table {
	t.Helper()
	dir := t.TempDir()
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := dir + "/table.parquet"
	if err := os.WriteFile(path, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Run(t.Context(), ingesttest.Decoder(t), path, dir+"/table", ingest.Limits{}); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(dir + "/table")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// training downloads the training part.
func training(t *testing.T, s *holdout.Service, id string) *dataset.Table {
	t.Helper()
	f, err := s.Training(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return tableOf(t, s, f)
}

func numbers(t *testing.T, table *dataset.Table, name string) []float64 {
	t.Helper()
	c, ok := table.Lookup(name)
	if !ok {
		t.Fatalf("no column %s in %v", name, table.Schema())
	}
	return c.Numbers
}

// guaranteed is a card's guarantee as they are stored and sent.
func guaranteed(t *testing.T, card holdout.Card) (members map[string]any) {
	t.Helper()
	text, err := json.Marshal(card.Guarantee)
	if err == nil {
		err = json.Unmarshal(text, &members)
	}
	if err != nil {
		t.Fatal(err)
	}
	return members
}
