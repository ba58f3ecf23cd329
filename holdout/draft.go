package holdout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// A holdout begins as a draft: nothing that depends on its rows was shown to anybody, so its table may be created again with
// other settings, whatever rows those hold out. The first look ends that, durably before anything is shown: opening the tables, which every
// question, explanation and download does, or exporting the chain, whose header has the whole card. What is said of a draft, and by a dry run, is made of public facts
// (docs/decisions/0006-drafts.md).

// Why a table is not created again: the member "reason" of such a refusal.
const (
	reasonSame     = "same-settings" // the holdout is there already
	reasonAsked    = "asked"         // an answer would be about other rows
	reasonShown    = "shown"         // rows that were shown would be held out
	reasonDeleted  = "deleted"       // after it was shown
	reasonRetired  = "retired"       // its rows were released
	reasonReleased = "released"      // private releases were made of its training part
	reasonDamaged  = "damaged"       // nobody can say what was shown

	reasonReplaced = "replaced" // of a holdout that is no more: another has its table
)

// existsError is the refusal of a table that has a holdout.
func existsError(id, reason string) *Error {
	detail := map[string]string{
		reasonSame:     "this table was uploaded before with these settings, and its holdout " + id + " is there; use it",
		reasonAsked:    "this table was uploaded before, and questions were asked of its holdout " + id + ": created again it would hold out rows about which something is known, with a new budget. Go on with that holdout, or upload rows that are not in this table",
		reasonDeleted:  "this table was uploaded before, and something of its holdout " + id + " was shown before it was deleted; created again it would hold out rows that were shown. Upload rows that are not in this table",
		reasonReleased: "this table was uploaded before, and private releases were made of the training part of its holdout " + id + ": created again its rows would have a new budget of epsilon. Go on with that holdout if it is there, or upload rows that are not in this table",
		reasonRetired:  "this table was uploaded before, and its holdout " + id + " is retired: its rows were released, and are not held out again. Upload rows that are not in this table",
		reasonDamaged:  "this table was uploaded before, and its holdout " + id + " is damaged or older than it was, so nobody can say what was shown of it; restore the data directory from a backup",
		reasonShown: "this table was uploaded before, and something of its holdout " + id + " was shown (its training part, an explanation, its chain): other settings of the split would hold out rows that were shown. " +
			"As nothing was asked, it can be created again with other questions, rounds, tokens, mechanism, label, confidence or name, if the file has its rows in the same order and holdout, check, split, unit, stratify, largest_unit and features, with public features also the label, stay as they are",
	}[reason]
	return &Error{Kind: Exists, Detail: detail, Members: map[string]any{"holdout": id, "reason": reason}}
}

// predecessor is the holdout in whose place an upload is to come.
type predecessor struct {
	id    string
	card  Card
	draft bool // nothing of it was shown
	gone  bool // it was deleted, as a draft
}

// known finds the newest holdout of a table: its id, and the digest that it is known by, which is the table's own or, of one that replaced another, the
// successor's. Where there is none, ok is false and digest is the one for a first holdout.
func (s *Service) known(ctx context.Context, table [32]byte) (id string, digest [32]byte, ok bool, err error) {
	digest = table
	if lost, isLost := s.lostTables[table]; isLost { // also where the ledger knows an older draft of it
		return lost, digest, true, existsError(lost, reasonDamaged)
	}
	for {
		newer, found, err := s.ledger.HoldoutByDigest(ctx, digest)
		if err != nil {
			return id, digest, ok, s.ledgerError(err)
		}
		if !found {
			return id, digest, ok, nil
		}
		id, ok, digest = newer, true, ledger.Successor(digest, newer)
	}
}

// precede says which holdout an upload of its table would replace, or refuses. It decides by public facts alone: what was asked and shown, and the settings.
func (s *Service) precede(ctx context.Context, id string, set Settings) (*predecessor, error) {
	record, err := s.ledger.Holdout(ctx, id)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	record = s.remembered(record)
	old := &predecessor{id: id, card: s.readCard(record), draft: record.Draft, gone: record.Deleted}
	spent := int64(0)
	for _, amount := range record.Spent {
		spent = saturated(spent, amount)
	}
	switch {
	case old.card.State != "":
		return nil, existsError(id, reasonDamaged)
	case record.Retired:
		return nil, existsError(id, reasonRetired)
	case record.Released.Made > 0:
		return nil, existsError(id, reasonReleased)
	case spent > 0, unanswered(record) != nil: // what was sent is asked, too
		return nil, existsError(id, reasonAsked)
	case old.gone && !old.draft:
		return nil, existsError(id, reasonDeleted)
	case !old.draft && set.split() != old.card.Settings.split():
		return nil, existsError(id, reasonShown)
	}
	return old, nil
}

