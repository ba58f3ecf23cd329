package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// ClickHouse is a server of ClickHouse, or one of a cluster whose tables are distributed.
type ClickHouse struct {
	connection
	database string
	dialect  sql.Dialect
}

var (
	_ Engine = (*ClickHouse)(nil)
	_ Loader = (*ClickHouse)(nil)
)

// NewClickHouse is the server at an address such as https://user:password@host:8443/database. It asks nothing yet; see [ClickHouse.CheckProfile].
func NewClickHouse(text string, o Options) (*ClickHouse, error) {
	c, path, err := address("ClickHouse", text, o)
	if err != nil {
		return nil, err
	}
	database := strings.TrimPrefix(path, "/")
	if database == "" {
		database = "default"
	}
	if !databaseName.MatchString(database) {
		return nil, fmt.Errorf("remote: the address of ClickHouse has no name of a database as its path")
	}
	return &ClickHouse{c, database, sql.ClickHouse}, nil
}

var databaseName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// Dialect is ClickHouse's.
func (c *ClickHouse) Dialect() *sql.Dialect { return &c.dialect }

// Integers implements [Engine].
func (c *ClickHouse) Integers(ctx context.Context, statement string, cells int) (row []string, err error) {
	text, err := c.ask(ctx, statement, AnswerBytes)
	if err != nil {
		return nil, err
	}
	line, ended := strings.CutSuffix(string(text), "\n")
	row = strings.Split(line, "\t")
	if !ended || len(row) != cells {
		c.tell(line)
		return nil, &Error{Kind: Failed, Engine: c.engine, Detail: "the answer is none of integers"}
	}
	return row, nil
}

// ask returns the whole answer to a SELECT. It is sent again where no whole answer came: an answer is of one statement.
func (c *ClickHouse) ask(ctx context.Context, statement string, most int64) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, StatementWait)
	defer cancel()
	err = attempts(ctx, func() (f *fault) {
		answer, f = c.once(ctx, statement, most)
		return f
	})
	return answer, err
}

func (c *ClickHouse) once(ctx context.Context, statement string, most int64) ([]byte, *fault) {
	id := queryID()
	response, err := c.post(ctx, url.Values{"query_id": {id}}, strings.NewReader(statement))
	if err != nil {
		c.kill(ctx, id)
		return nil, c.fail(Unreachable, true, err.Error())
	}
	defer response.Body.Close()
	answer, err := readAll(response.Body, most)
	switch {
	case err == errTooLong:
		c.kill(ctx, id)
		return nil, c.fail(Failed, false, err.Error())
	case err != nil:
		c.kill(ctx, id)
		return nil, c.fail(Unreachable, true, err.Error())
	case response.StatusCode != http.StatusOK || response.Header.Get("X-Clickhouse-Exception-Code") != "":
		return nil, c.said(response.StatusCode, answer)
	}
	return answer, nil
}

func queryID() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it does not fail
	return "holdoutd-" + hex.EncodeToString(id[:])
}

func (c *ClickHouse) post(ctx context.Context, parameters url.Values, body io.Reader) (*http.Response, error) {
	parameters.Set("database", c.database)
	to := c.base
	to.Path, to.RawQuery = "/", parameters.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), body)
	if err != nil {
		return nil, err
	}
	if c.user != "" {
		request.SetBasicAuth(c.user, c.password)
	}
	return c.client.Do(request)
}

// kill ends a statement whose answer nobody waits for. The server may have ended it already, or may not let the user end any: its limit of time ends it then.
func (c *ClickHouse) kill(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), KillWait)
	defer cancel()
	response, err := c.post(ctx, url.Values{}, strings.NewReader("KILL QUERY WHERE query_id = '"+id+"' ASYNC"))
	if err != nil {
		c.tell(err.Error())
		return
	}
	defer response.Body.Close()
	if words, _ := readAll(response.Body, AnswerBytes); response.StatusCode != http.StatusOK {
		c.tell(string(words))
	}
}

var codeOf = regexp.MustCompile(`Code: (\d+)`)

// kinds of ClickHouse's error codes; others are Failed.
var kinds = map[string]Kind{
	"158": Limit, "159": Limit, "160": Limit, "241": Limit, "307": Limit, "396": Limit, // too many rows, timeout, too slow, memory, bytes, result rows
	"164": Denied, "192": Denied, "193": Denied, "194": Denied, "195": Denied, "291": Denied, "497": Denied, "516": Denied,
	"60": Changed, "81": Changed, // no such table or database
	"202": Unreachable, "209": Unreachable, "210": Unreachable, "279": Unreachable, // too many queries, sockets, network, all connections tried
}

// said makes an error of what a server says.
func (c *ClickHouse) said(status int, words []byte) *fault {
	kind := Failed
	if code := codeOf.FindSubmatch(words); code != nil && kinds[string(code[1])] != 0 {
		kind = kinds[string(code[1])]
	} else if status == http.StatusUnauthorized || status == http.StatusForbidden {
		kind = Denied
	} else if status == http.StatusBadGateway || status == http.StatusServiceUnavailable || status == http.StatusGatewayTimeout {
		kind = Unreachable
	}
	return c.fail(kind, kind == Unreachable, string(words))
}

// Checksum implements [Engine]: a keyless hash of each row, summed and combined bit by bit. Both change when one value of one row does, but for one chance in 2^64.
func (c *ClickHouse) Checksum(t *sql.Table) string {
	hash := "sipHash64(" + strings.Join(stored(t), ",") + ")"
	return "SELECT sum(" + hash + "),groupBitXor(" + hash + ") FROM " + t.From + c.dialect.End
}

