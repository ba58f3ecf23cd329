package remote

import (
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// Names of the columns that every table has.
const (
	rowColumn  = "row_number"
	unitColumn = "unit_number"
)

var typeOf = map[dataset.Kind]rowfn.Type{dataset.Number: rowfn.Number, dataset.Bool: rowfn.Condition, dataset.Text: rowfn.Text, dataset.Time: rowfn.Time}

// Layout is how a table of a schema is written into an engine under a name. Columns are named by their place, so that no name of the data stands in a
// statement. largest is the declared largest unit; 0 where every row is its own unit.
func Layout(name string, schema dataset.Schema, largest int64) sql.Table {
	t := sql.Table{From: name, Row: rowColumn, Largest: largest, Columns: map[string]sql.Column{}}
	if largest > 0 {
		t.Unit = unitColumn
	}
	for i, f := range schema.Fields {
		c := sql.Column{Name: fmt.Sprint("c", i), Type: typeOf[f.Kind]}
		if f.Kind == dataset.Text {
			c.Null = c.Name + "_null"
		}
		t.Columns[f.Name] = c
	}
	return t
}

// cleanNumber is a number as it is written: every null is the same NaN.
func cleanNumber(x float64) float64 {
	if x-x != 0 {
		return math.NaN()
	}
	return x
}

// checkTimes says whether a column of times has one that statements cannot take apart.
func checkTimes(c *dataset.Column) error {
	if c.Kind != dataset.Time {
		return nil
	}
	for _, x := range c.Numbers {
		if math.Abs(x) > sql.MaxTime {
			return fmt.Errorf("remote: column %q has a time that is further from 1970 than 73,000 years", c.Name)
		}
	}
	return nil
}
