// Package sources is the contract between the server and the places where tables already are: a database, a lake, a folder of Parquet files.
//
// A source has tables of its owner. The server looks at one ([Source.Look]), reads its units ([Source.Units]), decides by a key that never leaves the server on which side
// each of them is, and tells the source ([Source.Divide]), which keeps the rows of each side as a part: a table of its own, under a name and for a user that analysts do
// not have. From then on the owner's table is not read any more. A part sums row functions as the server's own tables do, bit by bit ([Part]).
//
// What a source says in its errors is for the operator alone, for it may quote rows: only an [*Error] has a text for whoever asks.
package sources

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// Source is a place with tables. It is safe for concurrent use.
type Source interface {
	// Kind is what sort of place it is: "clickhouse", "trino", "file".
	Kind() string
	// Look looks at a table: its columns, how many rows it has, and a checksum of them. It takes a scan.
	Look(ctx context.Context, table string) (Snapshot, error)
	// Units yields the units of a table, each once, in blocks and in no particular order. An error that yield returns ends it and is returned.
	Units(ctx context.Context, of Snapshot, by Keys, yield func(Units) error) error
	// Divide makes parts of a table. It reads the units once more and asks place for each block of them, on which side each is and which number it has there: of the units of a
	// part each number from 0 on is given once. The numbers are a secret order, and the parts keep them; what place was told is gone when Divide returns. The table must still be
	// as it was looked at, before and after, else nothing is made and the error is [Changed]. done is told how many rows have their place, now and then.
	//
	// What is left of a Divide that failed, or was cut off, is listed by Parts and goes with Drop.
	Divide(ctx context.Context, of Snapshot, by Keys, parts []PartSpec, place func(Units, []Place) error, done func(rows int64)) ([]PartInfo, error)
	// Open opens a part. rowsCap is the Cap of rowfn.UnitShare, from 1. It asks the source whether the part is as it was made: [Changed] where it is not.
	Open(ctx context.Context, of PartInfo, rowsCap int64) (Part, error)
	// Parts lists the names of all parts that the source keeps for the server, finished or not.
	Parts(ctx context.Context) ([]string, error)
	// Drop removes a part for good, finished or not; one that is not there is no error.
	Drop(ctx context.Context, name string) error
	// Ready reports whether the source answers now, within a second or so. Nothing of any row is read.
	Ready(ctx context.Context) error
	// Close ends the connection. Parts of it must not be used afterwards.
	Close() error
}

// Snapshot is a table as it was looked at.
type Snapshot struct {
	Table    string          `json:"table"`             // as its owner names it there: db.flights, catalog.schema.flights, a folder
	Schema   dataset.Schema  `json:"schema"`            // the columns that questions can name; Source is the type there
	Skipped  []Skipped       `json:"skipped"`           // the others
	Rows     int64           `json:"rows"`              // of the table
	Checksum string          `json:"checksum"`          // of the rows, whatever their order: integers, by a hash of the source's own
	Private  json.RawMessage `json:"private,omitempty"` // what the source wants to know again, such as files and their sizes
}

// Skipped is a column that no question can name.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Keys say what is one unit of a table, and what the server wants to know of each.
type Keys struct {
	Columns []string // whose values together are the unit's; none: each row is a unit, known by its place. Only sources whose rows have places ([Placed]) take none
	Day     bool     // there is one column, of times, and its day (UTC) is the unit
	Rows    bool     // each unit must be one row: the columns identify rows
	Latest  string   // a Time column, of which the latest value of a unit is wanted; "": none
	Stratum string   // a column whose value is the same in all rows of a unit, and wanted; "": none
	Places  bool     // the places of each unit's rows are wanted, and each row in which the one column is null is a unit of its own, known by its place. Only [Placed] sources take it
}

// Placed is a source whose rows have places, which are the same whenever a table is read.
type Placed interface{ RowsHavePlaces() bool }

// Units are some units of a table.
type Units struct {
	Keys   *dataset.Table  // a row for each unit, with the columns of the key. Without a key one column, "row", of places from 0 on
	Rows   []int64         // of each unit
	Latest []float64       // of each unit: the latest time, in microseconds; NaN: all are null. nil where not wanted
	Strata *dataset.Column // of each unit; nil where not wanted
	Places [][]uint32      // of each unit: the places of its rows, rising; nil where not wanted
}

