package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// Verification says what Verify found in order of one holdout.
type Verification struct {
	ledger.Report
	Name string `json:"name"` // what people call the holdout
	// Sealed and Tables are "in order" or "not checked". A deleted holdout has neither; they are empty then.
	Sealed string `json:"sealed,omitempty"`
	Tables string `json:"tables,omitempty"`
	// Reread is how many recorded questions this program does not read as they were recorded, and Questions the first of them. Their answers replay.
	Reread    int64    `json:"reread,omitempty"`
	Questions []Reread `json:"questions,omitempty"`
}

// verificationOf is what a report by itself says, such as that of an export.
func verificationOf(r ledger.Report, found rereadEntries) Verification {
	v := Verification{Report: r, Reread: found.reread[r.Holdout], Questions: found.questions[r.Holdout]}
	if card, err := readCard([]byte(r.Public)); err == nil { // the chain can be in order where the public facts are no card, or a newer one
		v.Name = card.Name
	}
	return v
}

// rereadEntries is what was found in the entries of chains beside what the chains say, by holdout.
type rereadEntries struct {
	reread    map[string]int64
	questions map[string][]Reread
}

// hear is a ledger.Each.
func (v *rereadEntries) hear(holdout string, e *ledger.Entry) {
	found := reread(e)
	if found == nil {
		return
	}
	if v.reread == nil {
		v.reread, v.questions = map[string]int64{}, map[string][]Reread{}
	}
	if v.reread[holdout]++; v.reread[holdout] <= mostSaid {
		v.questions[holdout] = append(v.questions[holdout], *found)
	}
}

// A Place is an entry of a chain: its number and its head.
type Place struct {
	Seq  int64  `json:"seq"`
	Head string `json:"head"`
}

// VerifyExport checks an export by itself: chain, books, and whether this program reads its questions as they were recorded. The chain must pass through the places, which were kept elsewhere.
func VerifyExport(r io.Reader, kept ...Place) (Verification, error) {
	var found rereadEntries
	missing := slices.Clone(kept)
	report, err := ledger.VerifyExport(r, found.hear, func(_ string, e *ledger.Entry) {
		missing = slices.DeleteFunc(missing, func(p Place) bool { return p == Place{e.Seq, ledger.HeadText(e.Head)} })
	})
	for _, place := range missing {
		if err == nil {
			err = fmt.Errorf("the chain of %s ends at seq %d and does not have the head %s at seq %d: an older ledger was put back, or this is another one", report.Holdout, report.Entries-1, place.Head, place.Seq)
		}
	}
	return verificationOf(report, found), err
}

// What a Verification says.
const (
	inOrder    = "in order"
	notChecked = "not checked"
	notBacked  = "not in the backup" // of a holdout that was made after it
)

// Verify checks a data directory offline, or beside a running server: the chains and the books of all holdouts; the sealed
// values, if server.key is there and can be read; and, if tables is set, each table against its checksums, its
// fingerprint on the card and the card's number of units. It writes nothing. The error says everything that is wrong with
// tables, and the first that is wrong with the ledger.
func Verify(ctx context.Context, dir string, tables bool) ([]Verification, error) {
	return VerifyBy(ctx, VerifyOptions{Dir: dir, Tables: tables})
}

// VerifyOptions say what is verified, and by what.
type VerifyOptions struct {
	Dir    string     // the data directory
	Ledger string     // as Options.Ledger
	Tables bool       // and the tables
	Key    *ServerKey // as Options.Key
}

// VerifyBy is Verify, and VerifyShared where there is a Ledger, by a key that is kept elsewhere.
func VerifyBy(ctx context.Context, o VerifyOptions) ([]Verification, error) {
	if o.Ledger != "" {
		return verify(ctx, o.Dir, o.Ledger, inDatabase, o.Tables, o.Key)
	}
	return verify(ctx, o.Dir, filepath.Join(o.Dir, ledgerFile), inFile, o.Tables, o.Key)
}

