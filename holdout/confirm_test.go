package holdout

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/internal/await"
)

// wantUnconfirmed is the refusal of a price.
func wantUnconfirmed(t *testing.T, what string, err error, requested, most int64) {
	t.Helper()
	wantKind(t, what, err, Unconfirmed)
	var e *Error
	if errors.As(err, &e) && fmt.Sprint(e.Members["requested"], e.Members["max_questions"]) != fmt.Sprint(requested, most) {
		t.Errorf("%s: members %v, want %d and %d", what, e.Members, requested, most)
	}
}

// byClinic costs four questions under gaussian, for any number of categories from two on.
const byClinic = `{"type":"groups","of":"x","range":[0,1],"by":"clinic"}`

// TestPricesAreConfirmed would notice a max_questions that is not looked at, in a request or in a batch, that is counted for each query of a batch instead of
// all, a default that is none, a refusal that costs something, and replays that need a confirmation.
func TestPricesAreConfirmed(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 39}, visits(t, 500, 1)).ID
	one := func(query string, o ...AskOption) error {
		_, err := s.Ask(t.Context(), analyst, id, []byte(query), "", o...)
		return err
	}
	left := func(want int64) {
		t.Helper()
		if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != want {
			t.Fatalf("%d questions are left, want %d: %v", b.Questions.Left, want, err)
		}
	}
	wantUnconfirmed(t, "a query beyond a tenth", one(byClinic), 4, 3)
	wantUnconfirmed(t, "a query beyond what is named", one(byClinic, MaxQuestions(3)), 4, 3)
	wantUnconfirmed(t, "a cheap query beyond what is named", one(conditional, MaxQuestions(1)), 2, 1)
	left(39)
	if err := one(byClinic, MaxQuestions(4)); err != nil {
		t.Fatalf("a price that is named: %v", err)
	}
	left(35)
	if err := one(byClinic); err != nil {
		t.Errorf("a replay: %v", err)
	}
	if err := one(byClinic, MaxQuestions(1)); err != nil {
		t.Errorf("a replay that may cost one: %v", err)
	}

	other := `{"type":"groups","of":"x","range":[0,2],"by":"clinic"}`
	batch := func(partial bool, o ...AskOption) (reasons []string, err error) {
		b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), other, byClinic, mean(1)), partial, "", o...)
		for _, item := range b.Answers {
			reasons = append(reasons, item.NotAsked)
		}
		return reasons, err
	}
	_, err := batch(false)
	wantUnconfirmed(t, "a dear query of a batch", err, 4, 3)
	var e *Error
	if errors.As(err, &e); e.Pointer != "/queries/1" {
		t.Errorf("the dear query is the second, not %q", e.Pointer)
	}
	_, err = batch(false, MaxQuestions(5)) // each is cheaper
	wantUnconfirmed(t, "a batch beyond what is named", err, 6, 5)
	left(35)
	if reasons, err := batch(true); err != nil || !slices.Equal(reasons, []string{"", PriceUnconfirmed, "", ""}) {
		t.Errorf("a part of the batch: %q, %v", reasons, err)
	}
	left(33)
	if reasons, err := batch(false, MaxQuestions(4)); err != nil || !slices.Equal(reasons, []string{"", "", "", ""}) { // the others are replays
		t.Errorf("the batch: %q, %v", reasons, err)
	}
	left(29)
	many := batchOf(mean(2), mean(3), mean(4), mean(5), mean(6))
	if _, err := s.AskBatch(t.Context(), analyst, id, many, false, ""); err != nil {
		t.Errorf("many cheap queries: %v", err)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(7), mean(8), mean(9)), true, "", MaxQuestions(2))
	if err != nil || b.Answers[0].NotAsked+b.Answers[1].NotAsked != "" || b.Answers[2].NotAsked != PriceUnconfirmed {
		t.Errorf("a part within two questions: %+v, %v", b, err)
	}
	left(22)
}

// TestAPriceIsRefusedBeforeAnythingIsReserved would notice a refusal that waits for others: while another request has claimed the same question, a price that is not
// confirmed is refused at once.
func TestAPriceIsRefusedBeforeAnythingIsReserved(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 30}, visits(t, 500, 1)).ID
	q, err := s.parse(t.Context(), []byte(byClinic), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	release, err := s.accounts.of(id).claim(t.Context(), []string{q.ID()})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	_, err = s.Ask(await.Context(t), analyst, id, []byte(byClinic), "")
	wantUnconfirmed(t, "a price while another asks the same", err, 4, 3)
}

// TestWholeRounds would notice a caller that nobody watches and that loses the questions of a round by one question, a max_questions that does not count what is lost, a refusal that
// costs something, and a round that is full, or replayed, and refused all the same.
func TestWholeRounds(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 6, Rounds: 2}, visits(t, 500, 1)).ID // 3 and 3
	one := func(o ...AskOption) error {
		_, err := s.Ask(t.Context(), analyst, id, []byte(mean(0)), "", append(o, WholeRounds())...)
		return err
	}
	left := func(rounds int64) {
		t.Helper()
		if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Rounds.Left != rounds {
			t.Fatalf("%+v rounds are left, want %d: %v", b.Rounds, rounds, err)
		}
	}
	wantUnconfirmed(t, "one question of three", one(), 3, 1)
	wantUnconfirmed(t, "one question of three, named", one(MaxQuestions(1)), 3, 1)
	wantUnconfirmed(t, "one question of three, nearly", one(MaxQuestions(2)), 3, 2)
	left(2)
	if _, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), mean(1), mean(2)), false, "", WholeRounds()); err != nil {
		t.Fatalf("a whole round: %v", err)
	}
	left(1)
	if err := one(); err != nil {
		t.Errorf("a replay: %v", err)
	}
	_, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(3), mean(4)), true, "", WholeRounds())
	wantUnconfirmed(t, "two of three", err, 3, 2)
	if _, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(3), mean(4)), true, "", WholeRounds(), MaxQuestions(3)); err != nil {
		t.Errorf("a loss that is named: %v", err)
	}
	left(0)
}
