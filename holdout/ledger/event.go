package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Two things beside questions cost something: to begin with what an earlier holdout has spent, and to end. Each is an entry of the kind void, for it is what a void
// is: a debit without an answer. Where a void of a question has the question's id, an event has a name that no id has, so that every reader of chains, also one
// that knows no events, adds the books up rightly.

// Opening is what a new holdout begins with as spent, because another one has spent it.
type Opening struct {
	From  string // that holdout's id
	Spent Meters // each a meter of the new holdout; may be nothing
}

// MaxOpenings is how many holdouts one may inherit from.
const MaxOpenings = 64

// End is how the questions of a holdout were ended.
type End string

// Ends of a holdout.
const (
	Closed  End = "closed"  // another holdout goes on with what it has spent
	Retired End = "retired" // its rows are released
)

// Names of events, in the place of a query's id.
const (
	inheritedEvent = "inherited:" // and the id of the earlier holdout
	endEvent       = "end:"       // and the End
)

// EndEvents are the names of the entries that end a holdout's questions; an implementation finds by them whether there is one.
var EndEvents = [...]string{endEvent + string(Closed), endEvent + string(Retired)}

// EndOf is the End that an entry of this name is, or "".
func EndOf(event string) End {
	name, ok := strings.CutPrefix(event, endEvent)
	if end := End(name); ok && (end == Closed || end == Retired) {
		return end
	}
	return ""
}

// isEvent reports whether an entry's query names an event and no question.
func isEvent(query string) bool {
	return strings.HasPrefix(query, inheritedEvent) || strings.HasPrefix(query, endEvent)
}

// event is the core of an event's entry. The version is that of voids: in their second, they may be no question's.
type event struct {
	Version   int    `json:"version"`
	Holdout   string `json:"holdout"`
	Void      bool   `json:"void"`
	Inherited string `json:"inherited,omitempty"`
	End       End    `json:"end,omitempty"`
	Cost      Meters `json:"cost"`
}

const eventVersion = 2

// eventCore is the core of the event of this name.
func eventCore(holdout, name string, cost Meters) []byte {
	e := event{Version: eventVersion, Holdout: holdout, Void: true, End: EndOf(name), Cost: cost}
	e.Inherited, _ = strings.CutPrefix(name, inheritedEvent)
	if e.End != "" {
		e.Inherited = ""
	}
	core, err := json.Marshal(e)
	if err != nil {
		panic(err) // strings and integers
	}
	return core
}

// happen is the entry of an event behind these books.
func (b *Books) happen(name, principal string, cost Meters, at time.Time) Entry {
	debit := b.Limits.none().plus(cost)
	e := Entry{Version: EntryVersion, Seq: b.Seq + 1, Kind: KindVoid, Time: at.UTC(), Query: name, Principal: principal,
		Debit: debit, Spent: b.Spent.plus(cost)}
	e.seal(b.Head, eventCore(b.ID, name, debit))
	b.Seq, b.Head, b.Spent = e.Seq, e.Head, e.Spent
	return e
}

// checkOpening says whether a new holdout can begin with its openings.
func (h *Holdout) checkOpening() error {
	if len(h.Opening) > MaxOpenings {
		return invalid("%d openings, at most %d", len(h.Opening), MaxOpenings)
	}
	spent, seen := h.Limits.none(), map[string]bool{}
	for _, o := range h.Opening {
		if err := checkText("id of an opening", inheritedEvent+o.From, false); err != nil || o.From == "" || seen[o.From] {
			return errors.Join(err, invalid("an opening from %q, which is named twice or not at all", short(o.From)))
		}
		seen[o.From] = true
		for name, amount := range o.Spent {
			limit, ok := h.Limits[name]
			switch {
			case !ok:
				return invalid("an opening of the meter %q, which the holdout does not have (%v)", short(name), h.Limits)
			case amount < 0:
				return invalid("a negative opening: %v", o.Spent)
			case amount > limit-spent[name]:
				return fmt.Errorf("an opening: %w", &BudgetError{Requested: o.Spent, Left: h.Limits.left(spent)})
			}
		}
		spent = spent.plus(o.Spent)
	}
	return nil
}

// Begin is how the holdout's chain begins, and its books behind that: the genesis, and an entry for each opening. They are functions of ID, Created, Digest,
// Limits, Public, Opening and State, which Check has accepted.
func (h *Holdout) Begin() (Books, []Entry) {
	first := h.Genesis()
	b := Books{ID: h.ID, Limits: h.Limits, Spent: first.Spent, Head: first.Head, State: h.State}
	entries := []Entry{first}
	for _, o := range h.Opening {
		entries = append(entries, b.happen(inheritedEvent+o.From, "", o.Spent, h.Created))
	}
	return b, entries
}

// End ends the holdout's questions for good: all that is left of every meter is debited, whatever was promised of it to anybody, and nothing can be appended after it but the
// deletion. A zero time is now. Recorded answers can be read as before. Ending again as before does nothing, and a closed holdout can be retired; a retired one stays so.
func (tx *Tx) End(how End, principal string, at time.Time) error {
	name := endEvent + string(how)
	if at.IsZero() {
		at = time.Now()
	}
	switch err := errors.Join(checkText("principal", principal, true), checkTime(at)); {
	case tx.over:
		return invalid("an end after the update's end")
	case tx.err != nil:
		return tx.err
	case EndOf(name) == "":
		return invalid("end %q, which is none", short(string(how)))
	case err != nil:
		return err
	case tx.books.End == how || tx.books.End == Retired:
		return nil
	case len(tx.entries) >= MaxAppends:
		return invalid("more than %d entries in one update", MaxAppends)
	}
	b := &tx.books
	tx.entries = append(tx.entries, b.happen(name, principal, b.Limits.left(b.Spent), at))
	b.End = how
	if b.Held != nil {
		b.Held = b.Limits.none() // nothing is there to be held
	}
	return nil
}
