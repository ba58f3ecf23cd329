package estimate

import (
	"fmt"
	"math"
	"sort"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// Histogram is how many numbers fall between each two of declared edges: all counts for the price of one, since a row is in one of them. Categories are
// whole numbers with edges between them. Edges are chosen by public facts alone, never by the rows.
type Histogram struct {
	Guard
	Edges      []float64 // growing, from 2 to MaxEdges; bin i has the numbers from Edges[i] to below Edges[i+1]
	Confidence float64   // of all intervals together; 0 is DefaultConfidence
}

// MaxEdges bounds the edges of a Histogram.
const MaxEdges = 1<<16 + 1

// Release is the number of rows in each bin, with noise; it can be below 0. Numbers below all edges count in the first bin, numbers from the last edge on in
// the last, and NaN in none. All intervals together hold what they are of with the confidence.
func (e Histogram) Release(t Table, s *noise.Stream) ([]Estimate, error) {
	beta, err := asked(e.Confidence)
	if err != nil {
		return nil, err
	}
	if len(e.Edges) < 2 || len(e.Edges) > MaxEdges {
		return nil, fmt.Errorf("%w: %d edges, want 2 to %d", ErrSettings, len(e.Edges), MaxEdges)
	}
	for i, edge := range e.Edges {
		if math.IsNaN(edge) || i > 0 && edge <= e.Edges[i-1] {
			return nil, fmt.Errorf("%w: edge %d is %v, and edges must grow", ErrSettings, i, edge)
		}
	}
	if err := e.Guard.check(); err != nil {
		return nil, err
	}
	of := e.Protection.Cells(1)
	if err := e.Noise.check(of); err != nil {
		return nil, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(e.Edges)-1)
	for _, x := range values {
		if x == x {
			counts[min(max(sort.Search(len(e.Edges), func(i int) bool { return e.Edges[i] > x })-1, 0), len(counts)-1)]++
		}
	}
	// The noise of each bin is independent of the others'.
	reach := e.Noise.reach(of, -math.Expm1(math.Log1p(-beta)/float64(len(counts))))
	all := make([]Estimate, len(counts))
	for i, n := range counts {
		count := float64(e.noisy(n, of, e.Noise, s))
		all[i] = Estimate{count, count - reach, count + reach}
	}
	return all, nil
}
