package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/rowfn/sql"
)

// Trino is a coordinator of Trino.
type Trino struct {
	connection
	catalog, schema string // of tables that are named without; "" where all are named with them
	dialect         sql.Dialect
}

var _ Engine = (*Trino)(nil)

// NewTrino is the coordinator at an address such as https://user:password@host:8443/catalog/schema; without the path, tables are named with catalog and schema. It asks nothing yet.
func NewTrino(text string, o Options) (*Trino, error) {
	c, path, err := address("Trino", text, o)
	if err != nil {
		return nil, err
	}
	t := &Trino{connection: c, dialect: sql.Trino}
	switch parts := schemaPath.FindStringSubmatch(path); {
	case parts == nil && path != "" && path != "/":
		return nil, errors.New("remote: the path of Trino's address is no /CATALOG/SCHEMA")
	case c.user == "":
		return nil, errors.New("remote: the address of Trino names no user")
	case c.password != "" && c.base.Scheme != "https":
		return nil, errors.New("remote: Trino takes a password over https only")
	case parts != nil:
		t.catalog, t.schema = parts[1], parts[2]
	}
	return t, nil
}

var schemaPath = regexp.MustCompile(`^/([A-Za-z0-9_]+)/([A-Za-z0-9_]+)$`)

// Dialect is Trino's.
func (t *Trino) Dialect() *sql.Dialect { return &t.dialect }

// Integers implements [Engine].
func (t *Trino) Integers(ctx context.Context, statement string, cells int) ([]string, error) {
	rows, err := t.rows(ctx, statement, AnswerBytes)
	if err != nil {
		return nil, err
	}
	if len(rows) != 1 || len(rows[0]) != cells {
		return nil, &Error{Kind: Failed, Engine: t.engine, Detail: "the answer is none of integers"}
	}
	return rows[0], nil
}

// rows are the whole answer to a statement, as JSON has the cells. A SELECT is sent again where no whole answer came: rows of an answer that broke off are dropped.
func (t *Trino) rows(ctx context.Context, statement string, most int64) (rows [][]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, StatementWait)
	defer cancel()
	err = attempts(ctx, func() (f *fault) {
		rows, f = t.once(ctx, statement, most)
		return f
	})
	return rows, err
}

// page is what Trino says of a statement at a time: some rows, and where to ask for more.
type page struct {
	NextURI string              `json:"nextUri"`
	Data    [][]json.RawMessage `json:"data"`
	Error   *struct {
		Message string `json:"message"`
		Name    string `json:"errorName"`
		Type    string `json:"errorType"`
	} `json:"error"`
}

func (t *Trino) once(ctx context.Context, statement string, most int64) (rows [][]string, f *fault) {
	next, finished := "", false
	defer func() {
		if !finished && next != "" {
			t.cancel(ctx, next)
		}
	}()
	p, f := t.page(ctx, http.MethodPost, "/v1/statement", strings.NewReader(statement), most)
	for ; f == nil; p, f = t.page(ctx, http.MethodGet, next, nil, most) {
		if next = p.NextURI; p.Error != nil {
			finished = true
			return nil, t.said(p)
		}
		for _, data := range p.Data {
			row := make([]string, len(data))
			for i, cell := range data {
				row[i] = string(cell)
				most -= int64(len(cell))
			}
			rows = append(rows, row)
		}
		if most < 0 {
			return nil, t.fail(Failed, false, errTooLong.Error())
		}
		if next == "" {
			return rows, nil
		}
	}
	return nil, f
}

// page does one request. Where it goes is where the first one went, whatever host the answer names: the password goes to no other.
func (t *Trino) page(ctx context.Context, method, to string, body io.Reader, most int64) (p page, f *fault) {
	response, err := t.request(ctx, method, to, body)
	if err != nil {
		return p, t.fail(Unreachable, true, err.Error())
	}
	defer response.Body.Close()
	text, err := readAll(response.Body, 2*max(most, 0)+AnswerBytes) // with statistics, and what JSON needs beside the cells
	switch {
	case err == errTooLong:
		return p, t.fail(Failed, false, err.Error())
	case err != nil:
		return p, t.fail(Unreachable, true, err.Error())
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return p, t.fail(Denied, false, string(text))
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return p, t.fail(Unreachable, true, string(text))
	default:
		return p, t.fail(Failed, false, string(text))
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, t.fail(Failed, false, err.Error())
	}
	return p, nil
}

func (t *Trino) request(ctx context.Context, method, to string, body io.Reader) (*http.Response, error) {
	said, err := url.Parse(to)
	if err != nil {
		return nil, err
	}
	target := t.base
	target.Path, target.RawPath, target.RawQuery = said.Path, said.RawPath, said.RawQuery
	request, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Trino-User", t.user)
	request.Header.Set("X-Trino-Source", "holdoutd")
	request.Header.Set("X-Trino-Time-Zone", "UTC")
	if end, ok := ctx.Deadline(); ok { // it ends there, too, where this server is gone
		request.Header.Set("X-Trino-Session", fmt.Sprintf("query_max_run_time=%ds", 1+int(time.Until(end).Seconds())))
	}
	if t.catalog != "" {
		request.Header.Set("X-Trino-Catalog", t.catalog)
		request.Header.Set("X-Trino-Schema", t.schema)
	}
	if t.password != "" {
		request.SetBasicAuth(t.user, t.password)
	}
	return t.client.Do(request)
}

// cancel ends a statement whose answer nobody waits for.
func (t *Trino) cancel(ctx context.Context, next string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), KillWait)
	defer cancel()
	response, err := t.request(ctx, http.MethodDelete, next, nil)
	if err != nil {
		t.tell(err.Error())
		return
	}
	_ = response.Body.Close()
}

// again are names of errors of an engine that has no room or loses a machine.
var again = map[string]bool{"QUERY_QUEUE_FULL": true, "SERVER_SHUTTING_DOWN": true, "SERVER_STARTING_UP": true, "NO_NODES_AVAILABLE": true, "REMOTE_TASK_ERROR": true,
	"REMOTE_TASK_MISMATCH": true, "REMOTE_HOST_GONE": true, "PAGE_TRANSPORT_ERROR": true, "PAGE_TRANSPORT_TIMEOUT": true, "TOO_MANY_REQUESTS_FAILED": true}

func (t *Trino) said(p page) *fault {
	words := p.Error.Name + ": " + p.Error.Message
	switch {
	case again[p.Error.Name]:
		return t.fail(Unreachable, true, words)
	case p.Error.Name == "TABLE_NOT_FOUND", p.Error.Name == "SCHEMA_NOT_FOUND":
		return t.fail(Changed, false, words)
	case p.Error.Name == "PERMISSION_DENIED":
		return t.fail(Denied, false, words)
	case p.Error.Type == "INSUFFICIENT_RESOURCES":
		return t.fail(Limit, false, words)
	}
	return t.fail(Failed, false, words)
}

// CheckProfile implements [Engine]: it asks whether the coordinator knows the user. What the user may do, Trino says nobody.
func (t *Trino) CheckProfile(ctx context.Context) error {
	_, err := t.Integers(ctx, "SELECT 1", 1)
	return err
}

// Checksum implements [Engine].
func (t *Trino) Checksum(of *sql.Table) string {
	return "SELECT from_big_endian_64(checksum(ROW(" + strings.Join(stored(of), ", ") + "))), count(*) FROM " + of.From
}
