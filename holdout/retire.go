package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dataset/lineage"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Rotation: a holdout is retired for good, its rows are released to training, and a fresh one of later rows succeeds it. The order is the promise: an entry of the chain ends all questions and is
// durable; a mark of its own beside the tables says so, durably, so that a ledger that forgot the entry is noticed; then, and not before, a row leaves.

// retiredVersion is the version of retired.
const retiredVersion = 1

// retired is the core of the entry that retires a holdout.
type retired struct {
	Version int    `json:"version"`
	Holdout string `json:"holdout"`
	Retired bool   `json:"retired"`
	Before  Spent  `json:"before"` // what was spent before it
}

// Retire ends a holdout's questions and the secrecy of its rows, for good. What is being asked is recorded first; recorded answers, the history and the report stay. Retiring again does nothing. Only
// admins may: what is left of the budget is gone.
func (s *Service) Retire(ctx context.Context, p Principal, id string) (Card, error) {
	if err := admins(p); err != nil {
		return Card{}, err
	}
	record, _, err := s.find(ctx, id)
	if err != nil {
		return Card{}, err
	}
	if !record.Retired {
		end, err := s.noUploads(ctx)
		if err != nil {
			return Card{}, err
		}
		if faulted := dataset.Guarded(func() { err = s.releasesOthers(ctx, id) }); faulted != nil {
			err = diskFails(faulted)
		}
		if err != nil {
			end()
			return Card{}, err
		}
		if err := s.retire(ctx, p, id, end); err != nil {
			return Card{}, s.ledgerError(err)
		}
	}
	if err := s.markRetired(ctx, id); err != nil {
		return Card{}, err
	}
	return s.Card(ctx, p, id)
}

// noUploads keeps uploads with the same rows from coming in between a look at the other holdouts and the entry, here and at other servers: none becomes a holdout until end is called. While another server takes one it
// refuses; a server that is asked for one waits.
func (s *Service) noUploads(ctx context.Context) (end func(), err error) {
	turn, err := s.uploadsTurn(ctx)
	if err != nil || s.shared == nil {
		return turn, err
	}
	wait, cancel := withDeadline(ctx)
	defer cancel()
	release, ok, err := s.shared.SweepFiles(wait)
	switch {
	case err != nil:
		turn()
		return nil, s.ledgerError(err)
	case !ok:
		release()
		turn()
		return nil, fail(Unavailable, "a server is taking an upload, whose rows may be those that would be released; retire the holdout when it has ended")
	}
	return func() {
		release()
		turn()
	}, nil
}

