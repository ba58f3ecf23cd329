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
	"time"

	"filippo.io/age"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/dump"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/machine"
)

// Ledger is a ledger of any kind that is read for a backup and made by a restore.
type Ledger interface {
	// Dump writes all rows as they were at one moment, and verifies them.
	Dump(ctx context.Context, out io.Writer) ([]ledger.Report, error)
	// Load makes the ledger of a dump, where there must be none. Before Keep, nobody takes what it leaves for a ledger.
	Load(ctx context.Context, d *dump.Reader) error
	// Verify recomputes all chains and books.
	Verify(ctx context.Context) ([]ledger.Report, error)
	// VerifySealed opens all sealed values with a key.
	VerifySealed(ctx context.Context, key [32]byte) error
	// Keep makes what was loaded a ledger for others to see; a file is one by its name.
	Keep(ctx context.Context) error
}

// file is a ledger in a file.
type file string

func (f file) Dump(ctx context.Context, out io.Writer) ([]ledger.Report, error) {
	return sqlite.Dump(ctx, string(f), out)
}

func (f file) Load(ctx context.Context, d *dump.Reader) error {
	return sqlite.Load(ctx, string(f), d)
}

func (f file) Verify(ctx context.Context) ([]ledger.Report, error) {
	return sqlite.Verify(ctx, string(f))
}

func (f file) VerifySealed(ctx context.Context, key [32]byte) error {
	return sqlite.VerifySealed(ctx, string(f), key)
}

func (f file) Keep(context.Context) error { return nil }

// Source is what is backed up.
type Source struct {
	Dir    string // the data directory
	Ledger Ledger // nil: the one in the directory
	Tables string // the directory of the holdouts' tables; "": holdouts in the data directory

	NoTables      bool // the ledger alone
	WithServerKey bool // with server.key and admin.key: whoever opens the backup can then do everything

	Recipients []age.Recipient // who can open it
	Program    string          // the version of this program
	Spool      string          // directory for the ledger's rows while the rest is written; "": the system's
	// Progress, if it is not nil, hears of bytes that were written of those that were found at the beginning.
	Progress func(done, total int64)
}

// maxPasses is how often the ledger is read because holdouts were made meanwhile.
const maxPasses = 20

// Create writes a backup to out. The server may go on: the tables come first, which never change once they are there, and then the ledger as it is at one moment,
// which is the moment of the backup. The log of the server's ledger grows until its rows are in a file of their own, which takes as long as a disk takes; how fast out is does not matter.
//
// A holdout that was made meanwhile is in it, with its tables. One that was deleted meanwhile is deleted in it. Holdouts whose tables are damaged are in it without them: the manifest says so, and the
// caller should.
func Create(ctx context.Context, out io.Writer, from Source) (m Manifest, err error) {
	if from.Ledger == nil {
		path := filepath.Join(from.Dir, holdout.LedgerFile)
		if _, err := os.Stat(path); err != nil {
			return m, fmt.Errorf("%s is not a data directory: it has no %s", from.Dir, holdout.LedgerFile)
		}
		from.Ledger = file(path)
	}
	if from.Tables == "" {
		from.Tables = filepath.Join(from.Dir, holdoutsDir)
	}
	c := creation{Source: from, ctx: ctx, done: map[string]string{}}
	m.Header = Header{Format: Format, Created: time.Now().UTC().Truncate(time.Second), Program: from.Program, Tables: !from.NoTables, ServerKey: from.WithServerKey}
	if m.Tables {
		m.Bytes, err = c.estimate()
		if err != nil {
			return m, err
		}
	}
	c.w, err = newWriter(interruptibleWriter{ctx, out}, from.Recipients, m.Created)
	if err != nil {
		return m, err
	}
	written := int64(0)
	if from.Progress != nil {
		c.w.wrote = func(n int) {
			written += int64(n)
			from.Progress(written, max(m.Bytes, written))
		}
	}
	if err := c.w.object(headerMember, m.Header); err != nil {
		return m, err
	}
	rows, err := c.members()
	if err != nil {
		return m, err
	}
	defer rows.Close()
	if from.WithServerKey {
		for _, name := range []string{serverKey, adminKey} {
			if err := c.key(name); err != nil {
				return m, err
			}
		}
	}
	if err := c.whole(ledgerMember, rows); err != nil {
		return m, err
	}
	for i := range c.reports {
		h := holdoutFrom(&c.reports[i])
		h.Name = holdout.VerificationOf(c.reports[i]).Name
		if !h.Deleted {
			h.Without = c.done[h.ID]
		}
		m.Holdouts = append(m.Holdouts, h)
	}
	m.Files = c.w.files
	if err := c.w.object(manifestMember, m); err != nil {
		return m, err
	}
	return m, c.w.close()
}

