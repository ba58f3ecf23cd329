package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"filippo.io/age"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
)

// Options say how a backup is read.
type Options struct {
	Identities []age.Identity
	// Ledger is where the ledger is restored; nil: a file in the directory. It must be empty, and is undone by its owner where Restore fails.
	Ledger Ledger
	// ServerKeyFile is the server.key that belongs to the ledger, where the backup has none; "": the sealed values are not opened, and the file is to be put into the directory before
	// a server can give new answers.
	ServerKeyFile string
	// Kept are answers that somebody kept; Check compares them with the ledger of the backup.
	Kept []holdout.Evidence
	// Progress, if it is not nil, hears of bytes of tables that were read of those that the backup says it has.
	Progress func(done, total int64)
}

// Modes of what is restored: those of a data directory.
const (
	fileMode = 0o600
	dirMode  = 0o700
)

// Check reads a whole backup and verifies it as Restore does, but for the values that are sealed. Its rows are loaded into a ledger in a temporary directory, which takes as much room as the ledger; the tables are
// compared with their SHA-256 and with the cards.
func Check(ctx context.Context, in io.Reader, o Options) (m Manifest, err error) {
	work, err := os.MkdirTemp("", "holdoutd-check-")
	if err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if m, err = readInto(ctx, in, o, &restoration{dir: work, ledgerTo: file(filepath.Join(work, holdout.LedgerFile)), only: true, progress: o.Progress}); err != nil || len(o.Kept) == 0 {
		return m, err
	}
	places, err := holdout.DirectoryPlaces(ctx, work)
	if err != nil {
		return m, err
	}
	return m, errors.Join(holdout.CompareAll(ctx, o.Kept, places), places.Close())
}

// Restore makes a data directory of a backup. dir must not be there, or be empty; it gets its contents in one step, when everything was compared, or stays as it was. What is left of a restore that was killed is beside it,
// hidden, and removed by the next.
func Restore(ctx context.Context, in io.Reader, dir string, o Options) (m Manifest, err error) {
	if dir, err = filepath.Abs(dir); err != nil {
		return m, fmt.Errorf("restore: %w", err)
	}
	if err := free(dir); err != nil {
		return m, err
	}
	work, unlock, err := workDir(dir)
	if err != nil {
		return m, err
	}
	defer unlock()
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }() // not there any more once it has its name
	to := &restoration{dir: work, ledgerTo: o.Ledger, progress: o.Progress}
	if to.ledgerTo == nil {
		to.ledgerTo = file(filepath.Join(work, holdout.LedgerFile))
	}
	if m, err = readInto(ctx, in, o, to); err != nil {
		return m, err
	}
	if err := to.finish(ctx, &m, o); err != nil {
		return m, err
	}
	if err := free(dir); err != nil {
		return m, err
	}
	if err := ctx.Err(); err != nil {
		return m, context.Cause(ctx)
	}
	if err := syscall.Rename(work, dir); err != nil {
		if errors.Is(err, syscall.EBUSY) || errors.Is(err, syscall.EXDEV) {
			return m, fmt.Errorf("%s is the root of a file system, which cannot be replaced in one step: restore into a directory below it", dir)
		}
		return m, fmt.Errorf("restore: %w", err)
	}
	if err := to.ledgerTo.Keep(ctx); err != nil {
		return m, errors.Join(err, syscall.Rename(dir, work)) // to be removed
	}
	return m, dataset.SyncDir(filepath.Dir(dir))
}

// free refuses a directory that has something in it.
func free(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("restore: %w", err)
	case len(entries) > 0:
		return fmt.Errorf("%s is not empty: a backup is restored into a new directory, never over one that is in use", dir)
	}
	return nil
}

// workDir makes the directory that a restore works in, beside the one that it is for, and takes it for this process. It removes what restores left that were killed.
func workDir(dir string) (work string, unlock func(), err error) {
	parent, prefix := filepath.Dir(dir), "."+filepath.Base(dir)+".restoring-"
	if err := os.MkdirAll(parent, dirMode); err != nil {
		return "", nil, fmt.Errorf("restore: %w", err)
	}
	left, err := os.ReadDir(parent)
	if err != nil {
		return "", nil, fmt.Errorf("restore: %w", err)
	}
	for _, e := range left {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() {
			continue
		}
		path := filepath.Join(parent, e.Name())
		lock, err := lockDir(path)
		if err != nil {
			continue // of a restore that runs, or not ours
		}
		err = os.RemoveAll(path)
		lock()
		if err != nil {
			return "", nil, fmt.Errorf("restore: what an earlier restore left: %w", err)
		}
	}
	if work, err = os.MkdirTemp(parent, prefix); err != nil { // made with mode 0700
		return "", nil, fmt.Errorf("restore: %w", err)
	}
	if unlock, err = lockDir(work); err != nil {
		return "", nil, errors.Join(fmt.Errorf("restore: %w", err), os.RemoveAll(work))
	}
	return work, unlock, nil
}

