// Package postgres keeps a ledger in a PostgreSQL database, for several servers at a time.
//
// [Prepare] makes the tables and gives a role what a server needs: it may read them, and change them by functions that only append. [Open] is what servers
// do, with that role. It refuses a database that may lose what it has acknowledged (fsync, full_page_writes or synchronous_commit are off) and a role that may do
// more.
//
// What a server believes of a holdout's books is in its memory: it runs an update on it, and sends debit, answer and the mechanism's next state in one statement, which
// is refused where another server has recorded something since. Then the books are read, and the update runs again. Updates of one holdout that are waiting share a commit; those of different
// holdouts share the database's own.
//
// A [ledger.Term] is how a server has a holdout to itself from the reading of rows to the commit: docs/decisions/0008-shared-ledger.md has the reasons.
package postgres
