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
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// RestoreOptions say where a backup goes.
type RestoreOptions struct {
	Dir       string     // must be missing or empty
	Ledger    string     // address of the ledger, if the backup is of a directory whose ledger is in a database
	ServerKey string     // a file with the server's key, if it is not in the backup
	Key       *ServerKey // the server's key, if it is kept elsewhere and is to stay there
}

// Restore puts a backup back that the caller decrypts: r must fail before its end where anything was changed. The directory gets its name when everything was
// read, written durably and checked: each digest, the chains and the books, and all tables. Until then it is in Dir.restoring, on which nothing starts;
// that is removed after an error. The restored directory gives no new answers before AcceptRestored.
func Restore(ctx context.Context, o RestoreOptions, r io.Reader) (info BackupInfo, found []Verification, err error) {
	dir := filepath.Clean(o.Dir)
	if err := checkEmpty(dir); err != nil {
		return info, nil, err
	}
	work := dir + ".restoring"
	if err := os.Mkdir(work, privateMode); errors.Is(err, fs.ErrExist) {
		return info, nil, fmt.Errorf("%s is there: a restore to %s was interrupted, or is under way; if none is, remove it", work, dir)
	} else if err != nil {
		return info, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(work))
		}
	}()
	sign := filepath.Join(work, restoringFile)
	if err := errors.Join(os.WriteFile(sign, nil, secretMode), dataset.SyncDir(work)); err != nil {
		return info, nil, err
	}
	u := unpacker{dir: work, keep: func(string) bool { return true }}
	if err := u.read(ctx, r); err != nil {
		return info, nil, err
	}
	if err := putServerKey(work, o, u.info.Keys); err != nil {
		return info, nil, err
	}
	if err := u.forget(); err != nil {
		return info, nil, err
	}
	if found, err = u.check(ctx, o.Ledger, true, o.Key); err != nil {
		return info, nil, err
	}
	earlier, err := readRestores(work)
	if err != nil {
		return info, nil, err
	}
	earlier.Restores = append(earlier.Restores, restore{Backup: u.info.Created, Restored: time.Now().UTC().Truncate(time.Microsecond), Shared: u.info.Shared})
	if err := earlier.write(work); err != nil {
		return info, nil, err
	}
	if err := syncAll(work); err != nil {
		return info, nil, err
	}
	if err := errors.Join(os.Remove(sign), dataset.SyncDir(work)); err != nil {
		return info, nil, err
	}
	return u.info, found, errors.Join(rename(work, dir), dataset.SyncDir(filepath.Dir(dir)))
}

// rename gives a directory another name, also that of an empty one, in one step; os.Rename refuses the latter.
func rename(from, to string) error {
	if err := syscall.Rename(from, to); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

// checkEmpty refuses a directory that has something in it, and one that cannot get its name in one step.
func checkEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty; give a folder that is not there yet", dir)
	}
	own, err := os.Stat(dir)
	if err != nil {
		return err
	}
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	a, ok := own.Sys().(*syscall.Stat_t)
	b, too := above.Sys().(*syscall.Stat_t)
	if ok && too && a.Dev != b.Dev {
		return fmt.Errorf("%s is a file system of its own; give a folder in it that is not there yet", dir)
	}
	return nil
}

// putServerKey puts the server's key into a restored directory, if it is in a file somewhere else, or the sign that it stays elsewhere.
func putServerKey(dir string, o RestoreOptions, in bool) error {
	switch {
	case o.ServerKey == "" && o.Key == nil:
		return nil
	case in:
		return errors.New("the backup has the server's key; leave the other one out")
	}
	var secret serverSecret
	var err error
	if o.Key != nil {
		secret = o.Key.secret
	} else if secret, err = readServerSecret(o.ServerKey); err != nil {
		return err
	}
	if _, err := secret.fits(dir); err != nil {
		return err
	}
	if o.Key != nil {
		if err := writeOnce(filepath.Join(dir, keyElsewhere), secret.signed()); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil // of this key: the backup had it
	}
	return writeOnce(filepath.Join(dir, serverKeyFile), []byte(hex.EncodeToString(secret[:])+"\n"))
}

