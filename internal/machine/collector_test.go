package machine

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestGarbagePercent: with little in use the collector begins when as much was allocated as it is told, with much by the runtime's rule.
func TestGarbagePercent(t *testing.T) {
	for _, c := range []struct {
		live int64
		want int
	}{{0, 1600}, {1 << 20, 1600}, {16 << 20, 400}, {20 << 20, 300}, {63 << 20, 100}, {64 << 20, 100}, {1 << 40, 100}} {
		if got := garbagePercent(64<<20, c.live); got != c.want {
			t.Errorf("%d bytes in use: %d percent, want %d", c.live, got, c.want)
		}
	}
}

var spill []byte

// TestCollectAfter counts collections, in a process of its own, whose heap is small.
func TestCollectAfter(t *testing.T) {
	if os.Getenv("HOLDOUTD_GARBAGE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestCollectAfter$")
		cmd.Env = append(os.Environ(), "HOLDOUTD_GARBAGE=1", "GOGC=100")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	count := func() uint32 {
		var before, after runtime.MemStats
		runtime.GC()
		time.Sleep(100 * time.Millisecond) // the target follows a collection
		runtime.ReadMemStats(&before)
		for range 400 {
			spill = make([]byte, 1<<20)
		}
		runtime.ReadMemStats(&after)
		return after.NumGC - before.NumGC
	}
	usual := count()
	CollectAfter(64 << 20)
	if fewer := count(); fewer > 400/64+2 || usual < 20 {
		t.Errorf("400 MB are allocated with %d collections, and %d by the runtime's own rule", fewer, usual)
	}
}
