//go:build engines

package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/holdout/ledger/sqlite"
	"github.com/holdoutd/holdoutd/sources/clickhouse/chtest"
)

const engineRows = 3000

// engineTable makes a table of an owner on all shards, in units of three rows, with a text of its own in each row. No other table has its rows.
func engineTable(t *testing.T, e *chtest.Engine, number int) (name string) {
	t.Helper()
	name = fmt.Sprintf("visits_%d", number)
	columns := "(patient String, x Float64, delay UInt16, note String)"
	e.Exec(t, fmt.Sprintf("CREATE TABLE %s.%s_local %s ENGINE = MergeTree ORDER BY patient", chtest.Data, name, columns),
		fmt.Sprintf("CREATE TABLE %s.%s %s ENGINE = Distributed(%s, %[1]s, %[2]s_local, cityHash64(patient))", chtest.Data, name, columns, e.Cluster))
	e.Query(t, fmt.Sprintf("INSERT INTO %s.%s SELECT concat('patient ', toString(intDiv(number, 3)), ' of %d'), modulo(number * 2654435761 + %[3]d, 1000) / 1000, toUInt16(modulo(number * 40503, 5000)), concat('%s-', toString(number)) FROM system.numbers LIMIT %d",
		chtest.Data, name, number, rowText, engineRows))
	return chtest.Data + "." + name
}

// engineServer is a real server whose source is an engine, by way of a wire.
type engineServer struct {
	*process
	dir   string
	wire  *wire
	flags []string
}

func startWithEngine(t *testing.T, e *chtest.Engine) *engineServer {
	t.Helper()
	w := newWire(t, e)
	s := &engineServer{dir: t.TempDir(), wire: w}
	t.Setenv("HOLDOUTD_SOURCE_WH", w.url(t))
	s.flags = []string{"--source", "wh", "--rate", "-1"}
	s.process = startServer(t, s.dir, s.flags...)
	return s
}

// again starts a server that was killed.
func (s *engineServer) again(t *testing.T) *client.Client {
	t.Helper()
	s.process = startServer(t, s.dir, s.flags...)
	return connect(t, s.process, s.dir)
}

// TestKilledRegistrationOnAnEngine kills the real server with SIGKILL behind each statement of a registration on a cluster of ClickHouse, when the engine has done it and the server does not know, within those that write
// rows, and when the holdout is on its way into the ledger; and starts it again. A holdout is there whole, and answers, or nothing is left: no record in the ledger, no table in the private database of any shard, no
// note, no temporary file. The same request is taken each time, and in the end makes a holdout, of which the source finds all rows as they were registered. It would notice tables that nobody drops, the one of secret
// numbers above all, a holdout without its parts, and a request that a registration which was cut off stands in the way of.
func TestKilledRegistrationOnAnEngine(t *testing.T) {
	e := chtest.NewCluster(t)
	s := startWithEngine(t, e)
	made, table, set := map[string]bool{}, engineTable(t, e, 0), client.Settings{Unit: "patient", Mechanism: "gaussian", Questions: 10}
	any := func(string) bool { return true }
	// register registers a table, and returns what it has made, or the statement at which the server was killed.
	register := func(table string, skip int, when moment) (id, text string) {
		t.Helper()
		stopped := s.wire.arm(skip, when, any, s.cmd.Process.Kill)
		c := connect(t, s.process, s.dir)
		once := client.WithIdempotencyKey(t.Context(), table)
		r, err := c.Register(once, "wh", table, set)
		for deadline := time.Now().Add(patience); err == nil && r.Stage != "done" && r.Ended == nil && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			r, err = c.Registration(t.Context(), r.ID)
		}
		switch {
		case err == nil && r.Stage == "done":
			if !s.wire.disarm() {
				return r.Holdout, ""
			}
		case err == nil:
			t.Fatalf("killed %s, behind %d statements: %+v, %v\n%s", when, skip, r, r.Problem, s.stderr)
		}
		<-s.ended
		if !s.wire.disarm() {
			t.Fatalf("behind %d statements the server has ended by itself, or refuses: %v\n%s", skip, err, s.stderr)
		}
		<-stopped.ended
		return "", stopped.text
	}
	var statements []string
	kills := map[moment]int{}
	for when, last := done, ""; ; {
		id, text := register(table, len(statements), when)
		if id != "" {
			made[id] = true
			break
		}
		kills[when]++
		checkKilled(t, s, e, made)
		if t.Failed() {
			t.Fatalf("killed %s: %s\n%s", when, text, s.stderr)
		}
		switch rows := strings.HasSuffix(text, "FORMAT RowBinary"); { // once more within it, where there is a within
		case when == done && rows:
			when, last = half, text
		case when == done && strings.HasPrefix(text, "INSERT"):
			when, last = sent, text
		case when != done && text[:20] != last[:20]:
			t.Errorf("%q came where %q was", text, last)
			fallthrough
		default:
			when, statements = done, append(statements, text)
		}
	}
	for begin, n := range map[string]int{"CREATE TABLE": 7, "INSERT INTO": 3, "DROP TABLE": 2, "SELECT": 20} {
		found := 0
		for _, text := range statements {
			if strings.HasPrefix(text, begin) {
				found++
			}
		}
		if found < n {
			t.Errorf("%d statements begin with %s, want %d at least", found, begin, n)
		}
	}
	if kills[half] != 1 || kills[sent] != 2 {
		t.Errorf("kills within statements: %v", kills)
	}
	finish := func(table string) {
		t.Helper()
		id, text := register(table, 1<<30, before)
		if id == "" {
			t.Fatalf("killed at %s", text)
		}
		made[id] = true
	}

	// What is there when the last statement is answered is recorded, or it is not.
	for i, step := range []string{"", "holdouts/ID/uncommitted", "holdouts/ID/spent"} {
		table := engineTable(t, e, i+1)
		if step == "" {
			register(table, len(statements)-1, arrived)
		} else {
			r, err := connect(t, s.process, s.dir).Register(client.WithIdempotencyKey(t.Context(), table), "wh", table, set)
			if err != nil {
				t.Fatal(err)
			}
			killAt(t, s.process, s.dir, step, r.ID)
		}
		kills[arrived]++
		committed, known := checkKilled(t, s, e, made), len(made)
		finish(table)
		if committed != "" && !made[committed] || len(made) != known+1 {
			t.Errorf("the request had made %q, and makes another one when it is sent again", committed)
		}
		if t.Failed() {
			t.Fatalf("killed at %q\n%s", step, s.stderr)
		}
	}

	c := connect(t, s.process, s.dir)
	answers := map[string][]byte{}
	for id := range made {
		answers[id] = answerTo(t, c, id, 2500)
	}
	s.kill()
	c = s.again(t)
	for id, first := range answers {
		if now := answerTo(t, c, id, 2500); !bytes.Equal(now, first) {
			t.Errorf("after a kill the same question has another answer:\n%s\n%s", first, now)
		}
	}
	if code := s.stop(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.stderr)
	}
	if out, errs, code := holdoutd(t, "verify", s.dir, "--source", "wh"); code != 0 || !strings.Contains(out, "rows") {
		t.Errorf("verify: %s%s", out, errs)
	}
	t.Logf("%d statements; kills: %v", len(statements), kills)
}

