package holdout

import (
	"context"
	"os"
	"slices"

	"github.com/holdoutd/holdoutd/dataset/prints"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Retire ends the questions of a holdout for good and releases its rows: from now on everybody with a key can download those that were held out, to train on them. Recorded
// answers replay. It cannot be undone: the ledger has spent all that was left before a row is shown. Retiring again does nothing. It is refused while another holdout that answers holds
// some of the rows out, too. Only admins may.
func (s *Service) Retire(ctx context.Context, p Principal, id string) (Card, error) {
	if err := admins(p); err != nil {
		return Card{}, err
	}
	h, _, err := s.find(ctx, id)
	if err != nil {
		return Card{}, err
	}
	if again := h.End == ledger.Retired; !again {
		select { // what is uploaded meanwhile would not be among those that have its rows
		case s.creating <- struct{}{}:
			defer func() { <-s.creating }()
		case <-ctx.Done():
			return Card{}, &Error{Kind: Unavailable, Detail: "an upload is being decoded; retire the holdout after it", Err: ctx.Err()}
		}
		if err := s.releasable(ctx, id); err != nil {
			return Card{}, err
		}
	}
	if err := s.settle(ctx, h); err != nil { // its rows are about to be shown
		return Card{}, err
	}
	if err := s.endQuestions(ctx, id, ledger.Retired, p.KeyID); err != nil {
		return Card{}, err
	}
	return s.Card(ctx, p, id)
}

// releasable refuses to release rows that are held out by another holdout that still answers: its intervals would be lost. What cards say of it is believed, and the rows are compared
// as those of an upload are.
func (s *Service) releasable(ctx context.Context, id string) error {
	all, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return s.ledgerError(err)
	}
	held := func(other string) error {
		return &Error{Kind: Exists, Members: map[string]any{"holdout": other, "reason": reasonReused},
			Detail: "rows of this holdout are held out by " + other + ", too, which still answers: they cannot be released before that one is ended. Retire or delete it first"}
	}
	shared := func(reused []Reuse, of string) bool {
		return slices.ContainsFunc(reused, func(r Reuse) bool {
			return r.Holdout == of && (r.From == printedNames[printedHoldout] || r.To == printedNames[printedHoldout])
		})
	}
	var own Card
	for _, h := range all {
		if h.ID == id {
			own = s.readCard(h)
		}
	}
	var open []older
	for _, h := range all {
		if e := (older{id: h.ID, record: h}); h.ID != id && e.answers() {
			if card := s.readCard(h); slices.Contains(card.Inherits, id) || shared(card.Reused, id) || shared(own.Reused, h.ID) {
				return held(h.ID)
			}
			open = append(open, e)
		}
	}
	other, err := s.alsoHeld(ctx, id, open)
	if err != nil || other == "" {
		return err
	}
	return held(other)
}

// alsoHeld is one of some holdouts that, by prints, holds out rows that nobody was given of a holdout; "" if there is none.
func (s *Service) alsoHeld(ctx context.Context, id string, open []older) (other string, err error) {
	if _, parts, err := keptParts(s.holdoutPath(id)); err != nil {
		return "", err
	} else if len(parts) > 0 {
		return s.alsoSketched(id, open)
	}
	rows, done, err := s.rowsOf(ctx, s.holdoutPath(id))
	if err != nil {
		return "", err
	}
	defer done() // read only
	made, err := s.readPrints(id)
	if err != nil || made == nil {
		return "", err
	}
	rows[printedTraining] = nil // shown already
	found, err := prints.Recognise(len(open), func(i int) (*prints.Prints, error) {
		if err := ctx.Err(); err != nil {
			return nil, &Error{Kind: Unavailable, Detail: "the request was given up", Err: err}
		}
		return s.readPrints(open[i].id)
	}, rows, made)
	if err := readable(rows); err != nil {
		return "", err
	}
	for _, r := range found {
		if slices.ContainsFunc(r.Ways, func(way prints.Way) bool { return way.From == printedHoldout }) {
			return open[r.Earlier].id, err
		}
	}
	return "", err
}

// Names of the files of released rows.
const (
	heldOutParquet = "holdout.parquet"
	checkParquet   = "check.parquet"
)

// Released opens a part of a retired holdout that was not handed out before, holdout or check, as Parquet; the caller closes the file. Its rows are in an order that was drawn at random.
func (s *Service) Released(ctx context.Context, p Principal, id, part string) (*os.File, error) {
	f, _, err := s.ReleasedPiece(ctx, p, id, part, 0)
	return f, err
}

// ReleasedPiece is a piece of what Released opens, and how many there are, as TrainingPiece.
func (s *Service) ReleasedPiece(ctx context.Context, p Principal, id, part string, piece int) (f *os.File, pieces int, err error) {
	if _, err := s.access(ctx, p, id); err != nil {
		return nil, 0, err
	}
	h, _, err := s.find(ctx, id) // from the ledger: a table that is open knows nothing of the end
	if err != nil {
		return nil, 0, err
	}
	if h.End != ledger.Retired {
		return nil, 0, fail(NotFound, "the rows of this holdout are held out; they are released when an admin retires it, which ends its questions for good")
	}
	name, of := heldOutParquet, (*opened).heldOut
	switch part {
	case partHoldout:
	case partCheck:
		name, of = checkParquet, (*opened).checkPart
	default:
		return nil, 0, invalid("part", "part must be %q or %q", partHoldout, partCheck)
	}
	return s.piece(ctx, p, id, name, of, piece)
}

func (h *opened) heldOut() (part, error) { return h.held, nil }

func (h *opened) checkPart() (part, error) {
	if h.check == nil {
		return nil, fail(NotFound, "this holdout has no check part")
	}
	return h.check, nil
}

func (h *opened) trainingPart() (part, error) {
	if h.training == nil {
		return nil, fail(NotFound, "this holdout has no training part: it was created with holdout=1.0")
	}
	return h.training, nil
}

// followers are the holdouts that go on from one that was ended, or follow it, and are there.
func (s *Service) followers(ctx context.Context, id string) ([]string, error) {
	all, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	var found []string
	for _, h := range all {
		if h.Deleted {
			continue
		}
		if card, err := readCard(h.Public); err == nil && (card.Settings.Follows == id || slices.Contains(card.Inherits, id)) {
			found = append(found, h.ID)
		}
	}
	return found, nil
}

// checkFollows refuses to follow what is not retired.
func (c *creation) checkFollows() error {
	id := c.settings.Follows
	if id == "" {
		return nil
	}
	h, err := c.service.ledger.Holdout(c.ctx, id)
	switch {
	case err != nil:
		return c.service.ledgerError(err)
	case h.End != ledger.Retired:
		return invalid("follows", "%s is not retired: its rows are held out still. Retire it first, which ends its questions for good", id)
	}
	return nil
}
