package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// oldestServer is the oldest version of PostgreSQL that this package is written for: 13. Older ones have no support any more.
const oldestServer = 13_00_00

// settings are what a server says of itself.
type settings struct {
	version          int
	standby          bool // in recovery, or read only
	fsync, fullPages string
	commit           string // synchronous_commit, as the role, the database or the server has it
	names            string // synchronous_standby_names
	encoding         string
	timeline         int64
}

const askSettings = `SELECT current_setting('server_version_num'), pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on', current_setting('fsync'),
	current_setting('full_page_writes'), current_setting('synchronous_commit'), current_setting('synchronous_standby_names'), current_setting('server_encoding'),
	CASE WHEN pg_is_in_recovery() THEN '0' ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END`

func readSettings(ctx context.Context, conn *pgconn.PgConn) (s settings, err error) {
	results, err := conn.Exec(ctx, askSettings).ReadAll()
	if err != nil {
		return s, fmt.Errorf("ledger: read the server's settings: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || len(results[0].Rows[0]) != 8 {
		return s, errors.New("ledger: the server does not say its settings")
	}
	v := results[0].Rows[0]
	s = settings{standby: string(v[1]) == "t", fsync: string(v[2]), fullPages: string(v[3]), commit: string(v[4]), names: string(v[5]), encoding: string(v[6])}
	var errTimeline error
	s.version, err = strconv.Atoi(string(v[0]))
	s.timeline, errTimeline = strconv.ParseInt(string(v[7]), 16, 64)
	return s, errors.Join(err, errTimeline)
}

// check says why a server cannot keep a ledger, and what to do. replicated demands a synchronous standby.
//
// synchronous_commit may be on or remote_apply. remote_write is refused as local and off are: it acknowledges what the standby has only in memory, so that
// a loss of power at both loses debits that were acknowledged.
func (s *settings) check(replicated bool) error {
	switch {
	case s.version < oldestServer:
		return fmt.Errorf("ledger: PostgreSQL %d is too old: version %d or later is needed", s.version/10000, oldestServer/10000)
	case s.encoding != "UTF8":
		return fmt.Errorf("ledger: the database's encoding is %s: make one with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", s.encoding)
	case s.fsync != "on":
		return errors.New("ledger: PostgreSQL runs with fsync = off: a crash would give budgets back; set fsync = on in postgresql.conf and reload")
	case s.fullPages != "on":
		return errors.New("ledger: PostgreSQL runs with full_page_writes = off: a crash can damage pages of the ledger; set full_page_writes = on and reload")
	case s.commit != "on" && s.commit != "remote_apply":
		return fmt.Errorf("ledger: PostgreSQL runs with synchronous_commit = %s: a debit would be acknowledged before it is durable; "+
			"set it to on in postgresql.conf, or for this role alone: ALTER ROLE … SET synchronous_commit = 'on'", s.commit)
	case replicated && s.names == "":
		return errors.New("ledger: the URL names several servers, and synchronous_standby_names is empty: a standby that takes over would not have the newest debits, " +
			"and budgets would be given back; set synchronous_standby_names, or name one server")
	}
	return nil
}

// sessions makes connections fit for a ledger.
type sessions struct {
	timeline atomic.Int64 // the newest that was seen: a server on an older one was replaced, and does not know it
	identity atomic.Pointer[[]byte]
}

// pin sets in the session what a reload of the configuration, a role or a database would set otherwise. All that a server looks up it looks up by a key, also in
// tables that have become large since the plan was made.
const pin = `SET synchronous_commit = '%s'; SET default_transaction_isolation = 'read committed'; SET default_transaction_read_only = off;
	SET search_path = pg_catalog, pg_temp; SET lock_timeout = %d; SET idle_in_transaction_session_timeout = %d;
	SET statement_timeout = 0; SET client_min_messages = 'notice'; SET enable_seqscan = off`

// accept is asked of every new connection, before it is used. pgx tries the URL's next server where it fails.
func (s *sessions) accept(ctx context.Context, conn *pgconn.PgConn) error {
	said, err := readSettings(ctx, conn)
	if err != nil {
		return err
	}
	if said.standby {
		return errStandby
	}
	if err := said.check(false); err != nil {
		return err
	}
	if newest := s.timeline.Load(); said.timeline < newest {
		return fmt.Errorf("ledger: this server is on timeline %d, and another one has gone on to %d: it was replaced; stop it, and let it follow the new primary (pg_rewind)", said.timeline, newest)
	}
	ms := waitForLock.Milliseconds()
	if _, err := conn.Exec(ctx, fmt.Sprintf(pin, said.commit, ms, ms)).ReadAll(); err != nil {
		return fmt.Errorf("ledger: prepare a connection: %w", err)
	}
	// Before the schema is there, nothing can be read that would have to be durable.
	if s.identity.Load() != nil {
		if err := s.settle(ctx, conn); err != nil {
			return err
		}
	}
	for {
		newest := s.timeline.Load()
		if said.timeline <= newest || s.timeline.CompareAndSwap(newest, said.timeline) {
			return nil
		}
	}
}

var errStandby = errors.New("ledger: this server is a standby, or read only")

// settle commits a probe, so that whatever can be read is durable, and looks whether this is the same ledger as before.
func (s *sessions) settle(ctx context.Context, conn *pgconn.PgConn) error {
	if _, err := conn.Exec(ctx, "SELECT holdoutd.probe()").ReadAll(); err != nil {
		return fmt.Errorf("ledger: first commit of a connection: %w", err)
	}
	results, err := conn.Exec(ctx, "SELECT encode(value, 'hex') FROM holdoutd.meta WHERE name = 'key-check'").ReadAll()
	if err != nil {
		return fmt.Errorf("ledger: first look of a connection: %w", err)
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || string(results[0].Rows[0][0]) != fmt.Sprintf("%x", *s.identity.Load()) {
		return errors.New("ledger: another ledger is behind the URL than the one that was opened")
	}
	return nil
}

// hosts counts the servers that a URL names.
func hosts(c *pgconn.Config) int {
	names := map[string]bool{c.Host + ":" + strconv.Itoa(int(c.Port)): true}
	for _, f := range c.Fallbacks { // the same host can be there twice, with and without TLS
		names[f.Host+":"+strconv.Itoa(int(f.Port))] = true
	}
	return len(names)
}

// isDisconnected reports whether PostgreSQL's own words say that the connection, or the server, ends.
func isDisconnected(code string) bool {
	return strings.HasPrefix(code, "08") || strings.HasPrefix(code, "57P")
}
