package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/backup"
	"github.com/holdoutd/holdoutd/thresholdout"
)

func backupCommand() *cobra.Command {
	var out, passphrase, where, tables string
	var recipients []string
	var noTables, withKey bool
	cmd := &cobra.Command{
		Use:   "backup DIR",
		Short: "Copy a data directory into one encrypted file, also while it is served",
		Long: `Copies a data directory into one file of age (https://age-encryption.org), for the public keys of --recipient or for the passphrase
in --passphrase-file. Everything is verified as it is read. The server may go on: the backup has the ledger of one moment, and the tables
of the holdouts that it knows. A holdout whose files are damaged is named, and in the backup without its tables; the command then ends with 1.

server.key is left out, since whoever has it and the backup can take the noise off answers; keep it elsewhere. --with-server-key
puts it in, with admin.key. --no-tables copies the ledger alone: what was answered and spent, and the keys' hashes.

restore makes a data directory of the file again, and restore --check verifies it. With --ledger the ledger is one in PostgreSQL: a role that
can read it is enough. A backup of either kind of ledger can be restored as the other.`,
		Example: `  holdoutd backup holdoutd-data -o monday.backup --recipient age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p
  holdoutd backup holdoutd-data --passphrase-file secret.txt --no-tables > ledger.backup
  holdoutd backup replica-data --ledger @/run/secrets/ledger --tables /mnt/tables -o monday.backup --passphrase-file secret.txt`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (passphrase == "") == (len(recipients) == 0) {
				return misuse("name who can open the backup: --recipient age1… or --passphrase-file FILE, and not both")
			}
			who, err := backup.Recipients(recipients, passphrase)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			from := backup.Source{Dir: args[0], NoTables: noTables, WithServerKey: withKey, Recipients: who, Program: version(), Progress: progressOn(cmd.ErrOrStderr(), "copied")}
			from.Tables = tables
			if where != "" {
				if from.Ledger, err = sharedLedger(where); err != nil {
					return err
				}
			}
			var m backup.Manifest
			write := func(w io.Writer) (err error) {
				m, err = backup.Create(ctx, w, from)
				return err
			}
			if out == "" || out == "-" {
				if terminalWidth(cmd.OutOrStdout()) > 0 {
					return misuse("a backup is no text for a terminal: name a file with -o, or send it to another program")
				}
				err = write(cmd.OutOrStdout())
			} else {
				from.Spool = filepath.Dir(out)
				err = wholeFile(out, write)
			}
			if err != nil {
				return stopped(ctx, err, "nothing was left")
			}
			return sayBackup(cmd.ErrOrStderr(), &m)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&out, "output", "o", "", "the file, which must not be there yet; - or nothing: standard output")
	flags.StringArrayVar(&recipients, "recipient", nil, "a public key of age (age1…) that can open the backup; may be given again")
	flags.StringVar(&passphrase, "passphrase-file", "", "a file whose first line is the passphrase that opens the backup")
	flags.StringVar(&where, "ledger", "", "the ledger that servers of DIR share: postgres://USER@HOST/DATABASE, or @FILE, a file with that URL (default: ledger.db in DIR)")
	flags.StringVar(&tables, "tables", "", "directory of the holdouts' tables (default: holdouts in DIR)")
	flags.BoolVar(&noTables, "no-tables", false, "copy the ledger alone")
	flags.BoolVar(&withKey, "with-server-key", false, "put server.key and admin.key into the backup: whoever opens it can do everything")
	return cmd
}

// sayBackup says what is in a backup. What should be in it and is not makes the command fail.
func sayBackup(w io.Writer, m *backup.Manifest) error {
	living := 0
	for _, h := range m.Holdouts {
		if !h.Deleted {
			living++
		}
	}
	fmt.Fprintf(w, "backed up %d holdouts and the ledger of %d, verified\n", living, len(m.Holdouts))
	if !m.ServerKey {
		fmt.Fprintln(w, "server.key is not in it: without that file no new answer can be given after a restore; keep it, elsewhere")
	}
	bad := m.Incomplete()
	for _, h := range bad {
		fmt.Fprintf(w, "%s %q is in it without its tables: %s\n", h.ID, h.Name, h.Without)
	}
	if len(bad) > 0 {
		return fmt.Errorf("the backup was written, and lacks the tables of %d holdouts, which are damaged", len(bad))
	}
	return nil
}

