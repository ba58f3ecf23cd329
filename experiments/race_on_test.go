//go:build race

package experiments

// underRace says that the race detector slows everything down: what it looks for needs no second run and no large samples.
const underRace = true
