//go:build postgres

package main

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestReplicas starts three real servers at once on one PostgreSQL and one directory of tables, and kills one under load, again and again. What a client was told
// is recorded and is the same bytes at every other server; no budget comes back; an upload that was acknowledged works everywhere, and one that was broken off
// can be sent again; and one admin key was made. It would notice an answer that left before its debit was durable, a second answer to a question, and a start
// that removes what another server is making.
func TestReplicas(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	url := filepath.Join(dir, "ledger")
	key := filepath.Join(dir, "server.key")
	for path, text := range map[string]string{url: pgtest.NewCluster(t).NewDatabase(t).Owner, key: strings.Repeat("5a", 32)} {
		if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := func(i int) string { return filepath.Join(dir, "replica "+string(rune('a'+i))) }
	shared := []string{"--ledger", "@" + url, "--tables", filepath.Join(dir, "tables", "holdouts"), "--server-key", key, "--rate", "-1"}
	servers := make([]*process, 3)
	var starting sync.WaitGroup
	for i := range servers {
		starting.Go(func() { servers[i] = startServer(t, home(i), shared...) })
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	admin := ""
	for i := range servers {
		text, err := os.ReadFile(filepath.Join(home(i), "admin.key"))
		switch {
		case err == nil && admin == "":
			admin = strings.TrimSpace(string(text))
		case !errors.Is(err, fs.ErrNotExist):
			t.Fatalf("a second first key: %v", err)
		}
	}
	at := func(i int) *client.Client {
		c, err := client.New(servers[i].url, admin, client.WithRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, c := range map[string]struct{ args, want string }{
		"a second server in one data directory": {home(0), "have one each"},
		"another key":                           {filepath.Join(dir, "other"), "all replicas need the same key"},
	} {
		args := append([]string{"serve", "--addr", "127.0.0.1:0", "--data", c.args}, shared...)
		if name == "another key" {
			args = append(args, "--server-key-command", "printf %064d 1", "--server-key", "")
		}
		if _, errs, code := holdoutd(t, args...); code == 0 || !strings.Contains(errs, c.want) {
			t.Errorf("%s: code %d: %s", name, code, errs)
		}
	}

	w := &world{answers: map[string][]byte{}, left: crashBudget}
	card, err := at(0).CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: crashBudget})
	if err != nil {
		t.Fatal(err)
	}
	w.holdout = card.ID
	random := rand.New(rand.NewPCG(crashSeed, 1))
	kills := 6
	for i := range kills {
		dies := i % len(servers)
		lives := (dies + 1) % len(servers)
		doomed := w.load(t, at(dies), i%2 == 0, random)
		stop := make(chan struct{})
		var others sync.WaitGroup
		for j := range servers {
			if j == dies {
				continue
			}
			c, own := at(j), rand.New(rand.NewPCG(random.Uint64(), uint64(j)))
			others.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						if err := w.ask(t, c, own); err != nil {
							t.Errorf("a server that lives: %v", err)
							return
						}
					}
				}
			})
		}
		w.await(t, 10*(i+1))
		time.Sleep(longestRun/2 + time.Duration(random.Int64N(int64(longestRun))))
		servers[dies].kill()
		doomed.Wait()
		time.Sleep(longestRun / 2) // the others go on beside what the dead one has left
		close(stop)
		others.Wait()
		w.checkReplica(t, at(lives))
		servers[dies] = startServer(t, home(dies), shared...)
		w.checkReplica(t, at(dies))
		if t.Failed() {
			t.Fatalf("after kill %d", i+1)
		}
	}
	for i := range servers {
		w.checkAnswers(t, at(i))
	}
	t.Logf("%d kills, %d distinct answers received, %d replays compared, %d uploads acknowledged, %d broken off", kills, len(w.answers), w.replays, w.uploaded, w.broken)
	for i, p := range servers {
		if code := p.stop(t); code != 0 {
			t.Errorf("server %d: exit code %d\n%s", i, code, p.stderr)
		}
	}
}

// checkReplica looks at what a server says when nobody asks: no budget is back, and each acknowledged upload works; what was broken off can be sent again.
func (w *world) checkReplica(t *testing.T, c *client.Client) {
	t.Helper()
	budget, err := c.Budget(t.Context(), w.holdout)
	if err != nil {
		t.Fatal(err)
	}
	if budget.Questions.Left > w.left || budget.Questions.Of != crashBudget {
		t.Errorf("the budget rose to %+v; a client was told %d", budget, w.left)
	}
	w.left = budget.Questions.Left
	for _, u := range w.tables {
		if u.id == "" {
			continue
		}
		if _, err := c.Ask(t.Context(), u.id, map[string]any{"type": "mean", "of": "x", "range": []int{0, 1}}); err != nil {
			t.Errorf("%s was acknowledged and does not work: %v", u.id, err)
		}
	}
	w.sendAgain(t, c)
}
