package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// TestRetireKilled kills the real process with SIGKILL while a holdout is retired: half of the times when the retirement is on its way, half when the first bytes of its rows arrive. After the restart a holdout of which
// rows were received is retired, by its chain, and answers nothing new; one that is not retired gives no rows and goes on with the budget that it had. It notices rows that leave before the entry is durable.
func TestRetireKilled(t *testing.T) {
	const kills = 12
	ctx, dir := t.Context(), t.TempDir()
	random := rand.New(rand.NewPCG(crashSeed, 1))
	less := func(i int) map[string]any {
		return map[string]any{"type": "fraction", "of": fmt.Sprintf("x < 0.%04d", i)}
	}
	p := startServer(t, dir)
	c := connect(t, p, dir)
	retired := 0
	for i := range kills {
		card, err := c.CreateHoldout(ctx, bytes.NewReader(randomTable(t, random)), client.Settings{Name: "strangers", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.Ask(ctx, card.ID, less(1))
		if err != nil {
			t.Fatal(err)
		}
		received := make(chan bool, 1) // whether a byte of the rows was received
		go func() {
			for {
				rows, err := c.Retired(context.Background(), card.ID)
				var refused *client.Problem
				switch {
				case err == nil:
					n, _ := io.ReadFull(rows, make([]byte, 4))
					rows.Close()
					received <- n > 0
					return
				case !errors.As(err, &refused): // the server is gone
					received <- false
					return
				}
			}
		}()
		answered := make(chan error, 1)
		go func() {
			_, err := c.Retire(context.Background(), card.ID)
			answered <- err
		}()
		var out bool
		if i%2 == 0 {
			out = <-received
			p.kill()
		} else {
			for range i % 4 / 3 * i { // so many questions race with it, or none
				c.Ask(ctx, card.ID, less(10+i))
			}
			p.kill()
			out = <-received
		}
		told := <-answered == nil
		p = startServer(t, dir)
		c = connect(t, p, dir)
		after, err := c.Holdout(ctx, card.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, asked := c.Ask(ctx, card.ID, less(5000))
		rows, given := c.Retired(ctx, card.ID)
		if given == nil {
			rows.Close()
		}
		switch {
		case (out || told) && !after.Retired:
			t.Errorf("kill %d: rows were received (%v) or the retirement was told (%v), and it is forgotten", i, out, told)
		case after.Retired && (!client.IsBudgetExhausted(asked) || given != nil):
			t.Errorf("kill %d: a retired holdout: a question %v, its rows %v", i, asked, given)
		case !after.Retired && (asked != nil || given == nil):
			t.Errorf("kill %d: a holdout that is not retired: a question %v, its rows %v", i, asked, given)
		}
		if after.Retired {
			retired++
		}
		if again, err := c.Ask(ctx, card.ID, less(1)); err != nil || string(again.Answer.Raw) != string(first.Answer.Raw) {
			t.Errorf("kill %d: the first answer replays as %s, %v", i, again.Answer.Raw, err)
		}
	}
	if retired < kills/2 {
		t.Errorf("%d of %d were retired: half of them had given rows", retired, kills)
	}
	if code := p.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	reports, err := sqlite.Verify(ctx, filepath.Join(dir, ledgerFile))
	if err != nil || len(reports) != kills {
		t.Errorf("%d chains of %d: %v", len(reports), kills, err)
	}
	t.Logf("%d kills, %d retired", kills, retired)
}
