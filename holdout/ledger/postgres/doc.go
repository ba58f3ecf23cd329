// Package postgres keeps a ledger in a database of PostgreSQL, for as many processes as like to serve it.
//
// An update runs on the books that this process believes in, and is sent in one round trip: a function of the database
// (holdoutd.move_books) locks the row of the books, compares what was believed with what is there, and writes entries, books, meters and
// idempotency keys. Where the books have moved, the update is run again on the newest ones, under their lock, so that it gets through.
// What an update has only looked at is compared as well: a refusal that rests on old books is nobody's answer. Updates of one holdout that wait
// at the same time are committed together; those of different holdouts go side by side, and PostgreSQL shares its flushes among them.
//
// # What is durable
//
// A commit is acknowledged when PostgreSQL says that it is durable: with synchronous_commit = on, on its own disk and on that of the synchronous
// standby, if there is one. Every connection is refused where the server does not promise that (see settings.go). Two things of PostgreSQL are kept
// away from it, for they make a commit visible that no standby has:
//
//   - A request to cancel ends the wait for the standby, and the commit counts as done. This package sends none, also when it gives up a
//     connection; and a commit that the server warned about has an unknown outcome (ledger.ErrUnavailable).
//   - A server that crashes while it waits shows the commit after its restart. So each connection, before it is used, commits a probe of its own:
//     when that is durable, so is all that could be read before it.
//
// An old primary that was replaced, and does not know it, waits for its standby for ever: it can acknowledge nothing.
package postgres
