package unit_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/internal/stattest"
)

// contribution is what the rows of one unit are: numbers, each in some cells.
func contribution(t *rapid.T, most int, low, high int64, label string) (rows []int64, cells []int) {
	n := rapid.IntRange(0, most).Draw(t, label)
	for range n {
		rows = append(rows, rapid.Int64Range(low, high).Draw(t, label))
		cells = append(cells, rapid.IntRange(0, 3).Draw(t, label))
	}
	return rows, cells
}

func sum(x []int64) (total int64) {
	for _, v := range x {
		total += v
	}
	return total
}

// TestSensitivity: whatever a unit's rows are, its sum, its count and its cells move by no more than is said; a sensitivity that forgets that a replaced
// user may have had other numbers of rows is noticed by TestSensitivityIsReached.
func TestSensitivity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 4).Draw(t, "most")
		low := rapid.Int64Range(-9, 9).Draw(t, "low")
		high := rapid.Int64Range(low, 12).Draw(t, "high")
		p := unit.Protection{Unit: unit.User{Most: most}, Neighbours: unit.Neighbours(rapid.IntRange(0, 1).Draw(t, "neighbours"))}
		a, cellsA := contribution(t, most, low, high, "a")
		b, cellsB := contribution(t, most, low, high, "b")
		if p.Neighbours == unit.AddedOrRemoved {
			b, cellsB = nil, nil
		}
		if moved := sum(a) - sum(b); uint64(max(moved, -moved)) > p.Sum(low, high).L1 {
			t.Fatalf("sums %d and %d are farther apart than %d", sum(a), sum(b), p.Sum(low, high).L1)
		}
		if moved := len(a) - len(b); uint64(max(moved, -moved)) > p.Count().L1 {
			t.Fatalf("counts %d and %d are farther apart than %d", len(a), len(b), p.Count().L1)
		}
		// Each row counts in two cells: its own, and one that it shares with all of the same half.
		counts := map[string]int{}
		for sign, cells := range map[int][]int{1: cellsA, -1: cellsB} {
			for _, c := range cells {
				counts[fmt.Sprint("cell", c)] += sign
				counts[fmt.Sprint("half", c/2)] += sign
			}
		}
		l1, squares := 0, 0.
		for _, c := range counts {
			l1 += max(c, -c)
			squares += float64(c * c)
		}
		if s := p.Cells(2); uint64(l1) > s.L1 || math.Sqrt(squares) > s.L2 {
			t.Fatalf("cells moved by %d and %v, promised %+v", l1, math.Sqrt(squares), s)
		}
	})
}

// TestSensitivityIsReached: none is larger than it needs to be.
func TestSensitivityIsReached(t *testing.T) {
	row, added := unit.Protection{Unit: unit.Row{}}, unit.Protection{Unit: unit.Row{}, Neighbours: unit.AddedOrRemoved}
	user, usersAdded := unit.Protection{Unit: unit.User{Most: 3}}, unit.Protection{Unit: unit.UserWindow{Most: 3}, Neighbours: unit.AddedOrRemoved}
	for name, c := range map[string][2]uint64{
		"a row replaced: from end to end":           {row.Sum(-2, 5).L1, 7},
		"a row replaced, both ends positive":        {row.Sum(3, 5).L1, 2},
		"a row added: the far end":                  {added.Sum(-2, 5).L1, 5},
		"a row added, the low end is farther":       {added.Sum(-9, 5).L1, 9},
		"a user replaced: 3 at 5 by 3 at -2":        {user.Sum(-2, 5).L1, 21},
		"a user replaced: 3 at 5 by none":           {user.Sum(3, 5).L1, 15},
		"a user replaced: none by 3 at -9":          {user.Sum(-9, -5).L1, 27},
		"a user added: 3 at 5":                      {usersAdded.Sum(-2, 5).L1, 15},
		"rows of a property":                        {row.Count().L1, 1},
		"rows of a user":                            {user.Count().L1, 3},
		"cells, a row replaced: one less, one more": {row.Cells(1).L1, 2},
		"cells, a user added, four levels":          {usersAdded.Cells(4).L1, 12},
	} {
		if c[0] != c[1] {
			t.Errorf("%s: %d, want %d", name, c[0], c[1])
		}
	}
	if got, want := user.Cells(4).L2, 3*math.Sqrt(8); math.Abs(got-want) > 1e-12 {
		t.Errorf("cells of a replaced user: %v, want %v", got, want)
	}
	if !row.PublicRows() || added.PublicRows() || user.PublicRows() {
		t.Error("only replaced rows leave the number of rows public")
	}
}

// TestKeep: of each unit as many rows as it may have, and each of its rows equally often (false alarm 1e-6).
func TestKeep(t *testing.T) {
	owners := make([]unit.Owner, 12) // user 0 has 8 rows in two windows, user 1 three, user 2 one
	for i := range owners {
		switch {
		case i < 8:
			owners[i] = unit.Owner{User: 0, Window: uint64(i / 4)}
		case i < 11:
			owners[i] = unit.Owner{User: 1}
		default:
			owners[i] = unit.Owner{User: 2}
		}
	}
	s := noise.Seeded(1)
	for _, c := range []struct {
		unit unit.Unit
		kept int
	}{{unit.Row{}, 12}, {unit.User{Most: 2}, 5}, {unit.UserWindow{Most: 2}, 7}, {unit.UserWindow{Most: 100}, 12}} {
		kept, err := (unit.Protection{Unit: c.unit}).Keep(owners, s)
		if err != nil || len(kept) != c.kept {
			t.Errorf("%#v keeps %v, %v", c.unit, kept, err)
		}
	}
	const runs = 8000
	times := make([]int, 8)
	for range runs {
		kept, err := (unit.Protection{Unit: unit.User{Most: 3}}).Keep(owners, s)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range kept {
			if i < 8 {
				times[i]++
			}
		}
	}
	for i, n := range times {
		if err := stattest.Frequency(n, runs, 3./8, 1e-6); err != nil {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, p := range map[string]unit.Protection{
		"no unit":       {},
		"no rows":       {Unit: unit.User{}},
		"too many rows": {Unit: unit.UserWindow{Most: unit.MaxRows + 1}},
		"neighbours":    {Unit: unit.Row{}, Neighbours: 2},
	} {
		if _, err := p.Keep(nil, noise.Seeded(1)); !errors.Is(err, unit.ErrSettings) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, call := range map[string]func(){
		"turned round": func() { unit.Protection{Unit: unit.Row{}}.Sum(1, 0) },
		"too wide":     func() { unit.Protection{Unit: unit.Row{}}.Sum(0, 1<<41) },
		"no cells":     func() { unit.Protection{Unit: unit.Row{}}.Cells(0) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// A count of visits moves by 20 where a user may have 20, and by 5 where a week of a user is protected.
func Example() {
	month := unit.Protection{Unit: unit.User{Most: 20}, Neighbours: unit.AddedOrRemoved}
	week := unit.Protection{Unit: unit.UserWindow{Most: 5}, Neighbours: unit.AddedOrRemoved}
	fmt.Println(month.Count().L1, week.Count().L1)
	// Output: 20 5
}
