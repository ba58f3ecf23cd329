package holdout

import (
	"context"
	"errors"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// numberedTerms is a ledger with one server that says of its terms what a test wants.
type numberedTerms struct {
	ledger.Ledger
	number int64
}

func (l *numberedTerms) Term(context.Context, string) (int64, func(), error) {
	return l.number, func() {}, nil
}

func (l *numberedTerms) Deleted(context.Context, string) (bool, error) { return false, nil }

func (l *numberedTerms) AddFiles(context.Context) (func(context.Context) error, func(), error) {
	return func(context.Context) error { return nil }, func() {}, nil
}

func (l *numberedTerms) SweepFiles(context.Context) (func(), bool, error) {
	return func() {}, true, nil
}

// TestLostTerm: of a question that was read under a term which another server has had since, nothing is recorded and nothing leaves; the holdout is not damaged by it, and the next question is answered. That a term can be lost
// by a cut connection is tested where the ledger is (holdout/ledger/postgres).
func TestLostTerm(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Name: "visits", Holdout: 0.5, Mechanism: "gaussian", Questions: 5}, visits(t, 400, 1)).ID
	shared := &numberedTerms{Ledger: s.ledger, number: 7} // the books of a ledger with one server say 0
	s.shared, s.tenures.shared = shared, shared
	query := []byte(`{"type":"fraction","of":"late"}`)
	if _, err := s.Ask(t.Context(), analyst, id, query, ""); KindOf(err) != Unavailable || !errors.Is(err, ledger.ErrTerm) {
		t.Fatalf("a question whose term was lost: %v", err)
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 5 {
		t.Errorf("it was debited: %+v %v", b, err)
	}
	shared.number = 0
	if _, err := s.Ask(t.Context(), analyst, id, query, ""); err != nil {
		t.Errorf("the next: %v", err)
	}
}
