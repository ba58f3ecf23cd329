//go:build postgres

package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestReplicasOfASource starts two real servers on one PostgreSQL, one directory of tables and one of parts. A holdout that one registers is answered by both, with the same bytes and of one budget; a registration is
// cancelled at the server that does not work on it; and one whose server is killed is dropped when that starts again, while the other answers and registers the table itself. It would notice an answer that is another at
// another server, budget that is given twice, parts of a living holdout that are dropped with those of a dead registration, and a cancellation that makes a holdout.
func TestReplicasOfASource(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	url, key, lake, parts := filepath.Join(dir, "ledger"), filepath.Join(dir, "server.key"), filepath.Join(dir, "lake"), filepath.Join(dir, "parts")
	random := rand.New(rand.NewPCG(20261123, 2))
	if err := os.Mkdir(lake, 0o700); err != nil {
		t.Fatal(err)
	}
	small, large := keyedTable(t, random, killRows), keyedTable(t, random, 20*killRows)
	for path, text := range map[string][]byte{url: []byte(pgtest.NewCluster(t).NewDatabase(t).Owner), key: []byte(strings.Repeat("5a", 32)), filepath.Join(lake, "small.parquet"): small, filepath.Join(lake, "large.parquet"): large} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := func(i int) string { return filepath.Join(dir, "replica "+string(rune('a'+i))) }
	flags := []string{"--ledger", "@" + url, "--tables", filepath.Join(dir, "tables", "holdouts"), "--server-key", key, "--rate", "-1", "--source", "lake=file://" + lake + "?parts=" + parts}
	servers := []*process{startServer(t, home(0), flags...), startServer(t, home(1), flags...)}
	admin, err := os.ReadFile(filepath.Join(home(0), "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int) *client.Client {
		c, err := client.New(servers[i].url, strings.TrimSpace(string(admin)), client.WithRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	set := client.Settings{Unit: "patient", Mechanism: "gaussian", Questions: 4}
	question := func(i int) any {
		return map[string]any{"type": "fraction", "of": "x > 0." + string(rune('0'+i))}
	}
	answer := func(server int, id string, i int) []byte {
		t.Helper()
		reply, err := at(server).Ask(ctx, id, question(i))
		if err != nil {
			t.Fatal(err)
		}
		return reply.Answer.Raw
	}

	r, err := at(0).Register(ctx, "lake", "small.parquet", set)
	if err != nil {
		t.Fatal(err)
	}
	id := ended(t, at(0), r)
	if again, err := at(1).Registration(ctx, r.ID); err != nil || again.Holdout != id {
		t.Errorf("another server says %+v, %v", again, err)
	}
	answers := make([][]byte, 4)
	for i := range answers {
		answers[i] = answer(i%2, id, i)
		if again := answer((i+1)%2, id, i); !bytes.Equal(again, answers[i]) {
			t.Errorf("one server says %s, another %s", answers[i], again)
		}
	}
	for i := range servers {
		if _, err := at(i).Ask(ctx, id, question(7)); err == nil || !strings.Contains(err.Error(), "question") {
			t.Errorf("server %d gives a fifth answer of four: %v", i, err)
		}
	}

	registering := func() client.Registration {
		t.Helper()
		r, err := at(0).Register(ctx, "lake", "large.parquet", set)
		id := r.ID // an error leaves none in r
		for deadline := time.Now().Add(patience); err == nil && r.Stage != "dividing"; time.Sleep(5 * time.Millisecond) {
			if r, err = at(1).Registration(ctx, id); err == nil && (r.Ended != nil || time.Now().After(deadline)) {
				t.Fatalf("%+v: the table is too small for this test", r)
			} else if err != nil && strings.Contains(err.Error(), "no such registration") {
				err = nil // its first word is on its way
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	left := func(want int) {
		t.Helper()
		var found []string
		for deadline := time.Now().Add(dropTime); ; time.Sleep(5 * time.Millisecond) {
			found = append(steps(t, parts, "ho*"), steps(t, parts, "scratch_*")...)
			found = append(found, steps(t, dir, "tables/holdouts/.making/ho_*")...)
			found = append(found, steps(t, dir, "replica */parts/*")...)
			if len(found) == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("left are %v, want %d\n%s", found, want, servers[0].stderr)
			}
		}
	}
	r = registering()
	if r, err = at(1).CancelRegistration(ctx, r.ID); err != nil || r.Stage != "cancelled" && r.Stage != "dividing" {
		t.Errorf("cancelled at another server: %+v, %v", r, err)
	}
	for deadline := time.Now().Add(patience); r.Ended == nil && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if r, err = at(0).Registration(ctx, r.ID); err != nil {
			t.Fatal(err)
		}
	}
	if r.Stage != "cancelled" {
		t.Errorf("%+v", r)
	}
	left(2)

	r = registering()
	for deadline := time.Now().Add(patience); len(steps(t, parts, "ho*")) < 4 && time.Now().Before(deadline); { // both parts are begun some moments after it divides
		time.Sleep(time.Millisecond)
	}
	servers[0].kill()
	if again := answer(1, id, 2); !bytes.Equal(again, answers[2]) {
		t.Errorf("beside a dead server the other says %s", again)
	}
	if n := len(steps(t, parts, "ho*")); n != 4 {
		t.Errorf("%d directories of parts are there after the kill, want 4: the test has not killed a division", n)
	}
	r2, err := at(1).Register(ctx, "lake", "large.parquet", set)
	if err != nil {
		t.Fatal(err)
	}
	second := ended(t, at(1), r2)
	for _, note := range steps(t, home(0), "parts/*") { // some minutes later
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(note, old, old); err != nil {
			t.Fatal(err)
		}
	}
	servers[0] = startServer(t, home(0), flags...)
	left(4)
	for i := range servers {
		if _, err := at(i).Ask(ctx, second, question(0)); err != nil {
			t.Errorf("server %d: %v", i, err)
		}
	}
	for i, p := range servers {
		if code := p.stop(t); code != 0 {
			t.Errorf("server %d: exit code %d\n%s", i, code, p.stderr)
		}
	}
}
