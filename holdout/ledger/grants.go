package ledger

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Grant is a slice of a holdout's budget, for one holder. It is a part of the holdout's own budget, or of another grant of it.
//
// An account is the holdout or a grant. What is committed of an account is what was spent on it, and of each live grant that is a part of it what that has not
// spent yet. It never exceeds the account's limits: so the grants of an account never sum to more than it has, and what is not granted is there for its holder.
type Grant struct {
	ID       string
	Holdout  string // its id
	Parent   string // the grant that this one is a part of; "": of the holdout's own budget
	Holder   string // the principal that may spend it
	Name     string // for people, or ""
	Shows    string // what of an answer its holder is shown. The caller's word: the ledger knows none
	MayGrant bool   // whether its holder may make grants of it. The caller's to enforce

	Limits Meters // names the meters of the holdout
	Spent  Meters // by its holder and by those of the grants that are parts of it; never falls. Zero in Tx.MakeGrant
	Held   Meters // by the grants that are parts of it: what those that have not ended have left. Zero in Tx.MakeGrant

	By      string // the principal that made it
	Created time.Time
	Expires time.Time // zero: never
	Ended   time.Time // zero: it was not ended by itself. At its expiry it is, by the next update of the holdout
	EndedBy string    // the principal that ended it; "" where it expired

	// Until is when it can be spent no more: the first of the ends and the expiries of it and of the grants that it is a part of; zero: never. It is filled in
	// where a grant is read, and follows from the rest.
	Until time.Time
}

// Live reports whether the grant can be spent at this time, as it was read.
func (g *Grant) Live(now time.Time) bool { return g.Until.IsZero() || now.Before(g.Until) }

// Free is what its holder may spend: what is neither spent nor granted on.
func (g *Grant) Free() Meters { return g.Limits.left(g.Spent).left(g.Held) }

const (
	// MaxGrantDepth is how many grants may be parts of each other: a debit is charged to all of them.
	MaxGrantDepth = 8
	// MaxGrants is how often grants of one holdout may be made and ended in all. Their rows are never removed.
	MaxGrants = 200_000
)

// GrantError says which grant does not pay, and why.
type GrantError struct {
	ID     string
	Reason string    // "unknown", "ended", "expired"
	At     time.Time // when it ended or expired
	Part   string    // the grant that ended, where it is one that ID is a part of
}

// Reasons of a GrantError.
const (
	GrantUnknown = "unknown"
	GrantEnded   = "ended"
	GrantExpired = "expired"
)

func (e *GrantError) Error() string {
	s := fmt.Sprintf("ledger: grant %q: %s", short(e.ID), e.Reason)
	if e.Part != "" {
		s += fmt.Sprintf(", with %q", short(e.Part))
	}
	return s
}

// Unwrap returns ErrGrant.
func (e *GrantError) Unwrap() error { return ErrGrant }

// check says whether a new grant can be recorded of a holdout with these limits.
func (g *Grant) check(limits Meters) error {
	if !limits.sameNames(g.Limits) {
		return invalid("a grant of the meters %v, not of those of the holdout: %v", g.Limits, limits)
	}
	for name, amount := range g.Limits {
		if amount < 0 {
			return invalid("a grant of %d %s", amount, name)
		}
	}
	if g.Spent != nil || g.Held != nil || !g.Ended.IsZero() || g.EndedBy != "" {
		return invalid("a grant begins with nothing spent and is not over")
	}
	return errors.Join(checkText("grant id", g.ID, false), checkText("holder", g.Holder, false), checkText("grant name", g.Name, true),
		checkText("what a grant shows", g.Shows, true), checkText("principal", g.By, true), checkTime(g.Created), checkExpiry(g.Expires))
}

func checkExpiry(t time.Time) error {
	if t.IsZero() {
		return nil
	}
	return checkTime(t)
}

// GrantChange is what an update makes of a grant: to be made durable with the rest of it.
type GrantChange struct {
	Grant        // after it
	New   bool   // it is to be recorded
	Ends  bool   // it ends with this update
	Was   Meters // what was spent of it before
	Had   Meters // what its parts held before
}

// Merge is this change and then another one of the same grant.
func (c GrantChange) Merge(then GrantChange) GrantChange {
	then.New, then.Ends, then.Was, then.Had = c.New, c.Ends || then.Ends, c.Was, c.Had
	return then
}

