package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/holdout"
)

// unlockFlags say how a backup is decrypted.
type unlockFlags struct{ identity, passphrase string }

func (f *unlockFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.identity, "identity", "", "file with the identity (AGE-SECRET-KEY-1…) of a recipient of the backup")
	cmd.Flags().StringVar(&f.passphrase, "passphrase-file", "", "file with the passphrase of the backup")
}

// open decrypts a backup: what it returns fails before its end if anything was changed.
func (f *unlockFlags) open(backup io.Reader) (io.Reader, error) {
	var identities []age.Identity
	switch {
	case (f.identity == "") == (f.passphrase == ""):
		return nil, misuse("a backup is encrypted: give --identity FILE or --passphrase-file FILE")
	case f.identity != "":
		file, err := os.Open(f.identity)
		if err != nil {
			return nil, fmt.Errorf("cannot read the identity: %w", err)
		}
		defer file.Close()
		if identities, err = age.ParseIdentities(file); err != nil {
			return nil, fmt.Errorf("cannot read the identity in %s: %w", f.identity, err)
		}
	default:
		passphrase, err := readPassphrase(f.passphrase)
		if err != nil {
			return nil, err
		}
		identity, err := age.NewScryptIdentity(passphrase)
		if err != nil {
			return nil, err
		}
		identities = append(identities, identity)
	}
	r, err := age.Decrypt(backup, identities...)
	var none *age.NoIdentityMatchError
	switch {
	case errors.As(err, &none):
		return nil, errors.New("the backup does not open: the passphrase or the identity is another one, or its first bytes were changed")
	case err != nil:
		return nil, fmt.Errorf("the backup does not open: it is no backup, or it was changed: %w", err)
	}
	return r, nil
}

// mostPassphrase bounds a passphrase, in bytes: a longer file is the wrong one.
const mostPassphrase = 4096

func readPassphrase(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("cannot read the passphrase: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostPassphrase+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the passphrase: %w", err)
	}
	passphrase := strings.TrimRight(string(text), "\r\n")
	if passphrase == "" || len(text) > mostPassphrase {
		return "", fmt.Errorf("cannot read the passphrase: %s must hold one line of 1 to %d bytes", file, mostPassphrase)
	}
	return passphrase, nil
}

// lockFlags say for whom a backup is encrypted.
type lockFlags struct {
	recipients []string
	passphrase string
}

func (f *lockFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.recipients, "recipient", nil, "public key (age1…) that the backup is encrypted for, or @FILE with some; may be given again. age-keygen makes a pair")
	cmd.Flags().StringVar(&f.passphrase, "passphrase-file", "", "file with a passphrase that the backup is encrypted with")
}

