package trino

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
	"github.com/holdoutd/holdoutd/sources/sql"
)

// looked is what is kept of a look, in Snapshot.Private.
type looked struct {
	Version string                       `json:"version,omitempty"` // of the table, where it has versions: all is read from this one
	Named   bool                         `json:"named,omitempty"`   // by the owner, so that later ones are no change
	Columns []ownerColumn                `json:"columns"`
	Texts   map[string]dataset.TextShape `json:"texts"`
}

// owned is an owner's table that was looked at, or is to be.
type owned struct {
	looked
	table  string // as the owner says
	names  [3]string
	source *Source
}

// from is the table as it stands after FROM: of the version that was looked at.
func (o *owned) from() string {
	name := sql.Trino.Name(o.names[:]...)
	if o.Version != "" {
		name += " FOR VERSION AS OF " + o.Version
	}
	return name
}

func (o *owned) column(name string) (*ownerColumn, bool) {
	i := slices.IndexFunc(o.Columns, func(c ownerColumn) bool { return c.Name == name })
	if i < 0 {
		return nil, false
	}
	return &o.Columns[i], true
}

const maxTableName = 1000

var versionNumber = regexp.MustCompile(`^[0-9]{1,19}$`)

// parseTable reads catalog.schema.table, each of which may be in double quotes, and @VERSION behind it.
func parseTable(text string) (o owned, err error) {
	bad := func(why string) (owned, error) {
		return owned{}, &sources.Error{Kind: sources.Refused, Detail: "tables are named catalog.schema.table, or catalog.schema.table@VERSION: " + why}
	}
	o.table = text
	if len(text) > maxTableName || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < 0x20 || r == 0x7f }) {
		return bad("this name is too long, or has what no name has")
	}
	rest := text
	for i := range o.names {
		part := ""
		if strings.HasPrefix(rest, `"`) {
			for rest = rest[1:]; ; {
				at := strings.IndexByte(rest, '"')
				if at < 0 {
					return bad("a quote is not closed")
				}
				part, rest = part+rest[:at], rest[at+1:]
				if !strings.HasPrefix(rest, `"`) {
					break
				}
				part, rest = part+`"`, rest[1:]
			}
		} else {
			at := strings.IndexAny(rest, ".@")
			if at < 0 {
				at = len(rest)
			}
			part, rest = rest[:at], rest[at:]
		}
		if part == "" || strings.Contains(part, "$") {
			return bad("this one has not three parts, or is a table about another one")
		}
		o.names[i] = strings.ToLower(part) // as Trino does
		if i < 2 {
			if !strings.HasPrefix(rest, ".") {
				return bad("this one has not three parts")
			}
			rest = rest[1:]
		}
	}
	if version, ok := strings.CutPrefix(rest, "@"); ok && versionNumber.MatchString(version) {
		o.Version, o.Named, rest = version, true, ""
	}
	if rest != "" {
		return bad("there is more behind the third part")
	}
	return o, nil
}

// Look looks at a table. Of tables with versions (Iceberg, Delta Lake) it is at the newest one, unless the name says which.
func (s *Source) Look(ctx context.Context, table string) (sources.Snapshot, error) {
	o, err := s.find(ctx, table)
	if err != nil {
		return sources.Snapshot{}, err
	}
	snapshot := sources.Snapshot{Table: table}
	if snapshot.Skipped, err = o.describe(ctx); err != nil {
		return sources.Snapshot{}, ofTable(table, err)
	}
	if len(o.Columns) == 0 {
		return sources.Snapshot{}, &sources.Error{Kind: sources.Refused, Detail: "the table has no column of numbers, truths, texts or times"}
	}
	if snapshot.Rows, snapshot.Checksum, err = o.checksum(ctx); err == nil {
		err = o.decide(ctx, &snapshot)
	}
	if err != nil {
		return sources.Snapshot{}, ofTable(table, err)
	}
	for _, c := range o.Columns {
		snapshot.Schema.Fields = append(snapshot.Schema.Fields, dataset.Field{Name: c.Name, Kind: c.Kind, Source: c.Type})
	}
	snapshot.Private, err = json.Marshal(o.looked)
	return snapshot, err
}

