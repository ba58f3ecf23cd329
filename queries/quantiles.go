package queries

import (
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/rowfn"
)

// trainingQuantiles are rising numbers that cut the training part's values into about equally full bins: one less than bins, or
// fewer where values are equal, at least one. nil with a violation where there is no training part.
//
// The numbers are found by counting: between powers of two of either sign first, then twice between neighbours.
func (c *compiler) trainingQuantiles(name string, x, where *rowfn.Node, bins int) []float64 {
	var probes []float64
	for k := -20; k <= 40; k++ {
		probes = append(probes, math.Ldexp(1, k), -math.Ldexp(1, k))
	}
	known := []point{}
	for range 3 {
		slices.Sort(probes)
		functions := []RowFunction{{Value: orTrue(where), Lo: 0, Hi: 1}}
		for _, at := range probes {
			below := rowfn.Not(rowfn.CompareTo(rowfn.OpGreater, x, at))
			if where != nil {
				below = rowfn.And(below, where)
			}
			functions = append(functions, RowFunction{Value: below, Lo: 0, Hi: 1})
		}
		means := c.trainingMeans(name, "declare them", functions...)
		if means == nil {
			return nil
		}
		if means[0] == 0 {
			c.add(c.pointer+"/where", "holds nowhere in the training part, so that it has no "+name+"; declare them")
			return nil
		}
		for i, at := range probes {
			known = append(known, point{at, means[i+1] / means[0]})
		}
		slices.SortFunc(known, func(a, b point) int {
			if a.at < b.at {
				return -1
			}
			return 1
		})
		probes = between(known, bins)
		if len(probes) == 0 {
			break
		}
	}
	var edges []float64
	for i := 1; i < bins; i++ {
		e := nearestTo(known, float64(i)/float64(bins))
		if len(edges) == 0 || e > edges[len(edges)-1] {
			edges = append(edges, e)
		}
	}
	return edges
}

func orTrue(where *rowfn.Node) *rowfn.Node {
	if where == nil {
		return rowfn.True()
	}
	return where
}

// point is a number and the share of the training part that is not above it.
type point struct{ at, share float64 }

// finer is how many parts the neighbours of a quantile are cut into.
const finer = 16

// between are new numbers in the gaps of the known ones that hold quantiles.
func between(known []point, bins int) []float64 {
	var probes []float64
	last := -1
	for i := 1; i < bins; i++ {
		q := float64(i) / float64(bins)
		at := slices.IndexFunc(known, func(p point) bool { return p.share >= q })
		if at <= 0 || at == last {
			continue
		}
		last = at
		low, high := known[at-1].at, known[at].at
		for j := 1; j < finer; j++ {
			if x := low + (high-low)*float64(j)/finer; x > low && x < high && (len(probes) == 0 || x > probes[len(probes)-1]) {
				probes = append(probes, x)
			}
		}
	}
	return probes
}

// nearestTo is the known number whose share is nearest to q, the lowest of several.
func nearestTo(known []point, q float64) float64 {
	best := known[0]
	for _, p := range known[1:] {
		if math.Abs(p.share-q) < math.Abs(best.share-q) {
			best = p
		}
	}
	return best.at
}
