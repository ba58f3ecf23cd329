package thresholdout

import "fmt"

// UsefulWidth is the half-width of a share of one half above which an interval tells little: it then reaches from below 0.4 to above 0.6.
const UsefulWidth = 0.1

// defaultBudgets are the numbers of questions that an owner gets who names none, the largest first. The least is enough for a loop over some tens of models, and a guarantee cannot be extended; half of it
// would be 6% narrower under guess_and_check, and a sixth under gaussian.
var defaultBudgets = []int64{DefaultQuestions, 500, 200, 100}

// defaultTokenShare: of a default budget one guess in so many may be wrong, but no more than [DefaultTokens]: where a tenth of them are, a small holdout's intervals are twice as wide.
const defaultTokenShare = 10

// LeavesBudget reports whether the owner leaves it to the server how many questions there are. Who names tokens, a half-width, a noise, a threshold or a preset has a plan of his own, which is about
// [DefaultQuestions] unless he says how many.
func (s Spec) LeavesBudget() bool {
	return s.Questions == 0 && s.Tokens == 0 && s.HalfWidth == 0 && s.Sigma == 0 && s.Threshold == 0 && s.Preset == ""
}

// WithBudget is the spec with a budget, where the owner leaves it to the server: the largest of 1000, 500, 200 and 100 questions whose planned half-width is at most [UsefulWidth], or the
// least of them where none has that; where there are tokens, one for ten questions and at most [DefaultTokens]. It is one rule for every mechanism with intervals, and follows from public facts: the
// sizes of the parts and the settings. A ladder, cells, whose number of questions widens nothing, and what has no intervals keep the default of their own. A spec that can have no guarantee is left as it is, for [Plan] to say why.
func (s Spec) WithBudget() Spec {
	kind, _ := KindOf(s.Mechanism)
	if !s.LeavesBudget() || Does[Submissions](kind) || Does[Celled](kind) || kind.Unprotected {
		return s
	}
	with := s
	for _, questions := range defaultBudgets {
		if questions < s.Rounds {
			break
		}
		try := s
		try.Questions = questions
		g, err := Plan(try)
		if err != nil {
			continue // more slices than units, or no interval at all: fewer questions may have one
		}
		if g.NeedsTokens() {
			try.Tokens = min(DefaultTokens, questions/defaultTokenShare)
		}
		if with = try; g.width() <= UsefulWidth {
			break
		}
	}
	return with
}

// width is the planned half-width of the last answer with nothing spent; 0 where none is planned.
func (g Guarantee) width() float64 {
	if g.HalfWidth > 0 {
		return g.HalfWidth
	}
	p, _ := g.Promised(0)
	return p.HalfWidth
}

// SayBudget tells an owner who named no questions what he got; "" of a guarantee that [Spec.WithBudget] is not about.
func (g Guarantee) SayBudget() string {
	if g.own == nil || g.TakesSubmissions() { // a card that cannot be read has no mechanism
		return ""
	}
	width := g.width()
	if width == 0 {
		return ""
	}
	budget := fmt.Sprintf("no number of questions was named: there are %d", g.Questions)
	if _, celled := g.DeclaredCells(); celled {
		return budget + fmt.Sprintf(", at about ±%.2g around one half, and their number widens no interval", width)
	}
	if g.NeedsTokens() {
		budget += fmt.Sprintf(", with %d tokens", g.Tokens)
	}
	if width >= 0.5 {
		budget += ", and their intervals say nothing of a share near one half"
	} else {
		budget += fmt.Sprintf(", at about ±%.2g around one half", width)
	}
	switch few := g.Questions < DefaultQuestions; {
	case few && width > UsefulWidth:
		budget += "; it is the fewest of the usual numbers"
	case few:
		budget += fmt.Sprintf("; it is the most of the usual numbers with at most ±%v", UsefulWidth)
	}
	return budget
}
