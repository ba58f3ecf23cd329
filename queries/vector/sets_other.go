//go:build !amd64

package vector

// All are the instruction sets that this processor has: none that there are loops for.
func All() []*Loops { return nil }

// SortRows wants an instruction set.
func SortRows(*[4]uint64, *uint32, int, *[4]uint64, int) { panic(none) }

// Eighths wants an instruction set.
func Eighths(*[4]uint64, int, *[4]uint64) { panic(none) }

// Turn wants an instruction set.
func Turn(*uint8, *[4]uint64) { panic(none) }

// AddEnds wants an instruction set.
func AddEnds(*float64, *uint8, *float64, int, int) { panic(none) }

const none = "vector: no instruction set that there are loops for"