// creation is a backup on its way.
type creation struct {
	Source
	ctx     context.Context
	w       *writer
	done    map[string]string // holdouts whose tables were written, with why they were not
	reports []ledger.Report   // of the ledger's rows
}

// estimate adds up the files that are there.
func (c *creation) estimate() (total int64, err error) {
	err = filepath.WalkDir(c.Tables, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || leftOut(e.Name()) {
			return ignoreGone(err)
		}
		info, err := e.Info()
		if err == nil {
			total += info.Size()
		}
		return ignoreGone(err)
	})
	if err != nil {
		return 0, fmt.Errorf("backup: %w", err)
	}
	return total, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// members writes the tables, and returns the rows of a ledger that has no others.
func (c *creation) members() (rows *os.File, err error) {
	if c.NoTables {
		return c.spool()
	}
	listed, err := os.ReadDir(c.Tables)
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	for _, e := range listed {
		dir := filepath.Join(c.Tables, e.Name())
		if _, err := os.Lstat(filepath.Join(dir, holdout.UncommittedMark)); err == nil || !e.IsDir() {
			continue // not a holdout yet, or never one
		}
		if _, err := c.tables(e.Name()); err != nil {
			return nil, err
		}
	}
	for range maxPasses {
		if rows, err = c.spool(); err != nil {
			return nil, err
		}
		again := false
		for i := range c.reports {
			r := &c.reports[i]
			if _, known := c.done[r.Holdout]; known || r.Deleted {
				continue
			}
			gone, err := c.tables(r.Holdout)
			if err != nil {
				return nil, errors.Join(err, rows.Close())
			}
			again = again || gone
		}
		if !again {
			return rows, c.compare()
		}
		if err := rows.Close(); err != nil { // a holdout was deleted behind these rows
			return nil, err
		}
	}
	return nil, errors.New("backup: holdouts are made and deleted faster than they can be copied; try again later")
}

