package ledger

// granted is a grant under verification.
type granted struct {
	Grant
	spent Meters // by the chain: on it, and on those that are parts of it
	held  Meters // by its parts that have not ended
}

// knowGrants takes the grants of the holdout, each after the one that it is a part of.
func (v *verifier) knowGrants(all []Grant) error {
	v.grants = make(map[string]*granted, len(all))
	limits := v.holdout.Limits
	for _, g := range all {
		switch {
		case g.ID == "" || v.grants[g.ID] != nil:
			return wrong("grant %q is there twice, or has no id", short(g.ID))
		case g.Holdout != v.holdout.ID:
			return wrong("grant %q is one of holdout %q", short(g.ID), short(g.Holdout))
		case g.Parent != "" && v.grants[g.Parent] == nil:
			return wrong("grant %q is a part of %q, which was not made before it", short(g.ID), short(g.Parent))
		case !limits.sameNames(g.Limits) || !limits.sameNames(g.Spent) || !limits.sameNames(g.Held):
			return wrong("grant %q has other meters than the holdout", short(g.ID))
		case g.Ended.IsZero() && g.EndedBy != "":
			return wrong("grant %q was ended by %q at no time", short(g.ID), short(g.EndedBy))
		}
		v.grants[g.ID] = &granted{Grant: g, spent: limits.none(), held: limits.none()}
	}
	return nil
}

// paid adds an entry to what was spent on the grant that paid for it.
func (v *verifier) paid(e *Entry) (reason string) {
	if e.Grant == "" {
		return ""
	}
	g := v.grants[e.Grant]
	switch {
	case g == nil:
		return "the grant " + short(e.Grant) + " that paid is not one of the holdout"
	case e.Kind != KindAnswer && e.Kind != KindVoid:
		return "a grant paid for what costs nothing"
	}
	g.spent = g.spent.plus(e.Debit)
	return ""
}

// checkGrants compares what each grant says with the chain and with its parts, from the innermost on: what was spent on it, what its parts hold, and that both
// together are within its limits. Then it does so for the holdout.
func (v *verifier) checkGrants(all []Grant) error {
	limits := v.holdout.Limits
	held := limits.none()
	for i := len(all) - 1; i >= 0; i-- {
		g := v.grants[all[i].ID]
		switch {
		case !g.Spent.Equal(g.spent):
			return wrong("grant %q says that %v are spent of it, the chain %v", short(g.ID), g.Spent, g.spent)
		case !g.Held.Equal(g.held):
			return wrong("grant %q says that its parts hold %v, they say %v", short(g.ID), g.Held, g.held)
		}
		if reason := within(g.Limits, g.Spent, g.Held); reason != "" {
			return wrong("grant %q: %s", short(g.ID), reason)
		}
		outer := v.grants[g.Parent]
		if outer != nil {
			outer.spent = outer.spent.plus(g.spent)
		}
		if !g.Ended.IsZero() {
			continue
		}
		unspent := g.Limits.left(g.Spent)
		if outer != nil {
			if reason := within(outer.Limits, outer.held, unspent); reason != "" {
				return wrong("the parts of grant %q: %s", short(outer.ID), reason)
			}
			outer.held = outer.held.plus(unspent)
			continue
		}
		if reason := within(limits, held, unspent); reason != "" {
			return wrong("the grants: %s", reason)
		}
		held = held.plus(unspent)
	}
	if v.end != "" { // all was spent with the end
		held = limits.none()
	}
	if got := limits.none().plus(v.holdout.Held); !got.Equal(held) {
		return wrong("the books say that grants hold %v, they say %v", got, held)
	}
	if reason := within(limits, v.holdout.Spent, held); reason != "" {
		return wrong("%s", reason)
	}
	return nil
}

// within says why two amounts together are not within limits; "" if they are. It does not add them, so that no sum overflows.
func within(limits, spent, held Meters) (reason string) {
	for name, limit := range limits {
		switch s, h := spent[name], held[name]; {
		case s < 0 || h < 0 || limit < 0:
			return "a negative amount of " + name
		case s > limit || h > limit-s:
			return "more " + name + " are spent and held than there are"
		}
	}
	return ""
}
