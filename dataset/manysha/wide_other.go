//go:build !amd64

package manysha

// wide: there are no loops for this processor.
const wide = false

func turn(*[16][16]uint32, *[16]*byte) { panic(none) }

func rounds(*[8][16]uint32, *[16][16]uint32, uint16) { panic(none) }

const none = "manysha: no loops for this processor"
