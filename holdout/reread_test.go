package holdout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
)

// olderForms are questions as an older program could have recorded them, each with a spelling of the same question that this program reads; "" where there is none.
var olderForms = []struct{ recorded, now, says string }{
	{`{"of":"delay>15","type":"count"}`, `{"type":"count","of":"delay > 15"}`, "is written otherwise now: the member of"},
	{`{"of":"distance > 1e2","type":"fraction"}`, `{"type":"fraction","of":"distance > 100"}`, "is written otherwise now: the member of"},
	{`{"of":"delay","range":[-60.0,180],"type":"mean"}`, `{"type":"mean","of":"delay","range":[-60,180]}`, "is written otherwise now: the member range"},
	{`{"of":"soundex(origin) == 'S'","type":"fraction"}`, "", "is not read any more: the member of"},
	{`{"cut":3,"of":"delay > 16","type":"fraction"}`, "", "is not read any more: the member cut"},
	{`{"of":"delay","range":[-60,180],"type":"midmean"}`, "", "is not read any more: the member type"},
}

// recordOlder records an answer to a question in the form of an older program: a real entry of a real chain, with its debit.
func recordOlder(t *testing.T, s *Service, id, canonical string) (body string) {
	t.Helper()
	h, card, err := s.find(t.Context(), id)
	must(t, err)
	state, err := (&opened{id: id, guarantee: card.Guarantee}).readState(h.State)
	must(t, err)
	state.Questions++
	sealed, err := json.Marshal(state)
	must(t, err)
	query := queries.Recorded([]byte(canonical)).ID()
	must(t, s.ledger.Update(t.Context(), id, func(tx *ledger.Tx) error {
		receipt, err := tx.Append(ledger.Debit{Query: query, Canonical: []byte(canonical), Principal: analyst.KeyID, Cost: debited(Cost{Questions: 1}),
			Core: fmt.Appendf(nil, `{"version":1,"holdout":%q,"query":%q,"value":0.25,"cost":{"questions":1,"tokens":0}}`, id, query), Time: time.Now()})
		tx.SetState(sealed)
		body = string(receipt.Body)
		return err
	}))
	return body
}

