package holdout

import "testing"

// TestBudgetNeverRises: a commit is in the ledger for a moment before the account of the holdout knows of it. Who reads the budget in that moment sees
// it; a reply that comes afterwards must not say that more is left. It would notice replies that take the account's word.
func TestBudgetNeverRises(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 6}, visits(t, 500, 1)).ID
	ask(t, s, id, mean(0))
	acc := s.accounts.of(id)
	before := *acc.at
	ask(t, s, id, mean(1))
	for name, read := range map[string]func() (Budget, error){
		"budget": func() (Budget, error) { return s.Budget(t.Context(), analyst, id) },
		"card": func() (Budget, error) {
			card, err := s.Card(t.Context(), analyst, id)
			return *card.Budget, err
		},
	} {
		acc.mu.Lock()
		acc.at, acc.shown = &before, 0 // as between a commit and its announcement
		acc.mu.Unlock()
		told, err := read()
		if err != nil || told.Questions.Left != 4 {
			t.Fatalf("%s: %+v, %v", name, told, err)
		}
		if a := ask(t, s, id, mean(0)); !a.Replayed || a.Budget.Questions.Left > told.Questions.Left {
			t.Errorf("after the %s said that %d are left, a replay says %d", name, told.Questions.Left, a.Budget.Questions.Left)
		}
	}
}
