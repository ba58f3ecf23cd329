package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// parquet writes a table of these columns.
func parquet(t *testing.T, path string, columns ...dataset.Column) {
	t.Helper()
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := ingest.Export(&file, table); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

const madeRows = 3000 // of so many a holdout for very many questions is planned in a moment

// numbersColumn has the value of each row.
func numbersColumn(name string, of func(row int) float64) dataset.Column {
	c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number, Source: "DOUBLE"}}
	for i := range madeRows {
		c.Numbers = append(c.Numbers, of(i))
	}
	return c
}

func timesColumn(name string, of func(row int) float64) dataset.Column {
	c := numbersColumn(name, of)
	c.Kind, c.Source = dataset.Time, "TIMESTAMP"
	return c
}

func boolsColumn(name string, of func(row int) bool) dataset.Column {
	c := dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Bool, Source: "BOOLEAN"}}
	for i := range madeRows {
		value := uint8(0)
		if of(i) {
			value = 1
		}
		c.Bools = append(c.Bools, value)
	}
	return c
}

// TestBench: bench measures with its defaults, both ledgers, and about every kind of table: one of customers who come again, one without a number, one whose numbers
// are all the same. It once ended before its first question, since a new holdout's card says no ranges.
func TestBench(t *testing.T) {
	dir := t.TempDir()
	tables := map[string]dataset.Column{
		"customer_id": numbersColumn("customer_id", func(row int) float64 { return float64(row / 3) }),
		"constant":    numbersColumn("constant", func(int) float64 { return 1e15 }),
		"times":       timesColumn("times", func(row int) float64 { return float64(row) }), // within a millisecond
		`a "truth"`:   boolsColumn(`a "truth"`, func(row int) bool { return row%3 == 0 }),
	}
	text := dataset.Column{Field: dataset.Field{Name: "text", Kind: dataset.Text, Source: "STRING"}, Dictionary: dataset.NewDictionary("a", "b")}
	for i := range madeRows {
		text.Codes = append(text.Codes, uint32(1+i%2))
	}
	tables["text"] = text
	lines := [][]string{{"--time", "50ms"}, {"--time", "50ms", "--clients", "2", "--ledger", pgtest.Shared(t).New(t).Address()},
		{"--time", "50ms", "--clients", "1,2,3", "--batch", "4", "--sweep", "--beside", "30"}}
	for name, column := range tables {
		path := filepath.Join(dir, fmt.Sprintf("%d.parquet", len(lines)))
		parquet(t, path, column)
		lines = append(lines, []string{"--file", path, "--clients", "1,2", "--batch", "1,3", "--time", "20ms"})
		asked := map[string]bool{}
		of := client.Column{Name: name, Kind: column.Kind.String()}
		if name == "constant" {
			value := 1e15
			of.Min, of.Max = &value, &value
		}
		question := questionsAbout(of)
		for i := range int64(1000) {
			asked[fmt.Sprint(question(1+i))] = true
		}
		mixed := mixedQuestions(client.Card{Columns: []client.Column{of}})
		if mixed != nil {
			t.Errorf("%s: questions of several kinds about one column that has no range", name)
		}
		if len(asked) != 1000 {
			t.Errorf("%s: %d of 1000 questions are new", name, len(asked))
		}
	}
	measured, worked := map[string]int{}, 0.0 // processors are counted in hundredths of a second, so that of one short measurement nothing may be said
	for _, flags := range lines {
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"bench", "--json"}, flags...)...)
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		var said struct{ Measurements []benchResult }
		if err != nil || json.Unmarshal(out, &said) != nil || len(said.Measurements) != 4 {
			t.Errorf("bench %v: %v\n%s%s", flags, err, out, errs.String())
			continue
		}
		for _, m := range said.Measurements {
			measured[m.Ledger]++
			if beside := slices.Contains(flags, "--beside") && m.Batch == 1; (m.Beside == 30) != beside {
				t.Errorf("bench %v: %+v", flags, m)
			}
			worked += m.CPU
			if m.Answers <= 0 || m.P50 <= 0 || m.P50 > m.P99 || m.P99 > float64(time.Hour/time.Millisecond) {
				t.Errorf("bench %v: %+v", flags, m)
			}
		}
	}
	if runtime.GOOS == "linux" && worked == 0 {
		t.Error("no server says what its processors worked")
	}
	if measured["postgres"] != 2 || measured["file"] != 4*len(lines)-2 {
		t.Errorf("measurements by ledger: %v", measured)
	}
}

// TestBenchLooksFirst: the questions go through the range of a column, which a new holdout's card does not say before the first look.
func TestBenchLooksFirst(t *testing.T) {
	s := startStation(t, client.Settings{Name: "bench"})
	card, err := look(t.Context(), s.Client, s.card.ID)
	if err != nil || !s.card.Draft || card.Draft {
		t.Fatalf("%v: a draft: %v, after the look: %v", err, s.card.Draft, card.Draft)
	}
	a, err := newAsker(s.Client, card, true)
	if err != nil {
		t.Fatal(err)
	}
	mixed, err := newAsker(s.Client, card, false)
	if err != nil {
		t.Fatal(err)
	}
	asked := map[string]bool{}
	for i := range int64(1000) {
		asked[fmt.Sprint(mixed.question(1+i))] = true
	}
	for i := range int64(20) {
		if _, err := s.Explain(t.Context(), card.ID, mixed.question(1+i)); err != nil {
			t.Errorf("%v: %v", mixed.question(1+i), err)
		}
	}
	if len(asked) != 1000 {
		t.Errorf("%d of 1000 questions of several kinds are new", len(asked))
	}
	first, last := a.question(1)["of"], a.question(benchQuestions)["of"]
	for _, column := range card.Columns {
		if column.Name != "delay" {
			continue
		}
		var from, to float64
		if _, err := fmt.Sscanf(fmt.Sprint(first, " ", last), `col("delay") > %v col("delay") > %v`, &from, &to); err != nil ||
			math.Abs(from-*column.Min) > 1e-3 || math.Abs(to-*column.Max) > 1e-3 || *column.Max-*column.Min < 100 {
			t.Errorf("%v: %v to %v of a column from %v to %v", err, first, last, *column.Min, *column.Max)
		}
	}
}