// Now is the time of this update, by which grants expire.
func (tx *Tx) Now() time.Time { return tx.now }

// Granted returns a grant of the holdout as it stands in this update, also one that has ended. The error is a *GrantError if there is none.
func (tx *Tx) Granted(id string) (Grant, error) {
	g, err := tx.load(id)
	if err != nil {
		return Grant{}, err
	}
	found := g.Grant
	path, err := tx.path(id, false)
	if err != nil {
		return Grant{}, err
	}
	found.Until = until(path)
	return found, nil
}

// until is the first end of a grant and of those that it is a part of.
func until(path []*GrantChange) (first time.Time) {
	for _, g := range path {
		for _, at := range []time.Time{g.Ended, g.Expires} {
			if !at.IsZero() && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// Free is what can be spent on an account now: of a live grant, or, with "", of the holdout's own budget, what is neither spent nor granted. The error is a
// *GrantError for a grant that does not pay any more.
func (tx *Tx) Free(grant string) (Meters, error) {
	if grant == "" {
		return tx.books.Free(), nil
	}
	path, err := tx.path(grant, true)
	if err != nil {
		return nil, err
	}
	return path[0].Free(), nil
}

// MakeGrant records a new grant. A zero Created is now. It refuses with a *BudgetError what is not there to be granted, with a *GrantError a part of a grant that has
// ended, with ErrExists an id that the holdout has a grant of, with ErrEnded a grant of a holdout that was ended, and with ErrInvalid what cannot be recorded.
func (tx *Tx) MakeGrant(g Grant) error {
	switch {
	case tx.over:
		return invalid("a grant after the update's end")
	case tx.books.End != "":
		return ErrEnded
	}
	if g.Created.IsZero() {
		g.Created = tx.now
	}
	g.Holdout, g.Created, g.Until = tx.books.ID, g.Created.UTC(), time.Time{}
	if err := g.check(tx.books.Limits); err != nil {
		return err
	}
	if !g.Expires.IsZero() {
		if g.Expires = g.Expires.UTC(); !tx.now.Before(g.Expires) {
			return invalid("a grant that expired at %s already", timeText(g.Expires))
		}
	}
	var unknown *GrantError
	switch _, err := tx.load(g.ID); {
	case err == nil:
		return fmt.Errorf("%w: grant %q", ErrExists, short(g.ID))
	case !errors.As(err, &unknown):
		return err
	}
	if tx.books.Grants >= MaxGrants {
		return invalid("grants of the holdout were made or ended %d times, which is how often they can be", tx.books.Grants)
	}
	if g.Parent != "" {
		path, err := tx.path(g.Parent, true)
		if err != nil {
			return err
		}
		if len(path) >= MaxGrantDepth {
			return invalid("a grant within %d others, which is how deep they can be", len(path))
		}
	}
	free, err := tx.Free(g.Parent)
	if err != nil {
		return err
	}
	for name, amount := range g.Limits {
		if amount > free[name] {
			return &BudgetError{Requested: g.Limits, Left: free, Grant: g.Parent}
		}
	}
	none := tx.books.Limits.none()
	g.Spent, g.Held = none, none
	tx.grants[g.ID] = &GrantChange{Grant: g, New: true, Was: none, Had: none}
	tx.made = append(tx.made, g.ID)
	tx.hold(g.Parent, g.Limits)
	if !g.Expires.IsZero() && (tx.books.Due.IsZero() || g.Expires.Before(tx.books.Due)) {
		tx.books.Due = g.Expires
	}
	tx.books.Grants++
	return tx.err
}

// EndGrant ends a grant, and with it those that are parts of it: what it has not spent is there again for the account that it was a part of. Ending again does
// nothing. The error is a *GrantError if there is no such grant.
func (tx *Tx) EndGrant(id, principal string) error {
	if tx.over {
		return invalid("a grant is ended after the update's end")
	}
	if err := checkText("principal", principal, false); err != nil {
		return err
	}
	g, err := tx.load(id)
	if err != nil {
		return err
	}
	if g.Ended.IsZero() {
		tx.end(g, tx.now, principal)
	}
	return tx.err
}

func (tx *Tx) end(g *GrantChange, at time.Time, by string) {
	unspent := g.Limits.left(g.Spent)
	ended := *g
	ended.Ended, ended.EndedBy, ended.Ends = at.UTC(), by, true
	tx.grants[g.ID] = &ended
	tx.hold(g.Parent, tx.books.Limits.none().left(unspent))
	tx.books.Grants++
}

// hold adds to what the grants of an account hold of it; less, where the amounts are negative.
func (tx *Tx) hold(account string, amounts Meters) {
	if account == "" && tx.books.End != "" {
		return // they hold nothing any more
	}
	if account == "" {
		tx.books.Held = tx.books.Limits.none().plus(tx.books.Held).plus(amounts)
		return
	}
	g, err := tx.load(account)
	if err != nil {
		tx.fail(err)
		return
	}
	holds := *g
	holds.Held = g.Held.plus(amounts)
	tx.grants[account] = &holds
}

// expire ends the grants whose time has come, so that what they have not spent can be spent by others. It comes before everything else in an update.
func (tx *Tx) expire() {
	if tx.books.Due.IsZero() || tx.now.Before(tx.books.Due) {
		return
	}
	due, next, err := tx.before.Due(tx.now)
	if err != nil {
		tx.fail(err)
		return
	}
	for _, id := range due {
		g, err := tx.load(id)
		if err != nil {
			tx.fail(err)
			return
		}
		tx.end(g, g.Expires, "")
	}
	tx.books.Due = next
}

// load is a grant as it stands in this update. It is not to be changed: another one is put in its place.
func (tx *Tx) load(id string) (*GrantChange, error) {
	if g := tx.grants[id]; g != nil {
		return g, nil
	}
	if tx.err != nil {
		return nil, tx.err
	}
	g, ok, err := tx.before.Grant(id)
	if err != nil {
		tx.fail(err)
		return nil, err
	}
	if !ok || id == "" {
		return nil, &GrantError{ID: id, Reason: GrantUnknown}
	}
	c := &GrantChange{Grant: g, Was: g.Spent, Had: g.Held}
	tx.grants[id] = c
	return c, nil
}

// path is a grant, the one that it is a part of, and so on. The error is a *GrantError if one of them is live no more and all must be.
func (tx *Tx) path(id string, live bool) (path []*GrantChange, err error) {
	for at := id; at != ""; {
		g, err := tx.load(at)
		if err != nil {
			return nil, err
		}
		if len(path) == MaxGrantDepth {
			return nil, &CorruptError{Holdout: tx.books.ID, Seq: -1, Reason: fmt.Sprintf("grant %q is within more than %d others", short(id), MaxGrantDepth)}
		}
		if live {
			if err := g.livesAt(tx.now); err != nil {
				if err.ID != id {
					err.ID, err.Part = id, at
				}
				return nil, err
			}
		}
		path, at = append(path, g), g.Parent
	}
	return path, nil
}

// livesAt is nil for a grant that has not ended by itself.
func (g *Grant) livesAt(now time.Time) *GrantError {
	switch {
	case !g.Ended.IsZero() && g.EndedBy != "":
		return &GrantError{ID: g.ID, Reason: GrantEnded, At: g.Ended}
	case !g.Ended.IsZero(), !g.Expires.IsZero() && !now.Before(g.Expires):
		return &GrantError{ID: g.ID, Reason: GrantExpired, At: g.Expires}
	}
	return nil
}

// charge debits a grant and those that it is a part of, each of which has held this much for the one in it. The holdout's own books are the caller's.
func (tx *Tx) charge(path []*GrantChange, cost Meters) {
	for i, g := range path {
		paid := *g
		paid.Spent = g.Spent.plus(cost)
		if i > 0 {
			paid.Held = g.Held.left(cost)
		}
		tx.grants[g.ID] = &paid
	}
	tx.books.Held = tx.books.Held.left(cost)
}

// changes are the grants that the update changed: new ones in the order in which they were made, so that one comes after the one that it is a part of, and then
// the others by their ids, so that all updates lock them in one order.
func (tx *Tx) changes() (all []GrantChange) {
	for _, id := range tx.made {
		all = append(all, *tx.grants[id])
	}
	for _, id := range slices.Sorted(maps.Keys(tx.grants)) {
		if c := tx.grants[id]; !c.New && (c.Ends || !c.Spent.Equal(c.Was) || !c.Held.Equal(c.Had)) {
			all = append(all, *c)
		}
	}
	return all
}

// Free is what can be spent of the holdout's own budget: what is neither spent nor granted.
func (b *Books) Free() Meters { return b.Limits.left(b.Spent).left(b.Held) }
