package cells

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

// Check says why a row function is not constant on each cell, and what to write instead; nil if it is. grouped says that units can hold several rows: then a unit's value must
// be the plain mean over all its rows, which alone is linear in the shares of the cells among them (docs/proofs/cells.md).
//
// It decides by the form of the tree: a declared column may be read in the few ways that tell no two rows of a cell apart, and whatever is computed of what is constant is
// constant. So it may refuse a function that is constant for another reason, and never lets one through that is not.
func (d Domain) Check(f rowfn.Function, grouped bool) error {
	switch {
	case grouped && f.PerUnit != rowfn.UnitMean:
		return fmt.Errorf(`the units of this holdout have several rows, and cells are about the plain mean over units of each unit's own mean: leave out where and "weight":"row", ` +
			`and ask for the share of a condition, such as {"type":"fraction","of":"a && b"}`)
	case grouped && f.Where != nil:
		return fmt.Errorf(`the units of this holdout have several rows, and the mean over some of a unit's rows does not follow from the unit's cells: leave out where, ` +
			`and ask for the share of a condition, such as {"type":"fraction","of":"a && b"}`)
	}
	c := checking{d, map[*rowfn.Node]error{}}
	if f.Where != nil {
		if err := c.node(f.Where); err != nil {
			return err
		}
	}
	if f.Value == nil {
		return nil
	}
	return c.node(f.Value)
}

// checking remembers what was said of nodes, which may be shared.
type checking struct {
	Domain
	said map[*rowfn.Node]error
}

// node says why a tree is not constant on each cell.
func (c *checking) node(n *rowfn.Node) error {
	if err, ok := c.said[n]; ok {
		return err
	}
	err := c.look(n)
	c.said[n] = err
	return err
}

func (c *checking) look(n *rowfn.Node) error {
	switch n.Op {
	case rowfn.OpColumn:
		return c.plain(n)
	case rowfn.OpRow:
		return fmt.Errorf("numbers that come for each row are no function of a cell; ask about the declared columns: %s", c.names())
	case rowfn.OpIsNull:
		if n.Args[0].Op == rowfn.OpColumn {
			return c.isNull(n.Args[0])
		}
	case rowfn.OpLess, rowfn.OpLessEq, rowfn.OpGreater, rowfn.OpGreaterEq, rowfn.OpEq, rowfn.OpNe:
		a, b, op := n.Args[0], n.Args[1], n.Op
		if b.Op == rowfn.OpColumn && b.Type != rowfn.Condition && a.Op != rowfn.OpColumn {
			a, b, op = b, a, mirrored(op)
		}
		if a.Op == rowfn.OpColumn && a.Type != rowfn.Condition {
			return c.compare(op, a, b)
		}
	case rowfn.OpIn:
		if n.Args[0].Op == rowfn.OpColumn {
			return c.among(n.Args[0], n.Args[1:])
		}
	case rowfn.OpHasPrefix, rowfn.OpHasSuffix, rowfn.OpContains:
		if n.Args[0].Op == rowfn.OpColumn {
			column, err := c.declared(n.Args[0])
			if err != nil {
				return err
			}
			return fmt.Errorf("a part of a text of %[1]s tells texts of its cell of all others apart; compare it with the listed ones: %[1]s in [%s]", column.Name, column.listed())
		}
	case rowfn.OpLookup:
		if n.Args[0].Op == rowfn.OpColumn {
			return c.lookup(n)
		}
	}
	for _, arg := range n.Args {
		if err := c.node(arg); err != nil {
			return err
		}
	}
	return nil
}

// declared is the column of a node, if it is declared as what it is.
func (c *checking) declared(n *rowfn.Node) (Column, error) {
	column, ok := c.column(n.Text)
	if !ok {
		return column, fmt.Errorf("the column %s is not declared, and questions of this holdout are about the declared columns alone: %s", quoted(n.Text), c.names())
	}
	if column.Type != n.Type {
		return column, fmt.Errorf("the column %s is declared as %v and is %v", quoted(n.Text), column.Type, n.Type)
	}
	return column, nil
}

// plain is a column that is read as it is: a condition may be, for it is false where it is null.
func (c *checking) plain(n *rowfn.Node) error {
	column, err := c.declared(n)
	switch {
	case err != nil:
		return err
	case column.Type == rowfn.Number:
		return fmt.Errorf("the numbers of %[1]s differ within a cell; compare it with its edges: %[1]s >= %s (declared: %s)", column.Name, number(column.Edges[0]), column.listed())
	case column.Type == rowfn.Text:
		return fmt.Errorf("the texts of %[1]s differ within its cell of all others; compare it with the listed ones: %[1]s == %s", column.Name, quoted(column.Texts[0]))
	}
	return nil
}

func (c *checking) isNull(n *rowfn.Node) error {
	column, err := c.declared(n)
	if err == nil && !column.Null {
		return fmt.Errorf("a null of %s has no cell of its own: it counts as %s. Null must be among the declared values to be told", column.Name, column.nullCell())
	}
	return err
}

