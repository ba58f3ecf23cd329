package rowfn

import (
	"fmt"
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

// Once is a batch without repetitions, and where each of its functions and products is in that. A search lists a function for each step
// in which it can be asked, with the same nodes. The error says of which product the functions are not there.
func (b Batch) Once() (distinct Batch, functions, products []int, err error) {
	functions, distinct.Functions = places(b.Functions)
	pairs := make([]Product, len(b.Products))
	for i, p := range b.Products {
		if p.A < 0 || p.B < 0 || p.A >= len(functions) || p.B >= len(functions) {
			return distinct, nil, nil, fmt.Errorf("rowfn: product %d is of the functions %d and %d of %d", i, p.A, p.B, len(functions))
		}
		x, y := functions[p.A], functions[p.B]
		pairs[i] = Product{A: min(x, y), B: max(x, y)}
	}
	products, distinct.Products = places(pairs)
	return distinct, functions, products, nil
}

// places are the elements without repetitions, and where each of them is among those.
func places[T comparable](all []T) (at []int, distinct []T) {
	seen := make(map[T]int, len(all))
	at = make([]int, len(all))
	for i, x := range all {
		known, ok := seen[x]
		if !ok {
			known = len(distinct)
			seen[x], distinct = known, append(distinct, x)
		}
		at[i] = known
	}
	return at, distinct
}
