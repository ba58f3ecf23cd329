// Package cells is about small declared domains: a few columns, each with listed values or edges, divide all rows into cells. It reads and counts what is declared, and
// decides whether a row function is constant on each cell.
//
// What is declared is public and the owner's own: nothing is read off rows. Every row is in a cell, whatever its values are:
//
//   - a column of true and false has these two cells;
//   - a column of texts has a cell for each listed text and one for all others;
//   - a column of numbers is cut at its edges: a cell goes from an edge up to below the next one, the first has all that is below, the last all from the last edge on.
//
// A null is in the cell of false, of the other texts, or below the first edge. Where null is listed it has a cell of its own. The cells of a table are the
// combinations of its columns'.
package cells

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Limits of a declaration: it stands on the card, and is read anew for every question.
const (
	MaxColumns = 64
	MaxValues  = 1000 // of one column
	MaxText    = 64 << 10
)

// Domain is a table's declared columns, in the order in which they were declared. The zero Domain has one cell, and no question but constants.
type Domain struct{ Columns []Column }

// Column is a declared column.
type Column struct {
	Name  string
	Type  rowfn.Type // Condition, Text or Number
	Texts []string   // of a Text
	Edges []float64  // of a Number, increasing
	Null  bool       // a null has a cell of its own
}

// Parse reads a declaration: a JSON object with a list for each column, such as
//
//	{"member": [true, false], "region": ["north", "south", null], "age": [18, 40, 65]}
func Parse(text string) (d Domain, err error) {
	if len(text) > MaxText {
		return d, fmt.Errorf("the declaration has %d bytes; at most %d are possible", len(text), MaxText)
	}
	read := json.NewDecoder(strings.NewReader(text))
	if opening, err := read.Token(); err != nil || opening != json.Delim('{') {
		return d, fmt.Errorf(`it must be a JSON object with a list for each column, such as {"member":[true,false],"region":["north","south"],"age":[18,40,65]}`)
	}
	for read.More() {
		name, err := read.Token()
		if err != nil {
			return d, fmt.Errorf("it is no JSON object: %w", err)
		}
		c := Column{Name: name.(string)} // a decoder has no other keys
		var values []any
		if err := read.Decode(&values); err != nil {
			return d, fmt.Errorf("column %q must have a list of values: %w", c.Name, err)
		}
		if slices.ContainsFunc(d.Columns, func(other Column) bool { return other.Name == c.Name }) {
			return d, fmt.Errorf("column %q is declared twice", c.Name)
		}
		if err := c.read(values); err != nil {
			return d, fmt.Errorf("column %q %w", c.Name, err)
		}
		d.Columns = append(d.Columns, c)
	}
	if _, err := read.Token(); err != nil {
		return d, fmt.Errorf("it is no JSON object: %w", err)
	}
	if _, err := read.Token(); err != io.EOF {
		return d, fmt.Errorf("something follows the JSON object")
	}
	if len(d.Columns) == 0 || len(d.Columns) > MaxColumns {
		return d, fmt.Errorf("%d columns are declared; between 1 and %d are possible", len(d.Columns), MaxColumns)
	}
	return d, nil
}

// read takes a column's values. Their kind is the column's.
func (c *Column) read(values []any) error {
	if len(values) > MaxValues {
		return fmt.Errorf("has %d values; at most %d are possible", len(values), MaxValues)
	}
	bools := map[bool]bool{}
	for _, value := range values {
		kind := rowfn.Type(0)
		switch v := value.(type) {
		case nil:
			if c.Null {
				return fmt.Errorf("lists null twice")
			}
			c.Null = true
			continue
		case bool:
			if kind = rowfn.Condition; bools[v] {
				return fmt.Errorf("lists %v twice", v)
			}
			bools[v] = true
		case string:
			if kind = rowfn.Text; slices.Contains(c.Texts, v) {
				return fmt.Errorf("lists %q twice", v)
			}
			c.Texts = append(c.Texts, v)
		case float64:
			v += 0 // -0 is 0
			if kind = rowfn.Number; len(c.Edges) > 0 && v <= c.Edges[len(c.Edges)-1] {
				return fmt.Errorf("has the edge %v after %v; list edges in increasing order", v, c.Edges[len(c.Edges)-1])
			}
			c.Edges = append(c.Edges, v)
		default:
			return fmt.Errorf("lists what is neither true, false, a text, a number nor null")
		}
		if c.Type != 0 && c.Type != kind {
			return fmt.Errorf("lists values of two kinds; list [true,false], texts, or the edges of numbers")
		}
		c.Type = kind
	}
	switch {
	case c.Type == 0:
		return fmt.Errorf("has no values; list [true,false], texts, or the edges of numbers")
	case c.Type == rowfn.Condition && len(bools) < 2:
		return fmt.Errorf("must list both true and false")
	}
	return nil
}

// String is the declaration as Parse reads it: equal domains have equal texts.
func (d Domain) String() string {
	var b strings.Builder
	for i, c := range d.Columns {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		b.WriteString(quoted(c.Name) + ":[")
		b.WriteString(strings.Join(c.values(), ",") + "]")
	}
	return b.String() + "}"
}

// values are those of a column as JSON, null last.
func (c Column) values() (all []string) {
	switch c.Type {
	case rowfn.Condition:
		all = []string{"true", "false"}
	case rowfn.Text:
		for _, text := range c.Texts {
			all = append(all, quoted(text))
		}
	default:
		all = c.edges()
	}
	if c.Null {
		all = append(all, "null")
	}
	return all
}

// edges are those of a column of numbers as JSON.
func (c Column) edges() (all []string) {
	for _, edge := range c.Edges {
		all = append(all, number(edge))
	}
	return all
}

func number(x float64) string {
	text, err := json.Marshal(x)
	if err != nil { // not finite
		return fmt.Sprint(x)
	}
	return string(text)
}

// quoted is a text as JSON, with < and > as they are.
func quoted(text string) string {
	var b strings.Builder
	write := json.NewEncoder(&b)
	write.SetEscapeHTML(false)
	if err := write.Encode(text); err != nil { // a text can be written
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Count is how many cells there are; math.MaxInt64 if there are more than that.
func (d Domain) Count() int64 {
	count := int64(1)
	for _, c := range d.Columns {
		own := int64(2)
		switch c.Type {
		case rowfn.Text:
			own = int64(len(c.Texts)) + 1
		case rowfn.Number:
			own = int64(len(c.Edges)) + 1
		}
		if c.Null {
			own++
		}
		if count > math.MaxInt64/own {
			return math.MaxInt64
		}
		count *= own
	}
	return count
}

// names are those of the columns, quoted.
func (d Domain) names() string {
	var names []string
	for _, c := range d.Columns {
		names = append(names, quoted(c.Name))
	}
	return strings.Join(names, ", ")
}

// column finds a declared one.
func (d Domain) column(name string) (Column, bool) {
	i := slices.IndexFunc(d.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return Column{}, false
	}
	return d.Columns[i], true
}