// wholeFile writes a file under its name when all of it is durable, and never over another one.
func wholeFile(path string, write func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s is there already; a backup is written to a new file", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".partial-*") // made with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // also beside the finished file, of which it is another name
	err = write(f)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err != nil {
		return err
	}
	return dataset.SyncDir(filepath.Dir(path))
}

// stopped says of an interrupted command that it was.
func stopped(ctx context.Context, err error, left string) error {
	if ctx.Err() != nil {
		return interrupted{fmt.Errorf("interrupted; %s", left)}
	}
	return err
}

// progressOn draws how much is done on a terminal, and is nil elsewhere.
func progressOn(w io.Writer, what string) func(done, total int64) {
	if terminalWidth(w) == 0 {
		return nil
	}
	last := int64(-1)
	return func(done, total int64) {
		if percent := done * 100 / max(total, 1); percent != last {
			last = percent
			fmt.Fprintf(w, "\r%s %d%%", what, percent)
			if percent == 100 {
				fmt.Fprint(w, "\r\x1b[K")
			}
		}
	}
}

// openingFlags say what opens a backup.
type openingFlags struct{ identity, passphrase string }

func (f *openingFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.identity, "identity", "", "a file of secret keys of age (AGE-SECRET-KEY-1…), one of which opens the backup")
	flags.StringVar(&f.passphrase, "passphrase-file", "", "a file whose first line is the passphrase that opens the backup")
}

func (f *openingFlags) options() (backup.Options, error) {
	if (f.identity == "") == (f.passphrase == "") {
		return backup.Options{}, misuse("name what opens the backup: --identity FILE or --passphrase-file FILE, and not both")
	}
	identities, err := backup.Identities(f.identity, f.passphrase)
	return backup.Options{Identities: identities}, err
}

func restoreCommand() *cobra.Command {
	var opening openingFlags
	var check bool
	var serverKey, where string
	cmd := &cobra.Command{
		Use:   "restore FILE [DIR]",
		Short: "Make a data directory of a backup, or verify one with --check",
		Long: `Makes a data directory of a file that backup wrote ("-": standard input). DIR must not be there, or be empty. It gets its contents in one
step, after all checksums, chains and books were recomputed: what is damaged, cut off or for another key leaves nothing.

What was asked after the backup was made is not in it. So the restored holdouts replay their recorded answers and give no new ones
until you say what was asked since: see holdoutd confirm. A table that was uploaded after the backup is not known to it, and would be taken again
with a fresh budget: a witness (serve --witness) knows it.

With --ledger the ledger is restored into PostgreSQL, into a database that has none, as the role that owns it; DIR has the tables and the
key. It is there when all of it was verified, or not at all. So a server moves from a ledger in a file to one that replicas share: stop it,
back up, restore with --ledger, confirm --nothing-asked-since, and serve with --ledger and --tables DIR/holdouts. Never start the old one again.

--check restores nothing, and takes as much temporary disk as the ledger has. Without a server.key in the backup name the file with
--server-key, or put it into DIR before a server starts: without it recorded answers replay, and no new one is given.`,
		Example: `  holdoutd restore monday.backup holdoutd-data --identity key.txt --server-key safe/server.key
  holdoutd restore monday.backup shared-data --identity key.txt --server-key safe/server.key --ledger @owner-url
  holdoutd restore --check monday.backup --identity key.txt`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if check != (len(args) == 1) {
				return misuse("name the directory to restore into, or --check to verify the backup alone")
			}
			o, err := opening.options()
			if err != nil {
				return err
			}
			o.ServerKeyFile, o.Progress = serverKey, progressOn(cmd.ErrOrStderr(), "read")
			in, err := openInput(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			defer in.Close()
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			var m backup.Manifest
			switch {
			case check && where != "":
				return misuse("--check restores nothing: leave --ledger out")
			case check:
				m, err = backup.Check(ctx, in, o)
			case where != "":
				var into *shared
				if into, err = sharedLedger(where); err != nil {
					return err
				}
				defer into.discard()
				o.Ledger = into
				m, err = backup.Restore(ctx, in, args[1], o)
			default:
				m, err = backup.Restore(ctx, in, args[1], o)
			}
			if err != nil {
				return stopped(ctx, err, "nothing was restored")
			}
			sayRestored(cmd.OutOrStdout(), &m, args, serverKey, where != "")
			return nil
		},
	}
	opening.add(cmd.Flags())
	cmd.Flags().BoolVar(&check, "check", false, "verify the backup and restore nothing")
	cmd.Flags().StringVar(&where, "ledger", "", "restore the ledger into PostgreSQL, as the role that owns the database, which has no ledger: postgres://OWNER@HOST/DATABASE, or @FILE, a file with that URL")
	cmd.Flags().StringVar(&serverKey, "server-key", "", "the server.key that belongs to the backup, which has none; it is put into DIR, and opens what is sealed")
	return cmd
}