// split are the settings that decide which rows are held out and what of them is public, and no others. The check part, whose default hangs on other
// settings, is compared by its rows.
func (set Settings) split() Settings {
	split := Settings{Holdout: set.Holdout, Unit: set.Unit, Stratify: set.Stratify, Split: set.Split, LargestUnit: set.LargestUnit,
		Features: set.Features}
	if set.Features == featuresPublic {
		split.Label = set.Label // the one column of the held-out rows that is not public: under another label it was shown
	}
	return split
}

// replaces refuses, now that the parts are made in dir, a holdout that is there already, and one that would hold out rows that were shown.
func (c *creation) replaces(dir string) error {
	old := c.old
	if old == nil {
		return nil
	}
	if !old.gone && reflect.DeepEqual(c.card.Settings, old.card.Settings) {
		return existsError(old.id, reasonSame)
	}
	if old.draft {
		return nil
	}
	// The table is the same and so are the settings of its split, but the places of its rows in the file need not be. What was shown must be what is
	// shown now, and what was compared with what is compared with; then the held-out rows are the same, too.
	for _, part := range []string{trainingDir, checkDir} {
		shown, err := c.service.contents(c.service.path(holdoutsDir, old.id, part))
		if err != nil {
			return err
		}
		now, err := c.service.contents(filepath.Join(dir, part))
		if err != nil {
			return err
		}
		if shown != now {
			return existsError(old.id, reasonShown)
		}
	}
	return nil
}

// contents is the keyed digest of a part's rows in any order; that of no rows where there is no such part.
func (s *Service) contents(dir string) (sum [32]byte, err error) {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return sum, nil
	}
	t, err := dataset.Open(dir)
	if err != nil {
		return sum, fmt.Errorf("holdout: a part: %w", err)
	}
	defer t.Close() // read only
	d := dataset.NewDigest()
	if err := d.Add(t); err != nil {
		return sum, fmt.Errorf("holdout: a part: %w", err)
	}
	return d.Sum(s.digest[:]), nil
}

// record makes the finished holdout durable, alone or in the place of its predecessor.
func (c *creation) record(h ledger.Holdout) error {
	s := c.service
	if c.old == nil {
		wait, cancel := withDeadline(c.ctx)
		defer cancel()
		return s.ledger.CreateHoldout(wait, h, c.idem)
	}
	old := ledger.Replaced{ID: c.old.id, Principal: c.principal.KeyID, Draft: c.old.draft}
	err := s.endHoldout(c.ctx, old.ID, func(ctx context.Context) error {
		record, err := s.ledger.Holdout(ctx, old.ID) // while nothing of it is in flight
		if err != nil {
			return err
		}
		if unanswered(record) != nil {
			return ledger.ErrAsked
		}
		err = s.ledger.ReplaceHoldout(ctx, old, h, c.idem)
		if err == nil {
			s.log.Info("holdout replaced", "holdout", old.ID, "by", old.Principal, "with", h.ID)
		}
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrAsked):
		if old, err := s.ledger.Holdout(c.ctx, old.ID); err == nil { // meanwhile
			switch {
			case old.Retired:
				return existsError(old.ID, reasonRetired)
			case old.Released.Made > 0:
				return existsError(old.ID, reasonReleased)
			}
		}
		return existsError(old.ID, reasonAsked)
	case errors.Is(err, ledger.ErrSettled):
		return existsError(old.ID, reasonShown)
	}
	return err
}

// clear removes the files of a holdout that the ledger has deleted, when nobody uses them. What cannot be removed now is removed at the next start.
func (s *Service) clear(id string) {
	s.tables.drop(id, func() {
		dir := s.path(holdoutsDir, id)
		err := s.unload(context.Background(), dir)
		if err == nil {
			err = os.RemoveAll(dir)
		}
		if err != nil {
			s.log.Error("removing a deleted holdout's files", "holdout", id, "error", err)
		}
	})
}

// settle ends a holdout's being a draft before something of it is shown.
func (s *Service) settle(ctx context.Context, h ledger.Holdout) error {
	if !h.Draft || h.Deleted {
		return nil
	}
	wait, cancel := withDeadline(ctx)
	defer cancel()
	if err := s.ledger.SettleHoldout(wait, h.ID); err != nil {
		return s.ledgerError(err)
	}
	return nil
}

// sketch is what a card says of a draft: nothing that depends on a row, but for the warnings that were made for drafts.
func (c Card) sketch(warnings []Warning) Card {
	c.Draft = c.ID != ""
	c.Strata, c.Parts = nil, nil
	c.Overlaps = nil // how many held-out rows are known depends on which are held out
	if c.Unit != rowUnit {
		c.Rows = Counts{} // which units are large shows in them
		c.LargestUnit = c.Settings.LargestUnit
		c.Target = c.Settings.target(unitRule{Column: c.Unit}, c.Settings.LargestUnit)
	}
	columns := make([]ColumnCard, len(c.Columns))
	for i, column := range c.Columns {
		columns[i] = ColumnCard{Name: column.Name, Kind: column.Kind, Source: column.Source, Note: column.Note, Dictionary: column.Dictionary}
	}
	c.Columns = columns
	c.Warnings = append([]Warning{}, warnings...)
	return c
}

