package holdout

import (
	cryptorand "crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
)

// listed is f(0), f(1), … as a JSON list.
func listed(n int, f func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = f(i)
	}
	return "[" + strings.Join(all, ",") + "]"
}

func tens(low int) func(i int) string { return func(i int) string { return fmt.Sprint(low + 3*i) } }

// wideQueries are questions of many numbers, whose explanations take longest.
func wideQueries(n int) map[string]string {
	model := `{"linear":{"intercept":-1.5,"weights":{"distance":0.0002,"plane":0.001},"link":"logit"}}`
	shares := listed(n+1, func(i int) string { return fmt.Sprint(float64(i) / float64(n)) })
	classes := listed(30, func(i int) string { return fmt.Sprintf(`"S%d"`, i) })
	weights := listed(30, func(i int) string { return fmt.Sprint(float64(i) / 1000) })
	softmax := fmt.Sprintf(`{"softmax":{"classes":%s,"intercepts":%s,"weights":{"distance":%s}}}`, strings.Replace(classes, `"S0"`, `"SFO"`, 1), weights, weights)
	auc := func(x string) string {
		return fmt.Sprintf(`{"type":"auc","label":"delay > 15","prediction":"%s","edges":%s}`, x, listed(min(n, 99), tens(0)))
	}
	candidates := listed(n, func(i int) string {
		return fmt.Sprintf(`{"type":"accuracy","label":"delay > 15","prediction":"distance > %d"}`, i)
	})
	return map[string]string{
		"histogram":   fmt.Sprintf(`{"type":"histogram","of":"distance","edges":%s}`, listed(n+1, tens(0))),
		"groups":      fmt.Sprintf(`{"type":"groups","of":"delay","range":[-60,180],"by":"distance","edges":%s}`, listed(n+1, tens(0))),
		"frequencies": fmt.Sprintf(`{"type":"frequencies","of":"origin","values":%s}`, listed(n, func(i int) string { return fmt.Sprintf(`"S%d"`, i) })),
		"calibration": fmt.Sprintf(`{"type":"calibration","label":"delay > 15","model":%s,"edges":%s}`, model, shares),
		"gap":         fmt.Sprintf(`{"type":"calibration","label":"delay > 15","model":%s,"edges":%s,"form":"gap"}`, model, shares),
		"gradient": fmt.Sprintf(`{"type":"gradient","label":"delay > 15","clip":1,"model":{"linear":{"intercept":0,"weights":{"distance":0.001,"origin":{%s}},"link":"logit"}}}`,
			strings.Trim(listed(n, func(i int) string { return fmt.Sprintf(`"S%d":0`, i) }), "[]")),
		"kendall":   fmt.Sprintf(`{"type":"kendall","x":"delay","y":"distance","edges_x":%s,"edges_y":%s}`, listed(min(n, 20), tens(-20)), listed(min(n, 20), tens(0))),
		"confusion": fmt.Sprintf(`{"type":"confusion","label":"origin","model":%s}`, softmax),
		"accuracy":  fmt.Sprintf(`{"type":"accuracy","label":"origin","model":%s}`, softmax),
		"compare":   fmt.Sprintf(`{"type":"compare","a":%s,"b":%s}`, auc("distance"), auc("distance - plane")),
		"argmax":    fmt.Sprintf(`{"type":"argmax","of":%s}`, candidates),
		"cells":     fmt.Sprintf(`{"type":"test","test":"independence","rows":%s,"columns":["distance < 500","distance < 1000"]}`, listed(min(n, 15), func(i int) string { return fmt.Sprintf(`"delay > %d"`, i) })),
		"screen":    `{"type":"screen","label":"delay > 15","features":"*","range":[0,3000]}`,
		"products":  `{"type":"screen","label":"delay","features":"*","statistic":"product","range":[0,3000],"range_label":[-60,180]}`,
	}
}

// explainedHoldouts are one of each mechanism, and of each kind whose explanations differ.
func explainedHoldouts() (chosen []goldenHoldout) {
	for _, g := range goldenHoldouts {
		switch g.name {
		case "gaussian", "rounds", "guess_and_check", "thresholdout", "thresholdout-laplace", "split", "ladder", "naive", "units", "public", "whole", "promises", "check":
			chosen = append(chosen, g)
		}
	}
	return chosen
}

