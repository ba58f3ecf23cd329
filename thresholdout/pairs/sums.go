package pairs

import (
	"fmt"
	"math/big"
)

// Sums are the exact sums of a pair kernel over all pairs of a unit of class 1 and a unit of class 0. The kernel is a whole number of parts: k is
// its value times Unit.
type Sums struct {
	N1, N0  int64
	Unit    int64    // how many parts 1 has: 2 for an AUC and Kendall's tau, 4 for a difference of AUCs
	Sum     *big.Int // of k over all pairs
	First   *big.Int // over class 1, of the square of the unit's own sum of k
	Second  *big.Int // over class 0
	Squares *big.Int // of k^2 over all pairs
}

// maxBins bounds a table: its square is what a scan keeps.
const maxBins = 1 << 12

// AUC are the sums of the area under the ROC curve of a binned score: how many positives and negatives there are in each bin, ascending. Pairs in one
// bin count a half. Class 1 are the positives; see Swapped.
func AUC(positives, negatives []int64) (Sums, error) {
	first, second := make([][]int64, len(positives)), make([][]int64, len(negatives))
	for i, c := range positives {
		first[i] = []int64{c}
	}
	for i, c := range negatives {
		second[i] = []int64{c}
	}
	return sums(first, second, 2, func(a, b int64) int64 { return a + 1 })
}

// AUCDifference are the sums of (k_1-k_2+1)/2, k_1 and k_2 the kernels of the AUCs of two binned scores: its mean h stands for a difference of
// 2h-1. Tables are joint counts of the positives and of the negatives, rows by the first score's bins, columns by the second's.
func AUCDifference(positives, negatives [][]int64) (Sums, error) {
	return sums(positives, negatives, 4, func(a, b int64) int64 { return a - b + 2 })
}

// Kendall are the sums of (sign sign+1)/2 over the pairs of two halves of the units, cut by public facts: its mean h stands for a tau_a of 2h-1.
// Tables are joint counts of the halves, rows by the first variable's bins, columns by the second's.
func Kendall(first, second [][]int64) (Sums, error) {
	return sums(first, second, 2, func(a, b int64) int64 { return a*b + 1 })
}

// sums adds up a kernel that depends on the two signs of the differences of bins, by cumulated counts: work grows with the number of bins' pairs.
func sums(first, second [][]int64, unit int64, kernel func(a, b int64) int64) (s Sums, err error) {
	if s.N1, err = counted(first, second); err != nil {
		return s, err
	}
	if s.N0, err = counted(second, first); err != nil {
		return s, err
	}
	s.Unit, s.Sum, s.First, s.Second, s.Squares = unit, new(big.Int), new(big.Int), new(big.Int), new(big.Int)
	for side, tables := range [][2][][]int64{{first, second}, {second, first}} {
		below := cumulated(tables[1])
		for i, row := range tables[0] {
			for j, count := range row {
				if count == 0 {
					continue
				}
				sum, square := int64(0), new(big.Int)
				for a := int64(-1); a <= 1; a++ {
					for b := int64(-1); b <= 1; b++ {
						pairs := below.at(i, a, j, b)
						k := kernel(a, b)
						if side == 1 { // the signs are those of class 1 minus class 0
							k = kernel(-a, -b)
						}
						sum += k * pairs
						square.Add(square, big.NewInt(k*k*pairs))
					}
				}
				n, own := big.NewInt(count), big.NewInt(sum)
				into := s.First
				if side == 1 {
					into = s.Second
				} else {
					s.Sum.Add(s.Sum, new(big.Int).Mul(n, own))
					s.Squares.Add(s.Squares, new(big.Int).Mul(n, square))
				}
				into.Add(into, own.Mul(own, own).Mul(own, n))
			}
		}
	}
	return s, nil
}

// counted is how many units a table has; an error says that it is no table of the other's shape.
func counted(table, other [][]int64) (n int64, err error) {
	if len(table) < 1 || len(table) > maxBins || len(table) != len(other) {
		return 0, fmt.Errorf("pairs: tables with %d and %d rows; as many are needed, between 1 and %d", len(table), len(other), maxBins)
	}
	for i, row := range table {
		if len(row) < 1 || len(row) > maxBins || len(row) != len(table[0]) || len(row) != len(other[0]) {
			return 0, fmt.Errorf("pairs: row %d of a table has %d columns", i, len(row))
		}
		for _, c := range row {
			if c < 0 || c > maxUnits {
				return 0, fmt.Errorf("pairs: a count of %d", c)
			}
			if n += c; n > maxUnits {
				return 0, fmt.Errorf("pairs: more than %d units", int64(maxUnits))
			}
		}
	}
	return n, nil
}

// maxUnits keeps a unit's own sum, and its squares, within 62 bits.
const maxUnits = 1 << 32

// cumulative has the counts of a table's corners: in rows below i and columns below j.
type cumulative [][]int64

func cumulated(table [][]int64) cumulative {
	c := make(cumulative, len(table)+1)
	c[0] = make([]int64, len(table[0])+1)
	for i, row := range table {
		c[i+1] = make([]int64, len(row)+1)
		for j, x := range row {
			c[i+1][j+1] = c[i][j+1] + c[i+1][j] - c[i][j] + x
		}
	}
	return c
}

// at is how many units have the sign a of i minus their row, and b of j minus their column.
func (c cumulative) at(i int, a int64, j int, b int64) int64 {
	span := func(at int, sign int64, size int) (from, to int) {
		switch sign {
		case 1:
			return 0, at
		case 0:
			return at, at + 1
		}
		return at + 1, size
	}
	r0, r1 := span(i, a, len(c)-1)
	c0, c1 := span(j, b, len(c[0])-1)
	return c[r1][c1] - c[r0][c1] - c[r1][c0] + c[r0][c0]
}

// Swapped are the sums with class 0 as class 1, for a class 1 that is planned to be the smaller one. The kernel is the same.
func (s Sums) Swapped() Sums {
	s.N1, s.N0, s.First, s.Second = s.N0, s.N1, s.Second, s.First
	return s
}

// pairsOf is n1 n0.
func (s Sums) pairsOf() *big.Int { return new(big.Int).Mul(big.NewInt(s.N1), big.NewInt(s.N0)) }

// variances are V1, V0 and V as numerators over (Unit n1 n0)^2; all are 0 for an empty class.
func (s Sums) variances() (v1, v0, v *big.Int) {
	square := new(big.Int).Mul(s.Sum, s.Sum)
	of := func(x, times *big.Int) *big.Int { y := new(big.Int).Mul(x, times); return y.Sub(y, square) }
	return of(s.First, big.NewInt(s.N1)), of(s.Second, big.NewInt(s.N0)), of(s.Squares, s.pairsOf())
}

// Moments are the mean over all pairs, the variances of the classes' means and that over all pairs, for plans and tests; decisions are made in
// integers. They are 0 for an empty class.
func (s Sums) Moments() (h, v1, v0, v float64) {
	if s.N1 == 0 || s.N0 == 0 {
		return 0, 0, 0, 0
	}
	whole := new(big.Int).Mul(s.pairsOf(), big.NewInt(s.Unit))
	h, _ = new(big.Rat).SetFrac(s.Sum, whole).Float64()
	square := new(big.Int).Mul(whole, whole)
	a, b, c := s.variances()
	of := func(x *big.Int) float64 { y, _ := new(big.Rat).SetFrac(x, square).Float64(); return y }
	return h, of(a), of(b), of(c)
}
