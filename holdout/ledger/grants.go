package ledger

import (
	"errors"
	"fmt"
	"time"
)

// Grant is a slice of a holdout's budget, for one key. What is spent of it is no number beside the chain: it is what the chain says that the key spent ([Ledger.Debits]), so that a debit of the
// holdout is that of the grant, in one commit. A grant is never changed but for Revoked, and never removed.
type Grant struct {
	ID      string
	Key     string // the key's id; a key has at most one grant of a holdout, for ever
	Holdout string // its id
	Parent  string // the grant that this one is a slice of, which is of the same holdout; "" where it is one of the holdout's own budget

	Limits Meters // what it and all grants below it may spend together, by meter; a meter that is not named has no limit of its own. At least one
	Shows  string // what is shown of answers, in the service's words

	Created time.Time
	Expires time.Time // zero: never
	Revoked bool      // it, or its key
}

// MaxGrantDepth is how many grants a chain of slices of slices has at most: a team, a person, an agent, a run, and as many again. Each debit looks at all of them.
const MaxGrantDepth = 8

// MaxGrants is how many grants a holdout has at most, revoked ones included: each question under a grant reads all of them.
const MaxGrants = 4096

// Check says whether the grant can be recorded, or is ErrInvalid.
func (g *Grant) Check() error {
	expires := error(nil)
	if !g.Expires.IsZero() {
		expires = checkTime(g.Expires)
	}
	if g.Revoked {
		return invalid("a grant is not made revoked")
	}
	return errors.Join(checkText("grant id", g.ID, false), checkText("key id", g.Key, false), checkText("holdout id", g.Holdout, false), checkText("parent", g.Parent, true),
		checkText("what is shown", g.Shows, false), checkTime(g.Created), expires, g.Limits.checkLimits())
}

// Grants are grants by their ids.
type Grants map[string]Grant

// GrantsOf are grants by their ids.
func GrantsOf(list []Grant) Grants {
	all := make(Grants, len(list))
	for _, g := range list {
		all[g.ID] = g
	}
	return all
}

// Room is what a ledger has of the holdout and the key of a grant that is to be made, read in the transaction that makes it.
type Room struct {
	Deleted bool // the holdout is
	Key     bool // there is the key
	Known   bool // the grant's id is known, or the key has a grant of the holdout
}

// Fits says whether a grant can be made where there is room and beside all others, or is ErrDeleted, ErrNotFound, ErrExists or ErrInvalid. It is for implementations.
func (g *Grant) Fits(r Room, all []Grant) error {
	switch {
	case r.Deleted:
		return ErrDeleted
	case !r.Key:
		return fmt.Errorf("%w: key %q", ErrNotFound, short(g.Key))
	case r.Known:
		return fmt.Errorf("%w: grant %q, or one of this holdout for the key %q", ErrExists, short(g.ID), short(g.Key))
	}
	return GrantsOf(all).slice(g)
}

// slice says whether a grant can be made beside all others.
func (all Grants) slice(g *Grant) error {
	known := 0
	for _, other := range all {
		if other.Holdout == g.Holdout {
			known++
		}
	}
	if known >= MaxGrants {
		return invalid("the holdout has %d grants, as many as it may", known)
	}
	if g.Parent == "" {
		return nil
	}
	parent, ok := all[g.Parent]
	switch above := all.Chain(g.Parent); {
	case !ok:
		return fmt.Errorf("%w: grant %q", ErrNotFound, short(g.Parent))
	case parent.Holdout != g.Holdout:
		return invalid("the parent %q is a grant of another holdout", short(parent.ID))
	case len(above) == 0 || len(above) >= MaxGrantDepth:
		return invalid("a grant has at most %d grants above it", MaxGrantDepth-1)
	}
	return nil
}

// Chain is a grant with those that it is a slice of, itself first; nil if one of them is not known, or there are more than MaxGrantDepth.
func (all Grants) Chain(id string) (chain []Grant) {
	for id != "" {
		g, ok := all[id]
		if !ok || len(chain) == MaxGrantDepth {
			return nil
		}
		chain, id = append(chain, g), g.Parent
	}
	return chain
}

// DebitSum is what one principal's entries debited of one meter, and the seq of the last of them. It is for implementations of [Ledger.Debits].
type DebitSum struct {
	Principal, Meter string
	Amount, Last     int64
}

// SumDebits are debits by who asked first, and the last seq, or after.
func SumDebits(debits []DebitSum, after int64) (by map[string]Meters, last int64) {
	by, last = map[string]Meters{}, after
	for _, d := range debits {
		if by[d.Principal] == nil {
			by[d.Principal] = Meters{}
		}
		by[d.Principal][d.Meter] = d.Amount
		last = max(last, d.Last)
	}
	return by, last
}