// Len is the number of units.
func (u Units) Len() int { return u.Keys.Rows() }

// Place is where a unit goes: which of the parts, and its number there.
type Place struct {
	Part   int // of the parts that Divide was given
	Number int64
}

// PartSpec is a part that is to be made.
type PartSpec struct {
	Name  string // of letters, digits and _, at most 60
	Units int64
}

// PartInfo is what is kept of a finished part. Holdouts keep it with their tables, and the chain binds its digest.
type PartInfo struct {
	Name        string                       `json:"name"`
	Schema      dataset.Schema               `json:"schema"`
	Rows        int64                        `json:"rows"`
	Units       int64                        `json:"units"`
	Grouped     bool                         `json:"grouped"`           // units may have several rows
	LargestUnit int64                        `json:"largest_unit"`      // rows of the largest; a fact of its rows
	Texts       map[string]dataset.TextShape `json:"texts"`             // the public shape of text columns: of the whole table, rounded
	Checksums   map[string]string            `json:"checksums"`         // of each column, and of what else the source compares
	Private     json.RawMessage              `json:"private,omitempty"` // what the source wants to know again
}

// Part is one side of a holdout where the source keeps it. It is safe for concurrent use.
//
// Its sums are those of an [engine.Table] over the same rows, bit by bit, whatever the source does with numbers, nulls and texts; and they are the sums of all rows: where
// the source answers from fewer, or from others than were registered, the error is [Changed].
type Part interface {
	engine.MomentSource
	// Shape is what is public of the part.
	Shape() dataset.Shape
	// Price says what it costs to sum a batch, before anything is debited, from public facts alone; an [*Error] of the kind [Dear] where the source does not do it.
	Price(batch rowfn.Batch) (Price, error)
	// Read yields whole units from up to to, in the order of their numbers, in blocks of bounded memory, with these columns, or all where columns is nil. Rows of one unit come in any order.
	Read(ctx context.Context, columns []string, from, to int64, yield func(Block) error) error
	// Distinct returns the different values of a column other than null, in order, as a column; false where there are more than most.
	Distinct(ctx context.Context, column string, most int) (dataset.Column, bool, error)
	// Facts says of each column, in the order of the schema, what a card says of the training part's.
	Facts(ctx context.Context) ([]Facts, error)
	// Check reads all of the part, and returns [Changed] where it is not as it was made.
	Check(ctx context.Context) error
	// Close lets go of it.
	Close() error
}

// Price is what summing a batch takes.
type Price struct {
	Pushed  int     // row functions that the source sums itself
	Read    int     // row functions for which rows are read from it and summed here
	Bytes   int64   // about how many are read for them
	Scans   int     // statements, or passes
	Seconds float64 // about how long it takes
}

// Block is some units' rows.
type Block struct {
	Rows    *dataset.Table
	Offsets []uint32 // where the rows of each unit begin, and the end of the last; nil: each row is a unit
	First   int64    // the number of the first unit
}

// Facts are about one column of a part.
type Facts struct {
	Nulls     int64
	Infinite  int64   // of the nulls: those that were infinities in the owner's table
	Low, High float64 // of numbers and times; Low > High: nulls only
	Distinct  int64   // of texts
}

// Kind is why a source does not do what it was asked.
type Kind string

const (
	// NotFound: there is no such table or column.
	NotFound Kind = "not-found"
	// Refused: the table, or what was asked of it, is none that a holdout can be made of.
	Refused Kind = "refused"
	// Changed: rows are not those that were registered. It stays so until an owner has mended it.
	Changed Kind = "changed"
	// Dear: the sums would cost more than the source's limits allow.
	Dear Kind = "dear"
	// Unavailable: the source does not answer, or could not within its limits; the same request may succeed later.
	Unavailable Kind = "unavailable"
)

// Error is an error with a text for whoever asks. The text depends on no row but for Changed and, while a table is registered, Refused. What the source itself has said is in
// Err, for the operator alone.
type Error struct {
	Kind   Kind
	Detail string // what was wrong, where, and what to do
	Column string // that it is about, or ""
	Err    error
}

// Error is the text and what the source has said: for logs.
func (e *Error) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("sources: %s: %v", e.Detail, e.Err)
	}
	return "sources: " + e.Detail
}

// Unwrap returns what the source has said.
func (e *Error) Unwrap() error { return e.Err }
