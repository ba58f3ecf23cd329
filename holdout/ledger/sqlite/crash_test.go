//go:build unix

package sqlite

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// TestKill kills a writing process with SIGKILL, many times on one ledger, at any moment from its start on. After
// each time every answer that the process printed is in the ledger with the same bytes, the balance has not fallen,
// the mechanism's state belongs to it, and chain and books verify.
func TestKill(t *testing.T) {
	const kills = 36
	path := diskPath(t)
	random := rand.New(rand.NewPCG(1, 2))
	told := map[string]string{}
	var balance int64
	early := 0
	for round := range kills {
		cmd, out := child(t, "write", path, strconv.Itoa(round))
		printed := lines(out)
		// Every third is killed while it opens the ledger or soon after, the others under load: a moment after some answers.
		var kill <-chan time.Time
		answers := -1
		if round%3 == 0 {
			kill = time.After(time.Duration(random.Int64N(int64(60 * time.Millisecond))))
		} else {
			answers = random.IntN(20)
		}
		soon := func() <-chan time.Time { return time.After(time.Duration(random.Int64N(int64(5 * time.Millisecond)))) }
		opened := false
		for open := true; open; {
			select {
			case line, ok := <-printed:
				query, body, isReceipt := strings.Cut(line, "\t")
				switch {
				case !ok:
					open = false
				case line == "open":
					opened = true
					if answers == 0 {
						kill = soon()
					}
				case isReceipt:
					told[query] = body
					if answers--; answers == 0 {
						kill = soon()
					}
				default:
					t.Errorf("round %d: the child says %q", round, line)
				}
			case <-kill:
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				kill = nil
				// What it printed is still in the pipe.
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child ended by itself")
		}
		if !opened {
			early++
		}
		if len(told) > 0 {
			balance = checkTold(t, path, round, told, balance)
		}
	}
	if len(told) < kills || early == kills {
		t.Errorf("only %d answers in %d rounds: the test shows nothing", len(told), kills)
	}
	t.Logf("%d kills, %d of them before the ledger was open; %d answers were printed, %d are recorded", kills, early, len(told), balance)
}

// checkTold compares a ledger that nobody serves with what was printed. In every other round it opens it as a server
// would; in the others the next child is the first to do so.
func checkTold(t *testing.T, path string, round int, told map[string]string, before int64) (balance int64) {
	t.Helper()
	reports, err := Verify(t.Context(), path)
	if err != nil || len(reports) != 1 {
		t.Fatalf("round %d: %v %v", round, reports, err)
	}
	balance = reports[0].Spent["questions"]
	if balance < before || balance < int64(len(told)) || balance != reports[0].Answers {
		t.Fatalf("round %d: balance %d after %d, %d answers recorded, %d printed", round, balance, before, reports[0].Answers, len(told))
	}
	if round%2 == 0 {
		return balance
	}
	l, err := Open(t.Context(), path, ledger.Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for query, body := range told {
		if got, ok, err := l.Answer(t.Context(), "ho_1", query); err != nil || !ok || string(got) != body {
			t.Fatalf("round %d: printed %s, recorded %s %v %v", round, body, got, ok, err)
		}
	}
	if h, err := l.Holdout(t.Context(), "ho_1"); err != nil || balance > 0 && string(h.State) != strconv.FormatInt(balance, 10) {
		t.Fatalf("round %d: state %q after %d answers: %v", round, h.State, balance, err)
	}
	return balance
}

// TestOneProcessServes races two processes for one ledger.
func TestOneProcessServes(t *testing.T) {
	path := newPath(t)
	first, out := child(t, "serve", path, "")
	printed := lines(out)
	if line := <-printed; line != "open" {
		t.Fatalf("the first process says %q", line)
	}
	for _, o := range []ledger.Options{{Key: testKey}, {ReplayOnly: true}} {
		_, err := Open(t.Context(), path, o)
		if !errors.Is(err, ledger.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(first.Process.Pid)) {
			t.Errorf("the second process: %v, want ledger.ErrInUse with the first one's id", err)
		}
	}
	if _, err := Verify(t.Context(), path); err != nil {
		t.Errorf("verify a ledger that is served: %v", err)
	}
	first.Process.Kill()
	first.Wait()
	for range printed {
	}
	l := openTest(t, path) // the lock ends with the process
	if _, err := Open(t.Context(), path, ledger.Options{Key: testKey}); !errors.Is(err, ledger.ErrInUse) {
		t.Errorf("twice in one process: %v", err)
	}
	_, out = child(t, "serve", path, "")
	printed = lines(out)
	if line := <-printed; !strings.Contains(line, "in use by another process") || !strings.Contains(line, strconv.Itoa(os.Getpid())) {
		t.Errorf("the third process says %q", line)
	}
	for range printed {
	}
	if err := l.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFullDisk runs a ledger whose files cannot grow, by a limit of the kernel.
func TestFullDisk(t *testing.T) {
	path := diskPath(t)
	cmd, out := child(t, "starve", path, "")
	var last string
	for line := range lines(out) {
		last = line
	}
	if err := cmd.Wait(); err != nil || !strings.HasPrefix(last, "starved after ") {
		t.Fatalf("child: %q %v", last, err)
	}
	if _, err := Verify(t.Context(), path); err != nil {
		t.Error(err)
	}
}