// stored are the columns of a table as the loader wrote them.
func stored(t *sql.Table) []string {
	names := []string{t.Row}
	if t.Unit != "" {
		names = append(names, t.Unit)
	}
	for _, column := range t.Columns {
		if names = append(names, column.Name); column.Null != "" {
			names = append(names, column.Null)
		}
	}
	slices.Sort(names)
	return names
}

// settings that a user's profile must have. "" is a setting that may be absent, since older servers do not know it.
var settings = []struct {
	name string
	good func(value string) bool
	must bool // there in every version
	want string
}{
	{"readonly", not("0"), true, "1: a user that can write could change the holdout"},
	{"skip_unavailable_shards", is("0"), true, "0: else a shard that is away is left out of a sum"},
	{"read_overflow_mode", is("throw"), true, "throw: else a limit cuts a sum short"},
	{"timeout_overflow_mode", is("throw"), true, "throw: else a limit cuts a sum short"},
	{"group_by_overflow_mode", is("throw"), true, "throw: else a limit leaves units out"},
	{"result_overflow_mode", is("throw"), true, "throw: else a limit cuts an answer short"},
	{"max_execution_time", not("0"), true, "the most seconds of a statement"},
	{"max_memory_usage", not("0"), true, "the most bytes of a statement"},
	{"short_circuit_function_evaluation", is("disable"), false, "disable: else the time of an answer tells of rows"},
	{"cancel_http_readonly_queries_on_client_close", is("1"), false, "1: else a statement goes on that nobody waits for"},
	{"use_query_cache", is("0"), false, "0: else the time of an answer tells what was asked before"},
}

func is(want string) func(string) bool  { return func(v string) bool { return v == want } }
func not(want string) func(string) bool { return func(v string) bool { return v != want } }

// CheckProfile reports settings of the user's profile that would allow answers which are wrong, partial or without a limit: an error of kind [Profile].
func (c *ClickHouse) CheckProfile(ctx context.Context) error {
	var names []string
	for _, s := range settings {
		names = append(names, "'"+s.name+"'")
	}
	text, err := c.ask(ctx, "SELECT name,value FROM system.settings WHERE name IN ("+strings.Join(names, ",")+")"+c.dialect.End, AnswerBytes)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		values[name] = value
	}
	for _, s := range settings {
		value, there := values[s.name]
		if there && !s.good(value) || !there && s.must {
			return &Error{Kind: Profile, Engine: c.engine, Detail: "set " + s.name + " to " + s.want}
		}
	}
	return nil
}

// columnTypes are those of a table that is written.
func columnTypes(t *sql.Table) []string {
	types := []string{t.Row + " Int64"}
	if t.Unit != "" {
		types = append(types, t.Unit+" Int64")
	}
	for _, c := range inPlace(t) {
		switch c.Type {
		case rowfn.Text:
			types = append(types, c.Name+" String", c.Null+" UInt8")
		case rowfn.Condition:
			types = append(types, c.Name+" UInt8")
		default:
			types = append(types, c.Name+" Float64")
		}
	}
	return types
}

// inPlace are the columns of a table in the order of their names in it.
func inPlace(t *sql.Table) []sql.Column {
	var all []sql.Column
	for _, c := range t.Columns {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b sql.Column) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Create makes an empty table of a layout, with an engine of ClickHouse's such as "MergeTree() ORDER BY row_number".
func (c *ClickHouse) Create(ctx context.Context, t *sql.Table, engine string) error {
	return c.change(ctx, "CREATE TABLE "+t.From+" ("+strings.Join(columnTypes(t), ",")+") ENGINE = "+engine, nil)
}

// Make implements [Loader] for a table on one server.
func (c *ClickHouse) Make(ctx context.Context, t *sql.Table) error {
	order := t.Row
	if t.Unit != "" {
		order = "(" + t.Unit + "," + t.Row + ")"
	}
	return c.Create(ctx, t, "MergeTree() ORDER BY "+order)
}

// Drop removes a table, or does nothing where it is not there.
func (c *ClickHouse) Drop(ctx context.Context, t *sql.Table) error {
	return c.change(ctx, "DROP TABLE IF EXISTS "+t.From, nil)
}

// Insert adds rows to a table of a layout. It is sent once: rows of a request that broke off may be there or not, and the table has to be made anew.
func (c *ClickHouse) Insert(ctx context.Context, t *sql.Table, rows *Rows) error {
	var names []string
	for _, typed := range columnTypes(t) {
		name, _, _ := strings.Cut(typed, " ")
		names = append(names, name)
	}
	return c.change(ctx, "INSERT INTO "+t.From+" ("+strings.Join(names, ",")+") FORMAT RowBinary", bytes.NewReader(rows.binary(t)))
}

// change sends a statement that is no question, once.
func (c *ClickHouse) change(ctx context.Context, statement string, data io.Reader) error {
	parameters := url.Values{}
	if data == nil {
		data = strings.NewReader(statement)
	} else {
		parameters.Set("query", statement)
	}
	response, err := c.post(ctx, parameters, data)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.fail(Unreachable, false, err.Error()).err
	}
	defer response.Body.Close()
	words, err := readAll(response.Body, AnswerBytes)
	if err != nil {
		return c.fail(Unreachable, false, err.Error()).err
	}
	if response.StatusCode != http.StatusOK {
		return c.said(response.StatusCode, words).err
	}
	return nil
}
