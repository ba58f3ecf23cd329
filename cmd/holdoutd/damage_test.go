package main

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// refusal is the problem that a call got, or fails the test.
func refusal(t *testing.T, what string, err error) *client.Problem {
	t.Helper()
	var p *client.Problem
	if !errors.As(err, &p) {
		t.Fatalf("%s: %v, want a refusal", what, err)
	}
	return p
}

// flightsHoldout makes a holdout of the flights.
func flightsHoldout(t *testing.T, c *client.Client) client.Card {
	t.Helper()
	card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
	if err != nil {
		t.Fatal(err)
	}
	return card
}

// TestColumnsCutShortLive truncates the columns of one holdout while the real server has them mapped. It would catch a
// fault in mapped memory that ends the process, and all other holdouts with it.
func TestColumnsCutShortLive(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card := flightsHoldout(t, c)
	other, err := c.CreateHoldout(ctx, bytes.NewReader(randomTable(t, rand.New(rand.NewPCG(1, 1)))), client.Settings{Name: "other", Holdout: 0.5, Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	known, err := c.Ask(ctx, card.ID, above(15))
	if err != nil {
		t.Fatal(err)
	}
	columns := filepath.Join(dir, "holdouts", card.ID, "holdout", "columns")
	if err := os.Truncate(columns, 64); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the fault, and then the files as they are
		_, err := c.Ask(ctx, card.ID, above(20))
		if r := refusal(t, "a question about rows that are gone", err); r.Status != http.StatusServiceUnavailable || r.Code != "holdout-damaged" {
			t.Errorf("the refusal is %v", r)
		}
	}
	again, err := c.Ask(ctx, card.ID, above(15))
	if err != nil || !again.Replayed || !bytes.Equal(again.Answer.Raw, known.Answer.Raw) {
		t.Errorf("a recorded answer: %v %s", err, again.Answer.Raw)
	}
	if _, err := c.Ask(ctx, other.ID, map[string]any{"type": "mean", "of": "x", "range": []int{0, 1}}); err != nil {
		t.Errorf("the other holdout: %v", err)
	}
	cards, err := c.Holdouts(ctx)
	if err != nil || len(cards) != 2 || cards[0].State != "damaged" || cards[1].State != "" {
		t.Errorf("listed: %v %+v", err, cards)
	}
	if status := get(t, p.url+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz is %d: the server can answer", status)
	}
	if out, errs, code := holdoutd(t, "verify", dir); code != 1 || !strings.Contains(errs, card.ID) || !strings.Contains(errs, columns) {
		t.Errorf("verify: %d %s%s", code, out, errs)
	}
	if out, errs, code := holdoutd(t, "verify", "--no-tables", dir); code != 0 || !strings.Contains(out, "tables not checked") {
		t.Errorf("verify --no-tables: %d %s%s", code, out, errs)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// TestLedgerRemovedLive removes the ledger's files under the real server. It would catch answers that go on without a
// debit that the next start can read, a green /readyz meanwhile, and a start that gives the budget back.
func TestLedgerRemovedLive(t *testing.T) {
	for _, removed := range []string{"ledger.db", "ledger.db-wal"} {
		t.Run(removed, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			p := startServer(t, dir)
			c := connect(t, p, dir)
			card := flightsHoldout(t, c)
			received := map[int][]byte{}
			question := func(i int) error {
				reply, err := c.Ask(ctx, card.ID, above(i))
				if err == nil {
					received[i] = reply.Answer.Raw
				}
				return err
			}
			for i := range 5 {
				if err := question(i); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Remove(filepath.Join(dir, removed)); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if r := refusal(t, "a question", question(100+i)); r.Status != http.StatusServiceUnavailable {
					t.Errorf("the refusal is %v", r)
				}
			}
			if err := question(1); err != nil {
				t.Errorf("a recorded answer: %v\n%s", err, p.stderr)
			}
			if status := get(t, p.url+"/readyz"); status != http.StatusServiceUnavailable {
				t.Errorf("/readyz is %d while nothing can be recorded", status)
			}
			p.kill()

			if removed == "ledger.db" {
				_, errs, code := holdoutd(t, "serve", "--any-filesystem", "--addr", "127.0.0.1:0", "--data", dir)
				if code != 1 || !strings.Contains(errs, filepath.Join(dir, "ledger.db")) || !strings.Contains(errs, "Restore") || !strings.Contains(errs, "--accept-lost-ledger") {
					t.Fatalf("a start without the ledger: %d %s", code, errs)
				}
				os.Remove(filepath.Join(dir, "ledger.db-wal"))
				os.Remove(filepath.Join(dir, "ledger.db-shm"))
				if err := os.Rename(filepath.Join(dir, "ledger.db.rescued"), filepath.Join(dir, "ledger.db")); err != nil {
					t.Fatal(err)
				}
			}
			p = startServer(t, dir)
			c = connect(t, p, dir)
			for i, body := range received {
				reply, err := c.Ask(ctx, card.ID, above(i))
				if err != nil || !reply.Replayed || !bytes.Equal(reply.Answer.Raw, body) {
					t.Errorf("question %d after the restart: %v\n%s\n%s", i, err, reply.Answer.Raw, body)
				}
			}
			budget, err := c.Budget(ctx, card.ID)
			if err != nil || budget.Questions.Left != 95 {
				t.Errorf("the budget: %+v %v", budget, err)
			}
		})
	}
}

// TestLogLostWhileStopped loses ledger.db-wal after a kill: holdouts, keys and what the mark knows are not in it alone.
func TestLogLostWhileStopped(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card := flightsHoldout(t, c)
	p.kill()
	os.Remove(filepath.Join(dir, "ledger.db-wal"))
	os.Remove(filepath.Join(dir, "ledger.db-shm"))
	p = startServer(t, dir)
	c = connect(t, p, dir)
	if _, err := c.Budget(t.Context(), card.ID); err != nil {
		t.Errorf("the holdout: %v", err)
	}
	// Nothing of it was shown, so that other settings would replace it; the same ones are known.
	_, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
	if id, exists := client.ExistingHoldout(err); !exists || id != card.ID {
		t.Errorf("the same table: %v", err)
	}
	reports, err := sqlite.Verify(t.Context(), filepath.Join(dir, ledgerFile))
	if err != nil || len(reports) != 1 {
		t.Errorf("verify: %+v %v", reports, err)
	}
}
