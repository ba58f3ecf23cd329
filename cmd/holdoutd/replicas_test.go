package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
)

// replicas are servers that share a ledger in a real PostgreSQL, and a data directory.
type replicas struct {
	dir     string
	address string
	outages bool // the database may be away: a 503 is right then

	running sync.RWMutex // guards what a test replaces under load
	all     []*process
	clients []*client.Client

	mu       sync.Mutex
	received map[string][]byte // by holdout and query
	refused  int
	away     int // requests that a killed server broke off, or that came to one
}

func startReplicas(t *testing.T, n int) *replicas {
	t.Helper()
	return startReplicasAt(t, n, pgtest.Shared(t).New(t).Address())
}

func startReplicasAt(t *testing.T, n int, address string) *replicas {
	t.Helper()
	r := &replicas{dir: t.TempDir(), address: address, received: map[string][]byte{}}
	for range n {
		p := startServer(t, r.dir, "--ledger", r.address)
		r.all, r.clients = append(r.all, p), append(r.clients, connect(t, p, r.dir))
	}
	return r
}

func (r *replicas) create(t *testing.T, c *client.Client, s client.Settings) string {
	t.Helper()
	card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), s)
	if err != nil {
		t.Fatal(err)
	}
	return card.ID
}

// ask asks one replica. What it says must be what any of them has said before.
func (r *replicas) ask(t *testing.T, c *client.Client, id, name string, query any) error {
	reply, err := c.Ask(context.Background(), id, query)
	r.mu.Lock()
	defer r.mu.Unlock()
	var problem *client.Problem
	switch {
	case err == nil:
		if known, ok := r.received[id+name]; ok && !bytes.Equal(known, reply.Answer.Raw) {
			t.Errorf("one question, two answers:\n%s\n%s", known, reply.Answer.Raw)
		}
		r.received[id+name] = bytes.Clone(reply.Answer.Raw)
	case client.IsBudgetExhausted(err):
		r.refused++
	case errors.As(err, &problem) && !(r.outages && problem.Status == http.StatusServiceUnavailable):
		t.Errorf("%s: %v", name, err)
	default:
		r.away++
	}
	return err
}

// books are what the ledger has of a holdout, recomputed.
func (r *replicas) books(t *testing.T, id string) holdout.Verification {
	t.Helper()
	all, err := holdout.VerifyShared(t.Context(), r.dir, r.address, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		if v.Holdout == id {
			return v
		}
	}
	t.Fatalf("the ledger has no %s", id)
	return holdout.Verification{}
}

