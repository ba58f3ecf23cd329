package main

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
)

// TestLargeUpload uploads a table that is larger than what is divided at once, and does with its holdout what people do. It would notice a command that does not wait for a registration, a training part of which pieces are
// missing, and a list that has no word for an upload.
func TestLargeUpload(t *testing.T) {
	s := startStation(t, client.Settings{}, "--at-once", "1MiB")
	if err := os.WriteFile(filepath.Join(s.dir, "flights.parquet"), []byte(data.Flights), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		out  string
		errs string
	}{
		{"upload flights.parquet --name flights --questions 20 --holdout 0.5 --dry-run", 0, `(?s)50,000 held out, 50,000 to train on`, ``},
		{"upload flights.parquet --name flights --questions 20 --holdout 0.5", 0, `(?s)^holdout    flights \(ho_.*\)\nunits      50,000 held out, 50,000 to train on; a unit is row\nguarantee  20 questions`, `(looking at the table|reading units|dividing rows|checking the parts)`},
		{"registrations", 0, `(?s)^id .*re_\S+ +\(upload\) +done +flights\n`, ``},
		{"download training flights --out t.parquet", 0, `^$`, ``},
		{"ask fraction 'delay > 15' --holdout flights", 0, `^0\.[12]\d* \[`, ``},
		{"upload flights.parquet --name again --questions 20 --holdout 0.4", 1, `^$`, `questions were asked of its holdout ho_`},
		{"upload flights.parquet --unit nobody", 2, `^$`, `unit names the column "nobody"`},
		{"verify data", 0, `in order`, ``},
	} {
		args := shellWords(strings.Replace(c.args, "verify data", "verify "+defaultData, 1))
		stdout, stderr, code := s.call(t, nil, args...)
		if code != c.code || !regexp.MustCompile(c.out).MatchString(stdout) || !regexp.MustCompile(c.errs).MatchString(stderr) {
			t.Errorf("holdoutd %s: exit code %d, want %d\nstdout: %s\nstderr: %s", c.args, code, c.code, stdout, stderr)
		}
	}
	part, err := os.ReadFile(filepath.Join(s.dir, "t.parquet"))
	if err != nil || !strings.HasPrefix(string(part), parquetMagic) || !strings.HasSuffix(string(part), parquetMagic) {
		t.Errorf("the training part: %d bytes, %v", len(part), err)
	}
}

// TestLargeKilled kills the server with SIGKILL while it divides a large upload, at moments of which some are after the end, and starts it again on the same directory: there is the whole holdout, which verifies, or nothing of it, neither files nor a
// name for them, and the same upload is taken. It would notice a holdout that is listed before it is whole, and pieces that stay.
func TestLargeKilled(t *testing.T) {
	const kills = 10
	longest := func() time.Duration { // what it takes undisturbed, and a little more
		dir := t.TempDir()
		p := startServer(t, dir, "--at-once", "1MiB")
		begun := time.Now()
		if _, err := connect(t, p, dir).CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 10}); err != nil {
			t.Fatal(err)
		}
		p.kill()
		return time.Since(begun) * 6 / 5
	}()
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(20261123, 0))
	broken := 0
	for i := range kills {
		p := startServer(t, dir, "--at-once", "1MiB")
		c := connect(t, p, dir)
		done := make(chan error, 1)
		set := client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: int64(10 + i)}
		if i%2 == 1 { // every form goes the same way
			set.Label, set.Features = "delay", "public"
		}
		go func() {
			_, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), set)
			done <- err
		}()
		time.Sleep(time.Duration(int64(longest) * int64(i) / kills * (80 + random.Int64N(40)) / 100))
		p.kill()
		if err := <-done; err != nil {
			broken++
		}
		p = startServer(t, dir)
		c = connect(t, p, dir)
		cards, err := c.Holdouts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(filepath.Join(dir, "holdouts"))
		if err != nil || len(entries) != len(cards) || len(cards) > 1 {
			t.Errorf("kill %d: %d holdouts in %v (%v)", i+1, len(cards), entries, err)
		}
		for _, name := range []string{"tmp", "parts"} {
			if left, err := os.ReadDir(filepath.Join(dir, name)); err == nil && len(left) > 0 {
				t.Errorf("kill %d: left in %s: %v", i+1, name, left)
			}
		}
		p.kill()
		if _, err := holdout.Verify(t.Context(), dir, true); err != nil {
			t.Errorf("kill %d: %v", i+1, err)
		}
	}
	if t.Logf("%d of %d uploads were broken off", broken, kills); broken == 0 {
		t.Error("no upload was broken off")
	}
	p := startServer(t, dir, "--at-once", "1MiB")
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Ask(t.Context(), card.ID, map[string]any{"type": "fraction", "of": "delay > 15"}); err != nil {
		t.Error(err)
	}
}
