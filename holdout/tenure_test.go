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
	s.shared, s.tenures.shared, s.tenures.look = shared, shared, s.lookAtMark
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

// TestLedgerSetBackWhileServersRun: what one server has recorded and marked, and another one never heard of, is missed by that one when its term begins, also where the mark of the slower server was put in the place of the newer one
// after a retirement. It notices a server that looks at marks at its start alone.
func TestLedgerSetBackWhileServersRun(t *testing.T) {
	for name, file := range map[string]string{"the mark": markFile, "the mark of a retirement": releasedFile} {
		s := open(t, t.TempDir())
		id := create(t, s, Settings{Name: "visits", Holdout: 0.5, Mechanism: "gaussian", Questions: 5}, visits(t, 400, 1)).ID
		shared := &numberedTerms{Ledger: s.ledger}
		s.shared, s.tenures.shared, s.tenures.look = shared, shared, s.lookAtMark
		ask(t, s, id, `{"type":"fraction","of":"late"}`)
		dir := s.path(holdoutsDir, id)
		m, err := readMark(dir)
		must(t, err)
		m.Seq, m.Head = 3, "sha256:of what another server recorded"
		must(t, m.write(dir, file))
		_, err = s.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
		wantKind(t, "a question behind "+name, err, RolledBack)
		if a := ask(t, s, id, `{"type":"fraction","of":"late"}`); !a.Replayed {
			t.Error("the answer before it is not replayed")
		}
		_, err = s.Retire(t.Context(), admin, id)
		wantKind(t, "a retirement behind "+name, err, RolledBack)
	}
}