// Explanations are what they were, to the last bit, of every query type and of wide questions, of each mechanism, before anything was asked and after. What they are made of is shared between their parts, so that
// each is computed once; it would notice a part that reads what another has left behind. testdata/explained has the hash of each; -update records them.
func TestExplanationsStay(t *testing.T) {
	path := filepath.Join("testdata", "explained")
	var examples []string
	for _, schema := range queries.JSONSchemas("") {
		var s struct{ Examples []json.RawMessage }
		must(t, json.Unmarshal(schema, &s))
		for _, example := range s.Examples {
			examples = append(examples, string(example))
		}
	}
	slices.Sort(examples)
	var all strings.Builder
	said := map[string]string{}
	for i, g := range explainedHoldouts() {
		dir := t.TempDir()
		for name, text := range map[string]string{serverKeyFile: strings.Repeat("0123456789abcdef", 4), firstStart: ""} {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), secretMode))
		}
		s := open(t, dir, func(o *Options) { o.AllowNaive = true })
		random := cryptorand.Reader
		cryptorand.Reader = still{}
		set := g.set
		set.Name = g.name
		id := create(t, s, set, flights(t, 600, uint64(i))).ID
		cryptorand.Reader = random
		explain := func(when, name string, query string) {
			text := "refused"
			e, err := s.Explain(t.Context(), analyst, id, []byte(query))
			if err != nil {
				text += ": " + err.Error()
			} else {
				b, err := json.Marshal(e)
				must(t, err)
				text = string(b)
			}
			sum := sha256.Sum256([]byte(text))
			line := fmt.Sprintf("%s %s %s %s", g.name, when, name, hex.EncodeToString(sum[:6]))
			said[line] = text
			fmt.Fprintln(&all, line)
		}
		every := func(when string) {
			for i, example := range examples {
				explain(when, fmt.Sprint("example ", i), example)
			}
			wide := wideQueries(12)
			for _, name := range []string{"histogram", "groups", "frequencies", "calibration", "gap", "gradient", "kendall", "confusion", "accuracy", "compare", "argmax", "cells", "screen", "products"} {
				explain(when, name, wide[name])
			}
		}
		every("before")
		for _, batch := range g.asked {
			var bodies []json.RawMessage
			for _, query := range batch {
				bodies = append(bodies, json.RawMessage(query))
			}
			if _, err := s.AskBatch(t.Context(), analyst, id, bodies, false, ""); err != nil {
				fmt.Fprintf(&all, "%s is not asked: %v\n", g.name, KindOf(err)) // its price has to be named, or the holdout has no such questions
			}
		}
		if slices.Contains([]string{"guess_and_check", "thresholdout", "promises", "split"}, g.name) { // whose intervals follow from what was answered before
			every("after")
		}
	}
	if *update {
		must(t, os.WriteFile(path, []byte(all.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	was, is := strings.Split(string(want), "\n"), strings.Split(all.String(), "\n")
	if len(was) != len(is) {
		t.Fatalf("%d explanations, %d are recorded", len(is), len(was))
	}
	for i, line := range is {
		if line != was[i] {
			t.Errorf("another explanation, recorded as %s:\n%s", was[i], said[line])
		}
	}
}

// manyColumns is a table of flights with 300 columns of numbers more.
func manyColumns(t testing.TB) *dataset.Table {
	t.Helper()
	base := flights(t, 6000, 1)
	var columns []dataset.Column
	for i := range base.Columns() {
		columns = append(columns, *base.Column(i))
	}
	for i := range 300 {
		c := dataset.Column{Field: dataset.Field{Name: fmt.Sprintf("f%d", i), Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, base.Rows())}
		for row := range c.Numbers {
			c.Numbers[row] = float64((row*(i+3))%3000) / 2
		}
		columns = append(columns, c)
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// BenchmarkExplain is what explaining wide questions takes beside compiling them, of holdouts of some mechanisms.
func BenchmarkExplain(b *testing.B) {
	for _, set := range []Settings{{Mechanism: "gaussian", Questions: 20000}, {Mechanism: "gaussian", Questions: 20000, Tokens: 60}, {Mechanism: "guess_and_check", Questions: 20000, Tokens: 2000},
		{Mechanism: "thresholdout", Questions: 20000, Tokens: 2000}, {Mechanism: "split", Questions: 100}} {
		name := fmt.Sprintf("%s-%d", set.Mechanism, set.Tokens)
		s := open(b, b.TempDir())
		set.Name, set.Unit = name, "row"
		card, _, err := s.Create(b.Context(), admin, set, SingleUpload(strings.NewReader(string(parquet(b, manyColumns(b))))), "")
		if err != nil {
			b.Fatal(err)
		}
		h, release, err := s.tables.take(b.Context(), card.ID)
		if err != nil {
			b.Fatal(err)
		}
		defer release()
		for query, text := range wideQueries(300) {
			parsed, err := queries.Parse([]byte(text))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := s.Explain(b.Context(), analyst, card.ID, []byte(text)); err != nil {
				continue // this mechanism has no such questions
			}
			b.Run(name+"/"+query+"/compile", func(b *testing.B) {
				for b.Loop() {
					if _, err := h.question(b.Context(), parsed); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/"+query+"/explain", func(b *testing.B) {
				for b.Loop() {
					if _, err := s.Explain(b.Context(), analyst, card.ID, []byte(text)); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
