package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// ledgerFile is the ledger's name in a data directory.
const ledgerFile = "ledger.db"

func verifyCommand() *cobra.Command {
	var asJSON, noTables, backup bool
	var shared string
	var unlock unlockFlags
	var key keySource
	var online onlineFlags
	cmd := &cobra.Command{
		Use:   "verify EXPORT|DIR|BACKUP|--online [HOLDOUT...]",
		Short: "Recompute the hash chain and the balances of a ledger, and check the tables, offline or of a running server",
		Long: `Checks an export (GET /v1/holdouts/{id}/ledger) or all holdouts of a data directory: that every entry is what the hash
chain says, that none is missing between, and that the debits add up and stay within the limits. Compare the printed head
with the head of an answer that was kept elsewhere to notice a restored old backup.

Of a data directory it also reads all tables: every checksum, that each table is the one that the holdout was made with, and
the number of units. --no-tables leaves that out. Sealed values are opened where server.key can be read, or by what --key-command
says, and are said to be "not checked" elsewhere. It names recorded questions that this version of the program writes otherwise, or does not read: their
answers replay. Nothing is written; the directory may be a read-only snapshot, or that of a running server.

--backup checks a file of holdoutd backup: that nothing in it was changed or is missing, every digest, chains and books, and that
the tables are those that the holdouts were made with. Neither rows nor keys are written to the disk for it, and the ledger
is, in the folder of temporary files.

--online asks a running server, with an admin key, for the chains of the holdouts that are named, or of all. Each is recomputed, and what
it has spent is held against the budget that the server says. --kept FILE keeps the heads from one run to the next: a chain that
does not pass through its head of the run before is that of an older ledger, or of another one. Run it from another machine.

"-" reads an export, or with --backup a backup, from standard input.`,
		Example: `  holdoutd verify holdoutd-data
  holdoutd verify flights.ledger --json
  holdoutd verify /shared/holdoutd --ledger @/etc/holdoutd/ledger
  holdoutd verify --backup monday.backup --identity key.txt
  holdoutd verify --online --kept heads.json --url http://127.0.0.1:8080 --key @DIR/admin.key
  curl -s $URL/v1/holdouts/$ID/ledger -H "Authorization: Bearer $KEY" | holdoutd verify -`,
		Args: func(cmd *cobra.Command, args []string) error {
			if online.online {
				return nil
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if online.online {
				return verifyOnline(cmd, &online, args, asJSON)
			}
			if online != (onlineFlags{}) {
				return misuse("--url, --key and --kept are of a running server; say --online, too")
			}
			var reports []holdout.Verification
			var err error
			switch {
			case !backup && unlock != (unlockFlags{}):
				return misuse("--identity and --passphrase-file open a backup; say --backup, too")
			case backup && shared != "":
				return misuse("--ledger is of a data directory, and %s is a backup", args[0])
			case backup && key != "":
				return misuse("--key-command is of a data directory, and %s is a backup", args[0])
			case backup:
				reports, err = verifyBackup(cmd.Context(), cmd.InOrStdin(), args[0], &unlock)
			default:
				reports, err = verify(cmd.Context(), cmd.InOrStdin(), args[0], shared, key, !noTables)
			}
			if err != nil {
				return err
			}
			if state := restoreState(args[0]); state != "" && !asJSON {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", args[0], state)
			}
			return printReports(cmd.OutOrStdout(), reports, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each holdout")
	cmd.Flags().BoolVar(&noTables, "no-tables", false, "do not read the tables of a data directory")
	cmd.Flags().BoolVar(&backup, "backup", false, "check a file of holdoutd backup")
	unlock.add(cmd)
	cmd.Flags().StringVar(&shared, "ledger", "", "address of the data directory's ledger, where servers were started with --ledger; or @FILE with it")
	key.add(cmd.Flags())
	cmd.Flags().BoolVar(&online.online, "online", false, "verify a running server")
	cmd.Flags().StringVar(&online.kept, "kept", "", "file that keeps the heads of --online from one run to the next; made if it is not there")
	online.server.add(cmd.Flags())
	return cmd
}

// verifyOnline verifies a running server. What is in order is printed also where something else is not.
func verifyOnline(cmd *cobra.Command, online *onlineFlags, holdouts []string, asJSON bool) error {
	for _, flag := range []string{"no-tables", "backup", "identity", "passphrase-file", "ledger", "key-command"} {
		if cmd.Flags().Changed(flag) {
			return misuse("--%s is of files, and --online asks a server", flag)
		}
	}
	return asClient(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		reports, err := online.verify(ctx, args)
		if err != nil && len(reports) == 0 {
			return err
		}
		return errors.Join(printReports(cmd.OutOrStdout(), reports, asJSON), err)
	})(cmd, holdouts)
}

// restoreState is what a data directory says of the backup that it was restored from; what is none says nothing.
func restoreState(target string) string {
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		return ""
	}
	return holdout.RestoreState(target)
}

func verify(ctx context.Context, stdin io.Reader, target, shared string, command keySource, tables bool) ([]holdout.Verification, error) {
	address, err := ledgerAddress(shared)
	if err != nil {
		return nil, err
	}
	if target == "-" {
		if command != "" {
			return nil, misuse("--key-command is of a data directory, and an export has no sealed values")
		}
		report, err := holdout.VerifyExport(stdin)
		return []holdout.Verification{report}, err
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", target, unwrapPath(err))
	}
	switch {
	case !info.IsDir() && address != "":
		return nil, misuse("--ledger is of a data directory, and %s is a file", target)
	case !info.IsDir() && command != "":
		return nil, misuse("--key-command is of a data directory, and %s is a file", target)
	}
	if info.IsDir() {
		path := filepath.Join(target, ledgerFile)
		if _, err := os.Stat(path); err != nil && address == "" {
			return nil, fmt.Errorf("%s is not a data directory: it has no %s", target, ledgerFile)
		}
		key, err := command.read(ctx)
		if err != nil {
			return nil, err
		}
		return holdout.VerifyBy(ctx, holdout.VerifyOptions{Dir: target, Ledger: address, Tables: tables, Key: key})
	}
	f, err := os.Open(target)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", target, unwrapPath(err))
	}
	defer f.Close()
	report, err := holdout.VerifyExport(f)
	return []holdout.Verification{report}, err
}

// unwrapPath leaves out the path that the caller names itself.
func unwrapPath(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// spentOf says what is spent of each meter that the mechanism has.
func spentOf(spent, limits ledger.Meters) string {
	var words []string
	for _, meter := range slices.Sorted(maps.Keys(limits)) {
		if limits[meter] == 0 {
			continue
		}
		words = append(words, fmt.Sprintf("%d of %d %s", spent[meter], limits[meter], meter))
	}
	return strings.Join(words, ", ")
}

func printReports(w io.Writer, reports []holdout.Verification, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		for _, r := range reports {
			if err := e.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	for _, r := range reports {
		name, deleted := "", ""
		if r.Name != "" {
			name = fmt.Sprintf(" %q", r.Name)
		}
		if r.Deleted {
			deleted = " (deleted)"
		}
		fmt.Fprintf(w, "%s%s%s: in order\n  %d answers; spent %s\n  head %s\n", r.Holdout, name, deleted, r.Answers, spentOf(r.Spent, r.Limits), r.Head)
		if r.Tables != "" {
			fmt.Fprintf(w, "  tables %s; sealed values %s\n", r.Tables, r.Sealed)
		}
		printReread(w, r)
	}
	if len(reports) == 0 {
		fmt.Fprintln(w, "the ledger has no holdouts")
	}
	return nil
}

// mostPrinted is how many bytes of a query are printed: a line or two, and no model.
const mostPrinted = 200

// printReread names the recorded questions that this program does not read as they were recorded.
func printReread(w io.Writer, r holdout.Verification) {
	if r.Reread == 0 {
		return
	}
	fmt.Fprintf(w, "  %d recorded questions are not read by this version as they were recorded; their answers replay\n", r.Reread)
	cut := func(text []byte) string {
		if len(text) <= mostPrinted {
			return string(text)
		}
		return strings.ToValidUTF8(string(text[:mostPrinted]), "") + "…"
	}
	for _, q := range r.Questions {
		fmt.Fprintf(w, "  seq %d, %s, %s\n    recorded %s\n", q.Seq, q.Query, q.Says(), cut(q.Recorded))
		if q.Now != nil {
			fmt.Fprintf(w, "    now      %s\n", cut(q.Now))
		} else {
			fmt.Fprintf(w, "    refused  %s\n", cut([]byte(q.Refused)))
		}
	}
	if more := r.Reread - int64(len(r.Questions)); more > 0 {
		fmt.Fprintf(w, "  and %d more\n", more)
	}
}