// VerifyBackup checks a backup that the caller decrypts: each digest, the chains and the books, and that each table's manifest is the one that the holdout was made with. Tables
// were compared with their checksums when the backup was made. work is an empty directory for the ledger and small files; no row and no key is written.
func VerifyBackup(ctx context.Context, work string, r io.Reader) (BackupInfo, []Verification, error) {
	u := unpacker{dir: work, keep: func(name string) bool {
		return name == ledgerFile || path.Base(name) == markFile || path.Base(name) == releasedFile || path.Base(name) == releaseMark
	}}
	if err := u.read(ctx, r); err != nil {
		return BackupInfo{}, nil, err
	}
	if u.info.Shared {
		return u.info, u.named(), nil
	}
	found, err := u.check(ctx, "", false, nil)
	if err != nil {
		return BackupInfo{}, nil, err
	}
	for i := range found {
		if found[i].Deleted {
			continue
		}
		found[i].Tables = inOrder
		if err := u.sameTables(&found[i]); err != nil && u.damageOf(found[i].Holdout) == "" {
			return BackupInfo{}, nil, fmt.Errorf("holdout %s: %w", found[i].Holdout, err)
		}
	}
	return u.info, found, nil
}

// unpacker reads an archive.
type unpacker struct {
	dir      string
	keep     func(name string) bool // whether a file is written
	info     BackupInfo
	contents contents
	seen     map[string]backedFile
}

// errNoBackup is what is said of a file that is none.
var errNoBackup = errors.New("it is no backup of holdoutd, or it was changed")

// read reads the whole archive, and compares each file with its digest.
func (u *unpacker) read(ctx context.Context, r io.Reader) error {
	u.seen = map[string]backedFile{}
	t := tar.NewReader(r)
	for first := true; ; first = false {
		if err := ctx.Err(); err != nil {
			return err
		}
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && u.contents.Format == "":
			return fmt.Errorf("the backup ends before its list of contents: %w", errNoBackup)
		case errors.Is(err, io.EOF):
			if _, err := io.Copy(io.Discard, r); err != nil { // to the end, where the decryption knows that nothing is missing
				return err
			}
			return u.complete()
		case err != nil:
			return err
		}
		name, file := strings.CutPrefix(h.Name, backupFiles)
		switch {
		case h.Typeflag != tar.TypeReg, u.contents.Format != "", first != (h.Name == backupHead):
			return fmt.Errorf("%s is not expected there: %w", h.Name, errNoBackup)
		case first:
			if err := readJSON(t, &u.info, &u.info.Format); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		case h.Name == backupContents:
			if err := readJSON(t, &u.contents, &u.contents.Format); err != nil {
				return fmt.Errorf("%s: %w", h.Name, err)
			}
		case !file || !filepath.IsLocal(name) || path.Clean(name) != name || path.Base(name) == restoringFile:
			return fmt.Errorf("%s is not expected there: %w", h.Name, errNoBackup)
		default:
			if err := u.unpack(name, t); err != nil {
				return err
			}
		}
	}
}

// readJSON reads a file of the archive's own, and refuses another version.
func readJSON(r io.Reader, into any, format *string) error {
	text, err := io.ReadAll(io.LimitReader(r, maxContents+1))
	if err != nil {
		return err
	}
	if len(text) > maxContents {
		return errNoBackup
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.Join(errNoBackup, err)
	}
	if *format != backupFormat {
		return fmt.Errorf("the backup has the format %q, and this program knows %s; use the holdoutd that made it, or a newer one", *format, backupFormat)
	}
	return nil
}

// unpack reads a file, and writes it durably if it is kept.
func (u *unpacker) unpack(name string, r io.Reader) (err error) {
	if _, twice := u.seen[name]; twice {
		return fmt.Errorf("%s is in it twice: %w", name, errNoBackup)
	}
	sum := sha256.New()
	var w io.Writer = sum
	if u.keep(name) {
		to := filepath.Join(u.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), privateMode); err != nil {
			return err
		}
		f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, secretMode)
		if err != nil {
			return err
		}
		defer func() {
			if err == nil {
				err = f.Sync()
			}
			err = errors.Join(err, f.Close())
		}()
		w = io.MultiWriter(f, sum)
	}
	n, err := io.Copy(w, r)
	u.seen[name] = backedFile{Name: name, Size: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
	return err
}

// complete compares what was read with the list of contents.
func (u *unpacker) complete() error {
	for _, f := range u.contents.Files {
		if u.seen[f.Name] != f {
			return fmt.Errorf("%s is missing, or not what was backed up: %w", f.Name, errNoBackup)
		}
	}
	if len(u.contents.Files) != len(u.seen) {
		return fmt.Errorf("it has %d files and lists %d: %w", len(u.seen), len(u.contents.Files), errNoBackup)
	}
	_, ledgerThere := u.seen[ledgerFile]
	_, keyThere := u.seen[serverKeyFile]
	if ledgerThere == u.info.Shared || keyThere != u.info.Keys {
		return fmt.Errorf("its first file says another thing of its contents: %w", errNoBackup)
	}
	return nil
}

