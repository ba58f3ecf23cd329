//go:build !race

package runtest

// UnderRace says whether the race detector slows everything down.
const UnderRace = false
