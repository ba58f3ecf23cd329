package holdout

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
)

// TestOrderOfCategories: the card and the file of the training part have the order of categories that the upload's writer had, and no category that held-out rows alone have,
// nor one that no row has. A draft's card says none.
func TestOrderOfCategories(t *testing.T) {
	const rows = 200 // each with a text of its own
	var order, values []string
	for i := range rows {
		order = append(order, fmt.Sprintf("%d of them", rows-i), fmt.Sprintf("nobody %d", i))
	}
	for i := range rows {
		values = append(values, order[2*((i*37)%rows)])
	}
	table, err := dataset.FromColumns(dataset.NewText("level", values, nil), dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: make([]float64, rows)})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := ingest.ExportOrdered(&b, table, map[string][]string{"level": order}); err != nil {
		t.Fatal(err)
	}
	s, set := open(t, t.TempDir()), Settings{Name: "levels", Mechanism: "gaussian", Questions: 1, Holdout: 0.5}
	draft, err := s.DryRun(t.Context(), admin, set, SingleUpload(bytes.NewReader(b.Bytes())))
	if err != nil {
		t.Fatal(err)
	}
	if len(draft.Columns) != 2 || draft.Columns[0].Order != nil {
		t.Errorf("a draft's card: %+v", draft.Columns)
	}
	made, _, err := s.Create(t.Context(), admin, set, SingleUpload(bytes.NewReader(b.Bytes())), "")
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Training(t.Context(), analyst, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	file, dir := filepath.Join(t.TempDir(), "training.parquet"), filepath.Join(t.TempDir(), "training")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := ingest.Decode(t.Context(), file, dir, ingest.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	training, err := dataset.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer training.Close()
	texts := training.Column(0).Dictionary.Sorted()
	want := slices.DeleteFunc(slices.Clone(order), func(text string) bool { return !slices.Contains(texts, text) })
	if len(want) != rows/2 || !slices.Equal(res.Orders["level"], want) {
		t.Errorf("the file of the training part has %q, want %q", res.Orders["level"], want)
	}
	card, err := s.Card(t.Context(), analyst, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(card.Columns[0].Order, want) || card.Columns[1].Order != nil {
		t.Errorf("the card has %q, want %q", card.Columns[0].Order, want)
	}
}
