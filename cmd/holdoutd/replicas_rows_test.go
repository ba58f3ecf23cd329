package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
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