// openInput opens a file, or standard input for "-".
func openInput(stdin io.Reader, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, unwrapPath(err))
	}
	return f, nil
}

// sayRestored says what a backup has, and what is to be done.
func sayRestored(w io.Writer, m *backup.Manifest, args []string, key string, shared bool) {
	fmt.Fprintf(w, "a backup of %s, by holdoutd %s: in order\n", m.Created.Format("2006-01-02 15:04:05 MST"), m.Program)
	waiting := 0
	for _, h := range m.Holdouts {
		state := ""
		switch {
		case h.Deleted:
			state = " (deleted)"
		case h.Without != "":
			state = " (without its tables: " + printable(h.Without) + ")"
		}
		if !h.Deleted {
			waiting++
		}
		fmt.Fprintf(w, "%s %q%s: seq %d, spent %s\n  head %s\n", printable(h.ID), h.Name, state, h.Seq, spentOf(h.Spent, h.Limits), printable(h.Head))
	}
	if len(args) < 2 {
		return
	}
	dir := args[1]
	if !m.ServerKey && key == "" {
		fmt.Fprintf(w, "put server.key into %s before a server starts\n", dir)
	}
	sayElsewhere(w, m, dir)
	if waiting > 0 {
		if shared {
			dir += " --ledger …"
		}
		fmt.Fprintf(w, "%d holdouts give no new answers until you say what was asked since: holdoutd confirm %s\n", waiting, dir)
	}
}

// sayElsewhere says which rows of a directory that was restored are not in it.
func sayElsewhere(w io.Writer, m *backup.Manifest, dir string) {
	for _, h := range m.Holdouts {
		source, parts, err := holdout.PartsElsewhere(filepath.Join(dir, "holdouts", h.ID))
		if err == nil && source != "" {
			fmt.Fprintf(w, "%[1]s: its rows are not in the backup: the source %[2]s keeps them as %[3]s. Put them back there if they are gone, give the server --source %[2]s=URL, and compare them: holdoutd verify %[4]s --source %[2]s=URL\n", printable(h.ID), source, strings.Join(parts, ", "), dir)
		}
	}
}