// releasesOthers refuses to release rows that another holdout holds out which can still be asked: it was made of them with overlap=accepted, or before rows were recognised.
func (s *Service) releasesOthers(ctx context.Context, id string) error {
	all, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return s.ledgerError(err)
	}
	open := all[:0]
	var watch lineage.Watch
	for _, h := range all {
		if h.ID == id || h.Deleted || h.Closed || h.Retired || h.Spent[thresholdout.MeterQuestions] == h.Limits[thresholdout.MeterQuestions] {
			continue
		}
		parts, err := s.sketchesOf(ctx, h)
		switch {
		case err != nil:
			return storageError(err)
		case parts == nil:
			return fail(Conflict, "whether the holdout %s, which can be asked, has these rows nobody can tell: its files are damaged, or not in this server's directory; restore them, or delete it, first", h.ID)
		case !parts.watch(&watch):
			return fail(Conflict, "there are more open holdouts than this one can be compared with; delete those that are not needed")
		}
		open = append(open, h)
	}
	if len(open) == 0 {
		return nil
	}
	mine, err := s.sketchOf(ctx, id, &watch)
	if err != nil {
		return storageError(err)
	}
	var found []Overlap
	for _, h := range open {
		parts, err := s.sketchesOf(ctx, h)
		if err != nil {
			return storageError(err)
		}
		share := 0.0
		for _, part := range []string{holdoutDir, checkDir} {
			if parts[holdoutDir] != nil && mine[part] != nil {
				share += lineage.Compare(parts[holdoutDir], mine[part]).OfOld
			}
		}
		if share = math.Ceil(10*min(1, share)-1e-9) / 10; share > 0 {
			found = append(found, Overlap{Holdout: h.ID, Matter: heldOutElsewhere, Share: share})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return &Error{Kind: RowsKnown, Members: map[string]any{"holdout": found[0].Holdout, "overlaps": found},
		Detail: fmt.Sprintf("rows that would be released are held out by %s, too, which still answers. End that one first: by its final report or its last question, or delete it", found[0].Holdout)}
}

// sketchOf is the sketch of a holdout's own parts. Rows that lie in a source are fetched for it.
func (s *Service) sketchOf(ctx context.Context, id string, watch *lineage.Watch) (sketches, error) {
	h, release, err := s.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer release()
	open := dataset.Open
	if h.far != nil {
		work, err := os.MkdirTemp(s.path(temporaryDir), "retire-")
		if err != nil {
			return nil, err
		}
		defer s.remove(work)
		rows := filepath.Join(work, "rows")
		if err := h.fetch(ctx, rows, nil); err != nil {
			if errors.Is(err, &remote.Error{Kind: remote.Changed}) {
				err = h.faulted(err)
			}
			return nil, err
		}
		open = func(path string) (*dataset.Table, error) {
			if filepath.Base(path) == holdoutDir {
				path = rows
			}
			return dataset.Open(path)
		}
	}
	return s.sketch(ctx, s.path(holdoutsDir, id), open, watch)
}

// retire records the entry. The tables are opened first: rows that cannot be read are not released, and a draft ends. ended is called when it is recorded or is not going to be, be that after the caller has gone.
func (s *Service) retire(ctx context.Context, p Principal, id string, ended func()) error {
	h, release, err := s.take(ctx, id)
	if err != nil {
		ended()
		return err
	}
	defer release()
	return s.grounded(ctx, id, ended, func(ctx context.Context, term int64) error {
		err := s.ledger.Update(ctx, id, func(tx *ledger.Tx) error {
			switch {
			case tx.Retired(): // by another server, or by a try of which nobody was told
				return nil
			case tx.Term() != term:
				return ledger.ErrTerm
			}
			state, err := h.readState(tx.State())
			if err != nil {
				return &ledger.CorruptError{Holdout: id, Seq: -1, Reason: "mechanism state", Err: err}
			}
			before := spent(tx.Spent())
			core, err := json.Marshal(retired{Version: retiredVersion, Holdout: id, Retired: true, Before: Spent{Questions: before.Questions, Tokens: before.Tokens}})
			if err != nil {
				return err
			}
			if _, err := tx.Retire(ledger.Closing{Principal: p.KeyID, Core: core}); err != nil {
				return err
			}
			text, err := json.Marshal(h.guarantee.Retired(state))
			if err != nil {
				return err
			}
			tx.SetState(text)
			return nil
		})
		if err == nil {
			s.log.Info("holdout retired", "holdout", id, "by", p.KeyID)
			s.news.tell(id)
		}
		return err
	})
}

// markRetired makes the mark beside a holdout's tables say that it is retired, durably, or fails: no row leaves before. Of one that is not retired it fails with Conflict.
func (s *Service) markRetired(ctx context.Context, id string) error {
	e, ok, err := s.ledger.Retirement(ctx, id)
	switch {
	case err != nil:
		return s.ledgerError(err)
	case !ok:
		return fail(Conflict, "this holdout is not retired: its rows are secret. An admin can retire it, for good")
	}
	dir := s.path(holdoutsDir, id)
	m, err := readMark(dir)
	if err == nil {
		if _, err = readMarkFile(dir, releasedFile); errors.Is(err, fs.ErrNotExist) {
			m.Seq, m.Head = e.Seq, ledger.HeadText(e.Head)
			err = m.write(dir, releasedFile)
		}
	}
	if err == nil {
		err = dataset.SyncDir(dir)
	}
	if err != nil {
		return storageError(fmt.Errorf("holdout: the mark of the retired %s: %w", id, err))
	}
	return nil
}

// Released opens the rows of a retired holdout as Parquet, those of the check part among them, with all columns; the caller closes the file. They are further training rows. Keys with grants
// alone are not given them.
func (s *Service) Released(ctx context.Context, p Principal, id string) (*os.File, error) {
	if p.Scope == Granted {
		return nil, fail(Forbidden, "the rows of a retired holdout are not given to a key with a grant; ask an admin or an analyst for them")
	}
	if _, _, err := s.find(ctx, id); err != nil {
		return nil, err
	}
	if known, forGood := s.quarantine.of(id); forGood { // a ledger that is older than it was does not say who has been told what
		return nil, known
	}
	if err := s.markRetired(ctx, id); err != nil {
		return nil, err
	}
	return s.exported(ctx, id, retiredParquet, func(h *opened) (write, error) {
		return func(out io.Writer, work string) error {
			return h.withKept(ctx, work, func(rows *dataset.Table) error { return ingest.ExportOrdered(out, rows, h.card.orders()) })
		}, nil
	})
}

// differsFromPredecessor is the code of the card's warning that a holdout is not made as the one that it succeeds.
const differsFromPredecessor = "differs-from-predecessor"

// succeeds checks the holdout that an upload names as its predecessor, and says on the card in what the two differ.
func (c *creation) succeeds() error {
	id := c.settings.Succeeds
	if id == "" {
		return nil
	}
	h, err := c.service.ledger.Holdout(c.ctx, id)
	switch {
	case errors.Is(err, ledger.ErrNotFound), err == nil && h.Deleted:
		return invalid("succeeds", "succeeds: there is no holdout %s", id)
	case err != nil:
		return c.service.ledgerError(err)
	case !h.Retired:
		return invalid("succeeds", "succeeds: the holdout %s is not retired; retire it first", id)
	}
	if differs := differences(c.service.readCard(h), c.settings, c.schema()); len(differs) > 0 {
		w := Warning{Code: differsFromPredecessor, Detail: "compared with " + id + ", which it succeeds: " + strings.Join(differs, "; ") + ". Answers of the two are about different things"}
		c.card.Warnings, c.early = append(c.card.Warnings, w), append(c.early, w)
	}
	return nil
}

// maxDifferences bounds what is said of columns.
const maxDifferences = 5

// differences says in what an upload is not as an earlier card: all of it is public of any draft.
func differences(old Card, set Settings, now dataset.Schema) (said []string) {
	for _, s := range []struct{ what, before, now string }{
		{"label", old.Settings.Label, set.Label}, {"unit", old.Settings.Unit, set.Unit}, {"features", old.Settings.Features, set.Features},
	} {
		if s.before != s.now {
			said = append(said, fmt.Sprintf("its %s is %s and was %s", s.what, named(s.now), named(s.before)))
		}
	}
	kinds := map[string]dataset.Kind{}
	for _, column := range old.Columns {
		kinds[column.Name] = column.Kind
	}
	var changed, fresh, gone []string
	for _, column := range now.Fields {
		kind, ok := kinds[column.Name]
		switch {
		case !ok:
			fresh = append(fresh, column.Name)
		case kind != column.Kind:
			changed = append(changed, column.Name)
		}
		delete(kinds, column.Name)
	}
	for _, column := range old.Columns {
		if _, ok := kinds[column.Name]; ok {
			gone = append(gone, column.Name)
		}
	}
	for _, s := range []struct {
		what  string
		names []string
	}{{"of another kind", changed}, {"new", fresh}, {"missing", gone}} {
		if n := len(s.names); n > 0 {
			more := ""
			if n > maxDifferences {
				more = fmt.Sprintf(" and %d more", n-maxDifferences)
			}
			said = append(said, fmt.Sprintf("columns that are %s: %s%s", s.what, strings.Join(s.names[:min(n, maxDifferences)], ", "), more))
		}
	}
	return said
}

func named(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// link puts on cards, which are in the order of their creation, the holdouts among them that succeed each.
func link(cards []Card) {
	for i := range cards {
		if cards[i].Succeeds == "" {
			continue
		}
		if at := slices.IndexFunc(cards, func(c Card) bool { return c.ID == cards[i].Succeeds }); at >= 0 {
			cards[at].SucceededBy = append(cards[at].SucceededBy, cards[i].ID)
		}
	}
}

// successors are the ids of the holdouts that succeed one, as far as they are there for who asks.
func (s *Service) successors(ctx context.Context, p Principal, id string) ([]string, error) {
	cards, err := s.List(ctx, p)
	if err != nil {
		return nil, err
	}
	for i := range cards {
		if cards[i].ID == id {
			return cards[i].SucceededBy, nil
		}
	}
	return nil, nil
}