// TestReplicas lets three servers race for one budget over HTTP, under a mechanism without tokens and under one with: it is never overspent, each question is charged once, none is void,
// and whoever asks it gets the same bytes from each server. It notices a server that goes on with what it believed of a budget that another one has spent since.
func TestReplicas(t *testing.T) {
	r := startReplicas(t, 3)
	const asked, budget = 60, 40
	for _, c := range []struct {
		settings client.Settings
		query    func(int) map[string]any
	}{
		{client.Settings{Name: "gaussian", Holdout: 0.5, Mechanism: "gaussian", Questions: budget}, above},
		{client.Settings{Name: "guesses", Holdout: 0.4, Mechanism: "guess_and_check", Questions: budget}, func(i int) map[string]any {
			q := map[string]any{"type": "fraction", "of": fmt.Sprintf("x > %g", float64(i)/100)}
			if i%10 == 0 { // it is wrong, and takes a token
				q["guess"] = 0.02
			}
			return q
		}},
	} {
		table := randomTable(t, rand.New(rand.NewPCG(crashSeed, 1)))
		if c.settings.Name == "gaussian" {
			table = []byte(data.Flights)
		}
		card, err := r.clients[0].CreateHoldout(t.Context(), bytes.NewReader(table), c.settings)
		if err != nil {
			t.Fatal(err)
		}
		id := card.ID
		r.refused = 0
		var wg sync.WaitGroup
		for caller := range 12 {
			wg.Go(func() {
				for i := range asked {
					minutes := (i*7 + caller/3*11) % asked // three callers ask in one order, each of another server
					_ = r.ask(t, r.clients[caller%3], id, strconv.Itoa(minutes), c.query(minutes))
				}
			})
		}
		wg.Wait()
		b := r.books(t, id)
		told := 0
		for name := range r.received {
			if strings.HasPrefix(name, id) {
				told++
			}
		}
		if b.Spent["questions"] != budget || b.Answers != budget || b.Voids != 0 || told != budget || r.refused == 0 || r.away > 0 {
			t.Errorf("%s: %d answers told, %d requests refused, %d away; the ledger: %+v", c.settings.Name, told, r.refused, r.away, b.Report)
		}
		for i := range asked { // and the others say the same of all of it
			for _, other := range r.clients {
				if _, answered := r.received[id+strconv.Itoa(i)]; answered {
					if err := r.ask(t, other, id, strconv.Itoa(i), c.query(i)); err != nil {
						t.Error(err)
					}
				}
			}
		}
		t.Logf("%s: %d answers, %d requests refused, %d tokens", c.settings.Name, told, r.refused, b.Spent["tokens"])
	}
	for _, p := range r.all {
		if code := p.stop(t); code != 0 {
			t.Errorf("exit code %d\n%s", code, p.stderr)
		}
	}
	if out, errs, code := holdoutd(t, "verify", r.dir, "--ledger", r.address); code != 0 || strings.Count(out, "in order\n  40 answers") != 2 {
		t.Errorf("verify: %d\n%s%s", code, out, errs)
	}
}

// TestReplicasRetire: questions to three servers race with a retirement at one of them. What was answered is in the chain before the entry, nothing is after it, and nothing that was read is void; no server gives a row
// before the entry, and each gives them after it, at once. It notices a server that goes on with what it believed, and a retirement that does not wait for what other servers are being asked.
func TestReplicasRetire(t *testing.T) {
	r := startReplicas(t, 3)
	id := r.create(t, r.clients[0], client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 3000})
	var wg sync.WaitGroup
	begun := make(chan struct{})
	once := sync.OnceFunc(func() { close(begun) })
	for caller := range 6 {
		wg.Go(func() {
			for i := range 400 {
				minutes := caller + 6*i
				if err := r.ask(t, r.clients[caller%3], id, strconv.Itoa(minutes), above(minutes)); err != nil {
					return
				}
				once()
			}
		})
	}
	<-begun
	for i, c := range r.clients {
		if rows, err := c.Retired(t.Context(), id); err == nil {
			rows.Close()
			t.Errorf("server %d gives rows before the retirement", i)
		}
	}
	if card, err := r.clients[1].Retire(t.Context(), id); err != nil || !card.Retired {
		t.Fatalf("the retirement: %+v %v", card.Retired, err)
	}
	for i, c := range r.clients {
		if _, err := c.Ask(t.Context(), id, above(100_000+i)); !client.IsBudgetExhausted(err) {
			t.Errorf("server %d is asked after the retirement: %v", i, err)
		}
		rows, err := c.Retired(t.Context(), id)
		if err != nil {
			t.Errorf("server %d gives no rows after the retirement: %v", i, err)
			continue
		}
		rows.Close()
	}
	wg.Wait()
	for i, c := range r.clients {
		if card, err := c.Retire(t.Context(), id); err != nil || !card.Retired {
			t.Errorf("retired again at server %d: %v", i, err)
		}
	}
	b := r.books(t, id)
	if !b.Retired || b.Voids != 0 || b.Answers < int64(r.told()) || b.Entries != b.Answers+2 {
		t.Errorf("%d answers told; the ledger: %+v", r.told(), b.Report)
	}
}

