package holdout

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
)

// goldenHoldout is a holdout of the recorded data directory, by what was asked of it.
type goldenHoldout struct {
	name    string
	set     Settings
	asked   [][]string // batches
	void    string     // a question whose scan failed
	report  []string   // the final report that closed it
	deleted bool
	next    string // asked by the test, of a copy; "" where nothing can be asked any more
	since   int    // the first recording that it is in; 0 for the first of all
}

// An Idempotency-Key of the recorded data directory, and the query that it was used for.
const goldenKey, goldenKeyed = "golden", `{"type":"count","of":"delay > 15"}`

// few are queries of one mean, of several, and of a search.
func few(more ...string) [][]string {
	batches := [][]string{{`{"type":"mean","of":"delay","range":[-60,180]}`}, {`{"type":"fraction","of":"delay > 15","where":"origin == 'SFO'"}`},
		{`{"type":"count","of":"distance > 500"}`, `{"type":"difference","of":"delay","range":[-60,180],"between":["origin == 'SFO'","origin == 'OAK'"]}`}}
	for _, query := range more {
		batches = append(batches, []string{query})
	}
	return batches
}

func guessed(share float64) string {
	return fmt.Sprintf(`{"type":"fraction","of":"delay > 15","guess":%v}`, share)
}

// area is that of a score with few values, of units of several rows a question of its own.
func area(guess float64) string {
	return fmt.Sprintf(`{"type":"auc","label":"delay > 15","prediction":"distance / 3000","edges":[0.2,0.5,0.7],"guess":%v}`, guess)
}

func submits(minutes ...int) (batches [][]string) {
	for _, m := range minutes {
		batches = append(batches, []string{fmt.Sprintf(`{"type":"loss","loss":"zero_one","label":"delay > 15","prediction":"distance > %d"}`, m)})
	}
	return batches
}

const (
	median    = `{"type":"median","of":"delay","range":[-60,180],"resolution":10}`
	nextQuery = `{"type":"mean","of":"distance","range":[0,3000]}`
)

// goldenFurther is asked after the next question, one after another: means under a condition, differences, weights, quantiles, several means at once and tests, whose intervals have a bound of their own each.
var goldenFurther = []string{
	`{"type":"mean","of":"delay","range":[-60,180],"where":"distance > 900"}`,
	`{"type":"difference","of":"delay","range":[-60,180],"between":["distance > 1200"]}`,
	`{"type":"mean","of":"distance","range":[0,3000],"weight":"row"}`,
	`{"type":"quantile","of":"distance","range":[0,3000],"resolution":50,"p":0.25}`,
	`{"type":"variance","of":"delay","range":[-60,180]}`,
	`{"type":"test","test":"proportion","of":"delay > 30","equals":0.5}`,
	`{"type":"test","test":"two-proportions","of":"delay > 15","between":["origin == 'SFO'","origin == 'OAK'"]}`,
}

