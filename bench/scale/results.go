package scale

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"
)

// Result is one measurement: a line of the file of results.
type Result struct {
	Engine    string    `json:"engine"`
	Rows      int64     `json:"rows"`
	Unit      int64     `json:"unit"` // rows of a unit, 1 where rows are units
	Questions int       `json:"questions"`
	Columns   int       `json:"columns"`  // that are read
	Squares   bool      `json:"squares"`  // with the products that intervals need
	Sums      int       `json:"sums"`     // row functions and products
	Scans     int       `json:"scans"`    // statements of ours
	Sent      int       `json:"sent"`     // bytes of their texts
	Received  int       `json:"received"` // bytes of the answers
	Seconds   []float64 `json:"seconds"`  // ours, run by run
	ByHand    []float64 `json:"by_hand"`  // the other, in the same runs
	Used      float64   `json:"used"`     // seconds of processors of all runs of ours
	UsedBy    float64   `json:"used_by"`  // of all runs by hand
	Wrong     float64   `json:"wrong"`    // the largest difference between an answer of ours and the other's, in ranges of the question
}

// Median is that of times.
func Median(seconds []float64) float64 {
	sorted := slices.Clone(seconds)
	slices.Sort(sorted)
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Ratio is ours beside the other: the median over runs of the ratio of the two, which were run one after the other.
func (r Result) Ratio() float64 {
	var ratios []float64
	for i := range min(len(r.Seconds), len(r.ByHand)) {
		ratios = append(ratios, r.Seconds[i]/r.ByHand[i])
	}
	return Median(ratios)
}

// Record appends a result to the file that HOLDOUTD_SCALE names, and prints it.
func Record(t testing.TB, r Result) {
	t.Helper()
	t.Logf("%s: %d rows, units of %d, %d questions, squares %v: %d sums in %d statements, %.3f s, by hand %.3f s, ratio %.2f, of processors %.2f / %.2f = %.2f; %d bytes there, %d back; differs by %.1e",
		r.Engine, r.Rows, r.Unit, r.Questions, r.Squares, r.Sums, r.Scans, Median(r.Seconds), Median(r.ByHand), r.Ratio(), r.Used, r.UsedBy, r.Used/r.UsedBy, r.Sent, r.Received, r.Wrong)
	name := os.Getenv("HOLDOUTD_SCALE")
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		err = json.NewEncoder(f).Encode(r)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// timed is how long f takes.
func timed(f func()) float64 {
	begun := time.Now()
	f()
	return time.Since(begun).Seconds()
}
