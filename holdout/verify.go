package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/sources"
)

// Verification says what Verify found in order of one holdout.
type Verification struct {
	ledger.Report
	Name string `json:"name"` // what people call the holdout
	// Sealed and Tables are "in order" or "not checked"; of a holdout of a source Tables are what the server keeps of its parts, and it says so. A deleted holdout has neither; they are empty then.
	Sealed string `json:"sealed,omitempty"`
	Tables string `json:"tables,omitempty"`
}

// VerificationOf is what a report by itself says, such as that of an export.
func VerificationOf(r ledger.Report) Verification {
	card, err := readCard([]byte(r.Public))
	if err != nil {
		return Verification{Report: r} // the chain can be in order where the public facts are no card, or a newer one
	}
	return Verification{Report: r, Name: card.Name}
}

// PartsOf are the fingerprints of a holdout's tables, by part, as its public facts in the ledger say them.
func PartsOf(public json.RawMessage) (map[string]string, error) {
	card, err := readCard(public)
	return card.Parts, err
}

// What a Verification says.
const (
	inOrder    = "in order"
	notChecked = "not checked"
)

// VerifyRows is Verify with tables, which has sources compare the rows that they keep: all of them are read. A holdout whose source does not answer, or is not among those that are given, is not in order; but where
// none are given, Tables says that none was asked.
func VerifyRows(ctx context.Context, dir string, from map[string]sources.Source) ([]Verification, error) {
	all, err := Verify(ctx, dir, true)
	if err != nil || len(from) == 0 {
		return all, err
	}
	var damage []error
	for i := range all {
		card, err := readCard([]byte(all[i].Public))
		if all[i].Deleted || err != nil || card.Source == nil {
			continue
		}
		if err := compareParts(ctx, filepath.Join(dir, holdoutsDir, all[i].Holdout), &card, from[card.Source.Name]); err != nil {
			damage = append(damage, fmt.Errorf("holdout %s: %w", all[i].Holdout, err))
			continue
		}
		all[i].Tables = fmt.Sprintf("%s; the source %s has compared all rows", inOrder, card.Source.Name)
	}
	if len(damage) > 0 {
		return nil, errors.Join(damage...)
	}
	return all, nil
}