// goldenHoldouts are one of each mechanism, and of each kind of holdout whose card or tables differ. Every query type is asked of the first.
var goldenHoldouts = []goldenHoldout{
	{name: "gaussian", set: Settings{Mechanism: "gaussian", Questions: 2000}, void: `{"type":"mean","of":"delay","range":[0,180]}`, next: nextQuery},
	{name: "rounds", set: Settings{Mechanism: "gaussian", Questions: 40, Rounds: 8}, asked: few(), next: nextQuery},
	{name: "guess_and_check", set: Settings{Mechanism: "guess_and_check", Questions: 50, Tokens: 20}, next: nextQuery,
		asked: few(median, `{"type":"mean","of":"delay","range":[-60,180],"guess":120}`, `{"type":"mean","of":"delay","range":[-60,181],"guess":20,"half_width":120}`,
			guessed(0.5), guessed(0.6), guessed(0.7), guessed(0.8), guessed(0.9)), // of 0.4: one of them passes at the wider width
		void: `{"type":"mean","of":"delay","range":[0,180]}`},
	{name: "thresholdout", set: Settings{Mechanism: "thresholdout", Questions: 50, Tokens: 20, Threshold: 1e-6, Sigma: 0.2}, asked: few(), next: nextQuery},
	{name: "thresholdout-laplace", set: Settings{Mechanism: "thresholdout", Form: "laplace", Questions: 20, Tokens: 10}, asked: few(), next: nextQuery},
	{name: "split", set: Settings{Mechanism: "split", Questions: 100}, asked: few(median), next: nextQuery},
	{name: "ladder", set: Settings{Mechanism: "ladder"}, asked: submits(900, 500, 100, 501), next: submits(700)[0][0]},
	{name: "naive", set: Settings{Mechanism: "naive", Questions: 100}, asked: few(), next: nextQuery},
	{name: "units", set: Settings{Mechanism: "gaussian", Questions: 100, Unit: "plane", Label: "delay"}, next: nextQuery,
		asked: few(`{"type":"mean","of":"delay","range":[-60,180],"weight":"row"}`)},
	{name: "strata", set: Settings{Mechanism: "gaussian", Questions: 100, Stratify: "origin", Confidence: 0.9, Bounds: "published"}, asked: few(), next: nextQuery},
	{name: "public", set: Settings{Mechanism: "gaussian", Questions: 100, Label: "delay", Features: "public"}, asked: few(), next: nextQuery},
	{name: "whole", set: Settings{Mechanism: "gaussian", Questions: 10, Holdout: 1}, asked: few()[:1], next: nextQuery},
	{name: "time", set: Settings{Mechanism: "gaussian", Questions: 10, Split: "time:date", Unit: "day(date)"}, asked: few()[:1], next: nextQuery},
	{name: "promises", since: 2, set: Settings{Mechanism: "gaussian", Questions: 50, Tokens: 3}, next: `{"type":"fraction","of":"distance > 1900","promise":{"at_most":0.2}}`,
		asked: few(`{"type":"fraction","of":"delay > 38","promise":{"at_most":0.1}}`, `{"type":"fraction","of":"delay > 15","promise":{"at_most":0.01}}`,
			`{"type":"mean","of":"delay","range":[-60,181],"promise":{"variance":900}}`)},
	{name: "checks", since: 2, set: Settings{Mechanism: "guess_and_check", Questions: 300, Tokens: 40}, next: nextQuery},
	{name: "batch", since: 2, set: Settings{Mechanism: "gaussian", Questions: 6, Rounds: 1},
		asked: [][]string{{`{"type":"mean","of":"delay","range":[-60,180]}`, median, `{"type":"fraction","of":"delay > 15"}`, `{"type":"difference","of":"delay","range":[-60,180],"between":["origin == 'SFO'","origin == 'OAK'"]}`}}},
	{name: "check", since: 3, set: Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 30, Unit: "plane", Label: "delay"}, next: nextQuery,
		asked: few(`{"type":"accuracy","label":"delay > 15","prediction":"distance > 1000"}`, `{"type":"mean","of":"delay","range":[-60,180],"weight":"row"}`)},
	{name: "predictions", since: 3, set: Settings{Mechanism: "gaussian", Questions: 100, Label: "delay", Features: "public", Stratify: "origin", Check: new(0.25)}, asked: few(), next: nextQuery},
	{name: "slices", since: 4, set: Settings{Mechanism: "split", Questions: 12}, next: nextQuery,
		asked: few(median, `{"type":"compare","a":{"type":"fraction","of":"delay > 15"},"b":{"type":"fraction","of":"delay > 20"}}`)},
	{name: "comparisons", since: 4, set: Settings{Mechanism: "thresholdout", Questions: 50, Tokens: 20}, next: nextQuery,
		asked: few(median, `{"type":"mean","of":"distance","range":[0,3001]}`)},
	{name: "differences", since: 4, set: Settings{Mechanism: "thresholdout", Questions: 20, Tokens: 10, Threshold: 1e-6, Sigma: 0.05}, next: nextQuery,
		asked: few(`{"type":"mean","of":"delay","range":[-60,181]}`, `{"type":"mean","of":"delay","range":[-60,182]}`)},
	{name: "tilts", since: 5, set: Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 30}, next: nextQuery, asked: few(median, `{"type":"variance","of":"distance","range":[0,3000]}`)},
	{name: "tilts-units", since: 5, set: Settings{Mechanism: "guess_and_check", Questions: 60, Tokens: 20, Unit: "plane"}, next: nextQuery, asked: few(`{"type":"mean","of":"delay","range":[-60,180],"weight":"row"}`)},
	{name: "tilts-slices", since: 5, set: Settings{Mechanism: "split", Questions: 12}, next: nextQuery, asked: few(median)},
	{name: "tilts-comparisons", since: 5, set: Settings{Mechanism: "thresholdout", Questions: 50, Tokens: 20}, next: nextQuery, asked: few(`{"type":"mean","of":"distance","range":[0,3001]}`)},
	{name: "tilts-rounds", since: 5, set: Settings{Mechanism: "gaussian", Questions: 12, Rounds: 2}, next: nextQuery, asked: few()[:1]},
	{name: "closed", since: 6, set: Settings{Mechanism: "guess_and_check", Questions: 100, Tokens: 20, Label: "delay"}, asked: few(guessed(0.9)),
		report: []string{`{"type":"mean","of":"delay","range":[-60,180],"note":"the mean"}`, median, `{"type":"accuracy","label":"delay > 15","prediction":"distance > 1000"}`,
			`{"type":"groups","of":"delay > 15","by":"origin"}`, `{"type":"test","test":"proportion","of":"delay > 30","equals":0.5}`}},
	{name: "areas", since: 7, set: Settings{Mechanism: "guess_and_check", Questions: 60, Tokens: 20, Unit: "plane"}, next: area(0.95),
		asked: few(area(0.5), area(0.1), `{"type":"compare","a":{"type":"auc","label":"delay > 15","prediction":"distance / 3000","edges":[0.2,0.5,0.7]},"b":{"type":"auc","label":"delay > 15","prediction":"distance / 4000","edges":[0.3,0.4]}}`)},
	{name: "areas-closed", since: 7, set: Settings{Mechanism: "guess_and_check", Questions: 60, Tokens: 20, Unit: "plane", Label: "delay"}, asked: few()[:1],
		report: []string{`{"type":"auc","label":"delay > 15","prediction":"distance / 3000","edges":[0.2,0.5,0.7]}`, `{"type":"auc","label":"delay > 15","prediction":"distance / 3000","edges":[0.5]}`}},
	{name: "deleted", set: Settings{Mechanism: "gaussian", Questions: 10}, asked: few()[:1], deleted: true},
}

