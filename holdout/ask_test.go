package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

func batchOf(queries ...string) []json.RawMessage {
	out := make([]json.RawMessage, len(queries))
	for i, q := range queries {
		out[i] = json.RawMessage(q)
	}
	return out
}

// members of a budget refusal.
func wantExhausted(t *testing.T, what string, err error, requested, remaining, affordable int64) {
	t.Helper()
	wantKind(t, what, err, BudgetExhausted)
	var e *Error
	if errors.As(err, &e) && fmt.Sprint(e.Members["requested"], e.Members["remaining"], e.Members["affordable"]) != fmt.Sprint(requested, remaining, affordable) {
		t.Errorf("%s: members %v, want %d %d %d", what, e.Members, requested, remaining, affordable)
	}
}

const conditional = `{"type":"mean","of":"x","range":[0,1],"where":"late"}` // two row functions

func TestQuestionsRunOut(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 6}, visits(t, 500, 1)).ID
	ask(t, s, id, mean(0))
	_, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(1), conditional, mean(2), mean(3), mean(4)), false, "")
	wantExhausted(t, "a batch beyond the budget", err, 6, 5, 5)
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 5 {
		t.Fatalf("a refused batch cost something: %+v, %v", b, err)
	}
	b, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), mean(1), mean(1), mean(2), mean(3)), false, "")
	if err != nil || b.Budget.Questions.Left != 2 {
		t.Fatalf("batch: %+v, %v", b, err)
	}
	var replayed []bool
	for _, item := range b.Answers {
		replayed = append(replayed, item.Replayed)
	}
	if !slices.Equal(replayed, []bool{true, false, true, false, false}) || !bytes.Equal(b.Answers[1].Body, b.Answers[2].Body) {
		t.Errorf("replayed: %v", replayed)
	}
	b, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(4), conditional, mean(5), mean(6)), true, "")
	if err != nil || b.Budget.Questions.Left != 0 {
		t.Fatalf("partial batch: %+v, %v", b, err)
	}
	var reasons []string
	for _, item := range b.Answers {
		reasons = append(reasons, item.NotAsked)
	}
	if !slices.Equal(reasons, []string{"", QuestionsExhausted, "", QuestionsExhausted}) || b.Answers[1].Body != nil || b.Answers[2].Body == nil {
		t.Errorf("not asked: %q", reasons)
	}
	_, err = s.Ask(t.Context(), analyst, id, []byte(conditional), "")
	wantExhausted(t, "a question beyond the budget", err, 2, 0, 0)
	if a := ask(t, s, id, mean(4)); !a.Replayed {
		t.Error("replays end with the budget")
	}
	b, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(7)), true, "")
	if err != nil || b.Answers[0].NotAsked != QuestionsExhausted {
		t.Errorf("partial without any budget: %+v, %v", b, err)
	}
}

// TestTokensRunOut: with a threshold far below the noise every question spends a token, so that tokens end first; later
// questions are not asked and cost nothing, replays go on.
func TestTokensRunOut(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "thresholdout", Questions: 100, Tokens: 3, Threshold: 1e-6, Sigma: 0.2}, visits(t, 500, 1)).ID
	var asked []json.RawMessage
	for i := range 60 {
		asked = append(asked, json.RawMessage(mean(i)))
	}
	b, err := s.AskBatch(t.Context(), analyst, id, asked, false, "")
	if err != nil {
		t.Fatal(err)
	}
	answers, tokens := int64(0), int64(0)
	for i, item := range b.Answers {
		if item.NotAsked == "" {
			if tokens == 3 {
				t.Fatalf("item %d was asked without tokens", i)
			}
			answers++
			tokens += read(t, item.Body).Cost.Tokens
		} else if item.NotAsked != TokensExhausted || tokens < 3 {
			t.Fatalf("item %d: %q with %d tokens spent", i, item.NotAsked, tokens)
		}
	}
	// Each comparison with so much noise fails with a chance near 1/2: that fewer than 3 of 60 do has a chance below 1e-14.
	if tokens != 3 || b.Budget.Tokens.Left != 0 || b.Budget.Questions.Left != 100-answers {
		t.Fatalf("%d tokens in %d answers, budget %+v %+v", tokens, answers, b.Budget, b.Budget.Tokens)
	}
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(99)), "")
	wantExhausted(t, "a question without tokens", err, 1, 0, 0)
	if a := ask(t, s, id, mean(0)); !a.Replayed {
		t.Error("replays end with the tokens")
	}
}

