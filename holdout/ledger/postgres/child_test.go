//go:build postgres

package postgres_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// The test binary starts itself again as another server of the ledger, which can be killed. The variables say which one.
const (
	childURL  = "HOLDOUTD_POSTGRES_TEST_URL"
	childRole = "HOLDOUTD_POSTGRES_TEST_ROLE"
	childName = "HOLDOUTD_POSTGRES_TEST_NAME"
)

var testKey = [32]byte{1, 2, 3}

// runChild does the child's work and ends the process; in the parent it returns at once.
func runChild() {
	role := os.Getenv(childRole)
	if role == "" {
		return
	}
	if err := map[string]func(string) error{"race": childRaces, "ask": childAsks}[role](os.Getenv(childURL)); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is a server of its own process.
type child struct {
	cmd   *exec.Cmd
	lines chan string // what it prints; closed at its end
}

func startChild(t *testing.T, role, url, name string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: exec.Command(self), lines: make(chan string, 1<<16)}
	c.cmd.Env = append(os.Environ(), childRole+"="+role, childURL+"="+url, childName+"="+name)
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return // what is not whole was not said
			}
			c.lines <- strings.TrimSuffix(line, "\n")
		}
	}()
	t.Cleanup(c.kill)
	return c
}

func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
}

// What children ask: question i costs 1 + i mod 7.
const (
	racers        = 8   // goroutines of a child
	raceQuestions = 700 // which all of them ask, 2,800 in all
	raceLimit     = 1500
)

func costOf(i int) int64 { return int64(1 + i%7) }

func question(i int) ledger.Debit { return named(strconv.Itoa(i), costOf(i)) }

func named(name string, cost int64) ledger.Debit {
	canonical := []byte(`{"of":"` + name + `"}`)
	return ledger.Debit{Query: ledger.HeadText(sha256.Sum256(canonical)), Canonical: canonical, Principal: "key_a", Cost: ledger.Meters{"questions": cost},
		Core: []byte(`{"query":"` + name + `","value":0.25}`), Time: time.Unix(1800000000, 0)}
}

func testHoldout(id string, questions int64) ledger.Holdout {
	return ledger.Holdout{ID: id, Created: time.Unix(1790000000, 0).UTC(), Digest: sha256.Sum256([]byte(id)), Public: []byte(`{}`), Secret: []byte("secret"),
		State: []byte("0"), Limits: ledger.Meters{"questions": questions}}
}

// ask asks a question as the service does: a replay where there is an answer, else a debit, and a state that counts the answers.
func ask(ctx context.Context, l ledger.Ledger, id string, d ledger.Debit) (body string, replay bool, err error) {
	err = l.Update(ctx, id, func(tx *ledger.Tx) error {
		if known, ok := tx.Answer(d.Query); ok {
			body, replay = string(known), true
			return nil
		}
		replay = false
		r, err := tx.Append(d)
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(string(tx.State()), 10, 64)
		if err != nil {
			return err
		}
		tx.SetState([]byte(strconv.FormatInt(n+1, 10)))
		body = string(r.Body)
		return nil
	})
	return body, replay, err
}

// childRaces asks all questions, each goroutine in an order of its own, and prints what it is told.
func childRaces(url string) error {
	l, err := postgres.Open(context.Background(), url, ledger.Options{Key: testKey})
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("open")
	var printing sync.Mutex
	var all sync.WaitGroup
	for g := range racers {
		all.Go(func() {
			for n := range raceQuestions {
				i := (n*(2*g+1) + 37*g) % raceQuestions // 2g+1 and 700 share factors for some g: those ask some more often
				body, _, err := ask(context.Background(), l, "ho_1", question(i))
				printing.Lock()
				switch {
				case errors.Is(err, ledger.ErrBudget):
					fmt.Println("refused")
				case err != nil:
					fmt.Println("error:", err)
				default:
					fmt.Printf("%d\t%s\n", i, body)
				}
				printing.Unlock()
			}
		})
	}
	all.Wait()
	return nil
}

// childAsks asks new questions until it is killed, and prints each answer as soon as it has it: what a client would have seen. A question whose
// outcome it does not know it asks again.
func childAsks(url string) error {
	l, err := postgres.Open(context.Background(), url, ledger.Options{Key: testKey})
	if err != nil {
		return err
	}
	fmt.Println("open")
	var printing sync.Mutex
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprint(os.Getenv(childName), "/", g, "/", i)
				for {
					body, _, err := ask(context.Background(), l, "ho_1", named(name, 1))
					if errors.Is(err, ledger.ErrUnavailable) {
						time.Sleep(5 * time.Millisecond)
						continue
					}
					printing.Lock()
					if err != nil {
						fmt.Println("error:", err)
					} else {
						fmt.Printf("%s\t%s\n", name, body)
					}
					printing.Unlock()
					break
				}
			}
		})
	}
	all.Wait()
	return nil
}

// newLedger makes a database with the holdout ho_1, for servers that are admitted as the service role.
func newLedger(t *testing.T, db *pgtest.Database, questions int64) {
	t.Helper()
	if err := postgres.Migrate(t.Context(), db.Owner, "service"); err != nil {
		t.Fatal(err)
	}
	l := open(t, db.Service)
	if err := l.CreateHoldout(t.Context(), testHoldout("ho_1", questions), nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, url string) *postgres.Ledger {
	t.Helper()
	l, err := postgres.Open(t.Context(), url, ledger.Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// told is what somebody was told: body by question.
type told map[string]string

// take reads what a child has printed. It demands that nobody was told two answers to one question.
func (all told) take(t *testing.T, line string) {
	t.Helper()
	name, body, ok := strings.Cut(line, "\t")
	if !ok {
		if line != "open" {
			t.Errorf("a server says %q", line)
		}
		return
	}
	if before, known := all[name]; known && before != body {
		t.Errorf("question %s has two answers: %s and %s", name, before, body)
	}
	all[name] = body
}

// check recomputes the ledger and looks for all that was told: nothing that was acknowledged is missing, and nothing was charged twice.
func (all told) check(t *testing.T, url string) ledger.Report {
	t.Helper()
	l := open(t, url)
	defer l.Close()
	var reports []ledger.Report
	var state string
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) { // what a killed server had sent can still be committed
		h, err := l.Holdout(t.Context(), "ho_1")
		if err != nil {
			t.Fatal(err)
		}
		if reports, err = postgres.Verify(t.Context(), url); err != nil || len(reports) != 1 {
			t.Fatal(reports, err)
		}
		if state = string(h.State); state == strconv.FormatInt(reports[0].Answers, 10) || time.Now().After(deadline) {
			break
		}
	}
	missing := 0
	for name, body := range all {
		if got, ok, err := l.Answer(t.Context(), "ho_1", named(name, 0).Query); err != nil || !ok || string(got) != body {
			if missing++; missing < 4 {
				t.Errorf("told %s, recorded %s: %v %v", body, got, ok, err)
			}
		}
	}
	if state != strconv.FormatInt(reports[0].Answers, 10) {
		t.Errorf("the state has counted %s answers of %d", state, reports[0].Answers)
	}
	if missing > 0 {
		t.Errorf("%d of %d acknowledged answers are missing", missing, len(all))
	}
	return reports[0]
}