// TestReplicasShareAll: what is done at one server is so at the others: keys and their end, a holdout that is created and deleted, a budget, the history.
func TestReplicasShareAll(t *testing.T) {
	r := startReplicas(t, 2)
	a, b := r.clients[0], r.clients[1]
	id := r.create(t, a, client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 10})
	if err := r.ask(t, b, id, "15", above(15)); err != nil {
		t.Fatal(err)
	}
	if budget, err := a.Budget(t.Context(), id); err != nil || budget.Questions.Left != 9 {
		t.Errorf("the budget at the other server: %+v %v", budget, err)
	}
	key, err := a.CreateKey(t.Context(), "ana", "analyst")
	if err != nil {
		t.Fatal(err)
	}
	ana, err := client.New(r.all[1].url, key.Secret, client.WithRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ana.Holdouts(t.Context()); err != nil {
		t.Errorf("a key of the other server: %v", err)
	}
	if err := r.ask(t, ana, id, "15", above(15)); err != nil {
		t.Error(err)
	}
	if err := a.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := ana.Holdouts(t.Context()); !errors.Is(err, &client.Problem{Code: "unauthorized"}) {
		t.Errorf("a key that was revoked at the other server: %v", err)
	}
	if err := a.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Ask(t.Context(), id, above(15)); !client.IsNotFound(err) {
		t.Errorf("a question about a holdout that was deleted at the other server: %v", err)
	}
	if _, err := b.Ask(t.Context(), id, above(16)); !client.IsNotFound(err) {
		t.Errorf("a new question about it: %v", err)
	}
	if _, err := b.Explain(t.Context(), id, above(17)); !client.IsNotFound(err) {
		t.Errorf("what a question about it costs: %v", err)
	}
	if _, err := b.Holdout(t.Context(), id); !client.IsNotFound(err) {
		t.Errorf("its card: %v", err)
	}
	if training, err := b.Training(t.Context(), id); !client.IsNotFound(err) {
		t.Errorf("its training part: %v", err)
		if err == nil {
			training.Close()
		}
	}
	if left, err := os.ReadDir(filepath.Join(r.dir, "holdouts")); err != nil || len(left) != 0 {
		t.Errorf("%d holdouts' files are left: %v", len(left), err)
	}
}

// load has callers ask until it is stopped, one at each replica the same, and twice as many as there are. more waits for n answers to questions that nobody had been told of.
func (r *replicas) load(t *testing.T, id string) (more func(n int), stop func()) {
	ending := make(chan struct{})
	var wg sync.WaitGroup
	for caller := range 2 * len(r.all) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-ending:
					return
				default:
				}
				r.running.RLock()
				c := r.clients[caller%len(r.clients)]
				r.running.RUnlock()
				minutes := i + caller/len(r.clients)*1000
				if r.ask(t, c, id, strconv.Itoa(minutes), above(minutes)) != nil {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	more = func(n int) {
		t.Helper()
		before := r.told()
		await.Until(t, fmt.Sprint(n, " more answers"), func() bool { return r.told() >= before+n })
	}
	return more, func() { close(ending); wg.Wait() }
}

// told is how many questions were answered.
func (r *replicas) told() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.received)
}

// kept checks that all that was told is recorded, once, and that the replicas, taken in turns, say the same of it.
func (r *replicas) kept(t *testing.T, id string) (recorded int64) {
	t.Helper()
	b := r.books(t, id)
	if b.Voids != 0 || b.Answers < int64(r.told()) || b.Spent["questions"] != b.Answers {
		t.Errorf("%d answers told: %+v", r.told(), b.Report)
	}
	for i, name := range slices.Sorted(maps.Keys(r.received)) {
		minutes, err := strconv.Atoi(strings.TrimPrefix(name, id))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.ask(t, r.clients[i%len(r.clients)], id, strconv.Itoa(minutes), above(minutes)); err != nil {
			t.Fatal(err)
		}
	}
	if after := r.books(t, id); after.Answers != b.Answers {
		t.Errorf("what was told was not recorded: %d answers, then %d", b.Answers, after.Answers)
	}
	return b.Answers
}

