package dataset_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdoutd/holdoutd/dataset"
)

// A table is made in memory, two of its rows are written to a directory and mapped again.
func Example() {
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "delay", Kind: dataset.Number}, Numbers: []float64{33, 19, -4}},
		dataset.NewText("origin", []string{"LAS", "ATL", "SFO"}, nil),
	)
	if err != nil {
		log.Fatal(err)
	}
	root, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(root)

	dir := filepath.Join(root, "selected")
	if err := dataset.Select(dir, table, []uint32{2, 0}, nil); err != nil {
		log.Fatal(err)
	}
	selected, err := dataset.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer selected.Close()

	delay, _ := selected.Lookup("delay")
	origin, _ := selected.Lookup("origin")
	for row := range selected.Rows() {
		fmt.Println(origin.Dictionary.Text(int(origin.Codes[row])-1), delay.Numbers[row])
	}
	fmt.Println(origin.Dictionary.Sorted())
	// Output:
	// SFO -4
	// LAS 33
	// [LAS SFO]
}