// DryRun says what Create would make of an upload, as the card of a draft without an id, and makes nothing: no file stays, nothing is recorded. What Create
// would refuse it refuses. Only admins may.
func (s *Service) DryRun(ctx context.Context, p Principal, set Settings, up Upload) (Card, error) {
	card, _, err := s.create(ctx, p, set, up, "", true)
	return card, err
}

// earlyCells bounds what is copied of a table to look for dependent rows before anything is shown: rows times columns, 64 MB.
const earlyCells = 1 << 23

// forewarn says of a draft whether its rows are alike in groups. It must not depend on what the settings hold out, or each dry run with other settings would be a look at other rows. So it
// always looks at the same rows, those that a split with no settings at all would leave to training, for groupings of rows, and says no number of what it finds
// but the number of units: the same sentence whatever is asked for, until the grouping is the unit.
func (c *creation) forewarn(t *dataset.Table, unit unitRule) ([]Warning, error) {
	size, err := holdoutSize(DefaultHoldout, t.Rows())
	if err != nil {
		return nil, nil // one row
	}
	training := earlyRows(splitter{key: c.service.split[:]}, t.Rows(), size, max(1, earlyCells/max(1, t.Columns())))
	defer t.ReleaseAll()
	columns := make([]dataset.Column, t.Columns())
	if err := eachColumn(len(columns), func(i int) { columns[i] = pick(*t.Column(i), training) }); err != nil {
		return nil, diskFails(err)
	}
	found, err := dependences(columns, groupByRow(len(training)), unitRule{}, "", func() {})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[0].rule == unit {
		return nil, nil
	}
	first := found[0]
	detail := fmt.Sprintf("rows with the same %s are alike. For a population of other values of %s, intervals that take rows as independent are too narrow; unit=%s mends it",
		first.rule, first.rule, first.rule)
	if t.Rows() <= dependenceRows { // grouping them takes memory
		column, _ := t.Lookup(first.column)
		units := groupBy(*column, first.rule.Day).n
		detail += fmt.Sprintf(", and would leave %d units", units)
		if units < fewGroups {
			detail += ", which are few"
		}
	}
	var others []string
	for _, o := range found[1:] {
		if o.rule != unit && len(others) < MaxOthers {
			others = append(others, o.rule.String())
		}
	}
	if len(others) > 0 {
		detail += "; also alike are rows with the same " + strings.Join(others, ", ")
	}
	return []Warning{{Code: dependentRows, Column: first.column, Unit: first.rule.String(), Detail: detail + "." + first.knownAgain("row")}}, nil
}

const (
	// earlyExact is up to how many rows the very split is made to look at its training rows. Of more, those whose tag leaves no doubt are enough.
	earlyExact = 1 << 20
	// earlyTags is how many rows are tagged together, where not all need be.
	earlyTags = 1 << 14
	// earlyDoubt is by how many standard errors the tag at a place of n may be later than at its share of all tags: it is with a probability of 1e-15.
	earlyDoubt = 8
)

// earlyRows are the first rows, of n and at most so many, that a split by rows leaves to training where size rows are held out.
func earlyRows(s splitter, n, size, most int) (training []uint32) {
	rows := groupByRow(n)
	tagged := s.tagger(rows, nil, false)
	var last uint64
	if n <= earlyExact {
		last = firstBits(nil, n, tagged).cut(size).last
	} else {
		share := float64(size) / float64(n)
		last = uint64(min(share+earlyDoubt*math.Sqrt(share*(1-share)/float64(n)), 1-0x1p-53) * 0x1p64)
	}
	tags := make([]uint64, min(n, earlyTags))
	for from := 0; from < n && len(training) < most; from += len(tags) {
		tags = tags[:min(len(tags), n-from)]
		tagged(tags, from)
		for i, tag := range tags {
			if tag > last && len(training) < most {
				training = append(training, uint32(from+i))
			}
		}
	}
	return training
}

// pick copies some rows of a column.
func pick(c dataset.Column, rows []uint32) dataset.Column {
	of := c
	of.Numbers, of.Bools, of.Codes = picked(c.Numbers, rows), picked(c.Bools, rows), picked(c.Codes, rows)
	return of
}

func picked[T any](values []T, rows []uint32) []T {
	if values == nil {
		return nil
	}
	of := make([]T, len(rows))
	for i, row := range rows {
		of[i] = values[row]
	}
	return of
}
