//go:build engines

package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
	"github.com/holdoutd/holdoutd/internal/await"
	"github.com/holdoutd/holdoutd/internal/seed"
	"github.com/holdoutd/holdoutd/queries/engine/remote/enginetest"
)

// doorway stands between servers and a real ClickHouse. While it is shut a statement about the rows of a holdout is told to sent, and waits until its server is gone.
type doorway struct {
	flag string // for holdoutd serve
	shut atomic.Bool
	sent chan string
}

func newDoorway(t *testing.T) *doorway {
	t.Helper()
	cluster := enginetest.ClickHouse18(t)
	to, err := url.Parse(cluster.Address(0, "reader"))
	if err != nil {
		t.Fatal(err)
	}
	g := &doorway{sent: make(chan string, 8)}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(statement))
		if text := string(statement); g.shut.Load() && strings.HasPrefix(text, "SELECT") && strings.Contains(text, "holdoutd_") && !strings.Contains(text, "_probe") {
			g.sent <- text
			<-r.Context().Done() // the server is gone
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	t.Setenv("HOLDOUTD_SOURCE_WAREHOUSE_PASSWORD", "reader")
	t.Setenv("HOLDOUTD_SOURCE_WAREHOUSE_LOADER_PASSWORD", "loader")
	g.flag = "--source=warehouse=clickhouse://reader@" + strings.TrimPrefix(between.URL, "http://") + "/default?loader=loader"
	return g
}

// loses starts a server, asks it a question, and kills it while ClickHouse works on a second one, which nobody has an answer to.
func (g *doorway) loses(t *testing.T, dir string, questions int64) (id string, first client.Reply) {
	t.Helper()
	p := startServer(t, dir, g.flag)
	c := connect(t, p, dir)
	card, err := c.CreateHoldout(t.Context(), strings.NewReader(data.Flights), client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "gaussian", Questions: questions, Source: "warehouse"})
	if err != nil {
		t.Fatal(err)
	}
	if first, err = c.Ask(t.Context(), card.ID, delayed(100)); err != nil { // it is open then, and the next statement is that of a question
		t.Fatal(err)
	}
	g.lose(t, p, c, card.ID)
	return card.ID, first
}

// lose kills a server while ClickHouse works on a question.
func (g *doorway) lose(t *testing.T, p *process, c *client.Client, id string) {
	t.Helper()
	g.shut.Store(true)
	lost := make(chan error)
	go func() {
		_, err := c.Ask(t.Context(), id, delayed(50))
		lost <- err
	}()
	<-g.sent
	p.kill()
	if err := <-lost; err == nil {
		t.Fatal("a question was answered without its rows")
	}
	g.shut.Store(false)
}

func delayed(high int) map[string]any {
	return map[string]any{"type": "mean", "of": "delay", "range": []int{0, high}}
}

// TestSourceCrash kills the server while ClickHouse works on the statement of a question: after a restart the question is held, so that no other takes its
// place, and asked again it is answered. No password is in the log, nor a name of a user in a reply.
func TestSourceCrash(t *testing.T) {
	between, dir := newDoorway(t), t.TempDir()
	id, first := between.loses(t, dir, 2)
	p := startServer(t, dir, between.flag)
	c := connect(t, p, dir)
	if b, err := c.Budget(t.Context(), id); err != nil || b.Questions.Left != 1 || b.Held == nil || b.Held.Asked != 1 || b.Held.Questions != 1 {
		t.Errorf("the budget: %+v, %v", b, err)
	}
	if out, _ := done(t, "budget", id, "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key")); !strings.Contains(out, "1 questions and 0 tokens of these are held") {
		t.Errorf("holdoutd budget: %s", out)
	}
	if _, err := c.Ask(t.Context(), id, delayed(70)); err == nil || !strings.Contains(err.Error(), "kept for questions") {
		t.Errorf("another question in the place of the one that was sent: %v", err)
	}
	if again, err := c.Ask(t.Context(), id, delayed(50)); err != nil || again.Replayed {
		t.Errorf("the question that was sent: %+v, %v", again, err)
	}
	if b, err := c.Budget(t.Context(), id); err != nil || b.Questions.Left != 0 || b.Held != nil {
		t.Errorf("the budget after it: %+v, %v", b, err)
	}
	if again, err := c.Ask(t.Context(), id, delayed(100)); err != nil || !again.Replayed || string(again.Answer.ID) != string(first.Answer.ID) {
		t.Errorf("a recorded answer: %+v, %v", again, err)
	}
	out, _ := done(t, "verify", dir)
	if !strings.Contains(out, id) {
		t.Errorf("verified: %s", out)
	}
	if log := p.stderr.String(); strings.Contains(log, "reader") || strings.Contains(log, "loader") {
		t.Errorf("the log names users or passwords: %s", log)
	}
}