// lockDir takes a directory for this process. The kernel lets go of it when the process ends.
func lockDir(path string) (unlock func(), err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// readInto reads a backup into a restoration.
func readInto(ctx context.Context, in io.Reader, o Options, to *restoration) (Manifest, error) {
	clear, done, err := open(in, o.Identities)
	if err != nil {
		return Manifest{}, err
	}
	defer done()
	to.ctx, to.sums = ctx, map[string]string{}
	m, err := read(ctx, clear, to)
	if err != nil {
		return m, diskFull(err)
	}
	for i := range m.Holdouts {
		if h := &m.Holdouts[i]; !h.Deleted && h.Without == "" {
			if err := to.compare(h.ID); err != nil {
				return m, err
			}
		}
	}
	return m, nil
}

// diskFull says what to do where there is no room.
func diskFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || strings.Contains(err.Error(), "database or disk is full") {
		return fmt.Errorf("the disk is full; make room and try again, nothing was restored: %w", err)
	}
	return err
}

// restoration takes the members of a backup.
type restoration struct {
	ctx      context.Context
	dir      string // that it works in
	ledgerTo Ledger
	only     bool // what comes is compared, and only the ledger is written
	progress func(done, total int64)

	header  Header
	done    int64
	sums    map[string]string // SHA-256 of files, by path
	reports []ledger.Report
}

// begin implements sink.
func (r *restoration) begin(h Header) error {
	r.header = h
	if r.only {
		return nil
	}
	for _, name := range []string{holdoutsDir, holdout.TemporaryDir} {
		if err := os.Mkdir(filepath.Join(r.dir, name), dirMode); err != nil {
			return fmt.Errorf("restore: %w", err)
		}
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(r.dir, &disk); err == nil && h.Bytes > 0 && uint64(h.Bytes)/uint64(disk.Bsize) > disk.Bavail {
		return fmt.Errorf("the tables of the backup have %d bytes, and the disk has room for %d; nothing was restored", h.Bytes, disk.Bavail*uint64(disk.Bsize))
	}
	return nil
}

// file implements sink.
func (r *restoration) file(path string, size int64, body io.Reader) (err error) {
	sum := newSum()
	body = io.TeeReader(body, sum)
	defer func() { r.sums[path] = sum.text() }()
	if r.progress != nil {
		defer func() {
			r.done += size
			r.progress(r.done, max(r.header.Bytes, r.done))
		}()
	}
	if r.only {
		_, err := io.Copy(io.Discard, body)
		return err
	}
	to := filepath.Join(r.dir, filepath.FromSlash(path)) // the reader has checked what it is made of
	if err := os.MkdirAll(filepath.Dir(to), dirMode); err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	_, err = io.Copy(f, body)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ledger implements sink.
func (r *restoration) ledger(body io.Reader) ([]ledger.Report, error) {
	d, err := dump.NewReader(body)
	if err != nil {
		return nil, err
	}
	if err := r.ledgerTo.Load(r.ctx, d); err != nil {
		return nil, err
	}
	r.reports, err = r.ledgerTo.Verify(r.ctx)
	return r.reports, err
}

// compare holds the tables of a holdout that came against its card.
func (r *restoration) compare(id string) error {
	i := slices.IndexFunc(r.reports, func(report ledger.Report) bool { return report.Holdout == id })
	if i < 0 {
		return damaged("it has tables of the holdout %q, which its ledger does not know", short(id))
	}
	parts, err := holdout.PartsOf([]byte(r.reports[i].Public))
	if err != nil {
		return damaged("the card of %s: %v", id, err)
	}
	for part, want := range parts {
		dir := strings.Join([]string{holdoutsDir, id}, "/") + "/"
		file := holdout.PartFile(part, dataset.ManifestFile)
		if r.sums[dir+file] != want || file != part && r.sums[dir+part+"/"+dataset.ColumnsFile] == "" {
			return damaged("the part %s of %s is missing, or is not the one that the holdout was made with", part, id)
		}
	}
	return nil
}

// finish makes a data directory of what came: without the tables of deleted holdouts, with the key, verified and durable.
func (r *restoration) finish(ctx context.Context, m *Manifest, o Options) error {
	without := map[string]bool{}
	for _, h := range m.Holdouts {
		without[h.ID] = h.Without != ""
		if h.Deleted {
			if err := holdout.EraseTables(filepath.Join(r.dir, holdoutsDir, h.ID)); err != nil {
				return fmt.Errorf("restore: %w", err)
			}
		}
	}
	if o.ServerKeyFile != "" && !m.ServerKey {
		text, err := os.ReadFile(o.ServerKeyFile)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, serverKey), text, fileMode)
		}
		if err != nil {
			return fmt.Errorf("restore: the server's key: %w", err)
		}
	}
	_, err := holdout.VerifyCopyOf(r.dir, r.reports, func(key [32]byte) error { return r.ledgerTo.VerifySealed(ctx, key) },
		func(id string) bool { return m.Tables && !without[id] })
	if err != nil {
		return err
	}
	return filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return dataset.SyncDir(path)
	})
}
