// Package sqlite keeps a ledger in one SQLite file, for one process at a time.
//
// SQLite runs in WAL mode with synchronous=FULL, both read back when the ledger is opened. One goroutine writes. It takes what
// callers have queued, at most [maxGroup] updates at a time, runs each of them on the books in memory, and commits them
// together: many callers share one fsync. Reads go through a second pool of connections and never wait for the writer. A lock
// file keeps a second process out.
//
// When a commit fails the writer answers ErrUnavailable to all who waited, forgets the books in memory, closes its connection,
// and reads the books from the disk again before it takes the next update.
package sqlite
