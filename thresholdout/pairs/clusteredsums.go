package pairs

import (
	"fmt"
	"math/big"
)

// Areas under the ROC curve of units that have several rows, such as those of a customer. Rows of one unit are not independent, so that pairs are of units: x of one half of
// them and y of the other. A unit has p, its weighted rows with the label, and q, those without, by the bins of a score; both together are at most 1. Then
//
//	B(x,y) = p_x q_y + q_x p_y,   A(x,y) = the same, of pairs of rows of which the one with the label has the higher score, ties 1/2,
//
// and the area is the ratio of their expectations' sums (docs/proofs/pairs.md, section 4). Both are bilinear in the units' vectors (p,q), so that all that is asked of
// pairs follows from each half's sums of these vectors and of their products.

// Curves says how a unit's vector is made: of the first score's bins, rising, the unit's rows with the label in this bin or in a higher one, then those without; and the
// same of the second score, if there is one. With a second score the question is about the area of the first minus that of the second: A is then
// (A_1 - A_2 + B)/2, whose ratio r stands for a difference of 2r-1.
type Curves struct{ First, Second int }

// Size is the length of a unit's vector.
func (c Curves) Size() int { return 2 * (c.First + c.Second) }

// parts is how many parts the pair of a row and another has, where a tie is a whole number of them.
func (c Curves) parts() int64 {
	if c.Second > 0 {
		return 4
	}
	return 2
}

// Vectors are the exact sums of some units' vectors, in steps of 2^-30 and 2^-60.
type Vectors struct {
	Units    int64
	Sums     []int64
	Products []*big.Int // of the elements i and j <= i: (0,0), (1,0), (1,1), (2,0), …
}

// Less are those of the units that are not among these.
func (v Vectors) Less(some Vectors) Vectors {
	rest := Vectors{Units: v.Units - some.Units}
	for i, x := range v.Sums {
		rest.Sums = append(rest.Sums, x-some.Sums[i])
	}
	for i, x := range v.Products {
		rest.Products = append(rest.Products, new(big.Int).Sub(x, some.Products[i]))
	}
	return rest
}

// Quadratic are three sums of two numbers a and b: of a^2, ab and b^2.
type Quadratic struct{ AA, AB, BB *big.Int }

// ClusteredSums are the exact sums of A and B over all pairs of a unit of the first half and one of the second, in parts of which Unit are 1.
type ClusteredSums struct {
	N1, N0        int64
	Unit          *big.Int
	A, B          *big.Int  // over all pairs
	First, Second Quadratic // over the first half's units, or the second's, of their own sums over the other half
	Squares       Quadratic // over all pairs
	OwnA, OwnB    *big.Int  // over the pairs of a unit with itself, where both halves are the same units
}

// Clustered are the sums of two halves of the units. Where both are the same units, each unit is a pair with itself, too.
func Clustered(c Curves, first, second Vectors) (s ClusteredSums, err error) {
	for _, v := range []Vectors{first, second} {
		if d := c.Size(); c.First < 1 || c.Second < 0 || d > maxVector || len(v.Sums) != d || len(v.Products) != d*(d+1)/2 || v.Units < 0 || v.Units > maxUnits {
			return s, fmt.Errorf("pairs: vectors of %d numbers and %d products of %d units for curves of %d and %d bins", len(v.Sums), len(v.Products), v.Units, c.First, c.Second)
		}
	}
	s.N1, s.N0 = first.Units, second.Units
	s.Unit = new(big.Int).Lsh(big.NewInt(c.parts()), 60)
	x, y := c.binned(first), c.binned(second)
	a1, b1, a0, b0 := c.area(x.sums), c.pairs(x.sums), c.area(y.sums), c.pairs(y.sums)
	s.A, s.B = dot(x.sums, a0), dot(x.sums, b0)
	s.First = Quadratic{x.form(a0, a0), x.form(a0, b0), x.form(b0, b0)}
	s.Second = Quadratic{y.form(a1, a1), y.form(a1, b1), y.form(b1, b1)}
	// The sum of (x F y)(x G y) over all pairs is the trace of F Y G X.
	xa, xb, ya, yb := c.each(x, c.area), c.each(x, c.pairs), c.each(y, c.area), c.each(y, c.pairs)
	s.Squares = Quadratic{trace(xa, ya), trace(xa, yb), trace(xb, yb)}
	s.OwnA, s.OwnB = new(big.Int), new(big.Int)
	for i := range xa {
		s.OwnA.Add(s.OwnA, xa[i][i])
		s.OwnB.Add(s.OwnB, xb[i][i])
	}
	return s, nil
}

// maxVector bounds the work, which grows with its square.
const maxVector = 1 << 10

// binned are sums of vectors by bins.
type binned struct {
	sums     []*big.Int
	products [][]*big.Int // symmetric
}