// TestOneDebitForOneQuestion: fifty askers of one query at the same time get the same bytes and pay once.
func TestOneDebitForOneQuestion(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 100}, visits(t, 500, 1)).ID
	var wait sync.WaitGroup
	bodies := make([]json.RawMessage, 50)
	fresh := make([]bool, 50)
	for i := range bodies {
		wait.Go(func() {
			a, err := s.Ask(context.Background(), analyst, id, []byte(mean(0)), "")
			if err != nil {
				t.Error(err)
			}
			bodies[i], fresh[i] = a.Body, !a.Replayed
		})
	}
	wait.Wait()
	paid := 0
	for i := range bodies {
		if !bytes.Equal(bodies[i], bodies[0]) {
			t.Errorf("answer %d differs", i)
		}
		if fresh[i] {
			paid++
		}
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 99 || paid != 1 {
		t.Errorf("%d paid, budget %+v, %v", paid, b, err)
	}
}

// TestSlicesAreHandedOutOnce: under split concurrent askers get slices of their own, and asking again replays.
func TestSlicesAreHandedOutOnce(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Mechanism: "split", Questions: 12, Holdout: 0.5}, visits(t, 600, 1)).ID
	var wait sync.WaitGroup
	for i := range 5 {
		for range 3 {
			wait.Go(func() {
				if _, err := s.Ask(context.Background(), analyst, id, []byte(mean(i)), ""); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Go(func() {
		if _, err := s.AskBatch(context.Background(), analyst, id, batchOf(mean(0), mean(7), conditional), false, ""); err != nil {
			t.Error(err)
		}
	})
	wait.Wait()
	b, err := s.Budget(t.Context(), analyst, id)
	if err != nil || b.Questions.Left != 12-5-2 {
		t.Errorf("budget %+v, %v", b, err)
	}
	// Five are left: what does not fit is passed over, and what comes behind it gets the next slice.
	other := `{"type":"test","test":"goodness-of-fit","cells":["x < 0.2","x < 0.7"],"expected":[0.2,0.5]}`
	third := `{"type":"test","test":"goodness-of-fit","cells":["x < 0.3","x < 0.7"],"expected":[0.3,0.4]}`
	last, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(8), other, third, mean(9), mean(10)), true, "", MaxQuestions(12))
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, item := range last.Answers {
		reasons = append(reasons, item.NotAsked)
	}
	if !slices.Equal(reasons, []string{"", "", QuestionsExhausted, "", QuestionsExhausted}) || last.Budget.Questions.Left != 0 {
		t.Errorf("the last slices: %q, %+v", reasons, last.Budget)
	}
}

func TestIdempotencyKey(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	body := parquet(t, visits(t, 300, 1))
	upload := func(set Settings, body []byte) (Card, bool, error) {
		return s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(body)), "upload-1")
	}
	card, replayed, err := upload(Settings{Questions: 50}, body)
	if err != nil || replayed {
		t.Fatal(replayed, err)
	}
	if again, replayed, err := upload(Settings{Questions: 50}, body); err != nil || !replayed || again.ID != card.ID {
		t.Errorf("the same upload: %v, %v, %v", again.ID, replayed, err)
	}
	_, _, err = upload(Settings{Questions: 51}, body)
	wantKind(t, "other settings", err, IdempotencyMismatch)
	_, _, err = upload(Settings{Questions: 50}, parquet(t, visits(t, 300, 2)))
	wantKind(t, "another body", err, IdempotencyMismatch)
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("files: %v", left)
	}

	id := card.ID
	first, err := s.Ask(t.Context(), analyst, id, []byte(mean(0)), "k")
	if err != nil || first.Replayed {
		t.Fatal(err)
	}
	again, err := s.Ask(t.Context(), analyst, id, []byte(" "+mean(0)), "k")
	if err != nil || !again.Replayed || !bytes.Equal(again.Body, first.Body) {
		t.Errorf("the same question: %+v, %v", again, err)
	}
	_, err = s.Ask(t.Context(), analyst, id, []byte(mean(1)), "k")
	wantKind(t, "another question", err, IdempotencyMismatch)
	_, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(0)), false, "k")
	wantKind(t, "a batch", err, IdempotencyMismatch)
	if _, err = s.Ask(t.Context(), rival, id, []byte(mean(1)), "k"); err != nil {
		t.Errorf("somebody else's key: %v", err)
	}
	// A key that came with replays alone leaves nothing in the ledger, and is free.
	if _, err = s.Ask(t.Context(), analyst, id, []byte(mean(1)), "k2"); err != nil {
		t.Error(err)
	}
	if _, known, err := s.ledger.Idempotency(t.Context(), analyst.KeyID, "k2"); err != nil || known {
		t.Errorf("a replay takes its key: %v, %v", known, err)
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 48 {
		t.Errorf("budget %+v, %v", b, err)
	}
}

