package moments

import "math/bits"

// Cells are what a failure says of the mean. Which there are follows from public facts alone.

// cell is which of so many equal cells of [0,1] the mean is in, the last one closed.
func (s Sums) cell(cells int64) int64 {
	all := uint64(s.Units) * grid
	if uint64(s.Sum) >= all {
		return cells - 1
	}
	hi, lo := bits.Mul64(uint64(s.Sum), uint64(cells))
	index, _ := bits.Div64(hi, lo, all)
	return int64(index)
}

// Weights of the cells that are counted outward: a holdout that agrees with the guess nearly is likelier than one that does not at all.
const (
	outwardWeight = 0.9  // of the law that falls outward; the rest is spread over all cells alike, so that no failure costs more than ln(10 c T)
	withinWeight  = 0.25 // of the law: of the cell within the widest margins, where a mean may fail there
)

// cellWidth is that of a cell that is counted outward, in steps.
func (c Check) cellWidth() int64 { return grid / c.Cells }

// margins are the widest of the check: between which steps a mean is near enough to the guess.
func (c Check) margins() (low, high int64) {
	r := c.Ranks[len(c.Ranks)-1]
	middle := c.Guess + r.Shift
	return min(max(middle-r.Away, 0), grid), max(min(middle+r.Away, grid), 0)
}

// within says that a mean may fail within the widest margins: for its variance, or for too few units.
func (c Check) within() bool {
	return c.Partial || c.Ranks[len(c.Ranks)-1].Variance < squares/4
}

// outside is how many cells there are below and above the widest margins.
func (c Check) outside() (below, above int64) {
	low, high := c.margins()
	width := c.cellWidth()
	return (low + width - 1) / width, (grid - high + width - 1) / width
}

// weight is that of a cell among those that are counted outward: at least 0, and at most 1 over all that there may be.
func (c Check) weight(cell int64) float64 {
	below, above := c.outside()
	all, law := below+above, 1.0
	if c.within() {
		all++
		law -= withinWeight
	}
	alike := (1 - outwardWeight) / float64(max(all, 1))
	if cell == 0 {
		return outwardWeight*withinWeight + alike
	}
	if below > 0 && above > 0 {
		law /= 2
	}
	i := float64(max(cell, -cell))
	return outwardWeight*law/(i*(i+1)) + alike
}

// cell is the one that the sums' mean is in, of at least one unit. Cells that are counted outward are closed on the side that is away from the guess.
func (c Check) cell(s Sums) int64 {
	if !c.Outward {
		return s.cell(c.Cells)
	}
	low, high := c.margins()
	step := s.Units * c.cellWidth() // at most 2^62, as each product here
	switch {
	case s.Sum > s.Units*high:
		return (s.Sum-s.Units*high-1)/step + 1
	case s.Sum < s.Units*low:
		return -((s.Units*low-s.Sum-1)/step + 1)
	}
	return 0
}

// HalfCell is half the width of a failure's cell.
func (c Check) HalfCell(o Outcome) float64 {
	if !c.Outward {
		return 0.5 / float64(c.Cells)
	}
	from, to := c.cellSteps(o.Cell)
	return float64(to-from) / 2 / grid
}

// cellEnds are those of a cell, in [0,1].
func (c Check) cellEnds(cell int64) (from, to float64) {
	if !c.Outward {
		return float64(cell) / float64(c.Cells), float64(cell+1) / float64(c.Cells)
	}
	low, high := c.cellSteps(cell)
	return float64(low) / grid, float64(high) / grid
}

// cellSteps are those of a cell that is counted outward, in steps.
func (c Check) cellSteps(cell int64) (low, high int64) {
	low, high = c.margins()
	width := c.cellWidth()
	switch {
	case cell > 0:
		low, high = min(high+(cell-1)*width, grid), min(high+cell*width, grid)
	case cell < 0:
		low, high = max(low+cell*width, 0), max(low+(cell+1)*width, 0)
	}
	return low, high
}
