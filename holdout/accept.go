package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Acceptance is what the owner of a holdout says of what was asked after the state that its ledger is in: after a restored backup was made, or since the ledger was rolled back.
type Acceptance struct {
	// Spent is at most what was asked since. The answers that were lost with it are those of nobody any more: it is debited as a void is. The zero value says that nothing was asked, and is believed only with Nothing, or if a
	// witness says it.
	Spent   thresholdout.Amounts
	Nothing bool
	// Retire ends the holdout instead: recorded answers replay, and nothing new is answered.
	Retire bool
	// EndGrants ends the grants of the holdout's own budget, so that what they have not spent can pay: who paid for what was lost is not known.
	EndGrants bool
	// Kept are answers that somebody kept. The ledger must have each of them, or Spent must pay for those that it lacks.
	Kept []Evidence
	// Witness is a directory that `serve --witness` wrote; "": none.
	Witness string
}

// Accepted is what an acceptance found and did.
type Accepted struct {
	Holdout string               `json:"holdout"`
	Name    string               `json:"name"`
	Seq     int64                `json:"seq"`  // of the last entry before
	Head    string               `json:"head"` // after
	Lost    int64                `json:"lost"` // entries that are known to be missing, by what was kept
	Debited thresholdout.Amounts `json:"debited"`
	Left    int64                `json:"left"` // questions
	Retired bool                 `json:"retired,omitempty"`
	Proved  bool                 `json:"proved"` // the witness has the ledger's last entry as its own
}

// restoredVersion is the version of the core of an entry of what was asked after a backup.
const restoredVersion = 1

// restoredCharge is that core.
type restoredCharge struct {
	Version  int                  `json:"version"`
	Holdout  string               `json:"holdout"`
	Restored bool                 `json:"restored"`
	Void     bool                 `json:"void"`
	Cost     thresholdout.Amounts `json:"cost"`
}

// Accept lets a holdout of a data directory be asked again that was restored from a backup, or that gives no new answers because its ledger is older than its marks. No server may have the directory open. Nothing is changed where it
// fails, but for marks beside the tables.
func Accept(ctx context.Context, dir, id string, a Acceptance) (out Accepted, err error) {
	return AcceptWith(ctx, func(ctx context.Context, o ledger.Options) (ledger.Ledger, error) {
		return sqlite.Open(ctx, filepath.Join(dir, ledgerFile), o)
	}, filepath.Join(dir, serverKeyFile), dir, id, a)
}

// AcceptWith is Accept with a ledger that open opens with the key in a file. Other servers may have it open, too, if it is shared.
func AcceptWith(ctx context.Context, open func(context.Context, ledger.Options) (ledger.Ledger, error), keyFile, dir, id string, a Acceptance) (out Accepted, err error) {
	secret, err := readServerSecret(keyFile)
	if err != nil {
		return out, err
	}
	l, err := open(ctx, ledger.Options{Key: secret.derive("ledger"), MustExist: true})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return AcceptIn(ctx, l, dir, id, a)
}

// AcceptIn is Accept with a ledger that is open.
func AcceptIn(ctx context.Context, l ledger.Ledger, dir, id string, a Acceptance) (out Accepted, err error) {
	h, err := l.Holdout(ctx, id)
	if err != nil {
		return out, err
	}
	if h.Deleted {
		return out, ledger.ErrDeleted
	}
	if h.Damage != nil {
		return out, h.Damage
	}
	card, err := readCard(h.Public)
	if err != nil {
		return out, err
	}
	books, err := l.Books(ctx, id)
	if err != nil {
		return out, err
	}
	out = Accepted{Holdout: id, Name: card.Name, Seq: books.Seq, Head: ledger.HeadText(books.Head), Retired: a.Retire}
	roots := []string{filepath.Join(dir, holdoutsDir)}
	if a.Witness != "" {
		roots = append(roots, a.Witness)
	}
	evidence := a.Kept
	for _, root := range roots {
		m, err := readMark(filepath.Join(root, id))
		if err != nil || m.Seq == 0 {
			continue // there is none: of a backup without tables, or nothing was asked
		}
		evidence = append(evidence, Evidence{Holdout: id, Seq: m.Seq, Head: m.Head})
		out.Proved = out.Proved || root == a.Witness && m.Seq == books.Seq && m.Head == out.Head
	}
	for _, e := range evidence {
		if e.Holdout != "" && e.Holdout != id {
			continue
		}
		e.Holdout, e.Body = id, nil
		var lost *LostError
		switch err := e.Compare(ctx, ledgerPlaces{l}); {
		case errors.As(err, &lost) && lost.Head != "" && !a.Retire:
			return out, fmt.Errorf("%w. Its answers and those of this ledger are about the same questions: retire it, or restore the ledger that gave them", err)
		case errors.As(err, &lost) && lost.Head == "":
			out.Lost = max(out.Lost, e.Seq-books.Seq)
		case err != nil && lost == nil:
			return out, err
		}
	}
	if err := a.check(&out, h.Restored); err != nil {
		return out, err
	}
	var grants []ledger.Grant
	if a.EndGrants {
		if grants, err = l.Grants(ctx, id, ""); err != nil {
			return out, err
		}
	}
	guarantee := card.Guarantee
	at := time.Now()
	err = l.AcceptHoldout(ctx, id, func(tx *ledger.Tx) error {
		for _, g := range grants {
			if g.Parent == "" && g.Live(at) {
				if err := tx.EndGrant(g.ID, "holdoutd confirm"); err != nil {
					return err
				}
			}
		}
		return a.record(tx, guarantee, id, at, &out)
	})
	var budget *ledger.BudgetError
	if errors.As(err, &budget) {
		return out, fmt.Errorf("holdout %s: what is not granted does not pay for %v: %v are left. Who paid for what was lost is not known; end the grants with it (--end-grants): %w", id, budget.Requested, budget.Left, err)
	}
	if err != nil {
		return out, err
	}
	after, err := l.Books(ctx, id)
	if err != nil {
		return out, err
	}
	out.Head = ledger.HeadText(after.Head)
	guaranteed := session.Session{Guarantee: guarantee}
	out.Left = guaranteed.Budget(spent(after.Spent)).Questions.Left
	for _, root := range roots {
		if m, err := readMark(filepath.Join(root, id)); err == nil {
			m.Seq, m.Head = after.Seq, out.Head
			if err := m.write(filepath.Join(root, id)); err != nil {
				return out, fmt.Errorf("the holdout is accepted, and its mark in %s cannot be written: %w; accept it again when it can", root, err)
			}
		}
	}
	return out, nil
}