func TestWrongQueries(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.BatchQueries, o.Limits.QueryBytes = 3, 1000 })
	id := create(t, s, Settings{}, visits(t, 300, 1)).ID
	single := func(what, query string, want Kind) {
		t.Helper()
		_, err := s.Ask(t.Context(), analyst, id, []byte(query), "")
		wantKind(t, what, err, want)
	}
	single("no JSON", `{"type":`, Malformed)
	single("a key twice", `{"type":"mean","type":"mean"}`, Malformed)
	single("an unknown member", `{"type":"mean","of":"x","range":[0,1],"colour":1}`, Invalid)
	single("an unknown column", `{"type":"mean","of":"y","range":[0,1]}`, Invalid)
	single("a guess", `{"type":"mean","of":"x","range":[0,1],"guess":0.5}`, Invalid)
	single("a half-width", `{"type":"mean","of":"x","range":[0,1],"half_width":0.5}`, Invalid)
	single("too long", `{"type":"mean","of":"x","range":[0,1],"note":"`+string(bytes.Repeat([]byte("a"), 1000))+`"}`, TooLarge)
	_, err := s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), mean(1), mean(2), mean(3)), false, "")
	wantKind(t, "a batch too long", err, TooLarge)
	_, err = s.AskBatch(t.Context(), analyst, id, nil, false, "")
	wantKind(t, "an empty batch", err, Invalid)
	for _, wrong := range []string{`{"type":"mean","of":"y","range":[0,1]}`, `{"type":"nothing"}`} {
		_, err = s.AskBatch(t.Context(), analyst, id, batchOf(mean(0), mean(0), wrong), false, "")
		wantKind(t, "a batch with a wrong query", err, Invalid)
		if want := "/queries/2"; !bytes.Contains([]byte(err.Error()), []byte(want)) {
			t.Errorf("the error does not point to %s: %v", want, err)
		}
	}
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != b.Questions.Of {
		t.Errorf("wrong queries cost something: %+v, %v", b, err)
	}
}

