package holdout

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// A backup is a tar archive of a data directory, as docs/format/backup.md describes it. It is made beside a running server: tables never change once
// they have their names, so they are copied first, and the ledger last, as it is at one moment. If the ledger then names a holdout that
// is not copied yet, that is done, and a later moment is taken. The caller encrypts it: held-out rows are in it.

const (
	// backupFormat is the version of the archive.
	backupFormat = "holdoutd-backup/1"
	// backupHead is the first file of the archive, backupContents the last. Between them are those of the directory, below backupFiles.
	backupHead     = "backup.json"
	backupContents = "contents.json"
	backupFiles    = "data/"
	// maxContents bounds the lists in an archive: some 400,000 files.
	maxContents = 64 << 20
)

// BackupOptions say what is backed up.
type BackupOptions struct {
	Dir     string
	Ledger  string // as Options.Ledger; the ledger itself is not in the backup then
	Keys    bool   // server.key and admin.key are in it
	Version string // of the program
}

// BackupInfo says what a backup has.
type BackupInfo struct {
	Format  string    `json:"format"`
	Version string    `json:"version"` // of the program that made it
	Created time.Time `json:"created"`
	Keys    bool      `json:"keys"`   // server.key is in it
	Shared  bool      `json:"shared"` // the ledger is in a database, and not in it
}

// Backed is a holdout of a backup.
type Backed struct {
	Holdout string `json:"holdout"`
	Seq     int64  `json:"seq"`
	Head    string `json:"head"`
	Deleted bool   `json:"deleted,omitempty"`
	Damage  string `json:"damage,omitempty"` // what was wrong with its files when the backup was made
}

// backedFile is a file of a backup.
type backedFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// contents are the last file of the archive: by them a reader knows that it has all.
type contents struct {
	Format   string       `json:"format"`
	Files    []backedFile `json:"files"`
	Holdouts []Backed     `json:"holdouts"`
}

// Backup writes a data directory as an archive, also while a server uses it. Every answer that was recorded before it began is in it. The caller
// encrypts what is written: held-out rows are in it. Holdouts whose files are damaged are copied as they are, and named.
func Backup(ctx context.Context, o BackupOptions, w io.Writer) (info BackupInfo, holdouts []Backed, err error) {
	if _, err := os.Lstat(filepath.Join(o.Dir, restoringFile)); err == nil {
		return info, nil, fmt.Errorf("the restore of %s was interrupted, so that it is not whole", o.Dir)
	}
	info = BackupInfo{Format: backupFormat, Version: o.Version, Created: time.Now().UTC().Truncate(time.Second), Keys: o.Keys, Shared: o.Ledger != ""}
	a := archiver{ctx: ctx, dir: o.Dir, tar: tar.NewWriter(w), copied: map[string]bool{}, harmed: map[string]error{}}
	if err := a.putJSON(backupHead, info); err != nil {
		return info, nil, err
	}
	if err := a.globals(o.Keys); err != nil {
		return info, nil, err
	}
	if err := a.forgotten(); err != nil {
		return info, nil, err
	}
	reports, err := a.moment(o.Ledger)
	if err != nil {
		return info, nil, err
	}
	for _, r := range reports {
		b := Backed{Holdout: r.Holdout, Seq: r.Entries - 1, Head: r.Head, Deleted: r.Deleted}
		if harm := a.harmed[r.Holdout]; harm != nil && !r.Deleted {
			b.Damage = harm.Error()
		}
		holdouts = append(holdouts, b)
	}
	err = a.putJSON(backupContents, contents{Format: backupFormat, Files: a.files, Holdouts: holdouts})
	return info, holdouts, errors.Join(err, a.tar.Close())
}

// archiver writes an archive.
type archiver struct {
	ctx    context.Context
	dir    string
	tar    *tar.Writer
	files  []backedFile
	copied map[string]bool  // holdouts, and the names of sketches
	harmed map[string]error // what is wrong with the files of holdouts
}