// check says why the word of the owner is not enough.
func (a *Acceptance) check(out *Accepted, restored bool) error {
	none := a.Spent == (thresholdout.Amounts{})
	switch {
	case !restored && out.Lost == 0:
		return fmt.Errorf("holdout %s was not restored from a backup, and nothing that was kept is missing from its ledger: there is nothing to accept", out.Holdout)
	case a.Retire && (a.Nothing || !none), a.Nothing && !none:
		return errors.New("say one of three things: that nothing was asked since, what was spent since, or that the holdout is retired")
	case a.Retire:
		return nil
	case out.Lost > 0 && a.Spent.Questions < out.Lost:
		return fmt.Errorf("holdout %s: %d answers that were given are missing from the ledger, so at least %d questions were spent since; say how many (--spent questions=N), or retire it", out.Holdout, out.Lost, out.Lost)
	case none && !a.Nothing && !out.Proved:
		return fmt.Errorf("holdout %s: nobody knows what was asked after this ledger was copied. Say that nothing was, what was spent since (--spent questions=N), or retire it; "+
			"the witness of the server that served it would know", out.Holdout)
	}
	return nil
}

// record debits what was asked since, with the state that the mechanism would be in, or ends the holdout's questions.
func (a *Acceptance) record(tx *ledger.Tx, g thresholdout.Guarantee, id string, at time.Time, out *Accepted) error {
	if a.Retire {
		return tx.End(ledger.Retired, "", at)
	}
	before, err := g.ReadState(tx.State())
	if err != nil {
		return unknownVersion(err)
	}
	after, err := g.Unseen(before, a.Spent)
	if err != nil {
		return err
	}
	out.Debited = after.Spent().Minus(before.Spent())
	if out.Debited == (thresholdout.Amounts{}) {
		return nil
	}
	core, err := json.Marshal(restoredCharge{Version: restoredVersion, Holdout: id, Restored: true, Void: true, Cost: out.Debited})
	if err != nil {
		return err
	}
	if _, err := tx.Append(ledger.Debit{Query: "restored:" + uuid.NewString(), Cost: debited(out.Debited), Core: core, Time: at, Void: true}); err != nil {
		return err
	}
	state, err := json.Marshal(after)
	if err != nil {
		return err
	}
	tx.SetState(state)
	return nil
}

// LedgerPlaces are those of an open ledger, by its heads alone: a head binds the answer's bytes.
func LedgerPlaces(l ledger.Ledger) Places { return ledgerPlaces{l} }

// ledgerPlaces are those of an open ledger. It has no bodies.
type ledgerPlaces struct{ ledger.Ledger }

// Place implements Places.
func (l ledgerPlaces) Place(ctx context.Context, id string, seq int64) (head string, body []byte, ok bool, err error) {
	head, ok, err = l.HeadAt(ctx, id, seq)
	return head, nil, ok, err
}

// Waiter is a holdout that gives no new answers until its owner says what was asked after its backup was made.
type Waiter struct {
	ID, Name      string
	Seq           int64
	Spent, Limits ledger.Meters
}

// Waiting lists those of a data directory, in the order of their creation. It reads only, also beside a server.
func Waiting(ctx context.Context, dir string) (all []Waiter, err error) {
	reports, restored, err := sqlite.VerifyRestored(ctx, filepath.Join(dir, ledgerFile))
	for i := range reports {
		if r := &reports[i]; restored[r.Holdout] && !r.Deleted {
			all = append(all, Waiter{ID: r.Holdout, Name: VerificationOf(*r).Name, Seq: r.Entries - 1, Spent: r.Spent, Limits: r.Limits})
		}
	}
	return all, err
}

// WaitingIn lists those of a ledger that is open, in the same order.
func WaitingIn(ctx context.Context, l ledger.Ledger) (all []Waiter, err error) {
	known, err := l.Holdouts(ctx)
	for i := range known {
		h := &known[i]
		if !h.Restored || h.Deleted {
			continue
		}
		books, err := l.Books(ctx, h.ID)
		if err != nil {
			return nil, err
		}
		card, err := readCard(h.Public)
		if err != nil {
			return nil, err
		}
		all = append(all, Waiter{ID: h.ID, Name: card.Name, Seq: books.Seq, Spent: books.Spent, Limits: books.Limits})
	}
	return all, err
}