// spool reads the ledger's rows into a file without a name, so that the ledger is not held open for as long as out takes.
func (c *creation) spool() (*os.File, error) {
	f, err := os.CreateTemp(c.Spool, "holdoutd-backup-*") // made with mode 0600
	if err != nil {
		return nil, fmt.Errorf("backup: %w", err)
	}
	err = os.Remove(f.Name())
	if err == nil {
		c.reports, err = c.Ledger.Dump(c.ctx, f)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if c.NoTables {
		for i := range c.reports {
			c.done[c.reports[i].Holdout] = LeftOut
		}
	}
	return f, nil
}

// leftOut reports whether a file of a holdout is not copied: what is hidden or temporary, what says that an upload is not finished, and what is made again when it is asked for.
func leftOut(name string) bool {
	return !component.MatchString(name) || name == holdout.UncommittedMark || holdout.Derived(name)
}

// tables writes the files of a holdout, or says why they are not in the backup. gone is true where there is no such directory now.
func (c *creation) tables(id string) (gone bool, err error) {
	dir := filepath.Join(c.Tables, id)
	files, err := openAll(dir, id)
	defer func() {
		for _, f := range files {
			f.Close() // read only
		}
	}()
	if err == nil {
		err = checkTables(c.ctx, dir)
	}
	if _, stat := os.Lstat(dir); err != nil && errors.Is(stat, fs.ErrNotExist) {
		return true, nil // deleted now; the ledger says so when it is read next
	}
	switch {
	case machine.Short(err): // nothing is wrong with the tables
		return false, fmt.Errorf("backup: holdout %s: this process may have %d files open, and all of a holdout's files are open at once: raise the limit (ulimit -n) and begin again: %w", id, machine.Files(), err)
	case err != nil:
		c.done[id] = "damaged: " + err.Error()
		return false, nil
	}
	c.done[id] = ""
	for _, f := range files {
		if err := c.whole(f.path, f.File); err != nil {
			return false, err
		}
	}
	return false, nil
}

// opened is a file of a holdout. While it is open its bytes are there, also when the holdout is deleted.
type opened struct {
	*os.File
	path string // in the backup
}

// openAll opens the files of a holdout, in the order of their paths.
func openAll(dir, id string) (files []opened, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || leftOut(e.Name()) || !e.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		name := holdoutsDir + "/" + id + "/" + filepath.ToSlash(below)
		if _, ok := holdoutOf(name); !ok {
			return fmt.Errorf("%s has no place in a backup", path)
		}
		f, err := os.Open(path)
		if err == nil {
			files = append(files, opened{f, name})
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = errors.New("there are no files")
	}
	return files, err
}

// checkTables compares all checksums of a holdout's tables: a backup of what is damaged would be found out when it is too late.
func checkTables(ctx context.Context, dir string) error {
	parts, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if !part.IsDir() || holdout.Segments(part.Name()) {
			continue
		}
		t, err := dataset.Open(filepath.Join(dir, part.Name()))
		if err != nil {
			return err
		}
		if err := t.Close(); err != nil {
			return err
		}
	}
	return holdout.CheckSegments(ctx, dir)
}

// compare holds the tables that were written against the cards of the ledger that was read after them.
func (c *creation) compare() error {
	sums := map[string]string{}
	for _, f := range c.w.files {
		sums[f.Path] = "sha256:" + f.SHA256
	}
	for i := range c.reports {
		r := &c.reports[i]
		if why, copied := c.done[r.Holdout]; r.Deleted || !copied || why != "" {
			continue
		}
		parts, err := holdout.PartsOf([]byte(r.Public))
		if err != nil {
			c.done[r.Holdout] = "damaged: the card: " + err.Error()
			continue
		}
		for part, want := range parts {
			if sums[strings.Join([]string{holdoutsDir, r.Holdout, holdout.PartFile(part, dataset.ManifestFile)}, "/")] != want {
				c.done[r.Holdout] = "damaged: the part " + part + " is not the one that the holdout was made with"
			}
		}
	}
	return nil
}

// key writes a file of a key, if there is one.
func (c *creation) key(name string) error {
	f, err := os.Open(filepath.Join(c.Dir, name))
	if errors.Is(err, fs.ErrNotExist) && name != serverKey {
		return nil
	}
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer f.Close()
	return c.whole(name, f)
}

// whole writes an open file.
func (c *creation) whole(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	return c.w.member(path, info.Size(), f)
}

// interruptibleWriter ends writing when ctx ends.
type interruptibleWriter struct {
	ctx context.Context
	w   io.Writer
}

func (i interruptibleWriter) Write(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, context.Cause(i.ctx)
	}
	return i.w.Write(p)
}

// Incomplete are the holdouts that are in a backup without their tables, which they should have.
func (m *Manifest) Incomplete() []Holdout {
	return slices.DeleteFunc(slices.Clone(m.Holdouts), func(h Holdout) bool { return h.Without == "" || h.Without == LeftOut })
}
