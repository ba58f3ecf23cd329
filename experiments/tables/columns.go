package tables

import (
	"slices"
	"sync"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/experiments/data"
)

// FlightRows are the flights as [Rows]; made once.
var FlightRows = sync.OnceValues(func() (*dataset.Table, error) { return Rows("flights", data.Flights) })

// Rows decodes a Parquet file as the server does into a table in memory, in the order of the file, for questions in the query language.
func Rows(name, parquet string) (rows *dataset.Table, err error) {
	err = with(name, parquet, func(table *dataset.Table) (err error) {
		var columns []dataset.Column
		for i := range table.Columns() {
			c := *table.Column(i)
			if c.Kind == dataset.Text {
				c = texts(&c)
			}
			c.Numbers, c.Bools = slices.Clone(c.Numbers), slices.Clone(c.Bools)
			columns = append(columns, c)
		}
		rows, err = dataset.FromColumns(columns...)
		return err
	})
	return rows, err
}

// texts copies a column of texts.
func texts(c *dataset.Column) dataset.Column {
	values := make([]string, len(c.Codes))
	for i := range values {
		if !c.Null(i) {
			values[i] = c.Dictionary.Text(int(c.Codes[i]) - 1)
		}
	}
	return dataset.NewText(c.Name, values, c.Null)
}

// Take is a table of some rows of another, in their order.
func Take(t *dataset.Table, rows []int) (*dataset.Table, error) {
	var columns []dataset.Column
	for i := range t.Columns() {
		c := *t.Column(i)
		c.Numbers, c.Bools, c.Codes = taken(c.Numbers, rows), taken(c.Bools, rows), taken(c.Codes, rows)
		columns = append(columns, c)
	}
	return dataset.FromColumns(columns...)
}

func taken[T any](values []T, rows []int) []T {
	if values == nil {
		return nil
	}
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = values[row]
	}
	return out
}
