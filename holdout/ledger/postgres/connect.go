package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

const (
	// maxWriters and maxReaders are connections of this process: commits of as many holdouts go side by side, and replays never wait for
	// them. A server's max_connections is 100 where nobody has changed it.
	maxWriters, maxReaders = 16, 8
	// connectTimeout is for one server of the URL, where the URL has no connect_timeout. It includes the probe, which waits for the standby.
	connectTimeout = 5 * time.Second
	// commitTimeout is how long a commit may take before its outcome counts as unknown and its connection is given up. Callers leave when
	// their own time is over.
	commitTimeout = 20 * time.Second
	// waitForLock ends a wait for another server's lock on the same books, and that server's holding it where it has gone silent. It is
	// below commitTimeout, so that the database says it and not the clock.
	waitForLock = 10 * time.Second
	// keepAlive finds a peer that has gone without a word.
	keepAlive = 5 * time.Second
)

// link is what a connection carries.
type link struct {
	warned atomic.Pointer[pgconn.Notice] // since the last look: a warning during a commit makes its outcome unknown
}

const linkKey = "holdoutd"

// openPool makes a pool; it connects when a connection is needed. Nil accept: any server will do, and nothing is written.
func openPool(url string, size int32, accept func(context.Context, *pgconn.PgConn) error) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("%w: the ledger's URL: %w", ledger.ErrInvalid, err)
	}
	config.MaxConns = size
	c := config.ConnConfig
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectTimeout {
		c.ConnectTimeout = connectTimeout
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "holdoutd"
	}
	c.RuntimeParams["client_encoding"] = "UTF8"
	if accept != nil {
		c.ValidateConnect = accept // it does what target_session_attrs=read-write does, whatever the URL says
	}
	c.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if l, ok := conn.CustomData()[linkKey].(*link); ok && n.SeverityUnlocalized == "WARNING" {
			l.warned.Store(n)
		}
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		conn.PgConn().CustomData()[linkKey] = &link{}
		return nil
	}
	dialer := &net.Dialer{KeepAlive: keepAlive}
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		// pgx sends a request to cancel when it gives up a connection, and the server would then count a commit as done that waits for its
		// standby. Such a request comes by the same dial, and after the connection was made.
		var made atomic.Bool
		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			if made.Load() {
				return nil, errNoCancel
			}
			return dialer.DialContext(ctx, network, address)
		}
		validate := c.ValidateConnect
		c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
			if validate != nil {
				if err := validate(ctx, conn); err != nil {
					return err
				}
			}
			made.Store(true)
			return nil
		}
		return nil
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	return pool, nil
}

var errNoCancel = errors.New("ledger: no commit is cancelled")

// warning takes what the server warned of since the last call.
func warning(c *pgx.Conn) error {
	l, ok := c.PgConn().CustomData()[linkKey].(*link)
	if !ok {
		return errors.New("ledger: a connection that is not this package's")
	}
	if n := l.warned.Swap(nil); n != nil {
		return fmt.Errorf("ledger: PostgreSQL warns of a commit: %s (%s)", n.Message, n.Detail)
	}
	return nil
}
