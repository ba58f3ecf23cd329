package postgres

import (
	"encoding/json"
	"fmt"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// The rows of a dump are those of the schema of a ledger in a file, so that either kind of ledger loads the other's. This schema differs in that
//   - texts from outside are bytea, and truths are boolean;
//   - the marks of a holdout (a draft, restored) are columns of books, not rows of meta, and ended sessions have a table of their own;
//   - books count their moves, which means something in this database alone;
//   - the holdouts of a key are an array, not a JSON list.

// rowsKind and rowsSchema name that schema; firstRows is the oldest that is loaded.
const rowsKind, rowsSchema, firstRows = "sqlite", 4, 2

// form is how the values of a column are kept here and written in a dump.
type form int

const (
	number form = iota // bigint or integer: an integer
	truth              // boolean: 0 or 1
	words              // bytea: a text
	text               // text: a text
	raw                // bytea: bytes
	list               // bytea[]: a JSON list of texts, or the empty text
)

// column is one of both schemas.
type column struct {
	name  string
	form  form
	null  bool
	since int64 // the first schema of a dump that has it; 0: as the table
}

// table is one of both schemas.
type table struct {
	name    string
	order   string // its primary key
	since   int64
	columns []column
}

// tables are all that a dump has, each behind those that it refers to.
var tables = []table{
	{"meta", "name", firstRows, []column{{name: "name", form: text}, {name: "value", form: raw}}},
	{"holdouts", "number", firstRows, []column{{name: "number"}, {name: "id", form: words}, {name: "created"}, {name: "digest", form: raw}, {name: "public", form: raw},
		{name: "secret", form: raw, null: true}}},
	{"books", "holdout", firstRows, []column{{name: "holdout"}, {name: "state", form: raw, null: true}, {name: "seq"}, {name: "head", form: raw}, {name: "deleted", form: truth}}},
	{"meters", "holdout, name", firstRows, []column{{name: "holdout"}, {name: "name", form: text}, {name: "cap"}, {name: "spent"}}},
	{"entries", "holdout, seq", firstRows, []column{{name: "holdout"}, {name: "seq"}, {name: "version"}, {name: "kind", form: text}, {name: "time"}, {name: "query", form: words},
		{name: "canonical", form: words}, {name: "principal", form: words}, {name: "debit", form: text}, {name: "spent", form: text}, {name: "body", form: words}, {name: "head", form: raw}}},
	{"idempotency", "principal, key", firstRows, []column{{name: "principal", form: words}, {name: "key", form: words}, {name: "request", form: raw}, {name: "resource", form: words}, {name: "created"}}},
	{"keys", "id", firstRows, []column{{name: "id", form: words}, {name: "name", form: words}, {name: "scope", form: words}, {name: "created"}, {name: "hash", form: raw}, {name: "revoked", form: truth},
		{name: "holdouts", form: list, null: true, since: 4}, {name: "only_granted", form: truth, since: 4}}},
	{"notes", "holdout, seq", 3, []column{{name: "holdout"}, {name: "seq"}, {name: "note", form: words}}},
	{"grants", "number", 4, []column{{name: "number"}, {name: "holdout"}, {name: "id", form: words}, {name: "parent", form: words, null: true}, {name: "holder", form: words}, {name: "name", form: words},
		{name: "shows", form: words}, {name: "may_grant", form: truth}, {name: "maker", form: words}, {name: "created"}, {name: "expires", null: true}, {name: "ended", null: true}, {name: "ended_by", form: words}}},
	{"grant_meters", "owner, name", 4, []column{{name: "owner", form: words}, {name: "name", form: text}, {name: "cap"}, {name: "spent"}, {name: "held"}}},
	{"granted", "holdout, name", 4, []column{{name: "holdout"}, {name: "name", form: text}, {name: "held"}}},
	{"granting", "holdout", 4, []column{{name: "holdout"}, {name: "changes"}}},
	{"payers", "holdout, seq", 4, []column{{name: "holdout"}, {name: "seq"}, {name: "payer", form: words}}},
}

// elsewhere are the columns of this schema that a dump has in another place (ended sessions and marks in meta), or that begin anew (moves).
var elsewhere = map[string]bool{"books.moves": true, "books.draft": true, "books.restored": true, "ended_sessions.id": true, "ended_sessions.until": true}

// into is what a value of the column is scanned into.
func (c *column) into() any {
	switch c.form {
	case number:
		return new(*int64)
	case truth:
		return new(bool)
	case text:
		return new(string)
	case list:
		return new([][]byte)
	}
	return new([]byte)
}

// write is the value of a dump for one that was scanned.
func (c *column) write(from any) (any, error) {
	switch v := from.(type) {
	case **int64:
		if *v == nil {
			return nil, nil
		}
		return **v, nil
	case *bool:
		return *v, nil
	case *string:
		return *v, nil
	case *[][]byte:
		if *v == nil {
			return "", nil
		}
		var texts []string
		for _, b := range *v {
			texts = append(texts, string(b))
		}
		list, err := json.Marshal(texts)
		return string(list), err
	case *[]byte:
		switch {
		case *v == nil:
			return nil, nil
		case c.form == words:
			return string(*v), nil
		}
		return *v, nil
	}
	return nil, fmt.Errorf("ledger: dump: a value of the type %T", from)
}

// read is the value of this schema for one of a dump, or a *ledger.CorruptError.
func (c *column) read(table string, v any) (any, error) {
	switch x := v.(type) {
	case nil:
		if c.null && c.form != list {
			return nil, nil
		}
	case int64:
		switch {
		case c.form == number:
			return x, nil
		case c.form == truth && (x == 0 || x == 1):
			return x == 1, nil
		}
	case []byte:
		if c.form == raw {
			return x, nil
		}
	case string:
		switch {
		case c.form == text:
			return x, nil
		case c.form == words:
			return []byte(x), nil
		case c.form == list && x == "":
			return [][]byte(nil), nil
		case c.form == list:
			var texts []string
			if err := json.Unmarshal([]byte(x), &texts); err != nil || len(texts) == 0 {
				break
			}
			all := make([][]byte, len(texts))
			for i, t := range texts {
				all[i] = []byte(t)
			}
			return all, nil
		}
	}
	return nil, &ledger.CorruptError{Seq: -1, Reason: fmt.Sprintf("a row of the backup has a %T in %s.%s that does not belong there", v, table, c.name)}
}

// absent is what a column has in rows that are older than it.
func (c *column) absent() any {
	if c.form == truth {
		return false
	}
	return [][]byte(nil)
}