func confirmCommand() *cobra.Command {
	var nothing, retire, all, endGrants bool
	var spent, witness, where, serverKey string
	var answers []string
	cmd := &cobra.Command{
		Use:   "confirm DIR [HOLDOUT]",
		Short: "Say what was asked of a restored holdout since, so that it gives new answers again",
		Long: `A holdout that was restored from a backup, or whose ledger is older than its marks, gives no new answers: what was asked since is not
recorded, and its budget would be spent twice. Without HOLDOUT this names those that wait. Of one, say one of three things:

  --nothing-asked-since    nothing was. Right after a server that had been stopped was copied, for example.
  --spent questions=N      at most so much was; it is debited. Say tokens=M and rounds=R, too, where some were spent. Intervals of later
                           answers hold as if the lost ones were known, and may be wider. Under guess_and_check and thresholdout
                           lost tokens cannot be made up for: all of them are spent, or the holdout is retired.
  --retire                 nobody knows. The holdout is ended: its recorded answers replay.

Answers that somebody kept (--answer FILE, as they were received), the mark beside the tables and the witness of the server (--witness
DIR) are compared with the ledger first: an answer that the ledger lacks shows that something was asked. A witness whose newest entry is
the ledger's shows that nothing was, and is enough by itself.

No server may have the directory open; with --ledger servers may run, and go on at once. What is confirmed cannot be taken back.`,
		Example: `  holdoutd confirm holdoutd-data
  holdoutd confirm holdoutd-data ho_0b6c2b0e-4d3b-4a0e-9d3c-6b1f5f1f2a77 --nothing-asked-since
  holdoutd confirm holdoutd-data --all --witness /mnt/other/witness
  holdoutd confirm holdoutd-data ho_0b6c2b0e-4d3b-4a0e-9d3c-6b1f5f1f2a77 --spent questions=12 --answer kept.jsonl`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, accept, err := confirming(args[0], where, serverKey)
			if err != nil {
				return err
			}
			waiting, err := list(cmd.Context())
			if err != nil {
				return err
			}
			a := holdout.Acceptance{Nothing: nothing, Retire: retire, Witness: witness, EndGrants: endGrants}
			if a.Spent, err = amounts(spent); err != nil {
				return err
			}
			for _, path := range answers {
				kept, err := readEvidence(cmd.InOrStdin(), path)
				if err != nil {
					return err
				}
				a.Kept = append(a.Kept, kept...)
			}
			switch {
			case all && len(args) == 2:
				return misuse("name one holdout, or --all")
			case len(args) == 2:
				waiting = []holdout.Waiter{{ID: args[1]}}
			case !all:
				for _, h := range waiting {
					fmt.Fprintf(cmd.OutOrStdout(), "%s %q: restored; seq %d, spent %s\n", h.ID, h.Name, h.Seq, spentOf(h.Spent, h.Limits))
				}
				if len(waiting) == 0 {
					fmt.Fprintln(cmd.OutOrStdout(), "no holdout waits")
				}
				return nil
			case all && spent != "":
				return misuse("--spent is of one holdout: name it")
			}
			for _, h := range waiting {
				done, err := accept(cmd.Context(), h.ID, a)
				if err != nil {
					return err
				}
				sayAccepted(cmd.OutOrStdout(), &done)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&nothing, "nothing-asked-since", false, "nothing was asked after the ledger was copied")
	flags.StringVar(&spent, "spent", "", "at most what was spent since, such as questions=12,tokens=3")
	flags.BoolVar(&retire, "retire", false, "end the holdout; its recorded answers replay")
	flags.StringArrayVar(&answers, "answer", nil, "a file of answers that were kept, as JSON; may be given again")
	flags.StringVar(&witness, "witness", "", "the directory of serve --witness")
	flags.StringVar(&where, "ledger", "", "the ledger that servers share: postgres://USER@HOST/DATABASE, or @FILE, a file with that URL (default: ledger.db in DIR)")
	flags.StringVar(&serverKey, "server-key", "", "with --ledger, file with the server's key (default: server.key in DIR)")
	flags.BoolVar(&endGrants, "end-grants", false, "end the holdout's grants, so that what they have not spent can pay for --spent")
	flags.BoolVar(&all, "all", false, "all holdouts that wait")
	return cmd
}

// sayAccepted says what became of a holdout.
func sayAccepted(w io.Writer, a *holdout.Accepted) {
	switch {
	case a.Retired:
		fmt.Fprintf(w, "%s %q is retired\n", a.Holdout, a.Name)
		return
	case a.Debited == (thresholdout.Amounts{}):
		fmt.Fprintf(w, "%s %q gives new answers again", a.Holdout, a.Name)
	default:
		fmt.Fprintf(w, "%s %q gives new answers again; debited: %d questions, %d tokens", a.Holdout, a.Name, a.Debited.Questions, a.Debited.Tokens)
		if a.Debited.Rounds > 0 {
			fmt.Fprintf(w, ", %d rounds", a.Debited.Rounds)
		}
	}
	fmt.Fprintf(w, "; %d questions are left\n  head %s\n", a.Left, a.Head)
}

// amounts reads what was spent: "questions=12,tokens=3".
func amounts(text string) (thresholdout.Amounts, error) {
	said := map[string]int64{}
	for _, part := range strings.Split(text, ",") {
		if text == "" {
			break
		}
		name, number, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(number, 10, 64)
		_, twice := said[name]
		if err != nil || n < 0 || twice || name != thresholdout.MeterQuestions && name != thresholdout.MeterTokens && name != thresholdout.MeterRounds {
			return thresholdout.Amounts{}, misuse("--spent %q is not of the form questions=12,tokens=3,rounds=1", text)
		}
		said[name] = n
	}
	return thresholdout.AmountsOf(func(name string) int64 { return said[name] }), nil
}

// readEvidence reads answers that somebody kept.
func readEvidence(stdin io.Reader, path string) ([]holdout.Evidence, error) {
	in, err := openInput(stdin, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	kept, err := holdout.ReadEvidence(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return kept, nil
}