// compareParts has a source read all rows of a holdout.
func compareParts(ctx context.Context, dir string, card *Card, from sources.Source) error {
	name := card.Source.Name
	if from == nil {
		return fmt.Errorf("its rows were not compared: they are in the source %s (%s), which was not named", name, card.Source.Kind)
	}
	if kind := from.Kind(); kind != card.Source.Kind {
		return fmt.Errorf("its rows were not compared: the source %s is of the kind %s, and they are in one of the kind %s", name, kind, card.Source.Kind)
	}
	for _, file := range partFiles {
		k, _, err := readPart(dir, file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		p, err := from.Open(ctx, k.Part, card.LargestUnit)
		if err == nil {
			err = errors.Join(p.Check(ctx), p.Close())
		}
		switch {
		case isChanged(err):
			return fmt.Errorf("the part %s in the source %s is not what was registered: %w", k.Part.Name, name, err)
		case err != nil:
			return fmt.Errorf("its rows were not compared: the source %s does not give the part %s: %w", name, k.Part.Name, err)
		}
	}
	return nil
}

// PartsElsewhere says which parts of a holdout are kept by a source, and by which: what a backup does not have. dir is the holdout's directory; source is "" where it has all its rows.
func PartsElsewhere(dir string) (source string, parts []string, err error) { return keptParts(dir) }

// Verify checks a data directory offline, or beside a running server: the chains and the books of all holdouts; the sealed
// values, if server.key is there and can be read; and, if tables is set, each table against its checksums, its
// fingerprint on the card and the card's number of units. It writes nothing. The error says everything that is wrong with
// tables, and the first that is wrong with the ledger.
func Verify(ctx context.Context, dir string, tables bool) ([]Verification, error) {
	return VerifyCopy(ctx, dir, func(string) bool { return tables })
}

// VerifyCopy is Verify that looks at the tables of some holdouts alone.
func VerifyCopy(ctx context.Context, dir string, tables func(id string) bool) ([]Verification, error) {
	path := filepath.Join(dir, ledgerFile)
	marks := readMarks(dir) // before the ledger, which a running server writes first
	reports, err := sqlite.Verify(ctx, path)
	if err != nil {
		return nil, err
	}
	return verifyCopy(dir, marks, reports, func(key [32]byte) error { return sqlite.VerifySealed(ctx, path, key) }, tables)
}

// VerifyCopyOf is VerifyCopy of a data directory that no server has open, with a ledger in it or elsewhere: reports are those of its chains, and open opens its sealed values.
func VerifyCopyOf(dir string, reports []ledger.Report, open func(key [32]byte) error, tables func(id string) bool) ([]Verification, error) {
	return verifyCopy(dir, readMarks(dir), reports, open, tables)
}

func verifyCopy(dir string, marks map[string]mark, reports []ledger.Report, open func(key [32]byte) error, tables func(id string) bool) ([]Verification, error) {
	sealed, err := verifySealed(dir, open)
	if err != nil {
		return nil, err
	}
	all := make([]Verification, len(reports))
	var damage []error
	for i, r := range reports {
		all[i] = VerificationOf(r)
		if r.Deleted {
			continue
		}
		all[i].Sealed, all[i].Tables = sealed, notChecked
		if last := r.Entries - 1; marks[r.Holdout].Seq > last || marks[r.Holdout].Seq == last && last > 0 && marks[r.Holdout].Head != r.Head {
			damage = append(damage, fmt.Errorf("holdout %s: the ledger is older than it was, or another one: it ends at seq %d, and the mark beside the tables is at %d",
				r.Holdout, last, marks[r.Holdout].Seq))
		}
		if tables(r.Holdout) {
			all[i].Tables = inOrder
			if card, err := readCard([]byte(r.Public)); err == nil && card.Source != nil {
				all[i].Tables = fmt.Sprintf("%s; the rows are in the source %s, which was not asked", inOrder, card.Source.Name)
			}
			if err := verifyTables(filepath.Join(dir, holdoutsDir, r.Holdout), []byte(r.Public)); err != nil {
				damage = append(damage, fmt.Errorf("holdout %s: %w", r.Holdout, err))
			}
		}
	}
	if len(damage) > 0 {
		return nil, errors.Join(damage...)
	}
	return all, nil
}

// readMarks reads the marks that can be read.
func readMarks(dir string) map[string]mark {
	marks := map[string]mark{}
	paths, _ := filepath.Glob(filepath.Join(dir, holdoutsDir, "*", markFile)) // its only error is a bad pattern
	for _, path := range paths {
		if m, err := readMark(filepath.Dir(path)); err == nil {
			marks[filepath.Base(filepath.Dir(path))] = m
		}
	}
	return marks
}

// verifySealed opens what is sealed, where the key can be read.
func verifySealed(dir string, open func(key [32]byte) error) (said string, err error) {
	secret, err := readServerSecret(filepath.Join(dir, serverKeyFile))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return notChecked, nil
	}
	if err != nil {
		return "", err
	}
	return inOrder, open(secret.derive("ledger"))
}

// verifyTables opens the tables of a holdout as the server does.
func verifyTables(dir string, public json.RawMessage) error {
	h := &opened{faulted: func(err error) *Error { return &Error{Kind: Damaged, Err: err} }}
	var err error
	if h.card, err = readCard(public); err != nil {
		return fmt.Errorf("the card: %w", err)
	}
	h.guarantee = h.card.Guarantee
	err = errors.Join(h.open(context.Background(), dir), h.close(), verifyExports(dir))
	if err == nil && h.card.segmented() { // opening segments reads no column
		err = CheckSegments(context.Background(), dir)
	}
	return err
}

// verifyExports compares files that are handed out with their checksums.
func verifyExports(dir string) error {
	for _, name := range []string{trainingParquet, featuresParquet, heldOutParquet, checkParquet} {
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
