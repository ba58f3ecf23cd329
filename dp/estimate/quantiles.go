package estimate

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
)

// Quantiles are quantiles of numbers in a declared range, any number of them for one price: by a tree of noisy counts, each node's range cut into 16, four
// levels deep, so that a leaf is 2^-16 of the range (the method of Google's library, after Hay et al. 2010 and Qardaji et al. 2013). Nodes that only noise
// can account for are left away, and what is left is followed down to the rank. Ranks next to 0 and 1 count as 0.005 and 0.995.
type Quantiles struct {
	Guard
	Low, High  float64
	Confidence float64 // of each interval of Intervals; 0 is DefaultConfidence
	// Population makes these intervals ones of the quantiles of those from whom the rows were drawn, independently. For the unit Row.
	Population bool
	// Stop, if it is not nil, is asked before the work for each rank; its error ends the release.
	Stop func() error
}

// The tree: with it a row counts in treeHeight cells.
const (
	treeHeight    = 4
	treeBranching = 16
	treeLeaves    = treeBranching * treeBranching * treeBranching * treeBranching
	// negligible is the share of a node's children that a child must have to be followed.
	negligible = 0.0075
	// ranks are clamped to it, at either end: beyond, the answer would be the noise of an empty node.
	extremeRank = 0.005
)

// Release answers for ranks in [0,1], in any order. Of a smaller rank it is never larger.
func (e Quantiles) Release(t Table, ranks []float64, s *noise.Stream) ([]float64, error) {
	tree, err := e.tree(t, ranks, s)
	if err != nil {
		return nil, err
	}
	out := make([]float64, len(ranks))
	for i, rank := range ranks {
		out[i] = e.Low + (e.High-e.Low)*tree.quantile(min(max(rank, extremeRank), 1-extremeRank))
	}
	return out, nil
}

// tree checks the settings and sorts the kept rows into leaves.
func (e Quantiles) tree(t Table, ranks []float64, s *noise.Stream) (quantileTree, error) {
	if !(e.Low < e.High) || math.IsInf(e.High-e.Low, 0) {
		return quantileTree{}, fmt.Errorf("%w: range [%v, %v]", ErrSettings, e.Low, e.High)
	}
	for _, rank := range ranks {
		if !(rank >= 0 && rank <= 1) {
			return quantileTree{}, fmt.Errorf("%w: rank %v is not in [0,1]", ErrSettings, rank)
		}
	}
	if err := e.Guard.check(); err != nil {
		return quantileTree{}, err
	}
	of := e.Protection.Cells(treeHeight)
	if err := e.Noise.check(of); err != nil {
		return quantileTree{}, err
	}
	values, err := e.kept(t, s)
	if err != nil {
		return quantileTree{}, err
	}
	tree := quantileTree{guard: e.Guard, of: of, stream: s, rows: len(values), before: make([]int64, treeLeaves+1), noisy: map[int]float64{}}
	for _, x := range values {
		tree.before[e.leaf(x)+1]++
	}
	for leaf := range treeLeaves {
		tree.before[leaf+1] += tree.before[leaf]
	}
	return tree, nil
}

// leaf of a number. NaN counts as Low.
func (e Quantiles) leaf(x float64) int {
	share := (x - e.Low) / (e.High - e.Low) * treeLeaves
	if !(share > 0) {
		return 0
	}
	return int(min(share, treeLeaves-1))
}

// quantileTree draws the noise of a node when it is first looked at, and never again.
type quantileTree struct {
	guard  Guard
	of     unit.Sensitivity
	stream *noise.Stream
	rows   int             // how many are kept
	before []int64         // of each leaf, how many rows are in those before it; of all at the end
	noisy  map[int]float64 // by level·treeLeaves + place
}

// count is what noise leaves of how many rows a node has, below 0 as well as above.
func (t *quantileTree) count(level, at int) float64 {
	key := level*treeLeaves + at
	if n, ok := t.noisy[key]; ok {
		return n
	}
	width := treeLeaves // of a node of this level, in leaves
	for range level + 1 {
		width /= treeBranching
	}
	n := float64(t.guard.noisy(t.before[(at+1)*width]-t.before[at*width], t.of, t.guard.Noise, t.stream))
	t.noisy[key] = n
	return n
}

// quantile is a place in [0,1].
func (t *quantileTree) quantile(rank float64) float64 {
	at, width := 0, 1. // of the node, in nodes of its level, and of the range
	for level := range treeHeight {
		var counts [treeBranching]float64
		total, followed := 0., 0.
		for i := range counts {
			counts[i] = max(0, t.count(level, at*treeBranching+i))
			total += counts[i]
		}
		for i, n := range counts {
			if n < total*negligible {
				counts[i] = 0
			}
			followed += counts[i]
		}
		if followed == 0 {
			break // only noise below: the rank is a place within this node
		}
		before, child := 0., 0
		for i, n := range counts {
			if n == 0 {
				continue
			}
			if child = i; (before+n)/followed >= rank-1e-6 {
				break
			}
			before += n
		}
		if before >= followed { // the rank is 1, but for rounding
			before -= counts[child]
		}
		rank = min(max((rank-before/followed)/(counts[child]/followed), 0), 1)
		at, width = at*treeBranching+child, width/treeBranching
	}
	return (float64(at) + rank) * width
}
