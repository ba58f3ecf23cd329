package holdout

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// late is a ledger of which a server hears at the wrong moment.
type late struct {
	ledger.Ledger
	before func() // a holdout is created
}

func (late) Close() error { return nil }

func (l late) CreateHoldout(ctx context.Context, h ledger.Holdout, idem *ledger.Idempotency) error {
	l.before()
	return l.Ledger.CreateHoldout(ctx, h, idem)
}

// TestStartBesideAnUpload: a server that starts while another one is between the files of a holdout and its commit, or makes them still, removes nothing, and
// what a crash has left is removed when nobody can be making it any more. It would notice the sweep of one server in what is another's.
func TestStartBesideAnUpload(t *testing.T) {
	all := replicas(t, 1)
	first, dir := all[0], filepath.Dir(all[0].dir)
	shared, tables := first.ledger.(lent).Ledger, first.places.tables
	making := filepath.Join(tables, stagingDir, "ho_of_another")
	crashed := filepath.Join(tables, "ho_crashed")
	for _, d := range []string{making, crashed} {
		must(t, os.MkdirAll(d, privateMode))
	}
	mark := filepath.Join(crashed, uncommitted)
	must(t, os.WriteFile(mark, nil, secretMode))
	started := false
	first.ledger = late{shared, func() {
		replica(t, shared, filepath.Join(dir, "second"), tables)
		started = true
	}}
	id := create(t, first, Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	if !started {
		t.Fatal("no server started")
	}
	ask(t, first, id, mean(0))
	there := func(path string, want bool) {
		t.Helper()
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", path, err, want)
		}
	}
	there(making, true)
	there(crashed, true)
	there(filepath.Join(tables, id, uncommitted), false)
	old := time.Now().Add(-2 * abandonedAfter)
	for _, path := range []string{making, mark} {
		must(t, os.Chtimes(path, old, old))
	}
	third := replica(t, shared, filepath.Join(dir, "third"), tables)
	there(making, false)
	there(crashed, false)
	if a, err := third.Ask(t.Context(), analyst, id, []byte(mean(0)), ""); err != nil || !a.Replayed {
		t.Errorf("at a third server: %v", err)
	}
}

// TestTablesAreCopied: where each server has its own tables, one that has not got them yet says which to bring, replays what was answered, and answers as soon as
// they are there; another table in their place is damaged. It would notice a quarantine that only a restart ends, and tables that nobody compares with the card.
func TestTablesAreCopied(t *testing.T) {
	own := func(o *Options) { o.Tables = "" }
	all := replicas(t, 2, own)
	id := create(t, all[0], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	answered := ask(t, all[0], id, mean(0))
	other := create(t, all[1], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 2)).ID
	missing := func(s *Service) {
		t.Helper()
		_, err := s.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
		wantKind(t, "without the tables", err, Unavailable)
		if !strings.Contains(err.Error(), "holdouts/"+id) {
			t.Errorf("the refusal names no directory: %v", err)
		}
		if a, err := s.Ask(t.Context(), analyst, id, []byte(mean(0)), ""); err != nil || !a.Replayed || string(a.Body) != string(answered.Body) {
			t.Errorf("a replay without the tables: %v", err)
		}
	}
	missing(all[1])
	must(t, all[1].Close())
	restarted := replica(t, all[0].ledger.(lent).Ledger, all[1].dir, "", own)
	missing(restarted)
	from, to := all[0].holdoutPath(id), restarted.holdoutPath(id)
	must(t, os.CopyFS(to, os.DirFS(from)))
	must(t, os.RemoveAll(filepath.Join(to, holdoutDir)))
	missing(restarted) // it is being copied
	must(t, os.CopyFS(filepath.Join(to, holdoutDir), os.DirFS(filepath.Join(restarted.holdoutPath(other), holdoutDir))))
	_, err := restarted.Ask(t.Context(), analyst, id, []byte(mean(1)), "")
	wantKind(t, "with the rows of another table", err, Damaged)
	must(t, os.RemoveAll(to))
	must(t, os.CopyFS(to, os.DirFS(from)))
	ask(t, restarted, id, mean(1))
	if n, _ := spentOf(t, all[0], id); n != 2 {
		t.Errorf("%d questions spent", n)
	}
}

