package holdout

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/dataset"
)

// writersFile is a file that a real writer made.
func writersFile(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("../dataset/ingest/testdata/writers/" + name + ".parquet")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestUploadOfWriters: the card of a file says the unit of a time of day, warns of what is skipped, with the reason, and of an index; a setting that names a
// skipped column is told the reason. So it is on the card of a draft, which says nothing of rows.
func TestUploadOfWriters(t *testing.T) {
	s := open(t, t.TempDir())
	set := Settings{Name: "notes", Mechanism: "gaussian", Questions: 1, Holdout: 0.5}
	three := set
	three.Holdout = 0.7
	card, err := s.DryRun(t.Context(), admin, three, SingleUpload(bytes.NewReader(writersFile(t, "pandas-notes"))))
	if err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{}
	for _, c := range card.Columns {
		notes[c.Name] = c.Note
	}
	if notes["start"] != "seconds since midnight" || notes["wait"] != "microseconds" || !strings.HasPrefix(notes["month"], "pandas period[M]: months since 1970") || notes["i"] != "" {
		t.Errorf("notes %q", notes)
	}
	warned := func(code, column, says string) bool {
		return slices.ContainsFunc(card.Warnings, func(w Warning) bool { return w.Code == code && w.Column == column && strings.Contains(w.Detail, says) })
	}
	if !warned("index-column", "__index_level_0__", "index=False") {
		t.Errorf("warnings %+v", card.Warnings)
	}
	card, err = s.DryRun(t.Context(), admin, set, SingleUpload(bytes.NewReader(writersFile(t, "pandas-skipped"))))
	if err != nil {
		t.Fatal(err)
	}
	if len(card.Skipped) != 5 || !warned("skipped-columns", "", `5 columns of the upload are not in the holdout: "none" (it has the null type`) {
		t.Errorf("skipped %v, warnings %+v", card.Skipped, card.Warnings)
	}
	for _, c := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Label = "raw" }, `label names the column "raw", which was skipped: binary without a text annotation`},
		{func(s *Settings) { s.Unit = "list" }, `unit names the column "list", which was skipped: LIST`},
		{func(s *Settings) { s.Unit = "day(age)" }, `unit names the column "age", which was skipped: pandas interval`},
		{func(s *Settings) { s.Stratify = "dict" }, `stratify names the column "dict", which was skipped: STRUCT`},
		{func(s *Settings) { s.Split = "time:none" }, `split names the column "none", which was skipped: it has the null type`},
	} {
		set := set
		c.change(&set)
		_, err := s.DryRun(t.Context(), admin, set, SingleUpload(bytes.NewReader(writersFile(t, "pandas-skipped"))))
		wantKind(t, c.want, err, Invalid)
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestSkippedInAQuery: a question about a column that was skipped is told why it is not there.
func TestSkippedInAQuery(t *testing.T) {
	s := open(t, t.TempDir())
	card, _, err := s.Create(t.Context(), admin, Settings{Name: "skipped", Mechanism: "gaussian", Questions: 1, Holdout: 0.5}, SingleUpload(bytes.NewReader(writersFile(t, "polars-skipped"))), "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Explain(t.Context(), analyst, card.ID, []byte(`{"type":"fraction","of":"id > 3"}`))
	wantKind(t, "a skipped column", err, Invalid)
	if !strings.Contains(err.Error(), "was skipped: 128-bit integer") {
		t.Error(err)
	}
}

// TestGivenPartsThatDiffer: integers that are beyond 2^53 in one part are texts in both, a column without values in one part has nulls of the other's kind, and what cannot be
// brought together is explained by the types.
func TestGivenPartsThatDiffer(t *testing.T) {
	given := func(training, holdout []byte) Upload {
		parts := []string{"training", "holdout"}
		bodies := map[string][]byte{"training": training, "holdout": holdout}
		return func() (string, io.Reader, error) {
			if len(parts) == 0 {
				return "", nil, io.EOF
			}
			part := parts[0]
			parts = parts[1:]
			return part, bytes.NewReader(bodies[part]), nil
		}
	}
	set := Settings{Name: "given", Split: splitGiven, Mechanism: "gaussian", Questions: 1}
	for _, swapped := range []bool{false, true} {
		a, b := writersFile(t, "given-wide"), writersFile(t, "given-empty")
		if swapped {
			a, b = b, a
		}
		card, _, err := open(t, t.TempDir()).Create(t.Context(), admin, set, given(a, b), "")
		if err != nil {
			t.Fatal(err)
		}
		kinds := map[string]dataset.Kind{}
		for _, c := range card.Columns {
			kinds[c.Name] = c.Kind
		}
		if kinds["id"] != dataset.Text || kinds["note"] != dataset.Text || kinds["i"] != dataset.Number || len(card.Skipped) != 0 {
			t.Errorf("swapped %v: kinds %v, skipped %v", swapped, kinds, card.Skipped)
		}
	}
	_, _, err := open(t, t.TempDir()).Create(t.Context(), admin, set, given(writersFile(t, "given-wide"), writersFile(t, "given-double")), "")
	wantKind(t, "a double", err, BadUpload)
	if want := `the column "id" is text (INT64) in the part training and number (DOUBLE) in the part holdout; write it with one type`; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
