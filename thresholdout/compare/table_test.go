package compare

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestPage: docs/BOUNDS.md is what the code makes, and says something of every method.
func TestPage(t *testing.T) {
	var made bytes.Buffer
	if err := WriteTable(&made); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("../../docs/BOUNDS.md", made.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	page, err := os.ReadFile("../../docs/BOUNDS.md")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(page, made.Bytes()) {
		t.Error("docs/BOUNDS.md differs; make generate")
	}
	for _, m := range methods() {
		d := m.described
		if d.formula == "" || d.source == "" || d.assumes == "" || strings.HasPrefix(d.published, "no") {
			t.Errorf("%s is described by %+v", m.name, d)
		}
		if _, after, ok := strings.Cut(d.source, "(proofs/"); ok {
			name, _, _ := strings.Cut(after, ")")
			if _, err := os.Stat("../../docs/proofs/" + name); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
	if all := methods(); len(all) != len(order) {
		t.Errorf("%d methods, of which %d have a place", len(all), len(order))
	}
}

// TestAnswerWidths: at 12,000 units a measured answer has less than half of the half-width of a check, and the report after 300 checks less than that of any of them; the tenth measured answer and a report after ten are wider than the first ones.
func TestAnswerWidths(t *testing.T) {
	w, err := AnswerWidthsOf(12_000, 0.77)
	if err != nil {
		t.Fatal(err)
	}
	if !(w.First < 0.45*w.Check && w.First < w.Tenth && w.Tenth < w.Check && w.Report < w.First && w.Report < w.AfterMeasured && w.First < 1.95*w.Textbook) {
		t.Errorf("%+v", w)
	}
}