// TestOlderFormsReplay: questions that an older program recorded in another form, or that this one does not read, are named at the start, on the card and by Verify, and
// their answers are replayed at no cost: by the recorded form, and by each spelling that this program reads. It would notice a question that is sold twice, and silence about it.
func TestOlderFormsReplay(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	id := create(t, s, Settings{Mechanism: "gaussian", Questions: 100}, flights(t, 600, 3)).ID
	plain := ask(t, s, id, nextQuery)
	bodies := make([]string, len(olderForms))
	for i, form := range olderForms {
		bodies[i] = recordOlder(t, s, id, form.recorded)
	}
	must(t, s.Close())

	var log bytes.Buffer
	s = open(t, dir, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	before, _ := spentOf(t, s, id)
	for i, form := range olderForms {
		for _, spelled := range []string{form.now, form.recorded, strings.Replace(form.recorded, `{`, `{ "note": "again", `, 1)} {
			if spelled == "" {
				continue
			}
			if a := ask(t, s, id, spelled); !a.Replayed || string(a.Body) != bodies[i] {
				t.Errorf("%s: replayed %v\ngot  %s\nwant %s", spelled, a.Replayed, a.Body, bodies[i])
			}
		}
		if form.now == "" {
			continue
		}
		e, err := s.Explain(t.Context(), analyst, id, []byte(form.now))
		if err != nil || !e.Answered || e.Query != queries.Recorded([]byte(form.recorded)).ID() {
			t.Errorf("explain %s: answered %v as %s: %v", form.now, e.Answered, e.Query, err)
		}
	}
	if b, err := s.AskBatch(t.Context(), analyst, id, batchOf(olderForms[0].now, olderForms[3].recorded, nextQuery), false, "again"); err != nil ||
		string(b.Answers[0].Body) != bodies[0] || string(b.Answers[1].Body) != bodies[3] || !bytes.Equal(b.Answers[2].Body, plain.Body) {
		t.Errorf("a batch of them: %v %+v", err, b)
	}
	if after, _ := spentOf(t, s, id); after != before {
		t.Errorf("replays cost %d questions", after-before)
	}
	if _, err := s.Ask(t.Context(), analyst, id, []byte(`{"of":"soundex(origin) == 'T'","type":"fraction"}`), ""); KindOf(err) != Invalid {
		t.Errorf("a question that is neither read nor recorded: %v", err)
	}
	page, err := s.Answers(t.Context(), analyst, id, 0, 0)
	if err != nil || len(page.Answers) != 1+len(olderForms) || string(page.Answers[1].Body) != bodies[0] {
		t.Errorf("the history has %d answers: %v", len(page.Answers), err)
	}
	card, err := s.Card(t.Context(), analyst, id)
	must(t, err)
	if n := len(card.Warnings); n == 0 || card.Warnings[n-1].Code != QuestionsReread || !strings.Contains(card.Warnings[n-1].Detail, "writes 3 recorded questions otherwise and does not read 3;") {
		t.Errorf("the card: %+v", card.Warnings)
	}
	must(t, s.Close())
	for _, form := range olderForms {
		line := fmt.Sprintf("holdout=%s query=%s", id, queries.Recorded([]byte(form.recorded)).ID())
		if !strings.Contains(log.String(), line) || !strings.Contains(log.String(), form.says) {
			t.Errorf("the log does not say of %s that it %s:\n%s", form.recorded, form.says, log.String())
		}
	}
	if text := log.String(); strings.Contains(text, "soundex") || strings.Contains(text, "delay") {
		t.Errorf("the log has parts of queries:\n%s", text)
	}
	reports, err := Verify(t.Context(), dir, true)
	must(t, err)
	v := reports[0]
	if v.Reread != int64(len(olderForms)) || len(v.Questions) != len(olderForms) {
		t.Fatalf("Verify names %d questions, says %d", len(v.Questions), v.Reread)
	}
	for i, q := range v.Questions {
		if form := olderForms[i]; string(q.Recorded) != form.recorded || q.Says() != form.says || (form.now == "") != (q.Refused != "") || (form.now == "") != (q.Now == nil) {
			t.Errorf("Verify of %s: %+v", form.recorded, q)
		}
	}
}

// TestRecordedFormsAreKept: this program writes every question of the recorded data directories as it was recorded, models that are known by their digests alone among them.
func TestRecordedFormsAreKept(t *testing.T) {
	for _, r := range recordings {
		_, dir := r.open(t)
		reports, err := Verify(t.Context(), dir, false)
		must(t, err)
		for _, v := range reports {
			if v.Reread != 0 {
				t.Errorf("%s, %s: %+v", r.dir, v.Name, v.Questions)
			}
		}
	}
	large := `{"label":"on_time","model":{"sha256":"` + strings.Repeat("ab", 32) + `"},"type":"accuracy"}`
	if found := reread(&ledger.Entry{Kind: ledger.KindAnswer, Query: queries.Recorded([]byte(large)).ID(), Canonical: []byte(large)}); found != nil {
		t.Errorf("a large model: %+v", found)
	}
}

// TestUnknownHoldoutsAreForgotten: asking holdouts that are not there leaves nothing in memory.
func TestUnknownHoldoutsAreForgotten(t *testing.T) {
	s := open(t, t.TempDir())
	for i := range 10 {
		_, err := s.Ask(t.Context(), analyst, fmt.Sprintf("ho_%d", i), []byte(nextQuery), "")
		wantKind(t, "a holdout that is not there", err, NotFound)
	}
	if n := len(s.rereadings.byID); n != 0 {
		t.Errorf("%d are kept", n)
	}
}

// BenchmarkReread opens a data directory with 10,000 recorded questions: how long the start takes, and how long until all are read again.
func BenchmarkReread(b *testing.B) {
	const recorded = 10_000
	dir := b.TempDir()
	s := open(b, dir)
	id := create(b, s, Settings{Mechanism: "gaussian", Questions: 4 * recorded}, visits(b, 4000, 3)).ID
	for from := 0; from < recorded; from += 500 {
		var batch []string
		for i := range 500 {
			batch = append(batch, fmt.Sprintf(`{"type":"mean","of":"x > 0.5 ? x * %d : -x","range":[-1,%d],"where":"clinic == 'a' || clinic in ['b', 'c'] && score < %d.25"}`, from+i, from+i+1, from+i))
		}
		if _, err := s.AskBatch(b.Context(), analyst, id, batchOf(batch...), false, "", MaxQuestions(2*recorded)); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	start, all := time.Duration(0), time.Duration(0)
	for b.Loop() {
		begun := time.Now()
		s := open(b, dir)
		start += time.Since(begun)
		<-s.rereading(id).done
		all += time.Since(begun)
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(start.Milliseconds())/float64(b.N), "ms/start")
	b.ReportMetric(float64(all.Milliseconds())/float64(b.N), "ms/all")
}
