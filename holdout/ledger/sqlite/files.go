package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// A commit is durable in the files that were opened, and the next start reads the files that have their names. So before
// each commit the two are compared: a clean-up job, a backup put back under a running server, or a mount over the
// directory would otherwise go unnoticed until everything since then is gone.

// fileSuffixes are those of the files that SQLite has open: the database, its log and the log's index.
var fileSuffixes = [...]string{"", "-wal", "-shm"}

// openFiles are the identities (device and inode) of the files behind the writer's connection.
type openFiles [len(fileSuffixes)]fs.FileInfo

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
func (l *Ledger) identify() (*openFiles, error) {
	var f openFiles
	for i, suffix := range fileSuffixes {
		info, err := l.disk.Stat(l.path + suffix)
		if err != nil {
			return nil, fmt.Errorf("ledger: %w", err)
		}
		f[i] = info
	}
	return &f, nil
}

// checkFiles says whether the ledger is this process's, by its owner's record, and its files those that were opened. The record comes first: files that another owner has
// replaced are not to be saved. The error is a *taken, a *replaced, or one that passes.
func (l *Ledger) checkFiles() error {
	if err := l.own.check(); err != nil {
		return err
	}
	return l.sameFiles()
}

// sameFiles compares the files with those of their names. It is three system calls, a few microseconds beside an fsync. Only a file that is not there, or is another
// one, and is so again at a second look, is a *replaced: any other error of a look passes.
func (l *Ledger) sameFiles() error {
	f := l.files.Load()
	if f == nil {
		return nil // no commit has been made on this connection
	}
	for i, suffix := range fileSuffixes {
		err := l.same(l.path+suffix, f[i])
		if err != nil && final(err) != nil {
			err = l.same(l.path+suffix, f[i])
		}
		if r, replaced := final(err).(*replaced); replaced {
			r.log = i > 0
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// same looks whether a name leads to the file that was opened.
func (l *Ledger) same(name string, opened fs.FileInfo) error {
	switch info, err := l.disk.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return &replaced{name: name, err: errors.Unwrap(err)}
	case err != nil:
		return fmt.Errorf("ledger: %w", err)
	case !l.disk.SameFile(info, opened):
		return &replaced{name: name}
	}
	return nil
}

// final is why nothing is written until the next start, or nil where err may pass.
func final(err error) error {
	var r *replaced
	var b *brokenLog
	var t *taken
	switch {
	case errors.As(err, &t):
		return t
	case errors.As(err, &r):
		return r
	case errors.As(err, &b):
		return b
	}
	return nil
}

// abandon ends all writing until the next start, and saves what the open files still hold. With the log gone, that is
// copied into the database; with the database gone, into a new file beside it. Of a log that is broken nothing can be saved.
func (l *Ledger) abandon(why error) {
	w := &l.writer
	if w.lost != nil {
		return
	}
	w.lost = why
	l.committed.Store(0)
	l.halt()
	if _, taken := why.(*taken); taken {
		return // who found it has said so
	}
	cause, replaced := why.(*replaced)
	if !replaced {
		l.log.Error("the ledger's log was changed under the running server: start it again; holdouts that have lost answers will say so", "error", why)
		return
	}
	l.log.Error("the ledger's files were replaced or removed under the running server", "error", cause)
	ctx := context.Background()
	if cause.log {
		if err := truncateLog(ctx, w.db); err != nil {
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
//
// Tests make it shorter.
var idleAfter = time.Second

// checkpoint copies the log into the database, without waiting for readers, if the log is what was written. It keeps the log short. And it is for
// whoever copies, or keeps, the database file alone: what must not vanish shall not be in a file that looks temporary.
func (l *Ledger) checkpoint() {
	ctx := context.Background()
	l.writer.unsettled = false
	err := l.checkFiles()
	if err == nil {
		_, err = l.checkLog(ctx, true)
	}
	if err == nil {
		err = l.copyLog(ctx)
	}
	switch why := final(err); {
	case why != nil:
		l.abandon(why)
	case err != nil:
		l.distrust(err)
		l.log.Warn("the log could not be copied into the ledger; the next commit tries again", "error", err)
	}
}

// copyLog copies what can be copied now of a log that was checked.
func (l *Ledger) copyLog(ctx context.Context) error {
	var busy int
	end := &l.writer.end
	return l.writer.db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)").Scan(&busy, &end.frames, &end.copied)
}