// everyType is the first example of each query type but some, as the documents have them.
func everyType(t *testing.T, but ...string) (batches [][]string) {
	t.Helper()
	for _, schema := range queries.JSONSchemas("") {
		var s struct{ Examples []json.RawMessage }
		must(t, json.Unmarshal(schema, &s))
		if len(s.Examples) == 0 {
			continue // the union of them
		}
		q, err := queries.Parse(s.Examples[0])
		must(t, err)
		if !slices.Contains(but, q.Type()) {
			batches = append(batches, []string{string(s.Examples[0])})
		}
	}
	if len(batches)+len(but) < len(queries.Types()) {
		t.Fatalf("%d examples of %d types", len(batches), len(queries.Types()))
	}
	slices.SortFunc(batches, slices.Compare)
	return batches
}

// flights is a table with the columns of the documents' examples. Its numbers are whole, so that it is small when it is packed.
func flights(t testing.TB, n int, seed uint64) *dataset.Table {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 11))
	number := func(name string, f func(i int) float64) dataset.Column {
		c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, n)}
		for i := range c.Numbers {
			c.Numbers[i] = f(i)
		}
		return c
	}
	var origins []string
	for range n {
		origins = append(origins, []string{"SFO", "OAK", "SJC"}[r.IntN(3)])
	}
	on := dataset.Column{Field: dataset.Field{Name: "on_time", Kind: dataset.Bool, Source: "BOOLEAN"}}
	for i := range n {
		on.Bools = append(on.Bools, uint8(i%2))
	}
	day := number("date", func(i int) float64 { return float64(i/10) * microsecondsPerDay })
	day.Kind, day.Source = dataset.Time, "TIMESTAMP"
	table, err := dataset.FromColumns(
		number("delay", func(i int) float64 {
			if i%50 == 7 {
				return math.NaN()
			}
			return float64(r.IntN(60) - 20)
		}),
		number("distance", func(int) float64 { return float64(100 * (1 + r.IntN(20))) }),
		dataset.NewText("origin", origins, func(i int) bool { return i%40 == 3 }),
		number("plane", func(i int) float64 { return float64(i / 3) }), on, day)
	must(t, err)
	return table
}

// recordGolden makes the newest recorded data directory anew, with keys of its own.
func recordGolden(t *testing.T) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	s := open(t, dir, func(o *Options) { o.AllowNaive = true })
	for i, g := range newest().holdouts() {
		set := g.set
		set.Name = g.name
		id := create(t, s, set, flights(t, 600, uint64(i))).ID
		switch g.name {
		case "gaussian":
			if newest().number >= additions {
				_, err := s.Ask(t.Context(), analyst, id, []byte(goldenKeyed), goldenKey)
				must(t, err)
				break
			}
			_, err := s.Ask(t.Context(), analyst, id, []byte(goldenKeyed), goldenKey)
			must(t, err)
			g.asked = everyType(t, "kendall") // which has an answer under guess_and_check alone
		case "checks":
			g.asked = everyType(t)
		}
		for _, batch := range g.asked {
			var bodies []json.RawMessage
			for _, query := range batch {
				bodies = append(bodies, json.RawMessage(query))
			}
			b, err := s.AskBatch(t.Context(), analyst, id, bodies, false, "")
			if err != nil {
				t.Fatalf("%s: %v: %v", g.name, batch, err)
			}
			for _, a := range b.Answers {
				if a.Body == nil {
					t.Fatalf("%s: %v: not asked: %s", g.name, batch, a.NotAsked)
				}
			}
		}
		if g.void != "" {
			c := count(t, s, id)
			c.before = func() error { return errors.New("the disk fails") }
			_, err := s.Ask(t.Context(), analyst, id, []byte(g.void), "")
			wantKind(t, "a question that is void", err, Internal)
			c.before = nil
		}
		if g.report != nil {
			var batch []json.RawMessage
			for _, query := range g.report {
				batch = append(batch, json.RawMessage(query))
			}
			_, err := s.CloseWithReport(t.Context(), admin, id, batch, "golden", "")
			must(t, err)
		}
		if g.deleted {
			must(t, s.Delete(t.Context(), admin, id))
		}
	}
	must(t, s.Close())
	must(t, os.RemoveAll(newest().dir))
	must(t, os.MkdirAll(newest().dir, 0o755))
	pack(t, dir, newest().archive())
}
