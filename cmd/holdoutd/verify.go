package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/backup"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
)

// ledgerFile is the ledger's name in a data directory.
const ledgerFile = "ledger.db"

// verifying is what verify was told.
type verifying struct {
	noTables bool
	ledger   string
	opening  openingFlags
	sources  sourceFlags
	key      string
	answers  []string
	head     string
	seq      int64
	holdout  string
}

func verifyCommand() *cobra.Command {
	var v verifying
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [EXPORT|DIR|BACKUP|URL]",
		Short: "Recompute the hash chains and the balances of a ledger, and check the tables, offline or of a running server",
		Long: `Checks an export (GET /v1/holdouts/{id}/ledger), all holdouts of a data directory, a backup, or a running server: that every entry is
what the hash chain says, that none is missing between, and that the debits add up and stay within the limits.

Of a data directory it also reads all tables: every checksum, that each table is the one that the holdout was made with, and
the number of units. --no-tables leaves that out. Sealed values are opened where server.key can be read, and are said to be
"not checked" elsewhere. Nothing is written; the directory may be a read-only snapshot, or that of a running server. Of a holdout whose
rows are in a source it says that the source was not asked; --source names it, as for serve, and has all rows compared there.

Of a ledger that several servers share (--ledger) it reads all chains, books and grants, as they are at one moment, from the database itself.

Of a server (http://… or https://…) it fetches the export of each holdout, which needs an admin key, and recomputes it here. A backup is read as
restore --check does, and needs what opens it.

An old copy that was put back agrees with itself. What shows it is an answer that somebody kept: --answer FILE compares the answers in a
file, as they were received, with the ledger; --head with --seq and --holdout compares one place.

"-" reads an export from standard input.`,
		Example: `  holdoutd verify holdoutd-data
  holdoutd verify flights.ledger --json
  holdoutd verify holdoutd-data --source lake=file:///srv/lake
  holdoutd verify https://holdout.example --key @admin.key --answer kept.jsonl
  holdoutd verify monday.backup --identity key.txt
  holdoutd verify --ledger @/run/secrets/ledger
  curl -s $URL/v1/holdouts/$ID/ledger -H "Authorization: Bearer $KEY" | holdoutd verify -`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (v.ledger == "") != (len(args) == 1) {
				return misuse("name what is to be verified: a file, a directory or a URL, or a shared ledger by --ledger")
			}
			target := ""
			if v.ledger == "" {
				target = args[0]
			}
			if info, err := os.Stat(target); len(v.sources.given) > 0 && (v.noTables || target == "" || err != nil || !info.IsDir()) {
				return misuse("--source is for the tables of a data directory")
			}
			kept, err := v.kept(cmd.InOrStdin(), target)
			if err != nil {
				return err
			}
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			reports, err := v.verify(ctx, cmd.InOrStdin(), target, kept)
			if err != nil {
				return stopped(ctx, err, "nothing is known")
			}
			return printReports(cmd.OutOrStdout(), reports, asJSON)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asJSON, "json", false, "print one JSON object for each holdout")
	flags.BoolVar(&v.noTables, "no-tables", false, "do not read the tables of a data directory")
	flags.StringVar(&v.ledger, "ledger", "", "a ledger that several servers share: postgres://USER@HOST/DATABASE, or @FILE, a file with that URL")
	flags.StringVar(&v.key, "key", "", "the admin key of a server, or @FILE to read it from a file (default: HOLDOUTD_KEY)")
	flags.StringArrayVar(&v.answers, "answer", nil, "a file of answers that were kept, as JSON; may be given again")
	flags.StringVar(&v.head, "head", "", "a head that was kept (sha256:…), at --seq of --holdout")
	flags.Int64Var(&v.seq, "seq", 0, "the place of --head in its chain")
	flags.StringVar(&v.holdout, "holdout", "", "the id of the holdout of --head")
	v.opening.add(flags)
	v.sources.add(flags, "compare all rows that this source keeps of the holdouts of a data directory: NAME=URL, NAME=@FILE or NAME, as serve takes it; as often as there are sources")
	return cmd
}

// kept is what the ledger is compared with.
func (v *verifying) kept(stdin io.Reader, target string) (all []holdout.Evidence, err error) {
	if (v.head == "") != (v.holdout == "") || v.head == "" && v.seq != 0 {
		return nil, misuse("a kept head is named by --head, --seq and --holdout together")
	}
	if v.head != "" {
		all = append(all, holdout.Evidence{Holdout: v.holdout, Seq: v.seq, Head: v.head})
	}
	for _, path := range v.answers {
		if path == "-" && target == "-" {
			return nil, misuse("standard input is the export, and not the kept answers too")
		}
		kept, err := readEvidence(stdin, path)
		if err != nil {
			return nil, err
		}
		all = append(all, kept...)
	}
	return all, nil
}

func (v *verifying) verify(ctx context.Context, stdin io.Reader, target string, kept []holdout.Evidence) ([]holdout.Verification, error) {
	if v.ledger != "" {
		return verifyShared(ctx, v.ledger, kept)
	}
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return v.server(ctx, target, kept)
	}
	if target == "-" {
		return verifyExport(ctx, stdin, kept)
	}
	info, err := os.Stat(target)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", target, unwrapPath(err))
	}
	if info.IsDir() {
		path := filepath.Join(target, ledgerFile)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("%s is not a data directory: it has no %s", target, ledgerFile)
		}
		return v.directory(ctx, target, kept)
	}
	f, err := os.Open(target)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", target, unwrapPath(err))
	}
	defer f.Close()
	in := bufio.NewReader(f)
	if head, _ := in.Peek(len(ageHeader)); string(head) == ageHeader {
		return v.backup(ctx, in, kept)
	}
	return verifyExport(ctx, in, kept)
}

