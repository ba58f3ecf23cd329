package rowfn

import (
	"math/big"
	"math/bits"
)

// Batch is what one pass over the rows sums: row functions, and products of two of their values at the same unit.
type Batch struct {
	Functions []Function
	Products  []Product
}

// Join appends another batch, whose products are of its own functions: one pass for both.
func (b *Batch) Join(other Batch) {
	first := len(b.Functions)
	b.Functions = append(b.Functions, other.Functions...)
	for _, p := range other.Products {
		b.Products = append(b.Products, Product{A: first + p.A, B: first + p.B})
	}
}

// Product asks for the sum, over the units, of the product of two functions' values: the functions at the places A and B of a batch,
// which are the same for a square. It is of the values that are summed: for units of several rows, of the units' values, and not of rows'.
//
// What an estimating equation E(a - r·b) = 0 of two functions a and b needs for an interval of its root r is the sums of a and b and
// the products aa, ab and bb.
type Product struct{ A, B int }

// Sums are the exact sums of a batch over the same units.
type Sums struct {
	Values   []int64 // of each function, in steps of 1/One: at most One for each unit
	Products []Wide  // of each product, in steps of 1/One²: at most One² for each unit
}

// Cut takes the sums of a batch from the front of those of the batches that it was joined with.
func (s *Sums) Cut(b Batch) Sums {
	own := Sums{Values: s.Values[:len(b.Functions)], Products: s.Products[:len(b.Products)]}
	s.Values, s.Products = s.Values[len(b.Functions):], s.Products[len(b.Products):]
	return own
}

// Wide is a sum of products: an unsigned integer of 128 bits, of which 2^31 units of at most 2^60 need 91.
type Wide struct{ Hi, Lo uint64 }

// Plus is w + x. It does not overflow for sums of fewer than 2^68 units.
func (w Wide) Plus(x Wide) Wide {
	lo, carry := bits.Add64(w.Lo, x.Lo, 0)
	hi, _ := bits.Add64(w.Hi, x.Hi, carry)
	return Wide{hi, lo}
}

// Times is the product of two sums, neither negative.
func Times(a, b int64) Wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return Wide{hi, lo}
}

// Big is w as an integer of any size.
func (w Wide) Big() *big.Int {
	b := new(big.Int).SetUint64(w.Hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(w.Lo))
}
