package soak

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// Report is what a run found.
type Report struct {
	Seed      uint64         `json:"seed"`
	Servers   int            `json:"servers"`
	Clients   int            `json:"clients"`
	Seconds   float64        `json:"seconds"`
	Answers   int64          `json:"answers"`
	PerSecond float64        `json:"answers_per_second"`
	Disturbed map[string]int `json:"disturbed"`
	Kinds     []Kind         `json:"kinds"`
	Books     []Balance      `json:"books"`
	Trends    []Trend        `json:"trends"`
	Wrong     []string       `json:"wrong"` // every broken promise; none: the run is in order
}

// Kind is how the requests of one kind went.
type Kind struct {
	Kind string         `json:"kind"`
	Done int            `json:"done"`
	P50  float64        `json:"p50_ms"`
	P99  float64        `json:"p99_ms"`
	Not  map[string]int `json:"not,omitempty"` // those that were not done, by the problem's code
}

// counts are filled by all clients.
type counts struct {
	answers atomic.Int64
	mu      sync.Mutex
	took    map[string][]float32 // ms, by kind
	not     map[string]map[string]int
}

func newCounts() *counts {
	return &counts{took: map[string][]float32{}, not: map[string]map[string]int{}}
}

func (c *counts) answered(n int) { c.answers.Add(int64(n)) }

func (c *counts) note(kind string, took time.Duration, problem string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if problem == "" {
		c.took[kind] = append(c.took[kind], float32(took.Seconds()*1e3))
		return
	}
	if c.not[kind] == nil {
		c.not[kind] = map[string]int{}
	}
	c.not[kind][problem]++
}

func (c *counts) kinds() (all []Kind) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range kinds {
		took := slices.Sorted(slices.Values(c.took[k.name]))
		at := func(q float64) float64 {
			if len(took) == 0 {
				return 0
			}
			return float64(took[int(q*float64(len(took)-1))])
		}
		all = append(all, Kind{Kind: k.name, Done: len(took), P50: at(0.5), P99: at(0.99), Not: c.not[k.name]})
	}
	return all
}

// mostWrong is how many broken promises are printed; a fault tends to break the same one many times.
const mostWrong = 20

// Print writes the report as text.
func (r *Report) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d clients, %d servers, %.0f s, seed %d: %d answers, %.0f a second", r.Clients, r.Servers, r.Seconds, r.Seed, r.Answers, r.PerSecond)
	for _, name := range slices.Sorted(maps.Keys(r.Disturbed)) {
		fmt.Fprintf(out, "; %s: %d", name, r.Disturbed[name])
	}
	fmt.Fprint(out, "\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "requests\tdone\tp50 ms\tp99 ms\tnot done")
	for _, k := range r.Kinds {
		fmt.Fprintf(w, "%s\t%d\t%.2f\t%.2f\t", k.Kind, k.Done, k.P50, k.P99)
		for i, code := range slices.Sorted(maps.Keys(k.Not)) {
			if i > 0 {
				fmt.Fprint(w, ", ")
			}
			fmt.Fprintf(w, "%s %d", code, k.Not[code])
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w, "\nbooks\tanswers received\tin the chain\treplays\tin doubt\tspent, by the chain\tby the answers")
	for _, b := range r.Books {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\n", b.Mechanism, b.Answers, b.Recorded, b.Replays, b.InDoubt, meters(b.Spent, b.Limits), meters(b.Told, nil))
	}
	fmt.Fprintln(w, "\nprocess\tmean\tgrowth\tstandard error\tlet pass\tover s\tverdict")
	for _, t := range r.Trends {
		fmt.Fprintf(w, "server %d: %s\t%.1f\t%+.2f\t%.2f\t%.1f\t%.0f\t%s\n", t.Server, t.Measure, t.Level, t.Growth, t.Error, t.Slack, t.Seconds, t.Verdict)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(r.Wrong) == 0 {
		_, err := fmt.Fprintln(out, "\nthe books balance: every acknowledged answer is in its chain, byte for byte, and charged once")
		return err
	}
	fmt.Fprintf(out, "\n%d promises are broken:\n", len(r.Wrong))
	for _, wrong := range r.Wrong[:min(mostWrong, len(r.Wrong))] {
		fmt.Fprintln(out, "-", wrong)
	}
	return nil
}

// meters writes what is spent of each meter, and of how much.
func meters(spent, of map[string]int64) string {
	text := ""
	for _, m := range slices.Sorted(maps.Keys(spent)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%d", spent[m])
		if of != nil {
			text += fmt.Sprintf(" of %d", of[m])
		}
		text += " " + m
	}
	return text
}