func (f *lockFlags) read() (all []age.Recipient, err error) {
	if (len(f.recipients) == 0) == (f.passphrase == "") {
		return nil, misuse("a backup has held-out rows and is always encrypted: give --recipient age1… or --passphrase-file FILE")
	}
	if f.passphrase != "" {
		passphrase, err := readPassphrase(f.passphrase)
		if err != nil {
			return nil, err
		}
		recipient, err := age.NewScryptRecipient(passphrase)
		return []age.Recipient{recipient}, err
	}
	for _, word := range f.recipients {
		text, where := word, "--recipient"
		if file, inFile := strings.CutPrefix(word, "@"); inFile {
			contents, err := os.ReadFile(file)
			if err != nil {
				return nil, fmt.Errorf("cannot read the recipients: %w", err)
			}
			text, where = string(contents), file
		}
		some, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			return nil, misuse("%s: %w", where, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

func backupCommand() *cobra.Command {
	var lock lockFlags
	var data, to, shared string
	var keys bool
	cmd := &cobra.Command{
		Use:   "backup",
		Short: "Write an encrypted backup of a data directory, also while a server uses it",
		Long: `Writes one encrypted file from which holdoutd restore makes the data directory anew: the ledger as it is at one moment, and the
tables of all holdouts that it names. Every answer that was recorded before the backup began is in it. The server goes on
meanwhile. All chains, books and tables are checked as they are read.

The file has held-out rows: it is always encrypted (age, age-encryption.org), for --recipient or with --passphrase-file. Keep
what opens it elsewhere. The server's key is not in it without --with-keys: keep server.key elsewhere too, since without it a
restored directory replays answers and gives no new ones.

With --ledger the tables, and the heads of all chains, are in the backup, and the ledger is not: back the database up by its own
means, before or after.`,
		Example: `  holdoutd backup --data holdoutd-data --to monday.backup --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
  holdoutd backup --to monday.backup --passphrase-file /etc/holdoutd/passphrase --with-keys
  holdoutd backup --to - --recipient @recipients.txt | ssh store 'cat > monday.backup'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			if to == "" {
				return misuse("say where the backup goes: --to FILE, or --to - for standard output")
			}
			recipients, err := lock.read()
			if err != nil {
				return err
			}
			address, err := ledgerAddress(shared)
			if err != nil {
				return err
			}
			if _, err := os.Stat(filepath.Join(data, "holdouts")); err != nil {
				return fmt.Errorf("%s is not a data directory: %w", data, unwrapPath(err))
			}
			o := holdout.BackupOptions{Dir: data, Ledger: address, Keys: keys, Version: version()}
			made, err := writeBackup(ctx, o, to, cmd.OutOrStdout(), recipients)
			if err != nil {
				return err
			}
			return made.report(cmd.ErrOrStderr(), to)
		},
	}
	lock.add(cmd)
	cmd.Flags().StringVar(&data, "data", defaultData, "data directory")
	cmd.Flags().StringVar(&to, "to", "", "file that the backup is written to, which must not be there yet; - is standard output")
	cmd.Flags().BoolVar(&keys, "with-keys", false, "put server.key and admin.key into the backup: whoever opens it then has all that the server has")
	cmd.Flags().StringVar(&shared, "ledger", "", "address of the data directory's ledger, where servers were started with --ledger; or @FILE with it")
	return cmd
}

// madeBackup is what was written.
type madeBackup struct {
	info     holdout.BackupInfo
	holdouts []holdout.Backed
	bytes    int64
}

// writeBackup writes a backup under its name when it is whole and durable.
func writeBackup(ctx context.Context, o holdout.BackupOptions, to string, stdout io.Writer, recipients []age.Recipient) (made madeBackup, err error) {
	if to == "-" {
		return encryptBackup(ctx, o, stdout, recipients)
	}
	if _, err := os.Lstat(to); err == nil {
		return made, fmt.Errorf("%s is there already; give another name", to)
	}
	partial := to + ".partial"
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return made, fmt.Errorf("%s is there: a backup was interrupted, or is being made; if none is, remove it", partial)
	} else if err != nil {
		return made, fmt.Errorf("cannot write %s: %w", partial, unwrapPath(err))
	}
	made, err = encryptBackup(ctx, o, f, recipients)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(partial, to)
	}
	if err != nil {
		return made, fmt.Errorf("the backup is not made: %w", errors.Join(err, removed(partial)))
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return made, err
	}
	return made, errors.Join(dir.Sync(), dir.Close())
}

// removed removes a file that can be gone already.
func removed(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// counter counts what passes.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += int64(n)
	return n, err
}

// encryptBackup writes a backup, encrypted.
func encryptBackup(ctx context.Context, o holdout.BackupOptions, w io.Writer, recipients []age.Recipient) (made madeBackup, err error) {
	out := &counter{Writer: w}
	sealed, err := age.Encrypt(out, recipients...)
	if err != nil {
		return made, err
	}
	if made.info, made.holdouts, err = holdout.Backup(ctx, o, sealed); err != nil {
		return made, err // unsealed: what was written does not open as a whole
	}
	err = sealed.Close()
	made.bytes = out.n
	return made, err
}

// report says what was made, and fails where a holdout was damaged before.
func (m madeBackup) report(w io.Writer, to string) error {
	if to == "-" {
		to = "standard output"
	}
	n := 0
	var damaged []error
	for _, h := range m.holdouts {
		if !h.Deleted {
			n++
		}
		if h.Damage != "" {
			damaged = append(damaged, fmt.Errorf("holdout %s was damaged before, and is in the backup as it is: %s", h.Holdout, h.Damage))
		}
	}
	fmt.Fprintf(w, "%s: %s holdouts, %s bytes, encrypted; held-out rows are in it\n", to, thousands(int64(n)), thousands(m.bytes))
	if m.info.Keys {
		fmt.Fprintln(w, "server.key and admin.key are in it: whoever opens it has all that the server has")
	} else {
		fmt.Fprintln(w, "server.key is not in it: keep it elsewhere; without it a restored directory only replays")
	}
	if m.info.Shared {
		fmt.Fprintln(w, "the ledger is not in it: back its database up by its own means")
	}
	return errors.Join(damaged...)
}

// openBackup opens a backup file; - is standard input.
func openBackup(stdin io.Reader, from string, unlock *unlockFlags) (r io.Reader, done func() error, err error) {
	if from == "-" {
		r, err = unlock.open(stdin)
		return r, func() error { return nil }, err
	}
	f, err := os.Open(from)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", from, unwrapPath(err))
	}
	if r, err = unlock.open(f); err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return r, f.Close, nil
}

func restoreCommand() *cobra.Command {
	var unlock unlockFlags
	var data, from, shared, serverKey string
	var command keySource
	var lost, none, keep, end bool
	cmd := &cobra.Command{
		Use:   "restore",
		Short: "Make a data directory of a backup, and say what became of later answers",
		Long: `Makes a new data directory of a backup. It gets its name when all was read and checked: every digest, the chains and the
books, all tables. An interrupted restore leaves DIR.restoring, on which nothing starts; remove it and restore again.

Answers that the server gave after the backup are forgotten, with what they spent. So a restored directory replays recorded
answers, and gives no new ones and takes no tables until you say what became of later answers, with the server stopped:

  --nothing-lost  nothing was answered or released, and no holdout retired, after the backup, for example because the server was
                  stopped before it
  --accept-lost   answers may be lost: the cards of all holdouts say so for good, because intervals given since hold only for
                  those who know none of the lost answers

Keys and grants from before the restore end with it: one that was revoked after the backup would be valid again. The next start
puts a new key of an admin into DIR/admin.key. --keep-keys says that nothing was revoked after the backup; then they stay.
With a ledger in a database give --keep-keys or --end-keys: keys are in the database, which the restore does not touch.

Compare the newest answer that anyone kept with holdoutd verify DIR before you say it.`,
		Example: `  holdoutd restore --from monday.backup --identity key.txt --data holdoutd-new --server-key /etc/holdoutd/server.key
  holdoutd restore --data holdoutd-new --nothing-lost --keep-keys
  holdoutd restore --data holdoutd-new --accept-lost`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			switch {
			case data == "":
				return misuse("say which directory: --data DIR")
			case lost && none:
				return misuse("--accept-lost and --nothing-lost say opposite things; give one")
			case serverKey != "" && command != "":
				return misuse("--server-key puts the key into the directory, and --key-command leaves it where it is; give one")
			case (from == "") == !(lost || none):
				return misuse("give --from FILE to restore a backup, or afterwards --nothing-lost or --accept-lost to have new answers given")
			case (keep || end) && from != "":
				return misuse("--keep-keys and --end-keys belong to --nothing-lost or --accept-lost")
			case keep && end:
				return misuse("--keep-keys and --end-keys say opposite things; give one")
			case lost || none:
				said := holdout.Accepted{Lost: lost}
				if keep {
					said.Keys = holdout.KeysStay
				} else if end {
					said.Keys = holdout.KeysEnd
				}
				if err := holdout.AcceptRestored(data, said); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s. Start the server (again)\n", data, holdout.RestoreState(data))
				return nil
			}
			address, err := ledgerAddress(shared)
			if err != nil {
				return err
			}
			key, err := command.read(ctx)
			if err != nil {
				return err
			}
			r, done, err := openBackup(cmd.InOrStdin(), from, &unlock)
			if err != nil {
				return err
			}
			info, found, err := holdout.Restore(ctx, holdout.RestoreOptions{Dir: data, Ledger: address, ServerKey: serverKey, Key: key}, r)
			if err := errors.Join(err, done()); err != nil {
				return fmt.Errorf("nothing is restored: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: restored from the backup of %s, in order\n", data, info.Created.Format("2006-01-02 15:04:05 MST"))
			if err := printReports(cmd.OutOrStdout(), found, false); err != nil {
				return err
			}
			if !info.Keys && serverKey == "" && key == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "server.key was not in the backup: put it into %s, or start with --key-command; else the server only replays\n", data)
			}
			keys := ""
			if info.Shared {
				keys = ", and with --keep-keys or --end-keys"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "recorded answers replay; for new ones say first what became of later answers: holdoutd restore --data %s with --nothing-lost or --accept-lost%s\n", data, keys)
			return nil
		},
	}
	unlock.add(cmd)
	cmd.Flags().StringVar(&data, "data", "", "data directory: with --from one that is not there yet, or is empty")
	cmd.Flags().StringVar(&from, "from", "", "the backup; - is standard input")
	cmd.Flags().StringVar(&serverKey, "server-key", "", "file with the server's key, where the backup does not have it")
	command.add(cmd.Flags())
	cmd.Flags().StringVar(&shared, "ledger", "", "address of the ledger, where the backup is of servers that were started with --ledger; or @FILE with it")
	cmd.Flags().BoolVar(&none, "nothing-lost", false, "say of a restored directory that nothing was answered or released, and no holdout retired, after the backup")
	cmd.Flags().BoolVar(&keep, "keep-keys", false, "say of a restored directory that no key and no grant was revoked after the backup: those from before stay valid")
	cmd.Flags().BoolVar(&end, "end-keys", false, "say of a restored directory that keys and grants from before the restore end: the default, but for a ledger in a database")
	cmd.Flags().BoolVar(&lost, "accept-lost", false, "say of a restored directory that answers may be lost; cards say so for good")
	return cmd
}

// verifyBackup checks a backup file.
func verifyBackup(ctx context.Context, stdin io.Reader, from string, unlock *unlockFlags) (found []holdout.Verification, err error) {
	r, done, err := openBackup(stdin, from, unlock)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	work, err := os.MkdirTemp("", "holdoutd-verify-") // made with mode 0700
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	_, found, err = holdout.VerifyBackup(ctx, work, r)
	return found, err
}
