package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// A commit is durable in the files that were opened, and the next start reads the files that have their names. So before
// each commit the two are compared: a clean-up job, a backup put back under a running server, or a mount over the
// directory would otherwise go unnoticed until everything since then is gone.

// fileSuffixes are those of the files that SQLite has open: the database, its log and the log's index.
var fileSuffixes = [...]string{"", "-wal", "-shm"}

// openFiles are the identities (device and inode) of the files behind the writer's connection.
type openFiles [len(fileSuffixes)]os.FileInfo

// replaced says that a file is not the one that was opened.
type replaced struct {
	name string
	log  bool // it is the log or its index; the database itself is there
	err  error
}

func (e *replaced) Error() string {
	what := "is another file than the one that was opened"
	if e.err != nil {
		what = fmt.Sprintf("is not there any more (%v)", e.err)
	}
	return fmt.Sprintf("ledger: %s %s; nothing is recorded until the server has been started again", e.name, what)
}

// identify looks the files up by their names.
func identify(path string) (*openFiles, error) {
	var f openFiles
	for i, suffix := range fileSuffixes {
		info, err := os.Stat(path + suffix)
		if err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		f[i] = info
	}
	return &f, nil
}

// check compares the files with those of their names. It is three system calls, a few microseconds beside an fsync.
func (f *openFiles) check(path string) error {
	if f == nil {
		return nil // no commit has been made on this connection
	}
	for i, suffix := range fileSuffixes {
		info, err := os.Stat(path + suffix)
		if err != nil || !os.SameFile(info, f[i]) {
			return &replaced{name: path + suffix, log: i > 0, err: errors.Unwrap(err)}
		}
	}
	return nil
}

// abandon ends all writing until the next start, and saves what the open files still hold. With the log gone, that is
// copied into the database; with the database gone, into a new file beside it.
func (l *Ledger) abandon(cause *replaced) {
	w := &l.writer
	if w.lost != nil {
		return
	}
	w.lost = cause
	l.committed.Store(0)
	l.log.Error("the ledger's files were replaced or removed under the running server", "error", cause)
	ctx := context.Background()
	if cause.log {
		if err := settle(ctx, w.db); err != nil {
			l.log.Error("the log could not be copied into the ledger", "error", err)
			return
		}
		l.log.Error("what the removed log held was copied into the ledger: start the server again", "ledger", l.path)
		return
	}
	rescued := l.path + ".rescued"
	if _, err := w.db.ExecContext(ctx, "VACUUM INTO ?", rescued); err != nil {
		l.log.Error("the ledger could not be copied", "to", rescued, "error", err)
		return
	}
	l.log.Error("the open ledger was copied: stop the server, give the copy the ledger's name, and start again", "copy", rescued, "ledger", l.path)
}

// idleAfter is how long the writer has nothing to do before it copies the log into the database.
const idleAfter = time.Second

// checkpoint copies the log into the database, without waiting for readers. Commits do not need it. It is for whoever
// copies, or keeps, the database file alone: what must not vanish shall not be in a file that looks temporary.
func (l *Ledger) checkpoint() {
	w := &l.writer
	w.unsettled = false
	var busy, frames, copied int
	err := l.files.Load().check(l.path)
	if err == nil {
		err = w.db.QueryRowContext(context.Background(), "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &frames, &copied)
	}
	var r *replaced
	switch {
	case errors.As(err, &r):
		l.abandon(r)
	case err != nil:
		l.log.Warn("the log could not be copied into the ledger; the next commit tries again", "error", err)
	}
}