// binned makes of those that are in a bin or in higher ones those that are in it.
func (c Curves) binned(v Vectors) binned {
	d := c.Size()
	all := binned{sums: make([]*big.Int, d), products: make([][]*big.Int, d)}
	for i, at := 0, 0; i < d; i++ {
		all.sums[i] = big.NewInt(v.Sums[i])
		all.products[i] = make([]*big.Int, d)
		for j := range i + 1 {
			all.products[i][j] = new(big.Int).Set(v.Products[at])
			at++
		}
	}
	for i := range d {
		for j := range i {
			all.products[j][i] = new(big.Int).Set(all.products[i][j])
		}
	}
	c.down(all.sums)
	for _, row := range all.products {
		c.down(row)
	}
	for j := range d { // and the columns
		column := make([]*big.Int, d)
		for i := range d {
			column[i] = all.products[i][j]
		}
		c.down(column)
	}
	return all
}

// down takes from each bin of a vector what is in higher ones.
func (c Curves) down(v []*big.Int) {
	for _, part := range c.split(v) {
		for i := range len(part) - 1 {
			part[i].Sub(part[i], part[i+1])
		}
	}
}

// split are the parts of a vector: with the label and without, by the first score, then by the second.
func (c Curves) split(v []*big.Int) [][]*big.Int {
	a, b := c.First, c.Second
	parts := [][]*big.Int{v[:a], v[a : 2*a]}
	if b > 0 {
		parts = append(parts, v[2*a:2*a+b], v[2*a+b:])
	}
	return parts
}

// pairs is F y of B = x F y, in parts.
func (c Curves) pairs(y []*big.Int) []*big.Int {
	parts := c.split(y)
	total := func(bins []*big.Int) *big.Int {
		sum := new(big.Int)
		for _, x := range bins {
			sum.Add(sum, x)
		}
		return sum.Mul(sum, big.NewInt(c.parts()))
	}
	with, without, none := total(parts[0]), total(parts[1]), new(big.Int)
	out := make([]*big.Int, len(y))
	for i := range out {
		switch {
		case i < c.First:
			out[i] = without
		case i < 2*c.First:
			out[i] = with
		default:
			out[i] = none // rows are counted once
		}
	}
	return out
}

// area is F y of A = x F y, in parts.
func (c Curves) area(y []*big.Int) []*big.Int {
	parts := c.split(y)
	out := append(above(parts[1]), below(parts[0])...)
	if c.Second == 0 {
		return out
	}
	half := c.pairs(y) // 2 B of 4 A = 2 A_1 - 2 A_2 + 2 B
	for i := range out {
		out[i].Add(out[i], new(big.Int).Rsh(half[i], 1))
	}
	for _, x := range append(above(parts[3]), below(parts[2])...) {
		out = append(out, x.Neg(x))
	}
	return out
}

// above is, for each bin, twice what is in lower bins and what is in it.
func above(bins []*big.Int) []*big.Int {
	out, sum := make([]*big.Int, len(bins)), new(big.Int)
	for i, x := range bins {
		out[i] = new(big.Int).Add(sum, x)
		sum.Add(out[i], x)
	}
	return out
}

// below is, for each bin, twice what is in higher bins and what is in it.
func below(bins []*big.Int) []*big.Int {
	out, sum := make([]*big.Int, len(bins)), new(big.Int)
	for i := len(bins) - 1; i >= 0; i-- {
		out[i] = new(big.Int).Add(sum, bins[i])
		sum.Add(out[i], bins[i])
	}
	return out
}

// each is F X, by columns.
func (c Curves) each(x binned, f func([]*big.Int) []*big.Int) [][]*big.Int {
	columns := make([][]*big.Int, len(x.products))
	for i, row := range x.products { // the matrix is symmetric
		columns[i] = f(row)
	}
	return columns
}

// trace is that of the product of two matrices by columns.
func trace(a, b [][]*big.Int) *big.Int {
	sum, product := new(big.Int), new(big.Int)
	for i := range a {
		for j := range a {
			sum.Add(sum, product.Mul(a[i][j], b[j][i]))
		}
	}
	return sum
}

// form is a X b.
func (x binned) form(a, b []*big.Int) *big.Int {
	sum, product := new(big.Int), new(big.Int)
	for i, row := range x.products {
		sum.Add(sum, product.Mul(a[i], dot(row, b)))
	}
	return sum
}

func dot(a, b []*big.Int) *big.Int {
	sum, product := new(big.Int), new(big.Int)
	for i, x := range a {
		sum.Add(sum, product.Mul(x, b[i]))
	}
	return sum
}

// at is the quadratic form of a - g b, for g in steps of 2^-30, in steps of 2^-60.
func (q Quadratic) at(g int64) *big.Int {
	sum := new(big.Int).Lsh(q.AA, 60)
	guess := big.NewInt(g)
	mixed := new(big.Int).Mul(q.AB, guess)
	sum.Sub(sum, mixed.Lsh(mixed, 31))
	return sum.Add(sum, new(big.Int).Mul(q.BB, new(big.Int).Mul(guess, guess)))
}

// mixed is that of a - g b and b, in steps of 2^-30.
func (q Quadratic) mixed(g int64) *big.Int {
	sum := new(big.Int).Lsh(q.AB, 30)
	return sum.Sub(sum, new(big.Int).Mul(q.BB, big.NewInt(g)))
}