// find finds a table and its newest version, where it has versions.
func (s *Source) find(ctx context.Context, table string) (*owned, error) {
	o, err := parseTable(table)
	if err != nil {
		return nil, err
	}
	o.source = s
	if o.names[0] == s.catalog && o.names[1] == s.schema {
		return nil, &sources.Error{Kind: sources.Refused, Detail: "the schema " + s.catalog + "." + s.schema + " is where the server keeps parts; its tables cannot be registered"}
	}
	if o.Version == "" {
		o.Version, err = o.newest(ctx)
	}
	return &o, err
}

// newest is the newest version of a table; "" where it has none, or the loader may not know.
func (o *owned) newest(ctx context.Context) (string, error) {
	connector, err := o.source.connectorOf(ctx, o.names[0])
	if err != nil {
		return "", err
	}
	history := sql.Trino.Name(o.names[0], o.names[1], o.names[2]+"$history")
	text := ""
	switch connector {
	case "iceberg":
		text = "SELECT CAST(snapshot_id AS varchar) FROM " + sql.Trino.Name(o.names[0], o.names[1], o.names[2]+"$refs") + " WHERE name = 'main'"
	case "delta_lake":
		text = "SELECT CAST(max(version) AS varchar) FROM " + history
	default:
		return "", nil
	}
	rows, err := o.source.loader.rows(ctx, text)
	switch f := (*failure)(nil); {
	case asFailure(err, &f) && f.Name != "TABLE_NOT_FOUND" && f.Type == "USER_ERROR": // a view, which has none
		return "", nil
	case err != nil:
		return "", ofTable(o.table, err)
	case len(rows) == 0 || rows[0][0] == nil: // without any rows yet
		return "", nil
	}
	version, _ := rows[0][0].(string)
	if !versionNumber.MatchString(version) {
		return "", unavailable(fmt.Errorf("%w: a version %q", errProtocol, version))
	}
	return version, nil
}

// describe asks for the columns.
func (o *owned) describe(ctx context.Context) (skipped []sources.Skipped, err error) {
	var columns []column
	err = o.source.loader.describe(ctx, "SELECT * FROM "+o.from()+" LIMIT 0", &columns)
	for _, c := range columns {
		kind, reason := kindOf(c.Type)
		switch {
		case c.Name == "" || !utf8.ValidString(c.Name):
			reason = "its name is empty or not UTF-8"
		case strings.ContainsFunc(c.Name, forbidden):
			reason = "its name holds a control character"
		}
		if reason != "" {
			skipped = append(skipped, sources.Skipped{Name: c.Name, Reason: reason})
			continue
		}
		o.Columns = append(o.Columns, ownerColumn{Name: c.Name, Type: c.Type, Kind: kind})
	}
	return skipped, err
}

// checksum counts the rows and hashes them, as the owner has them.
func (o *owned) checksum(ctx context.Context) (int64, string, error) {
	rows, err := o.source.loader.rows(ctx, "SELECT count(*), checksum(ROW("+strings.Join(o.quoted(), ", ")+")) FROM "+o.from())
	if err != nil {
		return 0, "", err
	}
	count, err := integer(rows, 0)
	if err != nil {
		return 0, "", err
	}
	if count == 0 {
		return 0, "", &sources.Error{Kind: sources.Refused, Detail: "the table has no rows"}
	}
	if count > dataset.MaxRows {
		return 0, "", &sources.Error{Kind: sources.Refused, Detail: fmt.Sprintf("the table has %d rows; a holdout can have at most %d", count, dataset.MaxRows)}
	}
	text, _ := rows[0][1].(string)
	hash, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(hash) == 0 {
		return 0, "", fmt.Errorf("%w: a checksum %q", errProtocol, text)
	}
	return count, hex.EncodeToString(hash), nil
}

func (o *owned) quoted() []string {
	names := make([]string, len(o.Columns))
	for i, c := range o.Columns {
		names[i] = sql.Trino.Name(c.Name)
	}
	return names
}

// factColumns is how many columns a statement asks the facts of.
const factColumns = 60