// TestReplicaIsKilled kills one of three servers under load, again and again: the others go on, all that was told stays, and the killed one comes back to the same budget.
func TestReplicaIsKilled(t *testing.T) {
	r := startReplicas(t, 3)
	id := r.create(t, r.clients[0], client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100_000})
	more, stop := r.load(t, id)
	const kills = 4
	for n := range kills {
		more(15)
		killed := n % len(r.all)
		r.all[killed].kill()
		more(15) // the others go on
		p := startServer(t, r.dir, "--ledger", r.address)
		r.running.Lock()
		r.all[killed], r.clients[killed] = p, connect(t, p, r.dir)
		r.running.Unlock()
	}
	more(15)
	stop()
	recorded := r.kept(t, id)
	t.Logf("%d answers told, %d recorded, %d requests broken off by %d kills", r.told(), recorded, r.away, kills)
}

// TestFailover kills the primary under load and promotes its synchronous standby: the servers follow by themselves, nothing that was told is missing, and nothing is charged twice.
func TestFailover(t *testing.T) {
	first := pgtest.New(t)
	l := first.New(t)
	second := first.Standby(t, true)
	r := startReplicasAt(t, 2, l.Followed(second))
	r.outages = true
	id := r.create(t, r.clients[0], client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100_000})
	more, stop := r.load(t, id)
	more(30)
	first.Kill(t)
	second.Promote(t)
	more(30)
	stop()
	recorded := r.kept(t, id)
	t.Logf("%d answers told, %d recorded, %d requests without an answer", r.told(), recorded, r.away)
	for _, p := range r.all {
		if code := p.stop(t); code != 0 {
			t.Errorf("exit code %d\n%s", code, p.stderr)
		}
	}
}

// TestWayIsCut cuts a server's way to the database at each place of a question's conversation, in either direction. No answer is told that is not recorded by then; whoever asks again, here or at
// another server, gets its bytes; and nothing is charged twice.
func TestWayIsCut(t *testing.T) {
	c := pgtest.Shared(t)
	l := c.New(t)
	way := pgtest.NewProxy(t, c)
	r := startReplicasAt(t, 1, l.Through(way))
	other := startServer(t, r.dir, "--ledger", l.Address())
	r.all, r.clients = append(r.all, other), append(r.clients, connect(t, other, r.dir))
	r.address, r.outages = l.Address(), true
	id := r.create(t, r.clients[1], client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: 100_000})
	asked, unsure := 0, 0
	again := func(c *client.Client, minutes int) {
		t.Helper()
		await.Until(t, "the question is answered", func() bool { return r.ask(t, c, id, strconv.Itoa(minutes), above(minutes)) == nil })
	}
	for _, limit := range []*atomic.Int64{&way.UpTo, &way.DownTo} {
		for at := int64(0); ; {
			asked++
			again(r.clients[0], asked) // connections are there
			asked++
			cuts := way.Cuts.Load()
			limit.Store(at)
			reply, err := r.clients[0].Ask(await.Context(t), id, above(asked))
			happened := way.Cuts.Load() > cuts
			limit.Store(-1)
			var problem *client.Problem
			switch {
			case err == nil:
				r.received[id+strconv.Itoa(asked)] = bytes.Clone(reply.Answer.Raw)
				if place := reply.Answer.Ledger; !l.Holds(t, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM entries WHERE seq = %d AND 'sha256:' || encode(head, 'hex') = '%s')", place.Seq, place.Head)) {
					t.Fatalf("cut after %d bytes: what was told is not recorded: %+v", at, place)
				}
			case errors.As(err, &problem) && problem.Status == http.StatusServiceUnavailable:
				unsure++
			default:
				t.Fatalf("cut after %d bytes: %v", at, err)
			}
			again(r.clients[1], asked)
			again(r.clients[0], asked)
			if happened {
				at += 97
			} else if err == nil { // all of the conversation came through
				break
			}
		}
	}
	if unsure < 10 {
		t.Errorf("%d of %d questions were not answered at once: the cuts come in few places", unsure, asked)
	}
	if recorded := r.kept(t, id); recorded != int64(asked) {
		t.Errorf("%d questions were asked, %d are recorded", asked, recorded)
	}
	t.Logf("%d questions, %d cuts, %d not answered at once", asked, way.Cuts.Load(), unsure)
}
