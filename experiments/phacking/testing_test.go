package phacking

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/holdoutd/holdoutd/experiments/tables"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// TestConditions: conditions of the query language pick the flights that are counted: of single groups, of pairs, and of positive sums of weights; the share of late ones is that of the counts.
func TestConditions(t *testing.T) {
	table, err := tables.FlightGroups()
	if err != nil {
		t.Fatal(err)
	}
	const rows = 5000
	p := drawPart(table, 11, rows, false)
	g, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Naive, N: rows, Questions: 1000})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := newTester(g, table, p, p, 1)
	if err != nil {
		t.Fatal(err)
	}
	share := func(query map[string]any) float64 {
		text, err := json.Marshal(query)
		if err != nil {
			t.Fatal(err)
		}
		a, err := asked.local.Ask(t.Context(), text)
		if err != nil || a.Value == nil {
			t.Fatalf("%s: %+v, %v", text, a, err)
		}
		return *a.Value
	}
	check := func(where string, members, lateMembers int) {
		if got := share(map[string]any{"type": "fraction", "of": where}) * rows; math.Abs(got-float64(members)) > 1e-3 {
			t.Errorf("%.80s picks %v flights, want %d", where, got, members)
		}
		if members == 0 {
			return
		}
		got := share(map[string]any{"type": "fraction", "of": lateColumn, "where": where})
		if math.Abs(got-float64(lateMembers)/float64(members)) > 1e-6 {
			t.Errorf("%.80s: a share of %v is late, want %d of %d", where, got, lateMembers, members)
		}
	}
	weights := make([]float64, table.Count())
	for group := range weights {
		weights[group] = math.Sin(float64(group)) / 1000
		members, lateMembers := p.counts([]int{group}, 0, rows)
		check(asked.all([]int{group}), members, lateMembers)
	}
	for _, pair := range [][]int{{8, 30}, {20, 50}, {33, 72}} {
		members, lateMembers := p.counts(pair, 0, rows)
		check(asked.all(pair), members, lateMembers)
	}
	members, lateMembers := p.riskCounts(weights, 0, rows)
	if members < rows/5 || members > 4*rows/5 {
		t.Fatalf("%d flights have a positive sum: the weights show nothing", members)
	}
	check(asked.positive(weights), members, lateMembers)
}
