package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/internal/await"
)

// heldBack is a body whose end a test lets go.
type heldBack struct {
	io.Reader
	end chan struct{}
}

func (b *heldBack) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		<-b.end
	}
	return n, err
}

// measuredTable is 2,000 rows of four measurements. Copies differ by a cell.
func measuredTable(t *testing.T, copied int) []byte {
	t.Helper()
	random := rand.New(rand.NewPCG(crashSeed, 14))
	columns := make([]dataset.Column, 4)
	for i := range columns {
		columns[i] = dataset.Column{Field: dataset.Field{Name: string(rune('a' + i)), Kind: dataset.Number, Source: "DOUBLE"}, Numbers: make([]float64, 2_000)}
		for row := range columns[i].Numbers {
			columns[i].Numbers[row] = random.Float64()
		}
	}
	columns[0].Numbers[5] += float64(copied) * 1e-12
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ingest.Export(&b, table); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestReplicasRetireBesideAnUpload: while one server takes an upload of the rows of a holdout, another does not retire it. After the upload it does not either, for the rows are held out by a holdout that answers; and an upload that
// begins after a retirement says that its rows are released. It notices rows that are released by one server while they are held out by another.
func TestReplicasRetireBesideAnUpload(t *testing.T) {
	r := startReplicas(t, 2)
	settings := client.Settings{Name: "first", Holdout: 0.5, Mechanism: "gaussian", Questions: 10}
	question := map[string]any{"type": "fraction", "of": "a > 0.5"}
	card, err := r.clients[0].CreateHoldout(t.Context(), bytes.NewReader(measuredTable(t, 0)), settings)
	if err != nil {
		t.Fatal(err)
	}
	first := card.ID
	if err := r.ask(t, r.clients[0], first, "a", question); err != nil {
		t.Fatal(err)
	}
	settings.Overlap = "accepted"
	body := &heldBack{bytes.NewReader(measuredTable(t, 1)), make(chan struct{})}
	type made struct {
		card client.Card
		err  error
	}
	uploaded := make(chan made, 1)
	upload := func(body io.Reader) made {
		card, err := r.clients[1].CreateHoldout(t.Context(), body, settings)
		return made{card, err}
	}
	go func() { uploaded <- upload(body) }()
	await.Until(t, "the other server takes the upload", func() bool {
		work, err := filepath.Glob(filepath.Join(r.dir, "tmp", "upload-*"))
		return err == nil && len(work) > 0
	})
	if _, err := r.clients[0].Retire(t.Context(), first); !errors.Is(err, &client.Problem{Code: "unavailable"}) || !strings.Contains(err.Error(), "taking an upload") {
		t.Errorf("a retirement beside the upload: %v", err)
	}
	close(body.end)
	second := <-uploaded
	if second.err != nil {
		t.Fatal(second.err)
	}
	if _, err := r.clients[0].Retire(t.Context(), first); !errors.Is(err, &client.Problem{Code: "rows-known"}) {
		t.Errorf("a retirement of rows that are held out at the other server: %v", err)
	}
	if err := r.clients[1].Delete(t.Context(), second.card.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := r.clients[0].Retire(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	third := upload(bytes.NewReader(measuredTable(t, 2)))
	if third.err != nil {
		t.Fatal(third.err)
	}
	if err := r.ask(t, r.clients[1], third.card.ID, "a", question); err != nil { // a draft's card does not say it
		t.Fatal(err)
	}
	card, err = r.clients[0].Holdout(t.Context(), third.card.ID)
	if err != nil || !slices.ContainsFunc(card.Overlaps, func(o client.Overlap) bool { return o.Holdout == first && o.Matter == "shown-before" }) {
		t.Errorf("the card of rows that are released says %+v, %v", card.Overlaps, err)
	}
}

// TestReplicasMarkReleases: where the mark of a holdout's releases lags, as a server leaves it that ends between a commit and the mark, two servers that show older and newer releases at once bring it to the newest one. It notices an older
// mark in the place of a newer one, by which a database that lost the newer release would not be noticed.
func TestReplicasMarkReleases(t *testing.T) {
	r := startReplicas(t, 2)
	card, err := r.clients[0].CreateHoldout(t.Context(), bytes.NewReader(measuredTable(t, 0)), client.Settings{Name: "released", Holdout: 0.5, Mechanism: "gaussian", Questions: 10})
	if err != nil {
		t.Fatal(err)
	}
	every := filepath.Join(r.dir, "holdouts", card.ID, "spent") // the mark that is written once a minute
	before, err := os.ReadFile(every)
	if err != nil {
		t.Fatal(err)
	}
	requests := make([]client.NewRelease, 2)
	bodies := make([]string, 2)
	release := func(at, n int) string {
		made, err := r.clients[at].Release(t.Context(), card.ID, requests[n])
		if err != nil {
			t.Errorf("release %d at server %d: %v", n, at, err)
		}
		text, err := json.Marshal(made)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	for n := range requests {
		requests[n] = client.NewRelease{Epsilon: float64(n+1) / 4, Columns: []client.ColumnRequest{{Name: "a", Low: new(0.), High: new(1.)}}}
		bodies[n] = release(n, n) // each by another server
	}
	mark := filepath.Join(r.dir, "holdouts", card.ID, "epsilon")
	newest, err := os.ReadFile(mark)
	if err != nil {
		t.Fatal(err)
	}
	for range 60 {
		if err := errors.Join(os.Remove(mark), os.WriteFile(every, before, 0o600)); err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		for n := range requests {
			both.Go(func() {
				if again := release(1-n, n); again != bodies[n] {
					t.Errorf("release %d is another one: %s, was %s", n, again, bodies[n])
				}
			})
		}
		both.Wait()
		if now, err := os.ReadFile(every); err == nil && !bytes.Equal(now, before) {
			if err := os.WriteFile(mark, newest, 0o600); err != nil { // the minute has come in between, and the mark lags no more
				t.Fatal(err)
			}
			continue
		}
		if now, err := os.ReadFile(mark); err != nil || !bytes.Equal(now, newest) {
			t.Fatalf("the mark is %s (%v), want %s", now, err, newest)
		}
	}
}
