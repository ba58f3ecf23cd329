package holdout

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/queries"
)

// TestMemoryIsWithinItsEstimate: what parsed and compiled queries hold is at most what a request is admitted with, for queries that take
// most for their length. It would notice a tree that keeps the text of every part of itself.
func TestMemoryIsWithinItsEstimate(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Mechanism: "gaussian", Holdout: 0.5, Questions: 1000}, visits(t, 400, 1))
	h, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	live := func() int64 {
		runtime.GC()
		runtime.GC() // what a finalizer or a pool kept
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	repeat := func(n int, separator string, one func(j int) string) string {
		parts := make([]string, n)
		for j := range parts {
			parts[j] = one(j)
		}
		return strings.Join(parts, separator)
	}
	for name, body := range map[string]func(i int) string{
		"small": func(i int) string { return fmt.Sprintf(`{"type":"fraction","of":"x>0.%d"}`, i+1) },
		"a flat chain": func(i int) string {
			return fmt.Sprintf(`{"type":"fraction","of":"%s||x>%d"}`, repeat(300, "||", func(int) string { return "late" }), i)
		},
		"comparisons": func(i int) string {
			return fmt.Sprintf(`{"type":"fraction","of":"%s||x>%d"}`, repeat(200, "||", func(j int) string { return fmt.Sprint("x>", j) }), i)
		},
		"a deep chain": func(i int) string {
			return fmt.Sprintf(`{"type":"mean","of":"%s+%d","range":[0,1]}`, repeat(180, "+", func(j int) string { return "x" }), i)
		},
		"a list": func(i int) string {
			return fmt.Sprintf(`{"type":"fraction","of":"clinic in [%s]"}`, repeat(200, ",", func(j int) string { return fmt.Sprintf("'%d %d'", i, j) }))
		},
		"bins": func(i int) string {
			return fmt.Sprintf(`{"type":"histogram","of":"x+%d.0","edges":[%s]}`, i, repeat(500, ",", func(j int) string { return fmt.Sprint(j) }))
		},
	} {
		const n = 100
		bodies, size := make([]json.RawMessage, n), 0
		for i := range bodies {
			bodies[i] = json.RawMessage(body(i))
			size += len(bodies[i])
		}
		before := live()
		parsed := make([]*queries.Query, n)
		for i := range bodies {
			if parsed[i], err = s.parse(t.Context(), bodies[i], nil, nil); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		after := live()
		if held, most := after-before, bodyWork(n, size).Bytes-n*queryMemory/2; held > most {
			t.Errorf("%s: parsed queries hold %d bytes, %.0f of a byte, the estimate is %d", name, held, float64(held)/float64(size), most)
		}
		before, estimate := after, int64(0)
		plans := make([]*queries.Plan, n)
		for i, q := range parsed {
			asked, err := h.question(t.Context(), q)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			plans[i] = asked.Plan
			estimate += heldWork(asked.Plan).Bytes + queryMemory/2
		}
		if held := live() - before; held > estimate {
			t.Errorf("%s: compiled queries hold %d bytes, the estimate is %d", name, held, estimate)
		}
		runtime.KeepAlive(plans)
		runtime.KeepAlive(parsed)
		runtime.KeepAlive(bodies)
	}
}
