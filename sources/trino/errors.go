package trino

import (
	"context"
	"errors"
	"strings"

	"github.com/holdoutd/holdoutd/sources"
)

// The texts for whoever asks. They depend on no row: what the engine has said stays with the operator.
const (
	notAnswering = "the source does not answer, or could not within its limits of time and memory; ask again later, or tell the operator, whose log has what it said"
	isChanged    = "the source's rows are not those that were registered; nothing is asked there until the owner has mended it"
	tableChanged = "the table has changed since it was looked at; register it again when nobody writes to it, or a version of it: catalog.schema.table@VERSION"
)

func unavailable(err error) error {
	if known(err) {
		return err
	}
	return &sources.Error{Kind: sources.Unavailable, Detail: notAnswering, Err: err}
}

// known reports an error that has its text already, or that is the caller's own.
func known(err error) bool {
	var e *sources.Error
	return err == nil || errors.As(err, &e) || errors.Is(err, context.Canceled)
}

func changed(err error) error {
	return &sources.Error{Kind: sources.Changed, Detail: isChanged, Err: err}
}

// ofPart is the error of a statement about a part: a table or a file of it that is not there is a change, all else may pass.
func ofPart(err error) error {
	if !known(err) && gone(err) {
		return changed(err)
	}
	return unavailable(err)
}

// gone reports that a table, a column or a file is not there, or cannot be read as what it was.
func gone(err error) bool {
	f := (*failure)(nil)
	if !errors.As(err, &f) {
		return false
	}
	switch f.Name {
	case "TABLE_NOT_FOUND", "COLUMN_NOT_FOUND", "SCHEMA_NOT_FOUND", "TYPE_MISMATCH":
		return true
	}
	for _, part := range []string{"FILE_NOT_FOUND", "BAD_DATA", "INVALID_METADATA", "MISSING_METADATA", "INVALID_SCHEMA", "PARTITION_NOT_FOUND", "MISSING_DATA"} {
		if strings.Contains(f.Name, part) {
			return true
		}
	}
	return strings.Contains(f.Name, "OPEN_SPLIT") && noSuchFile(f.Message)
}

// noSuchFile reports a message about a split whose file is not there. Of some file systems the reason is the path alone, once more.
func noSuchFile(message string) bool {
	for _, words := range []string{"not found", "not exist", "NotFound", "NoSuch", "No such"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	at := strings.LastIndex(message, ": ")
	return at > 0 && len(message) > at+2 && strings.Contains(message[:at], message[at+2:])
}

// ofTable is the error of a statement about an owner's table.
func ofTable(table string, err error) error {
	f := (*failure)(nil)
	if known(err) || !errors.As(err, &f) {
		return unavailable(err)
	}
	switch f.Name {
	case "TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "MISSING_CATALOG_NAME", "MISSING_SCHEMA_NAME":
		return &sources.Error{Kind: sources.NotFound, Detail: "the source has no table " + table + "; tables are named catalog.schema.table", Err: err}
	case "PERMISSION_DENIED":
		return &sources.Error{Kind: sources.Refused, Detail: "the source does not let the loader do this with " + table + "; its operator can allow it", Err: err}
	case "INVALID_ARGUMENTS", "INVALID_VIEW", "NOT_SUPPORTED", "INVALID_TABLE_FUNCTION_INVOCATION":
		return &sources.Error{Kind: sources.Refused, Detail: "the source cannot read " + table + " this way; if a version was named, see that it is one of the table's", Err: err}
	}
	if gone(err) {
		return &sources.Error{Kind: sources.Changed, Detail: tableChanged, Err: err}
	}
	return unavailable(err)
}

func asFailure(err error, f **failure) bool { return errors.As(err, f) }

func asError(err error, e **sources.Error) bool { return errors.As(err, e) }