// verify checks a data directory and the ledger at path, by the functions of its kind.
func verify(ctx context.Context, dir, path string, of ledgerKind, tables bool, key *ServerKey) ([]Verification, error) {
	all, damage, err := verifyEach(ctx, dir, path, of, tables, key)
	if err == nil {
		err = errors.Join(damageErrors(damage)...)
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// ledgerKind are the functions that verify a ledger of one kind, by its path or address.
type ledgerKind struct {
	chains func(ctx context.Context, path string, each ...ledger.Each) ([]ledger.Report, error)
	values func(ctx context.Context, path string, key [32]byte) error
}

// inFile is the kind of a ledger in a data directory.
var inFile = ledgerKind{sqlite.Verify, sqlite.VerifySealed}

// damage is what is wrong with the files of one holdout.
type damage struct {
	holdout string
	err     error
}

func damageErrors(all []damage) (errs []error) {
	for _, d := range all {
		errs = append(errs, fmt.Errorf("holdout %s: %w", d.holdout, d.err))
	}
	return errs
}

// verifyEach is verify which tells apart what is wrong with the files of single holdouts. also hears of every entry of the chains.
func verifyEach(ctx context.Context, dir, path string, of ledgerKind, tables bool, key *ServerKey, also ...ledger.Each) (all []Verification, harmed []damage, err error) {
	marks, unread := readMarks(dir) // before the ledger, which a running server writes first
	var found rereadEntries
	reports, err := of.chains(ctx, path, append([]ledger.Each{found.hear}, also...)...)
	if err != nil {
		return nil, nil, err
	}
	sealed, err := verifySealed(ctx, dir, path, of.values, key)
	if err != nil {
		return nil, nil, err
	}
	all = make([]Verification, len(reports))
	for i, r := range reports {
		all[i] = verificationOf(r, found)
		if r.Deleted {
			continue
		}
		all[i].Sealed, all[i].Tables = sealed, notChecked
		m := marks[r.Holdout]
		if err := unread[r.Holdout]; err != nil {
			harmed = append(harmed, damage{r.Holdout, fmt.Errorf("its mark cannot be read, so that an older ledger would not be noticed: %w", err)})
		}
		if last := r.Entries - 1; m.Seq > last || m.Seq == last && last > 0 && m.Head != r.Head {
			harmed = append(harmed, damage{r.Holdout, fmt.Errorf("the ledger is older than it was, or another one: it ends at seq %d, and the mark beside the tables is at %d", last, m.Seq)})
		}
		if tables {
			all[i].Tables = inOrder
			if err := verifyTables(filepath.Join(dir, holdoutsDir, r.Holdout), []byte(r.Public)); err != nil {
				harmed = append(harmed, damage{r.Holdout, err})
			}
		}
	}
	return all, harmed, nil
}

// readMarks reads the marks of all holdouts whose directories are there.
func readMarks(dir string) (marks map[string]mark, unread map[string]error) {
	marks, unread = map[string]mark{}, map[string]error{}
	folders, _ := filepath.Glob(filepath.Join(dir, holdoutsDir, "*")) // its only error is a bad pattern
	for _, folder := range folders {
		id := filepath.Base(folder)
		m, err := readMark(folder)
		if err != nil {
			unread[id] = err
			continue
		}
		marks[id] = m
	}
	return marks, unread
}

// verifySealed opens what is sealed, by a key from elsewhere, or where the directory's can be read.
func verifySealed(ctx context.Context, dir, path string, values func(context.Context, string, [32]byte) error, key *ServerKey) (said string, err error) {
	if key != nil {
		if _, err := key.secret.fits(dir); err != nil && !errors.Is(err, fs.ErrPermission) { // a verifier need not be able to read the file
			return "", err
		}
		return inOrder, values(ctx, path, key.secret.derive("ledger"))
	}
	secret, err := readServerSecret(filepath.Join(dir, serverKeyFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return notChecked, nil
	}
	if err != nil {
		return "", err
	}
	return inOrder, values(ctx, path, secret.derive("ledger"))
}

// verifyTables opens the tables of a holdout as the server does.
func verifyTables(dir string, public json.RawMessage) error {
	h := &opened{faulted: func(err error) *Error { return &Error{Kind: Damaged, Err: err} }}
	var err error
	if h.card, err = readCard(public); err != nil {
		return fmt.Errorf("the card: %w", err)
	}
	h.guarantee = h.card.Guarantee
	return errors.Join(h.open(context.Background(), dir), h.close(), verifyExports(dir))
}

// verifyExports compares files that are handed out with their checksums.
func verifyExports(dir string) error {
	for _, name := range []string{trainingParquet, featuresParquet} {
		f, err := openExport(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // written when it is asked for
		}
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
