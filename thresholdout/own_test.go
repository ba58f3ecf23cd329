package thresholdout

// A test of this package looks into the numbers of a planned mechanism by its type.

func (g Guarantee) gaussian() *gaussian           { return g.own.(*gaussian) }
func (g Guarantee) guessAndCheck() *guessAndCheck { return g.own.(*guessAndCheck) }

func (g Guarantee) ladder() *ladder { return g.own.(*ladder) }

// comparison is that of either form of Thresholdout.
func (g Guarantee) comparison() Comparison {
	if m, ok := g.own.(*laplace); ok {
		return m.Comparison
	}
	return g.own.(*comparedRuns).Comparison
}

// changed is a guarantee with other numbers of its mechanism than were planned.
func changed[T any, M interface {
	*T
	Mechanism
}](g Guarantee, change func(M)) Guarantee {
	m := *g.own.(M)
	change(&m)
	return of(M(&m))
}
