// Package seeds derives the seeds of pieces of work from one.
package seeds

// Of derives a seed for one of many pieces of work: other parts, or the same in another order, give a seed that looks independent
// (the finaliser of SplitMix64 after each part).
func Of(seed uint64, parts ...uint64) uint64 {
	for _, part := range parts {
		seed = (seed ^ part*0xD1B54A32D192ED03) + 0x9E3779B97F4A7C15
		seed = (seed ^ seed>>30) * 0xBF58476D1CE4E5B9
		seed = (seed ^ seed>>27) * 0x94D049BB133111EB
		seed ^= seed >> 31
	}
	return seed
}
