package ingest

import (
	"fmt"
	"strings"
)

// Kind says what sort of failure an [Error] is.
type Kind string

const (
	NotParquet      Kind = "not-parquet"       // the file does not begin and end as Parquet does
	Empty           Kind = "empty"             // the file has no bytes
	Damaged         Kind = "damaged"           // it is Parquet, but it contradicts itself or cannot be decoded
	TooLarge        Kind = "too-large"         // more bytes, rows or values than the limits allow
	TooManyColumns  Kind = "too-many-columns"  // more columns than the limits allow
	DuplicateColumn Kind = "duplicate-column"  // two columns have one name
	LongName        Kind = "long-name"         // a column's name is too long, or all names together are
	Unsupported     Kind = "unsupported"       // a column or file that we could only read wrongly
	NoUsableColumns Kind = "no-usable-columns" // every column was skipped
	NoRows          Kind = "no-rows"           // the schema is there, rows are not
	Limit           Kind = "limit"             // decoding took more memory, time or disk than the limits allow
	DiskFull        Kind = "disk-full"         // the decoded table has no room
	Unavailable     Kind = "unavailable"       // the machine failed, not the file: it may be taken when it comes again
	Internal        Kind = "internal"          // not the file's fault
)

// Error says why a file was not taken. Detail is a sentence for whoever uploaded it; it may quote column names of
// the file, no values.
type Error struct {
	Kind   Kind
	Column string // the column it is about, or ""; of a name that is too long its beginning
	Detail string
	Err    error // the cause, or nil
}

// Error returns kind, column, detail and cause.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "ingest: %s: ", e.Kind)
	if e.Column != "" {
		fmt.Fprintf(&b, "column %q: ", e.Column)
	}
	b.WriteString(e.Detail)
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Says is the sentence for whoever uploaded the file, with the column that it is about.
func (e *Error) Says() string {
	if e.Column == "" {
		return e.Detail
	}
	return fmt.Sprintf("column %q: %s", e.Column, e.Detail)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func refuse(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Detail: fmt.Sprintf(format, args...)}
}