// forget removes the files of holdouts that were deleted while the backup was made.
func (u *unpacker) forget() error {
	for _, b := range u.contents.Holdouts {
		if !b.Deleted {
			continue
		}
		if !filepath.IsLocal(b.Holdout) {
			return errNoBackup
		}
		if err := os.RemoveAll(filepath.Join(u.dir, holdoutsDir, b.Holdout)); err != nil {
			return err
		}
	}
	return nil
}

// check verifies what was unpacked and the ledger, in the directory or at an address, against the list of contents.
func (u *unpacker) check(ctx context.Context, address string, tables bool, key *ServerKey) ([]Verification, error) {
	kind, at := inFile, filepath.Join(u.dir, ledgerFile)
	switch {
	case u.info.Shared && address == "":
		return nil, errors.New("the ledger of this backup is in a database, and not in it; restore that from its own backup, and give its address with --ledger")
	case !u.info.Shared && address != "":
		return nil, errors.New("the ledger is in this backup; leave --ledger out")
	case u.info.Shared:
		kind, at = inDatabase, address
	}
	passed := map[string]int64{} // the place of each head that the backup names
	heads := map[string]Backed{}
	for _, b := range u.contents.Holdouts {
		heads[b.Holdout] = b
	}
	all, harmed, err := verifyEach(ctx, u.dir, at, kind, tables, key, func(id string, e *ledger.Entry) {
		if b, ok := heads[id]; ok && b.Seq == e.Seq && b.Head == ledger.HeadText(e.Head) {
			passed[id] = e.Seq
		}
	})
	if err != nil {
		return nil, err
	}
	for _, b := range u.contents.Holdouts {
		if seq, ok := passed[b.Holdout]; !ok || seq != b.Seq {
			return nil, fmt.Errorf("holdout %s: the ledger is older than the backup, or another one: it does not have the head %s at seq %d", b.Holdout, b.Head, b.Seq)
		}
	}
	for _, d := range harmed {
		b, known := heads[d.holdout]
		switch {
		case known && b.Damage != "": // it was so when the backup was made, and the server says it of the holdout
		case !known && u.info.Shared: // it was made after the backup
			if i := slices.IndexFunc(all, func(v Verification) bool { return v.Holdout == d.holdout }); i >= 0 {
				all[i].Tables = notBacked
			}
		default:
			return nil, errors.Join(damageErrors([]damage{d})...)
		}
	}
	if !u.info.Shared { // what reading it has made beside it
		err = errors.Join(removeIfThere(at+"-wal"), removeIfThere(at+"-shm"))
	}
	return all, err
}

func removeIfThere(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// damageOf is what was wrong with a holdout when the backup was made.
func (u *unpacker) damageOf(id string) string {
	for _, b := range u.contents.Holdouts {
		if b.Holdout == id {
			return b.Damage
		}
	}
	return ""
}

// sameTables compares the manifests in the backup with the fingerprints on the card, which the chain commits to.
func (u *unpacker) sameTables(v *Verification) error {
	card, err := readCard([]byte(v.Public))
	if err != nil {
		return fmt.Errorf("the card: %w", err)
	}
	if _, ok := u.seen[path.Join(holdoutsDir, v.Holdout, markFile)]; !ok {
		return errors.New("its mark is not in the backup, so that an older ledger would not be noticed")
	}
	found := map[string]string{}
	for _, part := range partNames {
		if f, ok := u.seen[path.Join(holdoutsDir, v.Holdout, part, "manifest")]; ok {
			found[part] = "sha256:" + f.SHA256
		}
	}
	if f, ok := u.seen[path.Join(holdoutsDir, v.Holdout, sourceFile)]; ok {
		found[sourceFile] = "sha256:" + f.SHA256
	}
	if !maps.Equal(found, card.Parts) {
		return fmt.Errorf("its tables in the backup have the fingerprints %v, the card says %v", found, card.Parts)
	}
	return nil
}

// named is what a backup without a ledger says of holdouts.
func (u *unpacker) named() (all []Verification) {
	for _, b := range u.contents.Holdouts {
		all = append(all, Verification{Report: ledger.Report{Holdout: b.Holdout, Entries: b.Seq + 1, Head: b.Head, Deleted: b.Deleted}})
	}
	return all
}

// syncAll makes the names in a directory tree durable; its files are.
func syncAll(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return dataset.SyncDir(name)
	})
}