// TestOneOfEach: servers that start together on an empty ledger make one first key, and two that upload the same table at the same time make one holdout.
func TestOneOfEach(t *testing.T) {
	all := replicas(t, 3)
	keys := 0
	for _, s := range all {
		if _, err := os.Lstat(s.path(adminKeyFile)); err == nil {
			keys++
		}
	}
	known, err := all[0].Keys(t.Context(), admin)
	must(t, err)
	if keys != 1 || len(known) != 1 {
		t.Errorf("%d files with a first key, %d keys", keys, len(known))
	}
	table := parquet(t, visits(t, 3000, 1))
	made := make([]error, len(all))
	var uploads sync.WaitGroup
	for i, s := range all {
		uploads.Go(func() {
			_, _, made[i] = s.Create(context.Background(), admin, Settings{Name: "v", Mechanism: "gaussian", Questions: 6}, SingleUpload(strings.NewReader(string(table))), "")
		})
	}
	uploads.Wait()
	created := 0
	for _, err := range made {
		if err == nil {
			created++
		} else {
			wantKind(t, "the same table elsewhere", err, Exists)
		}
	}
	entries, err := os.ReadDir(all[0].places.tables)
	must(t, err)
	if created != 1 || len(entries) != 2 { // and what is being made
		t.Errorf("%d uploads made a holdout; in the tables are %v", created, entries)
	}
	if left, err := os.ReadDir(all[0].making); err != nil || len(left) > 0 {
		t.Errorf("left of uploads: %v %v", left, err)
	}
}

// TestMarksAreEachReplicasOwn: a server whose own mark is ahead of the ledger gives no new answers, although another server's is not, and no server writes into the
// tables that others have.
func TestMarksAreEachReplicasOwn(t *testing.T) {
	all := replicas(t, 2)
	id := create(t, all[0], Settings{Mechanism: "gaussian", Questions: 6}, visits(t, 3000, 1)).ID
	ask(t, all[0], id, mean(0))
	listed := func() (names string) {
		entries, err := os.ReadDir(all[1].holdoutPath(id))
		must(t, err)
		for _, e := range entries {
			info, err := e.Info()
			must(t, err)
			names += " " + e.Name() + " " + info.ModTime().String()
		}
		return names
	}
	before := listed()
	report, _ := chainOf(t, all[0], id)
	all[0].marks.committed(id, report.Entries-1, report.Head)
	must(t, all[0].Close())
	if now := listed(); now != before {
		t.Errorf("the tables' directory was written to: %v, was %v", now, before)
	}
	shared, tables := all[1].ledger.(lent).Ledger, all[1].places.tables
	m, err := readMark(filepath.Join(all[0].dir, marksDir, id))
	if err != nil || m.Seq != report.Entries-1 {
		t.Fatalf("the mark is %+v, %v", m, err)
	}
	again := replica(t, shared, all[0].dir, tables)
	ask(t, again, id, mean(1))
	must(t, again.Close())
	m.Seq += 100
	must(t, m.write(filepath.Join(all[0].dir, marksDir, id)))
	ahead := replica(t, shared, all[0].dir, tables)
	_, err = ahead.Ask(t.Context(), analyst, id, []byte(mean(2)), "")
	wantKind(t, "a ledger that is older than the mark", err, RolledBack)
	ask(t, all[1], id, mean(2))
}

// TestOneReplicaInADirectory: a second server in a data directory is refused, also while they share a ledger.
func TestOneReplicaInADirectory(t *testing.T) {
	all := replicas(t, 1)
	self, err := os.Executable()
	must(t, err)
	_, err = Open(t.Context(), Options{Dir: all[0].dir, Decoder: []string{self, decodeParquet}, ServerKey: func() (string, error) { return testServerKey, nil },
		OpenLedger: func(context.Context, ledger.Options) (ledger.Ledger, error) { return all[0].ledger, nil }})
	if err == nil || !strings.Contains(err.Error(), "data directory of its own") {
		t.Errorf("a second server in one directory: %v", err)
	}
}
