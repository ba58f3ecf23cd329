package sql

import (
	"fmt"
	"regexp"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Table is how a table of rows stands in the engine. A loader wrote it: no column has a NULL.
type Table struct {
	From    string            // its name, with its database: words of small letters, digits and _, with dots between
	Row     string            // the column with the row's number, from 0
	Unit    string            // the column with the unit's number, from 0; "" where every row is its own unit
	Largest int64             // the declared largest unit, from 1, where Unit is not ""
	Columns map[string]Column // by the names that row functions use
}

// Column is one column of a Table.
type Column struct {
	Name string // in the engine
	Null string // of a text: the column that is 1 where it is null, and 0 elsewhere
	// Type says what stands there: of Number and Time a double, NaN for null; of Text bytes of UTF-8, none for null; of Condition an
	// integer, 0 for false, 1 for true and 2 for null.
	Type rowfn.Type
}

var (
	word = regexp.MustCompile(`^[a-z][a-z0-9_]{0,99}$`)
	from = regexp.MustCompile(`^[a-z][a-z0-9_]{0,99}(\.[a-z][a-z0-9_]{0,99}){0,2}$`)
	ours = regexp.MustCompile(`^[anv][0-9]+$`) // the names that statements give
)

// Check says what is wrong with the names of a table, which stand in statements as they are.
func (t Table) Check() error {
	if !from.MatchString(t.From) {
		return fmt.Errorf("sql: the table's name %q is none that is written into statements", t.From)
	}
	if t.Unit != "" && t.Largest < 1 {
		return fmt.Errorf("sql: units of at most %d rows", t.Largest)
	}
	names := []string{t.Row}
	if t.Unit != "" {
		names = append(names, t.Unit)
	}
	for _, c := range t.Columns {
		names = append(names, c.Name)
		if c.Type == rowfn.Text {
			names = append(names, c.Null)
		}
	}
	for _, name := range names {
		if !word.MatchString(name) || ours.MatchString(name) {
			return fmt.Errorf("sql: the column's name %q is none that is written into statements", name)
		}
	}
	return nil
}

// numbered is the column with the unit's number.
func (t Table) numbered() string {
	if t.Unit == "" {
		return t.Row
	}
	return t.Unit
}
