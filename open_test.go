package holdoutd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/holdoutd/holdoutd"
	"github.com/holdoutd/holdoutd/experiments/data"
	"github.com/holdoutd/holdoutd/holdout"
)

// flights writes the table of flights into a directory of its own.
func flights(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "flights.parquet")
	if err := os.WriteFile(path, []byte(data.Flights), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const late = `{"type":"fraction","of":"delay > 15"}`

// open opens it on any file system, as a temporary directory can lie in memory.
func open(t *testing.T, path string, spec holdoutd.Spec) (*holdoutd.Holdout, error) {
	t.Helper()
	h, err := holdoutd.OpenIn(t.Context(), holdout.Options{Dir: holdoutd.Directory(path), AnyFileSystem: true}, path, spec)
	if err == nil {
		t.Cleanup(func() { _ = h.Close() }) // a test may have closed it
	}
	return h, err
}

func must[T any](x T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

// TestOpen: a holdout that is opened again with the same file and spec goes on with its budget and its answers, also where the program ended before it noted what it had made. As long as nothing was
// asked other settings make another one; then they are refused, and so is the file once rows were added to it.
func TestOpen(t *testing.T) {
	path := flights(t)
	h := must(open(t, path, holdoutd.Spec{Questions: 50, Unit: "row"}))(t)
	card := must(h.Card(t.Context()))(t)
	if card.Name != "flights" || card.Guarantee.Questions != 50 || card.Units.Holdout+card.Units.Training != 100_000 {
		t.Errorf("the card: %+v", card)
	}
	if _, err := open(t, path, holdoutd.Spec{Questions: 50, Unit: "row"}); err == nil {
		t.Error("two programs have one directory")
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(holdoutd.Directory(path), "opened.json")); err != nil { // as if it had ended before it was noted
		t.Fatal(err)
	}
	h = must(open(t, path, holdoutd.Spec{Questions: 50, Unit: "row"}))(t)
	if _, same := h.Service(); same != card.ID {
		t.Errorf("opened again it is %s, it was %s", same, card.ID)
	}
	_ = h.Close()
	spec := holdoutd.Spec{Questions: 3, Unit: "row", Mechanism: "gaussian"}
	h = must(open(t, path, spec))(t)
	first := must(h.Ask(t.Context(), late))(t)
	if first.Value == nil || first.Interval == nil || *first.Interval.Low > 0.2 || *first.Interval.High < 0.2 {
		t.Errorf("the answer: %+v", first)
	}
	training := must(h.Training(t.Context()))(t)
	if head, err := io.ReadAll(io.LimitReader(training, 4)); err != nil || string(head) != "PAR1" {
		t.Errorf("the training part begins %q, %v", head, err)
	}
	_ = training.Close()
	_ = h.Close()
	h = must(open(t, path, spec))(t)
	again := must(h.Ask(t.Context(), late))(t)
	if again.ID != first.ID || *again.Value != *first.Value {
		t.Errorf("asked again: %s %v, it was %s %v", again.ID, *again.Value, first.ID, *first.Value)
	}
	if left := must(h.Budget(t.Context()))(t); left.Questions.Left != 2 {
		t.Errorf("left is %+v", left.Questions)
	}
	var asked sync.WaitGroup
	for _, minutes := range []string{"6", "7"} {
		asked.Go(func() {
			if _, err := h.Ask(t.Context(), `{"type":"fraction","of":"delay > `+minutes+`.5"}`); err != nil {
				t.Error(err)
			}
		})
	}
	asked.Wait()
	var e *holdout.Error
	if _, err := h.Ask(t.Context(), `{"type":"fraction","of":"delay > 60"}`); !errors.As(err, &e) || e.Kind != holdout.BudgetExhausted {
		t.Errorf("after the last question: %v", err)
	}
	_ = h.Close()
	if _, err := open(t, path, holdoutd.Spec{Questions: 100, Unit: "row"}); !errors.As(err, &e) || e.Kind != holdout.Exists {
		t.Errorf("other settings: %v", err)
	}
	if entries, err := os.ReadDir(filepath.Join(holdoutd.Directory(path), "holdouts")); err != nil || len(entries) != 1 {
		t.Errorf("%d holdouts, %v", len(entries), err)
	}
	info, err := os.Stat(holdoutd.Directory(path))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info, err)
	}
}

// TestOpenRefuses says what is wrong with a file or a spec, and that no file is a table.
func TestOpenRefuses(t *testing.T) {
	path := flights(t)
	if _, err := open(t, path+".none", holdoutd.Spec{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := os.Stat(holdoutd.Directory(path + ".none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory of no file: %v", err)
	}
	if _, err := open(t, path, holdoutd.Spec{Mechanism: "guess"}); err == nil || !strings.Contains(err.Error(), "guess") {
		t.Errorf("no mechanism: %v", err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged.parquet")
	if err := os.WriteFile(damaged, []byte(data.Flights[:len(data.Flights)/2]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, damaged, holdoutd.Spec{}); err == nil || !strings.Contains(err.Error(), "Parquet") {
		t.Errorf("half a file: %v", err)
	}
}

func ExampleOpen() {
	parquet := filepath.Join(os.TempDir(), "flights.parquet") // yours
	defer os.RemoveAll(holdoutd.Directory(parquet))
	defer os.Remove(parquet)
	if err := os.WriteFile(parquet, []byte(data.Flights), 0o600); err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	h, err := holdoutd.OpenIn(ctx, holdout.Options{Dir: holdoutd.Directory(parquet), AnyFileSystem: true}, parquet, holdoutd.Spec{Questions: 100})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close()
	a, err := h.Ask(ctx, late)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*a.Interval.Low < 0.2 && 0.2 < *a.Interval.High)
	// Output: true
}
