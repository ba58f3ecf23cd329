//go:build !amd64

package vector

// All are the instruction sets that this processor has: none that there are loops for.
func All() []*Loops { return nil }
