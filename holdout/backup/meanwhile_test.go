package backup

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// meanwhile does something before the ledger's rows are read for the first time, when the tables were copied.
type meanwhile struct {
	file
	do func()
}

func (m *meanwhile) Dump(ctx context.Context, out io.Writer) ([]ledger.Report, error) {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return m.file.Dump(ctx, out)
}

// during backs up a directory of two holdouts while something happens between its tables and its ledger, and restores it.
func during(t *testing.T, happens func(s *holdout.Service, ids []string)) (dir string, ids []string, m Manifest) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	s := serve(t, dir)
	ids = []string{create(t, s, 1, holdout.Settings{}), create(t, s, 2, holdout.Settings{})}
	ask(t, s, ids[0], 1)
	recipients, opens := keys(t)
	backup, m := backedUp(t, Source{Dir: dir, Recipients: recipients, WithServerKey: true,
		Ledger: &meanwhile{file(filepath.Join(dir, holdout.LedgerFile)), func() { happens(s, ids) }}})
	restored := filepath.Join(t.TempDir(), "restored")
	_, err := Restore(t.Context(), bytes.NewReader(backup), restored, Options{Identities: opens})
	must(t, err)
	return restored, ids, m
}

// TestDeletedMeanwhile deletes a holdout whose tables are in the backup already: its rows do not come back.
func TestDeletedMeanwhile(t *testing.T) {
	dir, ids, _ := during(t, func(s *holdout.Service, ids []string) { must(t, s.Delete(t.Context(), admin, ids[1])) })
	noRows(t, filepath.Join(dir, holdoutsDir, ids[1]))
}

// TestMadeMeanwhile makes a holdout behind the tables: it is in the backup, with its own.
func TestMadeMeanwhile(t *testing.T) {
	made := ""
	dir, _, m := during(t, func(s *holdout.Service, _ []string) { made = create(t, s, 3, holdout.Settings{}) })
	if len(m.Holdouts) != 3 || m.Holdouts[2].ID != made || m.Holdouts[2].Without != "" {
		t.Errorf("%s in the backup: %+v", made, m.Holdouts)
	}
	has := false
	for _, f := range m.Files {
		has = has || strings.HasPrefix(f.Path, holdoutsDir+"/"+made+"/holdout/")
	}
	if _, err := os.Stat(filepath.Join(dir, holdoutsDir, made, "holdout", "columns")); err != nil || !has {
		t.Errorf("the tables of a holdout that was made meanwhile: %v, %v", has, err)
	}
}
