package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/internal/await"
)

const (
	crashes       = 36
	crashSeed     = 20261121 // the moments and the questions; which request is where at that moment the kernel decides
	crashClients  = 4
	crashBudget   = 1 << 20
	longestRun    = 250 * time.Millisecond
	longestUpload = 120 * time.Millisecond // about what an upload takes beside the questions
	longestStart  = 100 * time.Millisecond // about when it would listen
)

// TestCrash kills the real process with SIGKILL at random moments under load, and restarts it on the same directory. It
// would catch an answer that left before its debit was durable, a budget that came back, noise that was drawn twice, a
// chain that broke, and a half upload that stayed.
func TestCrash(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	random := rand.New(rand.NewPCG(crashSeed, 0))
	w := &world{answers: map[string][]byte{}, left: crashBudget}

	p := startServer(t, dir)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: crashBudget})
	if err != nil {
		t.Fatal(err)
	}
	w.holdout = card.ID
	for i := range crashes {
		longest := longestRun
		if i%2 == 0 {
			longest = longestUpload
		}
		clients := w.load(t, c, i%2 == 0, random)
		w.await(t, i+1)
		time.Sleep(time.Duration(random.Int64N(int64(longest))))
		p.kill()
		clients.Wait()
		w.checkBooks(t, dir)
		if i%4 == 0 { // and once more, while it recovers
			crashEarly(t, dir, time.Duration(random.Int64N(int64(longestStart))))
			w.checkBooks(t, dir)
		}
		p = startServer(t, dir)
		c = connect(t, p, dir)
		w.checkRestart(t, c, dir)
		if t.Failed() {
			t.Fatalf("after crash %d", i+1)
		}
	}
	w.checkAnswers(t, c)
	t.Logf("%d crashes, %d distinct answers received, %d replays compared, %d uploads acknowledged, %d uploads broken off",
		crashes, len(w.answers), w.replays, w.uploaded, w.broken)
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// crashEarly starts the server and kills it before anybody has asked it anything.
func crashEarly(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(binary, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	cmd.Process.Kill()
	cmd.Wait()
}

// A world is what the clients know: what they received must be true for ever.
type world struct {
	mu       sync.Mutex
	holdout  string
	answers  map[string][]byte // by query, as received first
	left     int64             // the smallest number of questions left that any reply said
	replays  int
	uploaded int
	broken   int
	tables   []upload
}

// await returns when so many distinct answers were received, over all kills: a kill of a server that was asked nothing says nothing.
func (w *world) await(t *testing.T, answers int) {
	t.Helper()
	await.Until(t, fmt.Sprint(answers, " answers are received"), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.answers) >= answers
	})
}

// An upload is a table that was sent, and the holdout that was made of it if its client was told.
type upload struct {
	table []byte
	id    string
}

// load starts clients that ask until the server is gone, and one that uploads.
func (w *world) load(t *testing.T, c *client.Client, uploads bool, random *rand.Rand) *sync.WaitGroup {
	var clients sync.WaitGroup
	if uploads {
		table := randomTable(t, random)
		clients.Go(func() { w.upload(t, c, table) })
	}
	for i := range crashClients {
		own := rand.New(rand.NewPCG(random.Uint64(), uint64(i)))
		clients.Go(func() {
			for w.ask(t, c, own) == nil {
			}
		})
	}
	return &clients
}

// ask asks one question or a batch, of which some were asked before.
func (w *world) ask(t *testing.T, c *client.Client, random *rand.Rand) error {
	ctx := context.Background()
	if random.IntN(4) > 0 {
		minutes := random.IntN(5000)
		reply, err := c.Ask(ctx, w.holdout, above(minutes))
		if err != nil {
			return w.expected(t, err)
		}
		w.received(t, minutes, reply.Answer.Raw, reply.Budget)
		return nil
	}
	first := random.IntN(5000)
	var queries []any
	for i := range 5 {
		queries = append(queries, above(first+i))
	}
	reply, err := c.AskBatch(ctx, w.holdout, queries, false)
	if err != nil {
		return w.expected(t, err)
	}
	for i, item := range reply.Answers {
		w.received(t, first+i, item.Answer.Raw, reply.Budget)
	}
	return nil
}

// expected lets broken connections pass: the server was killed. What it said before was a mistake.
func (w *world) expected(t *testing.T, err error) error {
	if p := (*client.Problem)(nil); errors.As(err, &p) {
		t.Errorf("the server refused: %v", err)
	}
	return err
}

func (w *world) received(t *testing.T, minutes int, answer []byte, budget client.Budget) {
	w.mu.Lock()
	defer w.mu.Unlock()
	query := strconv.Itoa(minutes)
	if known, ok := w.answers[query]; ok {
		w.replays++
		if !bytes.Equal(known, answer) {
			t.Errorf("the same question has two answers:\n%s\n%s", known, answer)
		}
	}
	w.answers[query] = bytes.Clone(answer)
	w.left = min(w.left, budget.Questions.Left)
}

