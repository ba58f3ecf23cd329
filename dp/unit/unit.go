// Package unit says whose data a guarantee protects, as types, so that sensitivities are computed and not guessed: one row, all rows of a user, or a user's
// rows within one window of time.
//
// Two tables are neighbours when they differ in one unit: replaced by another one, or added or removed ([Neighbours]). A user can have any number of rows,
// so [Keep] keeps at most so many of each; what is computed of the kept rows has the sensitivities that [Protection] gives.
package unit

import (
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dp/noise"
)

// ErrSettings is wrapped by all errors.
var ErrSettings = errors.New("unit: bad settings")

// MaxRows bounds how many rows of a unit are kept.
const MaxRows = 1 << 20

// Unit is what neighbours differ in: a [Row], a [User] or a [UserWindow].
type Unit interface {
	// Rows is the most rows that a unit has after Keep.
	Rows() int
	// of names the unit that a row belongs to.
	of(row int, o Owner) owner
}

// Owner is who a row is about, and when: the window is a number of a day, a week or whatever the guarantee is by.
type Owner struct{ User, Window uint64 }

type owner struct {
	row          int
	user, window uint64
}

// Row protects each row by itself. A person with many rows is protected less: see account.Group.
type Row struct{}

// User protects all rows of a user together, of whom at most Most are kept, from 1 to MaxRows.
type User struct{ Most int }

// UserWindow protects a user's rows within one window, of which at most Most are kept. Over w windows a user is protected by the group of w units.
type UserWindow struct{ Most int }

// Rows is 1.
func (Row) Rows() int { return 1 }

// Rows is Most.
func (u User) Rows() int { return u.Most }

// Rows is Most.
func (u UserWindow) Rows() int { return u.Most }

func (Row) of(row int, _ Owner) owner        { return owner{row: row} }
func (User) of(_ int, o Owner) owner         { return owner{user: o.User} }
func (u UserWindow) of(_ int, o Owner) owner { return owner{user: o.User, window: o.Window} }

// Neighbours says how two neighbouring tables differ.
type Neighbours uint8

const (
	// Replaced is one unit instead of another. With the unit Row the number of rows is then the same in both, and public.
	Replaced Neighbours = iota
	// AddedOrRemoved is one unit more or less: how many rows there are is a secret, too.
	AddedOrRemoved
)

// Protection is a unit with a relation of neighbours.
type Protection struct {
	Unit       Unit
	Neighbours Neighbours
}

// Check refuses what is none.
func (p Protection) Check() error {
	if p.Unit == nil || p.Neighbours > AddedOrRemoved {
		return fmt.Errorf("%w: unit %v, neighbours %d", ErrSettings, p.Unit, p.Neighbours)
	}
	if rows := p.Unit.Rows(); rows < 1 || rows > MaxRows {
		return fmt.Errorf("%w: %d rows of a unit, want 1 to %d", ErrSettings, rows, MaxRows)
	}
	return nil
}

// PublicRows reports whether neighbours have equally many rows.
func (p Protection) PublicRows() bool { return p.Unit == Row{} && p.Neighbours == Replaced }

// Sensitivity is how far neighbours are apart in what is released, in the sum of all coordinates' moves and in the root of their squares, which is rounded up.
type Sensitivity struct {
	L1 uint64
	L2 float64
}

func scalar(most uint64) Sensitivity { return Sensitivity{most, float64(most)} }

// Sum is the sensitivity of the sum of a number from each kept row, from low to high, |low| and |high| at most 2^40.
//
// A row that is replaced moves it by high - low. A unit that is added moves it by all its rows, at either end. A unit that is replaced may have had none,
// some or all of the rows that it may have: from the most that its rows sum to down to the least.
func (p Protection) Sum(low, high int64) Sensitivity {
	if low > high || low < -1<<40 || high > 1<<40 {
		panic(fmt.Sprintf("unit: numbers from %d to %d", low, high))
	}
	rows := int64(p.Unit.Rows())
	switch {
	case p.PublicRows():
		return scalar(uint64(high - low))
	case p.Neighbours == AddedOrRemoved:
		return scalar(uint64(rows * max(high, -low)))
	}
	return scalar(uint64(rows * (max(high, 0) - min(low, 0))))
}

// Count is the sensitivity of how many kept rows have a property.
func (p Protection) Count() Sensitivity { return p.Sum(0, 1) }

// Cells is the sensitivity of all counts together of a table of cells, where each kept row counts in that many of them. A unit that is replaced leaves some
// cells and enters others.
func (p Protection) Cells(each int) Sensitivity {
	if each < 1 || each > 1<<10 {
		panic(fmt.Sprintf("unit: a row counts in %d cells", each))
	}
	// One unit's counts are c rows of each cells, at the worst all in the same ones: L1 = c·each, L2 = c·sqrt(each). Two units' counts are not negative, so
	// their difference has at most the root of both squares.
	units := 1
	if p.Neighbours == Replaced {
		units = 2
	}
	rows := p.Unit.Rows()
	return Sensitivity{uint64(units * rows * each), float64(rows) * math.Sqrt(float64(units*each)) * (1 + 1e-15)}
}

// Keep names the rows that are kept, in their order: of each unit at most as many as it may have, chosen at random. Which are kept of one unit is no
// function of another. owners has one for each row; for the unit Row only its length counts.
func (p Protection) Keep(owners []Owner, s *noise.Stream) ([]int, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	most := p.Unit.Rows()
	rows := map[owner][]int{}
	var units []owner // by first appearance, so that a stream gives one result
	if (p.Unit == Row{}) {
		all := make([]int, len(owners))
		for i := range all {
			all[i] = i
		}
		return all, nil
	}
	for i, o := range owners {
		of := p.Unit.of(i, o)
		if len(rows[of]) == 0 {
			units = append(units, of)
		}
		rows[of] = append(rows[of], i)
	}
	kept := make([]bool, len(owners))
	for _, of := range units {
		mine := rows[of]
		for i := range min(most, len(mine)) {
			j := i + int(s.Below(uint64(len(mine)-i)))
			mine[i], mine[j] = mine[j], mine[i]
			kept[mine[i]] = true
		}
	}
	var out []int
	for i, k := range kept {
		if k {
			out = append(out, i)
		}
	}
	return out, nil
}
