// Package tables has the real data sets of experiments/data, decoded: the flights with what is known before they leave, the same flights
// in groups, and the handwritten digits.
package tables

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// with decodes a Parquet file as the server does. The table is closed when use has returned.
func with(name, parquet string, use func(*dataset.Table) error) error {
	dir, err := os.MkdirTemp("", "holdoutd-table-")
	if err == nil {
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "table.parquet")
		if err = os.WriteFile(path, []byte(parquet), 0o600); err == nil {
			_, err = ingest.Decode(context.Background(), path, filepath.Join(dir, "table"), ingest.Limits{})
		}
	}
	var table *dataset.Table
	if err == nil {
		table, err = dataset.Open(filepath.Join(dir, "table"))
	}
	if err == nil {
		defer table.Close()
		err = use(table)
	}
	if err != nil {
		return fmt.Errorf("experiments: %s: %w", name, err)
	}
	return nil
}

// decode copies a file's columns in their order, texts as codes alone.
func decode(name, parquet string) (columns []dataset.Column, rows int, err error) {
	err = with(name, parquet, func(table *dataset.Table) error {
		for i := range table.Columns() {
			c := *table.Column(i)
			c.Numbers, c.Codes, c.Dictionary = slices.Clone(c.Numbers), ranks(&c), dataset.Dictionary{}
			columns = append(columns, c)
		}
		rows = table.Rows()
		return nil
	})
	return columns, rows, err
}

// ranks are the codes of a column if its dictionary were sorted; nil without texts.
func ranks(c *dataset.Column) []uint32 {
	if c.Kind != dataset.Text {
		return nil
	}
	sorted := c.Dictionary.Sorted()
	rank := make([]uint32, len(sorted)+1)
	for i, text := range sorted {
		code, _ := c.Dictionary.Find(text)
		rank[code] = uint32(i) + 1
	}
	codes := slices.Clone(c.Codes)
	for i, code := range codes {
		codes[i] = rank[code]
	}
	return codes
}

// Columns decodes a Parquet file as the server does: its columns by their names, texts as codes in the order of the sorted texts, and the
// number of rows.
func Columns(name, parquet string) (map[string]dataset.Column, int, error) {
	columns, rows, err := decode(name, parquet)
	byName := make(map[string]dataset.Column, len(columns))
	for _, c := range columns {
		byName[c.Name] = c
	}
	return byName, rows, err
}
