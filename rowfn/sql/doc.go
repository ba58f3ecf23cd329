// Package sql prints row functions as SQL that an engine sums exactly: docs/format/rowfn.md says what a batch means, and an engine that
// keeps the rules below returns the very integers of package queries/engine.
//
// A dialect is a table of templates. The rules of all of them:
//
//   - The tree is total before it is printed. No rule of the engine about null, NaN or literals is used: columns have no NULL, a null number is
//     NaN in them, a null text has a column of its own beside it, and what could be infinite becomes NaN before a rule looks at it.
//   - Conditions are the integers 0 and 1, so that both sides of every one are computed.
//   - Numbers and texts of the user are hexadecimal digits, names are the loader's own. Nothing else of a query gets into a statement.
//   - No predicate of the user stands in WHERE: the only one there is the range of units.
//   - Sums are of integers. A sum of products, which needs 91 bits, is two sums: of the products' low 32 bits, and of the rest.
//   - Every statement counts units and rows, so that an answer of a part of them is noticed.
//
// What cannot be computed bit by bit is refused by a [*Refusal], which names the functions.
package sql

// Limits of a statement.
const (
	// MaxAggregates bounds the sums of a statement: engines hold each one's column for a block, and 1,000 need gigabytes.
	MaxAggregates = 100
	// MaxText bounds its bytes: ClickHouse reads 262,144 unless its profile says more, Trino 1,000,000.
	MaxText = 200 << 10
	// MaxLayers bounds its nested subqueries: ClickHouse allows 100.
	MaxLayers = 60
	// MaxLookup bounds the texts of one lookup, which are compared one by one.
	MaxLookup = 256
	// MaxTime bounds the absolute value of times in microseconds, as a power of two: some 73,000 years before and after 1970. Package
	// queries/engine/remote loads none beyond it.
	MaxTime = 1 << 61
)