// compare is a column of numbers or texts on the left of a comparison.
func (c *checking) compare(op rowfn.Op, n, with *rowfn.Node) error {
	column, err := c.declared(n)
	if err != nil {
		return err
	}
	if column.Type == rowfn.Text {
		if with.Op != rowfn.OpText || !slices.Contains(column.Texts, with.Text) {
			return column.unlisted(with)
		}
		if op == rowfn.OpNe && !column.Null {
			return fmt.Errorf("%[1]s != %[2]s tells a null, for which it is false, from other texts, which share its cell; write !(%[1]s == %[2]s)", column.Name, quoted(with.Text))
		}
		return nil
	}
	x, ok := constant(with)
	if !ok || !slices.Contains(column.Edges, x) {
		what := "what it is compared with here"
		if ok {
			what = number(x)
		}
		return fmt.Errorf("%[1]s can be compared with its declared edges alone, and %[2]s is none of them: write %[1]s >= an edge, or !(%[1]s >= an edge). The edges are %[3]s",
			column.Name, what, strings.Join(column.edges(), ", "))
	}
	above := column.Name + " >= " + number(x)
	switch {
	case op == rowfn.OpGreaterEq:
		return nil
	case op == rowfn.OpLess && column.Null:
		return nil
	case op == rowfn.OpLess:
		return fmt.Errorf("%s < %s is false for a null, which shares the cell below the first edge; write !(%s)", column.Name, number(x), above)
	case op == rowfn.OpGreater:
		return fmt.Errorf("%s itself is in the cell above it, so %s > %s tells numbers of a cell apart; write %s", number(x), column.Name, number(x), above)
	case op == rowfn.OpLessEq:
		return fmt.Errorf("%s itself is in the cell above it, so %s <= %s tells numbers of a cell apart; write !(%s)", number(x), column.Name, number(x), above)
	}
	return fmt.Errorf("%s is an edge and no cell of its own; write %s, and that it is below the next edge", number(x), above)
}

// among is a column that is one of several.
func (c *checking) among(n *rowfn.Node, others []*rowfn.Node) error {
	column, err := c.declared(n)
	if err != nil {
		return err
	}
	if column.Type != rowfn.Text {
		return fmt.Errorf("the numbers of %[1]s differ within a cell; compare it with its edges: %[1]s >= %s (declared: %s)", column.Name, number(column.Edges[0]), column.listed())
	}
	for _, other := range others {
		if other.Op != rowfn.OpText || !slices.Contains(column.Texts, other.Text) {
			return column.unlisted(other)
		}
	}
	return nil
}

// lookup is a number for each text of a column: 0 for all that it does not name.
func (c *checking) lookup(n *rowfn.Node) error {
	column, err := c.declared(n.Args[0])
	if err != nil {
		return err
	}
	for text, x := range n.Texts {
		if x != 0 && !slices.Contains(column.Texts, text) {
			return fmt.Errorf("the model tells texts of %s that are not listed from one another; it may name the listed ones alone: %s", column.Name, column.listed())
		}
	}
	if n.Number != 0 && !column.Null {
		return fmt.Errorf("the model tells a null of %s from other texts, which share its cell. Null must be among the declared values to be told", column.Name)
	}
	return nil
}

// unlisted refuses a text that is not listed, or no text at all.
func (c Column) unlisted(n *rowfn.Node) error {
	what := "what it is compared with here"
	if n.Op == rowfn.OpText {
		what = quoted(n.Text)
	}
	return fmt.Errorf("%s can be compared with its declared texts alone, and %s is none of them: %s", c.Name, what, c.listed())
}

// listed are the values of a column in a message: the first ones, if there are many.
func (c Column) listed() string {
	const most = 12
	all := c.values()
	if len(all) > most {
		return strings.Join(all[:most], ", ") + fmt.Sprintf(", … %d in all", len(all))
	}
	return strings.Join(all, ", ")
}

// nullCell is where a null is that has no cell of its own.
func (c Column) nullCell() string {
	switch c.Type {
	case rowfn.Condition:
		return "false"
	case rowfn.Text:
		return "one of the texts that are not listed"
	}
	return "below " + number(c.Edges[0])
}

// constant is a number that a tree is, as it is written: an edge, or minus one.
func constant(n *rowfn.Node) (float64, bool) {
	switch {
	case n.Op == rowfn.OpNumber:
		return n.Number, true
	case n.Op == rowfn.OpNeg && n.Args[0].Op == rowfn.OpNumber:
		return -n.Args[0].Number, true
	}
	return 0, false
}

// mirrored is the comparison with its sides exchanged.
func mirrored(op rowfn.Op) rowfn.Op {
	switch op {
	case rowfn.OpLess:
		return rowfn.OpGreater
	case rowfn.OpLessEq:
		return rowfn.OpGreaterEq
	case rowfn.OpGreater:
		return rowfn.OpLess
	case rowfn.OpGreaterEq:
		return rowfn.OpLessEq
	}
	return op
}
