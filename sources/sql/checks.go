package sql

import (
	"fmt"
	"slices"
	"strings"
)

// Checks are what was registered of a part when it was made: for blocks of units, so that a statement about some of the units is compared as well as one about all. They are sums over
// rows modulo 2^64, and not known to analysts: a source keeps them in PartInfo.Private.
type Checks struct {
	Block   int64      `json:"block"`           // units of a block; the last one may have fewer
	Rows    []int64    `json:"rows"`            // of each block
	Columns [][]uint64 `json:"columns"`         // of each column, of each block
	Bound   bool       `json:"bound,omitempty"` // columns are summed with the numbers of their units, so that two units that exchange values are noticed; not in parts made before there was this member
}

const (
	// checkBlocks is how many blocks a part has at most. A statement about some of the units reads up to two blocks more than it sums.
	checkBlocks = 256
	// leastBlock is the fewest units of a block.
	leastBlock = 1 << 12
)

func blockOf(units int64) int64 { return max(leastBlock, (units+checkBlocks-1)/checkBlocks) }

// around is the least range of whole blocks around some units. Without checks it is the units.
func (c *Checks) around(from, to, units int64) (low, high int64) {
	if c == nil {
		return from, to
	}
	return from / c.Block * c.Block, min((to+c.Block-1)/c.Block*c.Block, units)
}

// compare compares what was found of columns of the units low..high-1, which are whole blocks.
func (c *Checks) compare(low, high int64, f Found, columns []int) error {
	from, to := low/c.Block, (high+c.Block-1)/c.Block
	if from < 0 || to > int64(len(c.Rows)) {
		return errAnswer("sql: there is nothing registered of units %d to %d", low, high)
	}
	rows := int64(0)
	for _, n := range c.Rows[from:to] {
		rows += n
	}
	if f.Rows != rows {
		return errAnswer("sql: %d rows, want %d", f.Rows, rows)
	}
	for i, column := range columns {
		if column >= len(c.Columns) || to > int64(len(c.Columns[column])) {
			return errAnswer("sql: there is nothing registered of column %d", column)
		}
		sum := uint64(0)
		for _, x := range c.Columns[column][from:to] {
			sum += x
		}
		if f.Checksums[i] != sum {
			return errAnswer("sql: the checksum of column %d is %d, want %d", column, f.Checksums[i], sum)
		}
	}
	return nil
}

// checksum is how the checksums of a part are written. What is compared with nothing is written as new parts have it.
func (d *Dialect) checksum(c *Checks) *checksum {
	if c == nil || c.Bound {
		return &d.bound
	}
	return &d.unbound
}

// Total is the checksum of a column over all rows.
func (c *Checks) Total(column int) (sum uint64) {
	for _, x := range c.Columns[column] {
		sum += x
	}
	return sum
}

// RegisterText asks for the checks of a part, a row for each block: its number, its rows and units, the sum of its units' numbers over rows, and the checksum of each column. Of several machines, each
// answers for its own units.
func RegisterText(d *Dialect, part Part) string { return d.register(part, &d.bound) }

func (d *Dialect) register(part Part, checksum *checksum) string {
	block := blockOf(part.Units)
	list := []string{d.quotient("_unit", block) + " AS b", d.fill(d.whole, "count(*)")}
	for i, f := range part.Schema.Fields {
		list = append(list, d.fill(checksum.rows[classOf(f.Kind)], columnName(i)))
	}
	return "SELECT " + strings.Join(list, ", ") + " FROM " + part.Table + " GROUP BY " + d.quotient("_unit", block)
}

func (d *Dialect) quotient(a string, by int64) string {
	var b strings.Builder
	for _, piece := range d.operations[opQuotient] {
		switch piece.place {
		case "":
			b.WriteString(piece.text)
		case "a":
			b.WriteString(a)
		default:
			b.WriteString(d.integer(by))
		}
	}
	return b.String()
}

// ReadRegister reads the rows of RegisterText, of all machines.
func ReadRegister(part Part, rows [][]string) (*Checks, error) {
	c := &Checks{Block: blockOf(part.Units), Bound: true, Columns: make([][]uint64, len(part.Schema.Fields))}
	blocks := (part.Units + c.Block - 1) / c.Block
	c.Rows = make([]int64, blocks)
	for i := range c.Columns {
		c.Columns[i] = make([]uint64, blocks)
	}
	for _, row := range rows {
		if len(row) != 2+len(c.Columns) {
			return nil, fmt.Errorf("sql: a row of %d integers, want %d", len(row), 2+len(c.Columns))
		}
		var values []uint64
		for _, text := range row {
			x, err := parseInteger(text)
			if err != nil {
				return nil, fmt.Errorf("sql: %w", err)
			}
			values = append(values, x)
		}
		b := int64(values[0])
		if b < 0 || b >= blocks {
			return nil, fmt.Errorf("sql: a block %d of %d", b, blocks)
		}
		c.Rows[b] += int64(values[1])
		for i := range c.Columns {
			c.Columns[i][b] += values[2+i]
		}
	}
	if slices.Contains(c.Rows, 0) {
		return nil, fmt.Errorf("sql: a block of units has no rows")
	}
	return c, nil
}
