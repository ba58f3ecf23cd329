package main

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
)

// ledgerLimit is how far the ledger of TestFullDisk can grow, in blocks of 512 bytes: far enough to start.
const ledgerLimit = 1200

// TestFullDisk serves where files cannot grow any more, as on a full disk: questions get 503 within the deadline and no
// answer leaves without its debit, /readyz turns red, what was answered still replays, and with room again everything goes on.
func TestFullDisk(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	p := startServer(t, dir)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(ctx, strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	p.kill()

	limited := exec.Command("sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$0" serve --any-filesystem --addr 127.0.0.1:0 --data "$1" --log json`, ledgerLimit), binary, dir)
	p = startProcess(t, limited)
	c = connect(t, p, dir)
	received := map[string][]byte{}
	var refusal *client.Problem
	for i := 0; refusal == nil; i++ {
		if i == 100_000 {
			t.Fatal("the ledger never got full: the test's limit is not in force")
		}
		question := lateBy(i)
		reply, err := c.Ask(ctx, card.ID, question)
		switch {
		case err == nil:
			received[question["of"].(string)] = reply.Answer.Raw
		case !errors.As(err, &refusal):
			t.Fatal(err)
		}
	}
	if len(received) == 0 {
		t.Fatal("nothing was answered before: the limit leaves no room to start")
	}
	if refusal.Status != http.StatusServiceUnavailable || refusal.Code != "unavailable" {
		t.Fatalf("the refusal is %v", refusal)
	}
	switch status := get(t, p.url+"/readyz"); status {
	case http.StatusServiceUnavailable:
	case http.StatusOK: // by now the log was copied into the database, and begun anew: there is room again
		if _, err := c.Ask(ctx, card.ID, lateBy(150_000)); err != nil {
			t.Errorf("/readyz is 200 while nothing can be committed: %v", err)
		}
	default:
		t.Errorf("/readyz is %d", status)
	}
	if status := get(t, p.url+"/healthz"); status != http.StatusOK {
		t.Errorf("/healthz is %d; the process lives", status)
	}
	p.kill()

	// A start on the full disk opens for what is recorded.
	p = startProcess(t, exec.Command("sh", "-c", fmt.Sprintf(`ulimit -f %d; exec "$0" serve --any-filesystem --addr 127.0.0.1:0 --data "$1" --log json`, 64), binary, dir))
	c = connect(t, p, dir)
	if reply, err := c.Ask(ctx, card.ID, lateBy(0)); err != nil || !reply.Replayed || string(reply.Answer.Raw) != string(received[lateBy(0)["of"].(string)]) {
		t.Errorf("a recorded answer after a start on a full disk: %v %s", err, reply.Answer.Raw)
	}
	if _, err := c.Ask(ctx, card.ID, lateBy(200_000)); !errors.As(err, &refusal) || refusal.Code != "unavailable" {
		t.Errorf("a new question after a start on a full disk: %v", err)
	}
	if status := get(t, p.url+"/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("/readyz is %d after a start on a full disk", status)
	}
	p.kill()

	reports, err := sqlite.Verify(ctx, filepath.Join(dir, "ledger.db"))
	if err != nil || len(reports) != 1 || reports[0].Answers < int64(len(received)) {
		t.Fatalf("%d answers received; the ledger: %+v, %v", len(received), reports, err)
	}
	p = startServer(t, dir)
	c = connect(t, p, dir)
	for i := range len(received) + 1 {
		question := lateBy(i)
		reply, err := c.Ask(ctx, card.ID, question)
		if err != nil {
			t.Fatal(err)
		}
		if body, ok := received[question["of"].(string)]; ok && (!reply.Replayed || string(reply.Answer.Raw) != string(body)) {
			t.Fatalf("question %d was answered %s, and now %s", i, body, reply.Answer.Raw)
		}
	}
	if status := get(t, p.url+"/readyz"); status != http.StatusOK {
		t.Errorf("/readyz is %d with room again", status)
	}
}

func lateBy(i int) map[string]any {
	return map[string]any{"type": "fraction", "of": fmt.Sprintf("delay > %d.5", i)}
}

func get(t *testing.T, url string) int {
	t.Helper()
	c := http.Client{Timeout: time.Minute}
	reply, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	return reply.StatusCode
}