func TestExplain(t *testing.T) {
	s := open(t, t.TempDir())
	card := create(t, s, Settings{Questions: 10, Sigma: 0.05}, visits(t, 2000, 1)) // without promises, whose intervals depend on the answer
	explain := func(query string) Explanation {
		t.Helper()
		e, err := s.Explain(t.Context(), analyst, card.ID, []byte(query))
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	query := `{"type":"mean","of":"x","range":[0,2]}`
	e := explain(query)
	if e.Answered || e.Cost != (Cost{Questions: 1}) || e.Training == nil || *e.Training < 0.45 || *e.Training > 0.55 || e.HalfWidth == nil || len(e.Warnings) != 1 || e.Warnings[0].Code != uninformative { // wider than x is spread
		t.Errorf("explanation: %+v", e)
	}
	if b, err := s.Budget(t.Context(), analyst, card.ID); err != nil || b.Questions.Left != 10 {
		t.Errorf("explaining cost something: %+v, %v", b, err)
	}
	// What was previewed is what comes, on the side that is not clipped.
	a := read(t, ask(t, s, card.ID, query).Body)
	if got := max(a.Interval.High-*a.Value, *a.Value-a.Interval.Low); e.HalfWidth != nil && (got < 0.95**e.HalfWidth || got > 1.001**e.HalfWidth) {
		t.Errorf("half-width %v, previewed %v", got, *e.HalfWidth)
	}
	if e := explain(query); !e.Answered {
		t.Error("not known as answered")
	}
	rare := explain(`{"type":"fraction","of":"x < 0.0005"}`)
	if len(rare.Warnings) != 1 || rare.Warnings[0].Code != "uninformative" {
		t.Errorf("a rare condition: %+v", rare.Warnings)
	}
	if r := explain(conditional); r.Cost.Questions != 2 || len(r.Functions) != 2 || r.HalfWidth == nil {
		t.Errorf("a conditional mean: %+v", r)
	}
	alone := create(t, s, Settings{Questions: 10, Holdout: 1}, visits(t, 500, 2))
	if e, err := s.Explain(t.Context(), analyst, alone.ID, []byte(query)); err != nil || e.Training != nil || e.HalfWidth == nil {
		t.Errorf("without a training part: %+v, %v", e, err)
	}
	alone = seen(t, s, alone)
	if alone.Columns[1].Min != nil || alone.Columns[3].Values != nil || alone.Columns[5].Nulls != nil {
		t.Errorf("the card shows holdout rows: %+v", alone.Columns)
	}
	_, err := s.Training(t.Context(), analyst, alone.ID)
	wantKind(t, "a training part that is not there", err, NotFound)
}

func TestHistory(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{}, visits(t, 300, 1)).ID
	for i := range 5 {
		ask(t, s, id, mean(i))
	}
	if _, err := s.Ask(t.Context(), rival, id, []byte(mean(9)), ""); err != nil {
		t.Fatal(err)
	}
	count := func(p Principal, limit int) (total, pages int) {
		t.Helper()
		for after := int64(0); ; {
			page, err := s.Answers(t.Context(), p, id, after, limit)
			if err != nil {
				t.Fatal(err)
			}
			total += len(page.Answers)
			pages++
			if after = page.Next; after == 0 {
				return total, pages
			}
		}
	}
	for _, c := range []struct {
		p                   Principal
		limit, total, pages int
	}{{analyst, 2, 5, 3}, {analyst, 5, 5, 1}, {rival, 10, 1, 1}, {admin, 0, 6, 1}, {admin, 3, 6, 2}} {
		if total, pages := count(c.p, c.limit); total != c.total || pages != c.pages {
			t.Errorf("%s by %d: %d answers on %d pages, want %d on %d", c.p.Name, c.limit, total, pages, c.total, c.pages)
		}
	}
}

// TestDeleteInUse: a holdout that is deleted while questions run is unmapped after the last of them.
func TestDeleteInUse(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 1000}, visits(t, 2000, 1)).ID
	var wait sync.WaitGroup
	begun := make(chan struct{}, 8)
	for w := range 8 {
		wait.Go(func() {
			for i := range 50 {
				_, err := s.Ask(context.Background(), analyst, id, []byte(mean(100*w+i)), "")
				if i == 0 {
					begun <- struct{}{}
				}
				if err != nil {
					wantKind(t, "after deletion", err, NotFound)
					return
				}
			}
		})
	}
	<-begun
	if err := s.Delete(t.Context(), admin, id); err != nil {
		t.Fatal(err)
	}
	wait.Wait()
	if left := files(t, s.dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	wantKind(t, "a second deletion", s.Delete(t.Context(), admin, id), NotFound)
}

// TestFewTablesStayOpen: with room for one holdout others are opened again, and answer as before.
func TestFewTablesStayOpen(t *testing.T) {
	s := open(t, t.TempDir(), func(o *Options) { o.Limits.OpenTables = 1 })
	var ids []string
	for i := range 3 {
		ids = append(ids, create(t, s, Settings{}, visits(t, 200, uint64(i))).ID)
	}
	for round := range 3 {
		for _, id := range ids {
			ask(t, s, id, mean(round))
		}
	}
	if n := len(s.tables.books); n > 1 {
		t.Errorf("%d holdouts are open", n)
	}
}

