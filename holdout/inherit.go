package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// inheritance is what a new holdout begins with.
type inheritance struct {
	from   []string // the earlier holdouts, which are closed
	others []thresholdout.Guarantee
}

// inherit prepares the new holdout to begin with what was spent on its rows by others. The error says why it cannot.
func (c *creation) inherit(reused []Reuse, concerned []older) error {
	for _, r := range reused {
		if r.Why != reuseAsked {
			return fmt.Errorf("rows of %s %s", r.Holdout, map[string]string{reuseDraft: "are in a draft", reuseHandedOut: "would be handed out while it answers", reuseShown: "were shown"}[r.Why])
		}
	}
	heir := &inheritance{}
	within := map[string]bool{} // what others have begun with
	cards := map[string]Card{}
	for _, e := range concerned {
		if e.lost || e.record.Deleted {
			return fmt.Errorf("%s was deleted, and with it what its answers have told", e.id)
		}
		card := c.service.readCard(e.record)
		if card.State != "" {
			return fmt.Errorf("%s is %s", e.id, card.State)
		}
		cards[e.id] = card
		for _, id := range card.Inherits {
			within[id] = true
		}
	}
	var states []thresholdout.State
	for _, e := range concerned {
		if within[e.id] {
			continue
		}
		card := cards[e.id]
		state, err := card.Guarantee.ReadState(e.record.State)
		if err != nil {
			return err
		}
		heir.from, heir.others, states = append(heir.from, e.id), append(heir.others, card.Guarantee), append(states, state)
		c.card.Inherits = append(append(c.card.Inherits, e.id), card.Inherits...)
	}
	if len(heir.from) > ledger.MaxOpenings {
		return fmt.Errorf("they are of more than %d holdouts", ledger.MaxOpenings)
	}
	if _, err := c.card.Guarantee.Inherit(heir.others, states); err != nil {
		return err
	}
	c.heir = heir
	return nil
}

// open closes the holdouts that the new one goes on from, for good, and lets it begin with what they have spent. From here on they answer nothing new, also if the new one is
// not recorded after all: then the same upload may be sent again.
func (c *creation) open(h *ledger.Holdout) error {
	if c.heir == nil {
		return nil
	}
	var states []thresholdout.State
	for i, id := range c.heir.from {
		if err := c.service.endQuestions(c.ctx, id, ledger.Closed, c.principal.KeyID); err != nil {
			return err
		}
		wait, cancel := withDeadline(c.ctx)
		books, err := c.service.ledger.Books(wait, id)
		cancel()
		if err != nil {
			return c.service.ledgerError(err)
		}
		if books.End != ledger.Closed { // another server has retired it meanwhile
			return reusedError(c.card.Reused, fmt.Sprintf("The new holdout cannot begin with what was spent on them: %s was retired. ", id))
		}
		state, err := c.heir.others[i].ReadState(books.State)
		if err != nil {
			return fmt.Errorf("holdout: state of %s: %w", id, err)
		}
		states = append(states, state)
		h.Opening = append(h.Opening, ledger.Opening{From: id, Spent: debited(state.Spent())})
	}
	begin, err := c.card.Guarantee.Inherit(c.heir.others, states)
	if err != nil { // the last questions before the end
		return reusedError(c.card.Reused, fmt.Sprintf("The new holdout cannot begin with what was spent on them: %v. ", err))
	}
	h.State, err = json.Marshal(begin)
	return err
}

// endQuestions ends the questions of a holdout, when what is being asked of it is recorded.
func (s *Service) endQuestions(ctx context.Context, id string, how ledger.End, principal string) error {
	wait, cancel := withDeadline(ctx)
	defer cancel()
	account := s.accounts.of(id)
	release, err := account.ground(wait)
	if err != nil {
		return err
	}
	defer release()
	err = s.ledger.Update(wait, id, func(tx *ledger.Tx) error { return tx.End(how, principal, time.Now()) })
	if errors.Is(err, ledger.ErrDeleted) {
		return fail(NotFound, "the holdout was deleted meanwhile")
	}
	if err != nil {
		return s.ledgerError(err)
	}
	account.forget()
	s.accounts.forget(id)
	s.log.Info("a holdout's questions are ended", "holdout", id, "how", string(how), "by", principal)
	return nil
}