// decide looks at the values: it drops columns that cannot be read, and finds the public shape of texts.
func (o *owned) decide(ctx context.Context, snapshot *sources.Snapshot) error {
	reasons := make([]string, len(o.Columns))
	for from := 0; from < len(o.Columns); from += factColumns {
		some := o.Columns[from:min(from+factColumns, len(o.Columns))]
		list := []string{"count(*)"}
		for i := range some {
			list = append(list, some[i].facts()...)
		}
		rows, err := o.source.loader.rows(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+o.from())
		if err != nil {
			return err
		}
		if len(rows) != 1 || len(rows[0]) != len(list) {
			return fmt.Errorf("%w: %d facts, want %d", errProtocol, len(rows), len(list))
		}
		facts := rows[0][1:]
		for i := range some {
			n := len(some[i].facts()) // before decide, which may make it another kind
			if reasons[from+i], err = some[i].decide(facts[:n]); err != nil {
				return err
			}
			facts = facts[n:]
		}
	}
	o.Texts = map[string]dataset.TextShape{}
	bytes := int64(0)
	for i := range o.Columns {
		c := &o.Columns[i]
		if c.Kind != dataset.Text || reasons[i] != "" {
			continue
		}
		texts, length, err := o.texts(ctx, c)
		switch {
		case err != nil:
			return err
		case texts > maxTexts:
			reasons[i] = tooManyTexts
		case bytes+length+16*texts > maxTextBytes:
			reasons[i] = tooLargeTexts
		default:
			bytes += length + 16*texts
			o.Texts[c.Name] = dataset.TextShape{Texts: powerOfTwo(texts), Bytes: powerOfTwo(1 + length + texts)}
		}
	}
	kept := o.Columns[:0]
	for i, c := range o.Columns {
		if reasons[i] != "" {
			snapshot.Skipped = append(snapshot.Skipped, sources.Skipped{Name: c.Name, Reason: reasons[i]})
			continue
		}
		kept = append(kept, c)
	}
	o.Columns = kept
	return nil
}

// texts counts the different texts of a column, and their bytes.
func (o *owned) texts(ctx context.Context, c *ownerColumn) (count, bytes int64, err error) {
	rows, err := o.source.loader.rows(ctx, "SELECT count(*), coalesce(sum(length(to_utf8(v))), 0) FROM (SELECT DISTINCT "+c.value()+" v FROM "+o.from()+") WHERE v IS NOT NULL")
	if err != nil {
		return 0, 0, err
	}
	if count, err = integer(rows, 0); err == nil {
		bytes, err = integer(rows, 1)
	}
	return count, bytes, err
}

// powerOfTwo is the least power of two that is at least n, and at least 1.
func powerOfTwo(n int64) int64 {
	p := int64(1)
	for p < n {
		p *= 2
	}
	return p
}

// integer is the integer of a column of the only row.
func integer(rows [][]any, at int) (int64, error) {
	if len(rows) != 1 || at >= len(rows[0]) {
		return 0, fmt.Errorf("%w: %d rows, want one", errProtocol, len(rows))
	}
	x, err := strconv.ParseInt(fmt.Sprint(rows[0][at]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return x, nil
}

// reopened is the table of a snapshot.
func (s *Source) reopened(of sources.Snapshot) (*owned, error) {
	o, err := parseTable(of.Table)
	if err != nil {
		return nil, err
	}
	o.source = s
	if err := json.Unmarshal(of.Private, &o.looked); err != nil {
		return nil, fmt.Errorf("trino: what was kept of the look: %w", err)
	}
	if o.Version != "" && !versionNumber.MatchString(o.Version) {
		return nil, fmt.Errorf("trino: what was kept of the look has the version %q", o.Version)
	}
	return &o, nil
}

// same reports, as an error, whether the table is not as it was looked at any more.
func (o *owned) same(ctx context.Context, of sources.Snapshot) error {
	if o.Version != "" && !o.Named {
		newest, err := o.newest(ctx)
		if err != nil {
			return err
		}
		if newest != o.Version {
			return &sources.Error{Kind: sources.Changed, Detail: tableChanged, Err: fmt.Errorf("trino: version %s is now %s", o.Version, newest)}
		}
	}
	now := owned{table: o.table, names: o.names, source: o.source, looked: looked{Version: o.Version, Named: o.Named}}
	if _, err := now.describe(ctx); err != nil {
		return ofTable(o.table, err)
	}
	rows, checksum, err := now.checksum(ctx)
	switch {
	case err != nil && !known(err):
		return ofTable(o.table, err)
	case err != nil || rows != of.Rows || checksum != of.Checksum:
		return firstOf(wrongKind(err), &sources.Error{Kind: sources.Changed, Detail: tableChanged, Err: fmt.Errorf("trino: %d rows of %d", rows, of.Rows)})
	}
	return nil
}

// wrongKind is an error that says nothing of a change: nobody waits any more, or the engine does not answer.
func wrongKind(err error) error {
	var e *sources.Error
	if err == nil || asError(err, &e) && e.Kind == sources.Refused {
		return nil
	}
	return err
}