// tableOf decodes a Parquet file as an upload is.
func tableOf(t *testing.T, s *Service, r io.Reader) *dataset.Table {
	t.Helper()
	dir := t.TempDir()
	body, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	path := dir + "/table.parquet"
	if err := writeOnce(path, body); err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.Run(t.Context(), s.decoder, path, dir+"/table", ingest.Limits{}); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Open(dir + "/table")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.Close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

// training downloads the training part.
func training(t *testing.T, s *Service, id string) *dataset.Table {
	t.Helper()
	f, err := s.Training(t.Context(), analyst, id)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return tableOf(t, s, f)
}

func numbers(t *testing.T, table *dataset.Table, name string) []float64 {
	t.Helper()
	c, ok := table.Lookup(name)
	if !ok {
		t.Fatalf("no column %s in %v", name, table.Schema())
	}
	return c.Numbers
}

// TestTrainingDownload: the training part comes as it was, in the order of the upload, without a trace of the holdout.
func TestTrainingDownload(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1000, 1)
	card := create(t, s, Settings{Holdout: 0.4}, table)
	var wait sync.WaitGroup
	for range 4 { // at the same time
		wait.Go(func() {
			f, err := s.Training(context.Background(), analyst, card.ID)
			if err != nil {
				t.Error(err)
				return
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	got := training(t, s, card.ID)
	if got.Rows() != 600 || len(got.Schema().Fields) != len(table.Schema().Fields) {
		t.Fatalf("%d rows, %v", got.Rows(), got.Schema())
	}
	x, all := numbers(t, got, "x"), numbers(t, table, "x")
	at := 0
	for _, v := range x { // a subsequence of the upload
		for at < len(all) && all[at] != v {
			at++
		}
		at++
	}
	if at > len(all) {
		t.Error("the rows are not in the order of the upload")
	}
	if left := files(t, s.dir); len(left) != 1 {
		t.Errorf("left: %v", left)
	}
}

// TestUnits: with a unit column no unit is on both sides, n counts units, and the parts are what the card says.
func TestUnits(t *testing.T) {
	s := open(t, t.TempDir())
	table := visits(t, 1000, 1)
	card := seen(t, s, create(t, s, Settings{Holdout: 100, Unit: "chart"}, table))
	if card.Units != (Counts{Training: 150, Holdout: 100}) || card.Rows != (Counts{Training: 600, Holdout: 400}) || card.Unit != "chart" || card.LargestUnit != 4 || card.Guarantee.N != 100 {
		t.Fatalf("card: %+v", card)
	}
	h, release, err := s.tables.take(t.Context(), card.ID)
	if err != nil {
		t.Fatal(err)
	}
	held := map[float64]int{}
	for _, v := range numbers(t, h.tables[1], "chart") {
		held[v]++
	}
	release()
	for _, v := range numbers(t, training(t, s, card.ID), "chart") {
		if held[v] > 0 {
			t.Fatalf("chart %v is on both sides", v)
		}
	}
	if len(held) != 100 {
		t.Errorf("%d patients held out", len(held))
	}
	for v, n := range held {
		if n != 4 {
			t.Errorf("chart %v has %d rows in the holdout", v, n)
		}
	}
	if a := read(t, ask(t, s, card.ID, `{"type":"mean","of":"x","range":[0,1],"weight":"row"}`).Body); a.Cost.Questions != 2 || a.Value == nil {
		t.Errorf("weight row: %+v", a)
	}
	day := seen(t, s, create(t, s, Settings{Unit: "day(seen)"}, visits(t, 1000, 2)))
	if day.Unit != "day(seen)" || day.Units.Training+day.Units.Holdout != 20 || day.LargestUnit != 50 {
		t.Errorf("days: %+v", day)
	}
}

// TestSplitsOnDisk: stratified, by time and as given; the corrected upload keeps the split of its units.
func TestSplitsOnDisk(t *testing.T) {
	s := open(t, t.TempDir())
	strata := seen(t, s, create(t, s, Settings{Stratify: "clinic", Holdout: 0.3}, visits(t, 1000, 1)))
	sum := int64(0)
	for name, n := range strata.Strata {
		share := float64(n.Holdout) / float64(n.Holdout+n.Training)
		if share < 0.29 || share > 0.31 {
			t.Errorf("stratum %s: %+v", name, n)
		}
		sum += n.Holdout
	}
	if len(strata.Strata) != 5 || sum != 300 {
		t.Errorf("strata: %+v", strata.Strata)
	}
	byTime := seen(t, s, create(t, s, Settings{Split: "time:seen", Holdout: 0.2}, visits(t, 1000, 2)))
	if last := byTime.Columns[4].Latest; last == nil || last.After(timeOf(microsecondsPerDay/50*800)) {
		t.Errorf("training reaches %v", last)
	}
	a, b := parquet(t, visits(t, 400, 3)), parquet(t, visits(t, 300, 4))
	i := -1
	given, _, err := s.Create(t.Context(), admin, Settings{Split: "given"}, func() (string, io.Reader, error) {
		if i++; i > 1 {
			return "", nil, io.EOF
		}
		return []string{"training", "holdout"}[i], bytes.NewReader([][]byte{a, b}[i]), nil
	}, "")
	if err != nil || given.Rows != (Counts{Training: 400, Holdout: 300}) {
		t.Errorf("given: %+v, %v", given.Rows, err)
	}

	before := create(t, s, Settings{Unit: "chart", Holdout: 0.5}, visits(t, 1000, 5))
	after := create(t, s, Settings{Unit: "chart", Holdout: 0.5}, visits(t, 1020, 6)) // other visits, and five patients more
	was, moved := map[float64]bool{}, 0
	for _, v := range numbers(t, training(t, s, before.ID), "chart") {
		was[v] = true
	}
	now := map[float64]bool{}
	for _, v := range numbers(t, training(t, s, after.ID), "chart") {
		now[v] = true
	}
	for v := range 250 {
		if was[float64(v)] != now[float64(v)] {
			moved++
		}
	}
	// The cut moves by as many places as units were added, at most.
	if moved > 5 {
		t.Errorf("%d of 250 patients changed sides", moved)
	}
}

// TestLargeAnswersAreRefusedBeforehand: what could not be recorded is refused by its shape, before a row is read, and nothing is debited.
func TestLargeAnswersAreRefusedBeforehand(t *testing.T) {
	s := open(t, t.TempDir())
	columns := make([]dataset.Column, 4000)
	for j := range columns {
		columns[j] = dataset.Column{Field: dataset.Field{Name: fmt.Sprintf("f%04d", j) + strings.Repeat("x", 1000), Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, 40)}
		for i := range columns[j].Numbers {
			columns[j].Numbers[i] = float64(i * (j + 1) % 41)
		}
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	id := create(t, s, Settings{Questions: 5000, Holdout: 0.5}, table).ID
	screen := func(pattern string) []byte {
		return []byte(`{"type":"screen","label":"col(\"` + columns[0].Name + `\") > 20","features":"` + pattern + `","statistic":"product","range":[0,41]}`)
	}
	_, err = s.Ask(t.Context(), analyst, id, screen("f*"), "")
	wantKind(t, "too many long names", err, TooLarge)
	if b, err := s.Budget(t.Context(), analyst, id); err != nil || b.Questions.Left != 5000 {
		t.Errorf("%+v, %v", b, err)
	}
	if a, err := s.Ask(t.Context(), analyst, id, screen("f00*"), ""); err != nil || a.Budget.Questions.Left != 5000-99 {
		t.Errorf("a hundred of them: %+v, %v", a.Budget, err)
	}
}

// TestExplainShowsNoModel would notice a model that is sent back whole.
func TestExplainShowsNoModel(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 30}, visits(t, 500, 1)).ID
	terms := strings.Repeat(`x > 0.25 || `, 1000) + "late"
	e, err := s.Explain(t.Context(), analyst, id, []byte(`{"type":"fraction","of":"late","where":"`+terms+`","note":"n"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Canonical) > 300 || !bytes.Contains(e.Canonical, []byte(`"digest":"sha256:`)) || !bytes.Contains(e.Canonical, []byte(`"of":"late"`)) {
		t.Errorf("canonical: %d bytes: %.400s", len(e.Canonical), e.Canonical)
	}
}
