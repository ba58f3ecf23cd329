package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Limits of what one server opens. A database of the default 100 connections has room for three servers.
const (
	maxReaders = 8  // reads are short
	maxWriters = 4  // a commit of a holdout takes one: those of many holdouts share the database's fsync
	maxTerms   = 16 // a holdout that is being asked takes one
)

// defaultSchema is where the tables are unless the address has a search_path.
const defaultSchema = "holdoutd"

// Times after which a connection whose other end is silent is taken for dead, by either end. A server that lost its machine keeps its terms for so long.
const (
	keepAliveIdle     = 5 * time.Second
	keepAliveInterval = 2 * time.Second
	keepAliveCount    = 3
	unheard           = 10 * time.Second // what was sent is not confirmed
)

// connectTimeout is how long one attempt to connect may take.
const connectTimeout = 5 * time.Second

var schemaName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,62}$`)

// address is where a ledger is.
type address struct {
	config *pgx.ConnConfig
	schema string
}

// parse reads an address such as postgres://user@host/database. Its search_path names the schema, of which there is one.
func parse(dsn string) (a address, err error) {
	if !strings.HasPrefix(dsn, "postgres://") && !strings.HasPrefix(dsn, "postgresql://") {
		return a, fmt.Errorf("%w: the ledger's address begins with postgres://", ledger.ErrInvalid)
	}
	if a.config, err = pgx.ParseConfig(dsn); err != nil {
		return a, fmt.Errorf("%w: the ledger's address cannot be read: %w", ledger.ErrInvalid, hidden(err))
	}
	a.schema = defaultSchema
	if path, ok := a.config.RuntimeParams["search_path"]; ok {
		a.schema = path
	}
	if !schemaName.MatchString(a.schema) {
		return a, fmt.Errorf("%w: search_path %q is not one name of a-z, 0-9 and _", ledger.ErrInvalid, a.schema)
	}
	for name, value := range map[string]string{
		"search_path":      a.schema + ", pg_temp",
		"application_name": "holdoutd",
		// What a role or a database may have set otherwise. A server waits for its turn as long as its caller does, and commits at the level that the functions are written for.
		"statement_timeout": "0", "lock_timeout": "0", "default_transaction_isolation": "read committed",
		"tcp_keepalives_idle": "5", "tcp_keepalives_interval": "2", "tcp_keepalives_count": "3", "tcp_user_timeout": "10000",
	} {
		if _, said := a.config.RuntimeParams[name]; !said || name == "search_path" {
			a.config.RuntimeParams[name] = value
		}
	}
	if a.config.ConnectTimeout == 0 {
		a.config.ConnectTimeout = connectTimeout
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: keepAliveIdle, Interval: keepAliveInterval, Count: keepAliveCount}, Control: bounded}
	a.config.DialFunc = dialer.DialContext
	return a, nil
}

// hidden leaves the password out of what is said of an address.
func hidden(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if cause := errors.Unwrap(parse); cause != nil {
			return cause
		}
		return errors.New("its form is postgres://USER@HOST:PORT/DATABASE")
	}
	return err
}

// pool opens connections when they are needed. Each is looked at before its first use.
func (a address) pool(ctx context.Context, max int32, check func(context.Context, *pgx.Conn) error, params map[string]string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("")
	if err != nil {
		return nil, err
	}
	config.ConnConfig = a.config.Copy()
	config.ConnConfig.ValidateConnect, config.ConnConfig.OnNotice = onPrimary, note
	for name, value := range params {
		config.ConnConfig.RuntimeParams[name] = value
	}
	config.MaxConns, config.AfterConnect = max, check
	config.MaxConnIdleTime = time.Minute
	return pgxpool.NewWithConfig(ctx, config)
}

// checkDurable refuses a database that may lose what it has acknowledged.
func checkDurable(ctx context.Context, conn *pgx.Conn) error {
	var fsync, pages, commit string
	err := conn.QueryRow(ctx, "SELECT current_setting('fsync'), current_setting('full_page_writes'), current_setting('synchronous_commit')").Scan(&fsync, &pages, &commit)
	switch {
	case err != nil:
		return err
	case fsync != "on" || pages != "on":
		return &unsafeError{fmt.Sprintf("runs with fsync=%s and full_page_writes=%s: a debit would not be durable here; set both to on in postgresql.conf", fsync, pages)}
	case commit != "on" && commit != "remote_apply":
		return &unsafeError{fmt.Sprintf("runs with synchronous_commit=%s for this role: a debit would not be durable here; it must be on or remote_apply (ALTER ROLE … SET synchronous_commit = on)", commit)}
	}
	return nil
}

// unsafeError is a database that no debit is trusted to.
type unsafeError struct{ reason string }

func (e *unsafeError) Error() string { return "ledger: PostgreSQL " + e.reason }

// errStandby is a database that is a standby: a primary that was replaced, or an address that leads to the wrong one.
var errStandby = errors.New("ledger: PostgreSQL is a standby, which cannot be written; give the primary's address, or those of all (postgres://ROLE@HOST1,HOST2/DATABASE)")

// onPrimary lets a connection be made to the primary alone, of all hosts that the address names, whatever its target_session_attrs is: read-write would refuse those for reading, which begin read-only.
func onPrimary(ctx context.Context, conn *pgconn.PgConn) error {
	if err := pgconn.ValidateConnectTargetSessionAttrsPrimary(ctx, conn); errors.Is(err, pgconn.ErrStandbyConnection) {
		return errStandby
	} else if err != nil {
		return err
	}
	return nil
}

// confirmWithin is how long a new connection for reading may wait for the standbys.
const confirmWithin = 5 * time.Second

// confirmed returns once the synchronous standbys have all that this connection can read. A database that crashed while a commit waited for them shows that commit after its restart, although
// they may lack it: a replay of it could be told, and lost with the next failover. They have it once they have a later commit, which waits for them; it changes nothing.
func confirmed(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	var alone bool
	if err := conn.QueryRow(ctx, "SELECT current_setting('synchronous_standby_names') = ''").Scan(&alone); err != nil || alone {
		return err
	}
	_, err := conn.Exec(ctx, "BEGIN; SET LOCAL synchronous_commit = on; SELECT pg_logical_emit_message(true, 'holdoutd', ''); COMMIT")
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("ledger: PostgreSQL's synchronous standby does not confirm what is committed; nothing is read before it does: %w", err)
	}
	return err
}

// noted is the name of what note keeps of a connection.
const noted = "holdoutd warning"

// note keeps what a database warns of: nothing that servers do is warned of, but for a commit whose wait for the standbys was cancelled.
func note(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[noted] = n.Message
	}
}

// errCancelled is a commit that succeeded although its wait for the standbys was cancelled: it is durable on the primary alone.
var errCancelled = errors.New("ledger: PostgreSQL ended its wait for the synchronous standby, which may lack the commit")

// waited is errCancelled if a commit on a connection that has just succeeded was not waited for.
func waited(conn *pgx.Conn) error {
	said, ok := conn.PgConn().CustomData()[noted]
	if !ok {
		return nil
	}
	delete(conn.PgConn().CustomData(), noted)
	return fmt.Errorf("%w: %v", errCancelled, said)
}

// Codes of the database. HD… are those of the ledger's own functions.
const (
	codeUnique    = "23505"
	codeOtherKey  = "HD001" // an idempotency key was used for another request
	codeSecondBet = "HD002" // the second belt
	codeSerialize = "40001"
	codeDeadlock  = "40P01"
	codeNoSchema  = "3F000"
	codeNoTable   = "42P01"
	codeNoRights  = "42501"
)

// code is that of the database's error, or "".
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// refused reports whether the database itself refused a statement and is otherwise well.
func refused(err error) bool {
	c := code(err)
	return strings.HasPrefix(c, "22") || strings.HasPrefix(c, "23") || c == codeSecondBet || c == codeOtherKey
}

// again reports whether the same statement is to be sent again: the database gave way to another transaction, and did nothing.
func again(err error) bool { c := code(err); return c == codeSerialize || c == codeDeadlock }

// wrapRead names the ledger in what a read failed with. What the database or the way to it says is ledger.ErrUnavailable: it cannot be read now.
func wrapRead(err error) error {
	var corrupt *ledger.CorruptError
	var version *ledger.VersionError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &corrupt), errors.As(err, &version), errors.Is(err, ledger.ErrNotFound), errors.Is(err, ledger.ErrUnavailable):
		return err
	}
	return fmt.Errorf("%w: read: %w", ledger.ErrUnavailable, err)
}