// TestSourceVoid: an admin ends what is held for a question that nobody asks again: it is debited as a void, and asked again it costs anew.
func TestSourceVoid(t *testing.T) {
	between, dir := newDoorway(t), t.TempDir()
	id, _ := between.loses(t, dir, 3)
	p := startServer(t, dir, between.flag)
	c := connect(t, p, dir)
	if out, _ := done(t, "void", "flights", "--url", p.url, "--key", "@"+filepath.Join(dir, "admin.key")); !strings.Contains(out, "nothing is held of flights") {
		t.Errorf("holdoutd void: %s", out)
	}
	if b, err := c.Budget(t.Context(), id); err != nil || b.Questions.Left != 1 || b.Held != nil {
		t.Errorf("the budget: %+v, %v", b, err)
	}
	if again, err := c.Ask(t.Context(), id, delayed(50)); err != nil || again.Replayed {
		t.Errorf("the question anew: %+v, %v", again, err)
	}
	if _, err := c.Ask(t.Context(), id, delayed(70)); !client.IsBudgetExhausted(err) {
		t.Errorf("a fourth question of three: %v", err)
	}
	if out, _ := done(t, "verify", dir); !strings.Contains(out, "in order") || !strings.Contains(out, "2 answers; spent 3 ") {
		t.Errorf("verified: %s", out)
	}
}

// TestSourceOfReplicas: of two servers with one ledger in PostgreSQL and one source, one is killed while ClickHouse works on a question. At the other one that question is held: no other takes its place, and asked there it is
// answered, once.
func TestSourceOfReplicas(t *testing.T) {
	between := newDoorway(t)
	r := &replicas{dir: t.TempDir(), address: pgtest.Shared(t).New(t).Address(), outages: true, received: map[string][]byte{}}
	for range 2 {
		p := startServer(t, r.dir, "--ledger", r.address, between.flag)
		r.all, r.clients = append(r.all, p), append(r.clients, connect(t, p, r.dir))
	}
	id := r.create(t, r.clients[0], client.Settings{Name: "flights", Holdout: 0.5, Mechanism: "guess_and_check", Questions: 3, Tokens: 3, Source: "warehouse"})
	for i, c := range r.clients {
		if err := r.ask(t, c, id, "first", delayed(100)); err != nil {
			t.Fatalf("server %d: %v", i, err)
		}
	}
	between.lose(t, r.all[0], r.clients[0], id)
	other := r.clients[1]
	await.Until(t, "the other server has the holdout's term, and says that one question of two is held", func() bool {
		_, err := other.AskBatch(t.Context(), id, []any{delayed(70), delayed(80)}, false)
		if err == nil {
			t.Error("two questions of the two that are left were answered, of which one was held")
		}
		return client.IsBudgetExhausted(err)
	})
	if err := r.ask(t, other, id, "lost", delayed(50)); err != nil {
		t.Errorf("the question that was sent by the server that was killed: %v", err)
	}
	if err := r.ask(t, other, id, "third", delayed(70)); err != nil {
		t.Error(err)
	}
	if _, err := other.Ask(t.Context(), id, delayed(90)); !client.IsBudgetExhausted(err) {
		t.Errorf("a fourth question of three: %v", err)
	}
	if books := r.books(t, id); books.Answers != 3 || books.Voids != 0 || books.Spent["questions"] != 3 {
		t.Errorf("the ledger: %+v", books.Report)
	}
}

// TestSourceFromPython: what the Python client uploads with source= lies in the source, and a notebook that asks it reads what one reads whose rows lie here.
func TestSourceFromPython(t *testing.T) {
	python := os.Getenv("HOLDOUTD_PYTHON")
	if python == "" {
		t.Fatal("HOLDOUTD_PYTHON must name the interpreter that scripts/python.sh prints; make test-all sets it")
	}
	between := newDoorway(t)
	t.Setenv(seed.Variable, "7")
	said := map[string]string{}
	for _, source := range []string{"", "warehouse"} {
		dir := t.TempDir()
		p := startServer(t, dir, between.flag)
		ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, python, "-W", "ignore", "-c", fromPython, p.url, filepath.Join(dir, "admin.key"), source)
		path, err := filepath.Abs("../../python/src")
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(os.Environ(), "PYTHONPATH="+path)
		var words bytes.Buffer
		cmd.Stderr = &words
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%q: %v\n%s%s", source, err, out, &words)
		}
		said[source] = string(out)
	}
	if said[""] != said["warehouse"] || strings.Count(said[""], "\n") < 3 {
		t.Errorf("here:\n%sin the source:\n%s", said[""], said["warehouse"])
	}
}

const fromPython = `
import sys, pathlib, numpy as np, pandas as pd, holdoutd
url, key, source = sys.argv[1:]
server = holdoutd.connect(url, key=pathlib.Path(key).read_text().strip())
r = np.random.default_rng(5)
table = pd.DataFrame({"x": r.random(3000), "city": r.choice(["Oslo", "Bern"], 3000), "late": r.random(3000) < 0.3})
more = {"source": source} if source else {}
ds = server.upload(table, name="visits", holdout=0.5, mechanism="gaussian", questions=50, unit="row", **more)
assert ds.card.settings.get("source", "") == source, ds.card.settings
print(ds.mean("x", range=(0, 1)).value)
print(ds.fraction("late && city == 'Oslo'").value)
print(ds.mean("log(x + 1.0)", range=(0, 1)).value)
`
