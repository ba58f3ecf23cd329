package remote

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// Tables reads whole tables that are there already, of which holdouts are made here. It is safe for concurrent use.
type Tables interface {
	// CheckProfile is that of [Engine].
	CheckProfile(ctx context.Context) error
	// Columns are those of a table, in its order. Where there is no such table, or its user may not see it, the error is [ErrNoTable].
	Columns(ctx context.Context, table string) ([]TableColumn, error)
	// State is the number of rows, and checksums of the columns that are read, as the engine computes them. They do not depend on the order of rows.
	State(ctx context.Context, table string, columns []TableColumn) (rows int64, checksums []string, err error)
	// Rows hands over all rows, some at a time and in any order: the values of each column that is read. An error of take ends it, and is returned. What came
	// before an error is no table. It is asked once, for what was taken cannot be taken back.
	Rows(ctx context.Context, table string, columns []TableColumn, take func([]ingest.Values) error) error
}

// ErrNoTable is about a table that is not there, for this user.
var ErrNoTable = errors.New("remote: there is no such table")

// TableColumn is a column of a table that is there already.
type TableColumn struct {
	ingest.ValueColumn        // Kind 0: it is not read
	Type               string // in the engine's words
	Why                string // it is not read

	selected string                           // the expression whose value is read
	null     bool                             // it may be null
	text     func(text string) (int64, error) // of numbers that are sent as text: their word
}

// Read are the columns that are read.
func Read(columns []TableColumn) []TableColumn {
	var read []TableColumn
	for _, c := range columns {
		if c.Kind != 0 {
			read = append(read, c)
		}
	}
	return read
}

// tableName is what a table may be called, so that none is named in a way that an engine takes for something else. A view gives another table such a name.
var tableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)

// heldOut are names of tables of holdouts, which nobody reads in this way: Load and LoadProbe made them.
var heldOut = regexp.MustCompile(`^(?i:holdoutd_[0-9a-f]{32}(_probe|_local)*)$`)

// CheckTableName reports what cannot be the name of a table that is read.
func CheckTableName(name string) error {
	if !tableName.MatchString(name) {
		return errors.New("the name of a table is letters, digits and _, at most 128, and begins with no digit; make a view of another name")
	}
	if heldOut.MatchString(name) {
		return errors.New("that is the name of a table of held-out rows, and none of these is read")
	}
	return nil
}

// Widths of the statements.
const (
	// columnsAtOnce is how many columns a checksum is of: engines have limits on the length of a statement, and Trino on the fields of a row.
	columnsAtOnce = 200
	// maxDescription bounds the description of a table: 16,384 columns with their types take some 2 MB.
	maxDescription = 32 << 20
)

// why a column is not read.
const (
	whyNested = "%s: nested values are not read; take what you need of it in a view"
	whyOther  = "%s: it is neither number, truth, time nor text; cast it in a view"
	whyWide   = "%s: it has more digits than a 64-bit integer; cast it to text or to a float in a view"
)

// double is the word of a decimal text: the bits of the nearest double.
func double(text string) (int64, error) {
	x, err := strconv.ParseFloat(text, 64)
	return doubleWord(x), err
}

// stateOf asks for the number of rows and for the checksums of columns, of some at a time. statement is of some columns; its first cell is the number of rows.
func stateOf(columns []TableColumn, ask func(some []TableColumn) ([]string, error), failed func(detail string) error) (rows int64, checksums []string, err error) {
	rows = -1
	for from := 0; from < len(columns); from += columnsAtOnce {
		row, err := ask(columns[from:min(from+columnsAtOnce, len(columns))])
		if err != nil {
			return 0, nil, err
		}
		n, err := strconv.ParseInt(row[0], 10, 64)
		switch {
		case err != nil || n < 0:
			return 0, nil, failed("the answer is no number of rows")
		case rows >= 0 && n != rows:
			return 0, nil, failed("the table changed meanwhile")
		}
		rows, checksums = n, append(checksums, row[1:]...)
	}
	return rows, checksums, nil
}

// arguments splits the arguments of a type at the commas between them.
func arguments(text string) (all []string) {
	depth, from := 0, 0
	for i, r := range text {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth == 0:
			all, from = append(all, strings.TrimSpace(text[from:i])), i+1
		}
	}
	return append(all, strings.TrimSpace(text[from:]))
}

// decimal are precision and scale of a type's arguments.
func decimal(text string) (precision, scale int, err error) {
	all := arguments(text)
	if len(all) > 2 {
		return 0, 0, fmt.Errorf("remote: %q are not precision and scale", text)
	}
	precision, err = strconv.Atoi(all[0])
	if err == nil && len(all) == 2 {
		scale, err = strconv.Atoi(all[1])
	}
	return precision, scale, err
}
