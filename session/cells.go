package session

import (
	"github.com/holdoutd/holdoutd/queries"
)

// Under the mechanism cells a question is about declared cells: each of its row functions is constant on each of them, since only of those are all means near their
// expectations together.

// checkCells refuses under cells what tells rows of a cell apart. It reads the plan in the form in which it is released: whatever is summed of the holdout is checked.
func (s *Session) checkCells(plan *queries.Plan) error {
	count, celled := s.Guarantee.DeclaredCells()
	switch {
	case !celled:
		return nil
	case s.Cells == nil || s.Cells.Count() != count:
		return wrong("", "the guarantee of this holdout is about %d declared cells, and they are not known here: nothing can be answered", count)
	case plan.Checked():
		return wrong("/type", "questions of this holdout are means of functions of its declared cells, and this one is more than that")
	}
	for _, f := range plan.Functions {
		if err := s.Cells.Check(f, s.SeveralRows); err != nil {
			return wrong("", "%s", err.Error())
		}
	}
	return nil
}
