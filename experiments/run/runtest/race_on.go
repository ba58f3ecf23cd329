//go:build race

package runtest

// UnderRace says that the race detector slows everything down: what it looks for needs no second run and no large samples.
const UnderRace = true
