package bounds

import "math"

// A table in which every unit falls in one of so many cells, or divides itself among them, is known as a whole: with one probability of error all functions of the cell
// with values in [0,1] have means near their expectations, however many are looked at and whoever chooses them (docs/proofs/cells.md). Two deviations are proved of n
// units; which of them is used must be decided beforehand.

// CellsLevel is the level E of all sets of cells together: for each of the 2^cells sets its share is further above its expectation than Chernoff's, or Hoeffding's, inequality
// says with probability at most e^-E = beta/2^cells. What is below for one set is above for the rest.
func CellsLevel(cells int64, beta float64) float64 { return float64(cells)*math.Ln2 - math.Log(beta) }

// CellsBySets is the half-width by Hoeffding's inequality, united over the sets of cells: sqrt((m ln 2 + ln 1/beta)/(2n)) (Bretagnolle, Huber, Carol).
func CellsBySets(n, cells int64, beta float64) float64 {
	return math.Sqrt(CellsLevel(cells, beta) / (2 * float64(n)))
}

// CellsBySpread is the half-width by how far the cells' shares are expected to be off, and McDiarmid's inequality: sqrt((m-1)/n)/2 + sqrt(ln(1/beta)/(2n)). It is less
// where there are many cells.
func CellsBySpread(n, cells int64, beta float64) float64 {
	return math.Sqrt(float64(cells-1)/float64(n))/2 + math.Sqrt(-math.Log(beta)/(2*float64(n)))
}
