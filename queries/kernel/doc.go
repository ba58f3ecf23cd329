// Package kernel evaluates row expressions over columns, a block of rows at a time: by package vector's loops as far as they go, else
// in plain Go.
//
// [Compile] turns a batch of row functions into one linear register program: equal subexpressions of the whole batch are
// computed once a block, constants are folded, and registers are reused. A step of the program is one free function over
// slices: branch-free in the values and without allocation. A block is small enough that a few registers stay in the
// first-level cache.
//
// Number registers hold float64s that are finite or NaN, which is null. Condition registers hold a byte a row, 0 or 1.
// Texts are never looked at in a row: they are compared by the codes of their dictionaries, with tables made by Compile.
//
// Results are those of package rowfn's definition in plain float64 arithmetic and of package math, bit for bit but for the
// sign of zero, which nothing in the language can see. Sums are of integers, so they do not depend on how the rows are
// cut into blocks.
package kernel

import "github.com/holdoutd/holdoutd/rowfn"

// MaxBlock is the number of rows of a block. At 1024 a Number register takes 8 KiB, a quarter of a small first-level
// cache, and the cost of choosing a step is spread over enough rows to vanish. Counting conditions in the bytes of a
// word needs that MaxBlock/8 <= 255.
const MaxBlock = rowfn.MaxBlock
