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

// decode decodes a Parquet file as the server does, and copies its columns in their order, texts as codes alone.
func decode(name, parquet string) (columns []dataset.Column, rows int, err error) {
	fail := func(err error) ([]dataset.Column, int, error) {
		return nil, 0, fmt.Errorf("experiments: %s: %w", name, err)
	}
	dir, err := os.MkdirTemp("", "holdoutd-"+name+"-")
	if err != nil {
		return fail(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, name+".parquet")
	if err := os.WriteFile(path, []byte(parquet), 0o600); err != nil {
		return fail(err)
	}
	if _, err := ingest.Decode(context.Background(), path, filepath.Join(dir, "table"), ingest.Limits{}); err != nil {
		return fail(err)
	}
	table, err := dataset.Open(filepath.Join(dir, "table"))
	if err != nil {
		return fail(err)
	}
	defer table.Close()
	for i := range table.Columns() {
		c := *table.Column(i)
		c.Numbers, c.Codes, c.Dictionary = slices.Clone(c.Numbers), ranks(&c), dataset.Dictionary{}
		columns = append(columns, c)
	}
	return columns, table.Rows(), nil
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