// ageHeader is how a file of age begins, and no export.
const ageHeader = "age-encryption.org/"

// verifyExport verifies an export, and compares it with what was kept of its holdout.
func verifyExport(ctx context.Context, r io.Reader, kept []holdout.Evidence) ([]holdout.Verification, error) {
	if len(kept) == 0 {
		report, err := ledger.VerifyExport(r)
		return []holdout.Verification{holdout.VerificationOf(report)}, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	report, err := ledger.VerifyExport(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	places := &holdout.Exports{Fetch: func(_ context.Context, id string) ([]byte, error) {
		if id != report.Holdout {
			return nil, ledger.ErrNotFound
		}
		return text, nil
	}}
	return []holdout.Verification{holdout.VerificationOf(report)}, holdout.CompareAll(ctx, kept, places)
}

// directory verifies a data directory.
func (v *verifying) directory(ctx context.Context, dir string, kept []holdout.Evidence) ([]holdout.Verification, error) {
	var reports []holdout.Verification
	var err error
	if v.noTables {
		reports, err = holdout.Verify(ctx, dir, false)
	} else {
		reports, err = v.rows(ctx, dir)
	}
	if err != nil || len(kept) == 0 {
		return reports, err
	}
	places, err := holdout.DirectoryPlaces(ctx, dir)
	if err != nil {
		return nil, err
	}
	return reports, errors.Join(holdout.CompareAll(ctx, kept, places), places.Close())
}

// rows verifies a data directory with its tables, and with the rows that sources keep, where they are named.
func (v *verifying) rows(ctx context.Context, dir string) (all []holdout.Verification, err error) {
	v.sources.readOnly = true
	opened, err := v.sources.open(ctx, dir, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeSources(opened)) }()
	return holdout.VerifyRows(ctx, dir, opened)
}

// backup verifies a backup.
func (v *verifying) backup(ctx context.Context, in io.Reader, kept []holdout.Evidence) (all []holdout.Verification, err error) {
	o, err := v.opening.options()
	if err != nil {
		return nil, err
	}
	o.Kept = kept
	m, err := backup.Check(ctx, in, o)
	for _, h := range m.Holdouts {
		report := holdout.Verification{Name: h.Name, Report: ledger.Report{Holdout: h.ID, Entries: h.Seq + 1, Answers: h.Answers, Voids: h.Voids, Head: h.Head,
			Spent: h.Spent, Limits: h.Limits, Deleted: h.Deleted}}
		if !h.Deleted {
			report.Tables, report.Sealed = "in order", "not checked"
			if h.Without != "" {
				report.Tables = h.Without
			}
		}
		all = append(all, report)
	}
	return all, err
}

// verifyShared verifies a ledger in a database.
func verifyShared(ctx context.Context, where string, kept []holdout.Evidence) (all []holdout.Verification, err error) {
	address, _, err := ledgerURL(where)
	if err != nil {
		return nil, err
	}
	reports, err := postgres.Verify(ctx, address)
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		all = append(all, holdout.VerificationOf(r))
	}
	if len(kept) == 0 {
		return all, nil
	}
	l, err := postgres.Open(ctx, address, ledger.Options{ReplayOnly: true})
	if err != nil {
		return nil, err
	}
	return all, errors.Join(holdout.CompareAll(ctx, kept, holdout.LedgerPlaces(l)), l.Close())
}

// server verifies what a running server has.
func (v *verifying) server(ctx context.Context, url string, kept []holdout.Evidence) (all []holdout.Verification, err error) {
	c, err := serverFlags{url: url, key: v.key}.connect()
	if err != nil {
		return nil, err
	}
	cards, err := c.Holdouts(ctx)
	if err != nil {
		return nil, plain(err)
	}
	exports := map[string][]byte{}
	places := &holdout.Exports{Fetch: func(ctx context.Context, id string) ([]byte, error) {
		if text, fetched := exports[id]; fetched {
			return text, nil
		}
		var text bytes.Buffer
		err := c.Ledger(ctx, id, &text)
		var refused *client.Problem
		if errors.As(err, &refused) && refused.Code == "not-found" {
			return nil, ledger.ErrNotFound
		}
		return text.Bytes(), plain(err)
	}}
	for _, card := range cards {
		text, err := places.Fetch(ctx, card.ID)
		if err != nil {
			return nil, err
		}
		report, err := ledger.VerifyExport(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if report.Holdout != card.ID {
			return nil, fmt.Errorf("the server sends the ledger of %q for that of %q", report.Holdout, card.ID)
		}
		if len(kept) > 0 {
			exports[card.ID] = text
		}
		all = append(all, holdout.VerificationOf(report))
	}
	return all, holdout.CompareAll(ctx, kept, places)
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
	}
	if len(reports) == 0 {
		fmt.Fprintln(w, "the ledger has no holdouts")
	}
	return nil
}
