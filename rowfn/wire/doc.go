// Package wire is the form in which row functions travel to an engine that is not in this process: docs/format/rowfn.md describes it, and
// what each operation means, so that an engine can be written from that page.
//
// A batch has one spelling. [Marshal] writes it, and [Parse] reads that and nothing else, so that the digest of the bytes is the batch's
// own. Parse checks all that a row function promises: types, finite numbers, ranges. It needs no schema, and reads no column.
package wire

// Version is that of the form. A change that an engine could not read, or would read otherwise, is another version.
const Version = 1

// Limits of a batch, on both sides.
const (
	MaxBytes     = 64 << 20 // a batch of the largest screen has some 25 MB; numbers for a million rows take 11
	MaxNodes     = 1 << 20  // of all functions together; the largest screen has 260,000
	MaxDepth     = 1 << 13  // levels of a tree: expressions have at most 192, losses of many classes a few hundred more
	MaxFunctions = 1 << 16  // a quantile has up to 2^13, a screen 2^14, and several questions share a batch
	MaxProducts  = 3 * MaxFunctions
	MaxModels    = 1 << 12
)

// Error is a batch that cannot be written, or bytes that are no batch.
type Error struct {
	Pointer string // JSON pointer to what is wrong, such as "/nodes/3"; "" for the whole
	Detail  string
}

// Error is the place and what is wrong there.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return "wire: " + e.Detail
	}
	return "wire: " + e.Pointer + ": " + e.Detail
}
