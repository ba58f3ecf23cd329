//go:build postgres

package postgres_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/holdoutd/holdoutd/holdout/ledger/postgres/pgtest"
)

// TestReplicasRace lets two and three processes ask the same questions of one holdout, which has not enough for all of them. It would notice a server that
// decides by books of its own: more spent than there is, a question that is charged twice, two answers to one question.
func TestReplicasRace(t *testing.T) {
	for _, replicas := range []int{2, 3} {
		t.Run(strconv.Itoa(replicas), func(t *testing.T) {
			db := pgtest.NewDatabase(t)
			newLedger(t, db, raceLimit)
			var children []*child
			for i := range replicas {
				children = append(children, startChild(t, "race", db.Service, fmt.Sprint(i)))
			}
			all, refused, asked := told{}, 0, 0
			for _, c := range children {
				for line := range c.lines {
					if asked++; line == "refused" {
						refused++
						continue
					}
					all.take(t, line)
				}
				if err := c.cmd.Wait(); err != nil {
					t.Error(err)
				}
			}
			r := all.check(t, db.Service)
			sum := int64(0)
			for name := range all {
				i, err := strconv.Atoi(name)
				if err != nil {
					t.Fatal(err)
				}
				sum += costOf(i)
			}
			// What is left is less than the dearest question costs, or all of a price were answered.
			if spent := r.Spent["questions"]; spent > raceLimit || spent != sum || int(r.Answers) != len(all) || refused == 0 || spent < raceLimit-7 {
				t.Errorf("%d of %d spent by %d answers; told %d answers for %d, and %d refusals", spent, raceLimit, r.Answers, len(all), sum, refused)
			}
			t.Logf("%d processes asked %d times: %d answers for %d of %d, %d refusals", replicas, asked-replicas, len(all), sum, raceLimit, refused)
		})
	}
}

// TestReplicaKilled kills one of two servers with SIGKILL, again and again, while both ask.
func TestReplicaKilled(t *testing.T) {
	const kills = 12
	db := pgtest.NewDatabase(t)
	newLedger(t, db, 1<<40)
	random := rand.New(rand.NewPCG(1, 2))
	all := told{}
	steady := startChild(t, "ask", db.Service, "steady")
	for round := range kills {
		c := startChild(t, "ask", db.Service, fmt.Sprint(round))
		if round%3 == 0 { // while it starts, or soon after
			time.Sleep(time.Duration(20+random.IntN(200)) * time.Millisecond)
		} else { // under load
			for range 12 {
				line, open := <-c.lines
				if !open {
					t.Fatal("a server ended by itself")
				}
				all.take(t, line)
			}
		}
		c.kill()
		for line := range c.lines {
			all.take(t, line)
		}
	}
	steady.kill()
	for line := range steady.lines {
		all.take(t, line)
	}
	r := all.check(t, db.Service)
	if r.Spent["questions"] != r.Answers || len(all) < 8*11 {
		t.Errorf("%d spent by %d answers, %d of them told", r.Spent["questions"], r.Answers, len(all))
	}
	t.Logf("%d kills: %d answers were acknowledged, none is missing; %d more are recorded and were not", kills, len(all), int(r.Answers)-len(all))
}

// TestAnswersStayCheap counts the rows of the index that the database reads for an answer, while a table grows for which a plan was made when it was empty. It
// would notice a look-up that reads a holdout's whole history: with 3,000 answers that is thousands of rows for each.
func TestAnswersStayCheap(t *testing.T) {
	const answers, most = 3000, 20
	db := pgtest.NewDatabase(t)
	newLedger(t, db, 1<<40)
	l := open(t, db.Service)
	var all sync.WaitGroup
	for g := range 30 {
		all.Go(func() {
			for i := range answers / 30 {
				if _, _, err := ask(t.Context(), l, "ho_1", named(fmt.Sprint(g, "/", i), 1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if err := l.Close(); err != nil { // what its connections have counted is known when they end
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), db.Super)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var read, inserted int64
	for deadline := time.Now().Add(2 * time.Minute); inserted < answers; time.Sleep(20 * time.Millisecond) {
		err := conn.QueryRow(t.Context(), `SELECT (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = 'holdoutd' AND relname = 'entries')::bigint,
			(SELECT n_tup_ins FROM pg_stat_user_tables WHERE schemaname = 'holdoutd' AND relname = 'entries')`).Scan(&read, &inserted)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d rows counted: %v", inserted, err)
		}
	}
	if read > most*answers {
		t.Errorf("%d rows of indexes were read for %d answers, %.1f each; at most %d", read, answers, float64(read)/answers, most)
	}
	t.Logf("%.1f rows of indexes for an answer", float64(read)/answers)
}