// checkKilled looks at what a kill has left, starts the server again, and demands that it leaves nothing but whole holdouts: those that were made, and at most one more, which it returns.
func checkKilled(t *testing.T, s *engineServer, e *chtest.Engine, made map[string]bool) (more string) {
	t.Helper()
	reports, err := sqlite.Verify(t.Context(), filepath.Join(s.dir, ledgerFile))
	if err != nil {
		t.Fatal(err)
	}
	c := s.again(t)
	cards, err := c.Holdouts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, card := range cards {
		listed[card.ID] = true
		if !made[card.ID] {
			if more != "" {
				t.Errorf("%s and %s are listed, and one registration was under way", more, card.ID)
			}
			more = card.ID
		}
	}
	for id := range made {
		if !listed[id] {
			t.Errorf("%s is gone", id)
		}
	}
	for _, r := range reports {
		if !listed[r.Holdout] {
			t.Errorf("the ledger has %s, which is not listed", r.Holdout)
		}
	}
	left := []string{"?"}
	for deadline := time.Now().Add(patience); len(left) > 0 && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) { // parts are dropped in the background
		left = append(steps(t, s.dir, "tmp/*"), steps(t, s.dir, "parts/*")...)
		left = append(left, steps(t, s.dir, "parts/.note*")...)
		left = append(left, steps(t, s.dir, "holdouts/*/uncommitted")...)
		for _, path := range steps(t, s.dir, "holdouts/*") {
			if !listed[filepath.Base(path)] {
				left = append(left, path)
			}
		}
		for _, name := range privateTables(t, e) {
			if stem, _, _ := strings.Cut(name, "~"); strings.HasSuffix(name, "~units") || !belongs(stem, listed) {
				left = append(left, name)
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("left of a registration that was cut off: %v", left)
	}
	for id := range listed {
		sum := int64(0)
		for _, part := range []string{"training", "holdout"} {
			var n int64
			fmt.Sscan(e.Query(t, fmt.Sprintf("SELECT count() FROM `%s`.`%s_%s`", chtest.Private, partPrefix(id), part)), &n)
			sum += n
		}
		if sum != engineRows {
			t.Errorf("%s has %d rows in its parts, of %d", id, sum, engineRows)
		}
		if _, err := c.Ask(t.Context(), id, above(1000)); err != nil {
			t.Errorf("%s is listed and does not answer: %v", id, err)
		}
	}
	rowsStay(t, s.dir)
	return more
}

// privateTables are the tables in the private database of every server, but for the one that is of no part.
func privateTables(t *testing.T, e *chtest.Engine) (names []string) {
	t.Helper()
	for _, server := range e.Servers {
		reply, err := server.Do(chtest.Owner, "SELECT name FROM system.tables WHERE database = '"+chtest.Private+"' AND name != '~ready'", nil)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, strings.Fields(string(reply))...)
	}
	return names
}