func (w *world) upload(t *testing.T, c *client.Client, table []byte) {
	card, err := c.CreateHoldout(context.Background(), bytes.NewReader(table), client.Settings{Name: "another", Holdout: 0.5, Questions: 10})
	w.mu.Lock()
	defer w.mu.Unlock()
	u := upload{table: table}
	if err == nil {
		u.id = card.ID
		w.uploaded++
	} else {
		w.broken++
		w.expected(t, err)
	}
	w.tables = append(w.tables, u)
}

// checkBooks verifies the directory as the crash left it.
func (w *world) checkBooks(t *testing.T, dir string) {
	t.Helper()
	reports, err := sqlite.Verify(t.Context(), filepath.Join(dir, ledgerFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reports {
		if r.Holdout == w.holdout && r.Limits["questions"]-r.Spent["questions"] > w.left {
			t.Errorf("the books have %d questions left; a client was told %d", r.Limits["questions"]-r.Spent["questions"], w.left)
		}
	}
}

// checkRestart looks at what the restarted server says: no budget is back, each listed holdout works, no other file is left.
func (w *world) checkRestart(t *testing.T, c *client.Client, dir string) {
	t.Helper()
	ctx := t.Context()
	budget, err := c.Budget(ctx, w.holdout)
	if err != nil {
		t.Fatal(err)
	}
	if budget.Questions.Left > w.left || budget.Questions.Of != crashBudget {
		t.Errorf("the budget rose to %+v; a client was told %d", budget, w.left)
	}
	w.left = budget.Questions.Left
	cards, err := c.Holdouts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, card := range cards {
		listed[card.ID] = true
		if card.ID != w.holdout {
			if _, err := c.Ask(ctx, card.ID, map[string]any{"type": "mean", "of": "x", "range": []int{0, 1}}); err != nil {
				t.Errorf("%s is listed and does not work: %v", card.ID, err)
			}
		}
	}
	for _, u := range w.tables {
		if u.id != "" && !listed[u.id] {
			t.Errorf("%s was acknowledged and is gone", u.id)
		}
	}
	for _, part := range []string{"holdouts", "tmp"} {
		entries, err := os.ReadDir(filepath.Join(dir, part))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if part == "tmp" || !listed[e.Name()] {
				t.Errorf("%s/%s is left of an upload that was broken off", part, e.Name())
			}
		}
	}
	w.sendAgain(t, c)
}

// sendAgain sends tables that were broken off once more. Each is taken now, or was taken then.
func (w *world) sendAgain(t *testing.T, c *client.Client) {
	t.Helper()
	for i := range w.tables {
		u := &w.tables[i]
		if u.id != "" {
			continue
		}
		card, err := c.CreateHoldout(t.Context(), bytes.NewReader(u.table), client.Settings{Name: "again", Holdout: 0.5, Questions: 10})
		if id, exists := client.ExistingHoldout(err); exists {
			card.ID = id
		} else if err != nil {
			t.Errorf("a table whose upload was broken off: %v", err)
		}
		u.id = card.ID
	}
}

// checkAnswers compares all that was received with the export, byte for byte, and with what the server says now.
func (w *world) checkAnswers(t *testing.T, c *client.Client) {
	t.Helper()
	var export bytes.Buffer
	if err := c.Ledger(t.Context(), w.holdout, &export); err != nil {
		t.Fatal(err)
	}
	recorded := bodies(t, export.Bytes())
	report, err := ledger.VerifyExport(&export)
	if err != nil {
		t.Fatal(err)
	}
	if left := report.Limits["questions"] - report.Spent["questions"]; left != w.left {
		t.Errorf("the export has %d questions left, the server %d", left, w.left)
	}
	for query, answer := range w.answers {
		if !recorded[string(answer)] {
			t.Errorf("an answer that was received is not in the ledger: %s", answer)
		}
		minutes, _ := strconv.Atoi(query)
		again, err := c.Ask(t.Context(), w.holdout, above(minutes))
		if err != nil || !again.Replayed || !bytes.Equal(again.Answer.Raw, answer) {
			t.Errorf("asked again: %v\n%s\n%s", err, again.Answer.Raw, answer)
		}
	}
}

// bodies are the answers in an export.
func bodies(t *testing.T, export []byte) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for line := range strings.Lines(string(export)) {
		var entry map[string]json.RawMessage
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		var body string
		if raw, ok := entry["body"]; ok && json.Unmarshal(raw, &body) == nil {
			found[body] = true
		} else if ok {
			found[string(raw)] = true
		}
	}
	return found
}

// randomTable is a Parquet file of numbers in [0,1] that was never uploaded before.
func randomTable(t *testing.T, random *rand.Rand) []byte {
	t.Helper()
	const rows = 50_000
	x, y := make([]float64, rows), make([]float64, rows)
	for i := range rows {
		x[i], y[i] = random.Float64(), random.Float64()
	}
	table, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: x},
		dataset.Column{Field: dataset.Field{Name: "y", Kind: dataset.Number, Source: "DOUBLE"}, Numbers: y},
	)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
