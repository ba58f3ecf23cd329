package holdout

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
)

// A table can lie in an SQL engine: in a source that names no user who makes tables. Who makes a holdout of it names it, and sends no body. It is read once, in
// one statement, into a file as an upload has; from there on it is an upload. What the engine says of the table before and after must be the same.

// tableSource is a source that tables are taken from.
type tableSource struct {
	name   string
	tables remote.Tables
}

// openTables opens such a source. The database must be none that held-out rows are in, see checkApart.
func (s *Service) openTables(name string, of Source, o remote.Options) error {
	if of.Cluster != "" || len(of.Shards) > 0 {
		return fmt.Errorf("holdout: the source %s names a cluster, and no user who makes tables there; tables that are there already are read from one server, by a distributed table", name)
	}
	tables, err := of.connect(name, of.Reader, o)
	if err == nil {
		s.tableSources[name] = &tableSource{name, tables}
	}
	return err
}

// checkApart refuses a database that tables are taken from and held-out rows are in: whoever may upload could read them.
func checkApart(all map[string]Source) error {
	made := map[string]string{}
	for name, of := range all {
		if of.Loader.User != "" {
			for _, address := range append([]string{of.Address}, of.Shards...) {
				made[databaseOf(of.Engine, address)] = name
			}
		}
	}
	for name, of := range all {
		if of.Engine == EngineFiles || of.Loader.User != "" {
			continue
		}
		if other, both := made[databaseOf(of.Engine, of.Address)]; both {
			return fmt.Errorf("holdout: the sources %s and %s are one database: tables would be taken from where held-out rows are. Give the held-out rows a database of their own", name, other)
		}
	}
	return nil
}

// databaseOf is a database as an address names it. Two names of one host are two: the operator knows better.
func databaseOf(engine, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // it is refused elsewhere
	}
	path := strings.ToLower(strings.Trim(u.Path, "/"))
	if path == "" && engine != EngineTrino {
		path = "default"
	}
	return strings.ToLower(u.Host) + "/" + path
}

// sourceTable is a table of a source that a holdout is made of.
type sourceTable struct {
	from    *tableSource
	table   string
	columns []remote.TableColumn // that are read
	rows    int64
	state   [sha256.Size]byte // of columns, rows and values, as the engine says
}

// look asks what the table is now.
func (t *sourceTable) look(c *creation) error {
	all, err := t.from.tables.Columns(c.ctx, t.table)
	if err != nil {
		return t.failed(err)
	}
	t.columns = remote.Read(all)
	if len(t.columns) == 0 {
		return invalid("path", "path: no column of the table %q can be read; the first is %s", c.settings.Path, all[0].Why)
	}
	c.skipped = nil
	h := sha256.New()
	for _, column := range all {
		fmt.Fprintf(h, "%q %q\n", column.Name, column.Type)
		if column.Why != "" {
			c.skipped = append(c.skipped, Skipped{Name: column.Name, Reason: column.Why})
		}
	}
	rows, checksums, err := t.from.tables.State(c.ctx, t.table, t.columns)
	if err != nil {
		return t.failed(err)
	}
	fmt.Fprintln(h, t.from.name, t.table, rows, checksums)
	t.rows, t.state = rows, [sha256.Size]byte(h.Sum(nil))
	return nil
}

// failed is what is said of an error.
func (t *sourceTable) failed(err error) error {
	switch {
	case errors.Is(err, remote.ErrNoTable):
		return invalid("path", "path: there is no table %q in the source %s, or its user may not read it", t.table, t.from.name)
	case errors.Is(err, &remote.Error{Kind: remote.Changed}):
		return t.changed()
	}
	return engineFailed(t.from.name, err)
}

func (t *sourceTable) changed() error {
	return fail(Unavailable, "the table %q in the source %s changed while it was read, or not all of it came; send the request again", t.table, t.from.name)
}

// findIn finds the table in its source, and says what it is.
func (c *creation) findIn(from *tableSource, table string) (digest [sha256.Size]byte, err error) {
	if err := remote.CheckTableName(table); err != nil {
		return digest, invalid("path", "path: %q: %v", table, err)
	}
	t := &sourceTable{from: from, table: table}
	if err := from.tables.CheckProfile(c.ctx); err != nil {
		return digest, engineFailed(from.name, err)
	}
	if err := t.look(c); err != nil {
		return digest, err
	}
	if t.rows > dataset.MaxRows {
		return digest, &Error{Kind: TooLarge, Detail: fmt.Sprintf("the table %q has %d rows; a holdout is made of at most %d", table, t.rows, int64(dataset.MaxRows))}
	}
	c.sourceTable = t
	return t.state, nil
}

// take reads the table into a file, as if it had been sent.
func (c *creation) take() error {
	t := c.sourceTable
	path := filepath.Join(c.work, partTable+".parquet")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
	if err != nil {
		return fmt.Errorf("holdout: upload: %w", err)
	}
	defer f.Close()
	var columns []ingest.ValueColumn
	for i := range t.columns {
		columns = append(columns, t.columns[i].ValueColumn)
	}
	w, err := ingest.NewWriter(&limited{f, c.service.limits.UploadBytes}, columns)
	if err != nil {
		return fmt.Errorf("holdout: upload: %w", err)
	}
	left := t.rows
	err = t.from.tables.Rows(c.ctx, t.table, t.columns, func(values []ingest.Values) error {
		if left -= int64(max(len(values[0].Words), len(values[0].Texts))); left < 0 {
			return t.changed()
		}
		return w.Append(values)
	})
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = f.Close()
	}
	switch {
	case errors.Is(err, errTooLarge):
		return &Error{Kind: TooLarge, Detail: fmt.Sprintf("the table is larger than the %d bytes that this server takes", c.service.limits.UploadBytes), Members: map[string]any{"limit": c.service.limits.UploadBytes}}
	case err != nil:
		return t.failed(err)
	}
	before := t.state
	if err := t.look(c); err != nil {
		return err
	}
	if left != 0 || before != t.state {
		return t.changed()
	}
	c.uploads = map[string]string{partTable: path}
	return nil
}

// errTooLarge ends a file that is too large.
var errTooLarge = errors.New("holdout: too large")

// limited is a writer of at most so many bytes.
type limited struct {
	to   io.Writer
	left int64
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= int64(len(b)); l.left < 0 {
		return 0, errTooLarge
	}
	return l.to.Write(b)
}

// madeExpansion is how much more a table may be than a file that this server wrote: it is no stranger's, and a column without values has hardly a byte.
const madeExpansion = 1 << 20