// putJSON writes a file of the archive's own.
func (a *archiver) putJSON(name string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(text) > maxContents {
		return fmt.Errorf("the backup has more files than it can list: %s would have %d bytes, and may have %d", name, len(text), maxContents)
	}
	if err := a.tar.WriteHeader(&tar.Header{Name: name, Mode: secretMode, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	_, err = a.tar.Write(text)
	return err
}

// put writes a file of the directory, by what copies it.
func (a *archiver) put(name string, size int64, write func(io.Writer) error) error {
	if err := a.ctx.Err(); err != nil {
		return err
	}
	if err := a.tar.WriteHeader(&tar.Header{Name: backupFiles + name, Mode: secretMode, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	sum := sha256.New()
	if err := write(io.MultiWriter(a.tar, sum)); err != nil {
		return err
	}
	a.files = append(a.files, backedFile{Name: name, Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// copyFile copies a file of the directory. Without it the error wraps fs.ErrNotExist, and nothing was written.
func (a *archiver) copyFile(name string) error {
	f, err := dataset.OpenRegular(filepath.Join(a.dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return a.put(name, info.Size(), func(w io.Writer) error {
		if n, err := io.Copy(w, io.LimitReader(f, info.Size())); err != nil || n < info.Size() {
			return errors.Join(err, fmt.Errorf("%s became shorter while it was copied", name))
		}
		return nil
	})
}

// globals copies what belongs to no holdout.
func (a *archiver) globals(keys bool) error {
	names := []string{restoredFile, keyElsewhere}
	if keys {
		if err := a.copyFile(serverKeyFile); err != nil {
			if keptElsewhere(a.dir) {
				return errors.New("the server's key is kept elsewhere, and is in no backup: leave --with-keys out")
			}
			return fmt.Errorf("server.key: %w", err)
		}
		names = append(names, adminKeyFile)
	}
	for _, name := range names {
		if err := a.copyFile(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// forgotten copies what a ledger that is lost has forgotten: the marks of holdouts by which their tables stay refused, what was revoked, and the sketches that are there.
func (a *archiver) forgotten() error {
	signs, _ := filepath.Glob(filepath.Join(a.dir, holdoutsDir, "*", lostLedger)) // its only error is a bad pattern
	for _, sign := range signs {
		folder := path.Join(holdoutsDir, filepath.Base(filepath.Dir(sign)))
		for _, name := range []string{lostLedger, markFile, releasedFile, releaseMark} {
			if err := a.copyFile(path.Join(folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	revoked, err := os.ReadDir(filepath.Join(a.dir, revokedDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range revoked { // they only grow
		if !f.Type().IsRegular() { // not ours
			continue
		}
		if err := a.copyFile(path.Join(revokedDir, f.Name())); err != nil {
			return err
		}
	}
	sketches, err := os.ReadDir(filepath.Join(a.dir, lineageDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, f := range sketches {
		if strings.HasPrefix(f.Name(), ".") { // what gets another name yet
			continue
		}
		if err := a.sketches(f.Name()); err != nil {
			return err
		}
	}
	return nil
}

// sketches copies those of a holdout, if they are there.
func (a *archiver) sketches(id string) error {
	name := path.Join(lineageDir, id)
	if a.copied[name] {
		return nil
	}
	err := a.copyFile(name)
	if err == nil {
		a.copied[name] = true
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// moment copies what the ledger names until it names nothing else, and then the ledger as it was at that moment, if it is in the directory.
func (a *archiver) moment(address string) ([]ledger.Report, error) {
	for {
		reports, copyLedger, done, err := a.look(address)
		if err != nil {
			return nil, err
		}
		more, err := a.more(reports)
		if err == nil && !more {
			err = copyLedger()
		}
		if err := errors.Join(err, done()); err != nil {
			return nil, err
		}
		if !more {
			return reports, nil
		}
		for _, r := range reports {
			if err := a.holdout(r); err != nil {
				return nil, err
			}
		}
	}
}

// look verifies the ledger as it is at this moment. copyLedger copies it, done gives the moment up.
func (a *archiver) look(address string) (reports []ledger.Report, copyLedger, done func() error, err error) {
	nothing := func() error { return nil }
	if address != "" {
		reports, err = inDatabase.chains(a.ctx, address)
		return reports, nothing, nothing, err
	}
	s, err := sqlite.OpenSnapshot(a.ctx, filepath.Join(a.dir, ledgerFile))
	if err != nil {
		return nil, nil, nil, err
	}
	reports, err = s.Verify(a.ctx)
	if err != nil {
		return nil, nil, nil, errors.Join(err, s.Close())
	}
	copyLedger = func() error {
		return a.put(ledgerFile, s.Size(), func(w io.Writer) error { return s.Copy(a.ctx, w) })
	}
	return reports, copyLedger, s.Close, nil
}

// more reports whether the ledger names something that is there and is not copied yet.
func (a *archiver) more(reports []ledger.Report) (bool, error) {
	for _, r := range reports {
		if !r.Deleted && !a.copied[r.Holdout] {
			return true, nil
		}
		name := path.Join(lineageDir, r.Holdout)
		if a.copied[name] {
			continue
		}
		_, err := os.Lstat(filepath.Join(a.dir, name))
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return false, nil
}

// holdout copies the files of a holdout, after it has compared all checksums. What is wrong with them is kept: the holdout may also have been deleted meanwhile,
// and the next moment says so.
func (a *archiver) holdout(r ledger.Report) error {
	if err := a.sketches(r.Holdout); err != nil {
		return err
	}
	if r.Deleted || a.copied[r.Holdout] {
		return nil
	}
	a.copied[r.Holdout] = true
	folder := path.Join(holdoutsDir, r.Holdout)
	if err := verifyTables(filepath.Join(a.dir, folder), []byte(r.Public)); err != nil {
		a.harmed[r.Holdout] = err
	}
	return fs.WalkDir(os.DirFS(a.dir), folder, func(name string, d fs.DirEntry, err error) error {
		if err == nil {
			base, _ := strings.CutSuffix(path.Base(name), sumSuffix)
			switch {
			case d.IsDir(), base == uncommitted, strings.HasPrefix(base, "."): // dots: what gets another name yet
				return nil
			case base == trainingParquet, base == featuresParquet, base == retiredParquet: // written again when they are asked for
				return nil
			}
			err = a.copyFile(name)
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, dataset.ErrDamaged) {
			a.harmed[r.Holdout] = errors.Join(a.harmed[r.Holdout], err)
			return nil
		}
		return err
	})
}
