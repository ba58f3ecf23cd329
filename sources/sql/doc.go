// Package sql prints row functions as SQL, and reads what engines answer: all that is known here of an engine's language is in this package.
// The packages of the engines have the rest: connections, options, and what is made and dropped when.
//
// A statement must give the sums of package queries/kernel bit by bit, on every engine and in each of its versions. So a row function is first made total:
// a graph of operations that have one meaning everywhere, whatever an engine does with nulls, literals and rounding. Only that graph is printed.
//
//   - A number is a float64 that is never NULL: null is NaN, as in the kernels. IEEE arithmetic carries it through every operation, and every ordered
//     comparison with it is false. An engine's own NULL would cost a second column in ClickHouse, and its rules differ between engines and versions.
//     What may be infinite is made NaN by v + (v - v), where that can be seen.
//   - A condition is an integer, 0 or 1. A column of true and false is 0, 1 or, for null, 2.
//   - A text is compared by its bytes. A null text is the byte FF in ClickHouse, which no UTF-8 text is, and NULL in Trino, where no operation sees it but
//     a test whose NULL counts as false.
//   - Literals are bits: numbers and texts are written in hexadecimal digits, and nothing that a question says stands in a statement otherwise. The columns of a
//     part have names of their own, c0, c1 and so on.
//   - Nothing is skipped or cut short by what a row says: both sides of a choice are computed, and WHERE has ranges of unit numbers alone.
//   - Sums are of integers, so that their order and the number of machines do not matter.
//
// What several operations need is computed once: it has a name in a subselect, and subselects lie in layers.
package sql
