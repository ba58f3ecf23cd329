package machine

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// CollectAfter has the collector begin when so many bytes were allocated, or as many as are in use where that is more.
func CollectAfter(bytes int64) {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	now := debug.SetGCPercent(-1)
	var tune func(*[1]int64)
	tune = func(witness *[1]int64) {
		metrics.Read(live)
		next := garbagePercent(bytes, int64(live[0].Value.Uint64()))
		if next != now {
			now = next
			debug.SetGCPercent(next)
		}
		runtime.SetFinalizer(witness, tune) // called after the next collection, which finds it in nobody's hands again
	}
	tune(new([1]int64))
}

// garbagePercent is the target of the collector, in percent of the live bytes, by which it begins after so many more.
func garbagePercent(bytes, live int64) int {
	const usual, most, step = 100, 1600, 25 // each change stops the process for a moment
	return int(min(max(usual, usual*bytes/max(live, 1)), most)) / step * step
}
