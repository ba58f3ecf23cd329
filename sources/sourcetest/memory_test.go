package sourcetest

import (
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/sources"
)

// inMemory are the options of a source in memory.
func inMemory(m *Memory) Options {
	return Options{
		Open:    func(testing.TB) sources.Source { return m },
		Load:    func(_ testing.TB, name string, rows Rows) string { m.Put(name, rows); return name },
		Replace: func(_ testing.TB, table string, rows Rows) { m.Put(table, rows) },
		Faults: map[string]func(testing.TB, sources.PartInfo){
			"half of the rows are missing": func(_ testing.TB, p sources.PartInfo) {
				m.Spoil(p.Name, func(rows Rows) Rows {
					half := make([]int, rows.Len()/2)
					for i := range half {
						half[i] = i
					}
					return rows.Take(half)
				})
			},
			"a cell is another": func(_ testing.TB, p sources.PartInfo) {
				m.Spoil(p.Name, func(rows Rows) Rows {
					changed := slices.Clone(rows)
					all := make([]int, rows.Len())
					for i := range all {
						all[i] = i
					}
					changed[3] = rows[3:4].Take(all)[0]
					oneCell(&changed[3], 5)
					return changed
				})
			},
		},
	}
}

// TestMemory holds the suite and the source in memory against each other.
func TestMemory(t *testing.T) {
	t.Run("keys", func(t *testing.T) { Run(t, inMemory(&Memory{})) })
	t.Run("places", func(t *testing.T) {
		o := inMemory(&Memory{Places: true, Block: 7})
		o.Programs, o.Rows = 80, 200
		Run(t, o)
	})
}
