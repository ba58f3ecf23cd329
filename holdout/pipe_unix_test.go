//go:build unix

package holdout

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/internal/await"
)

// TestNothingWaitsForAPipe puts a named pipe in the place of each file of a holdout, while it is open and before a start. The holdout is damaged and its answers
// replay; nothing waits for somebody who writes. The others go on.
func TestNothingWaitsForAPipe(t *testing.T) {
	for _, name := range []string{holdoutDir + "/" + columnsOf, holdoutDir + "/" + manifestOf, trainingDir + "/" + columnsOf, markFile} {
		if t.Failed() {
			return // each that waits takes all of the patience
		}
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := open(t, dir)
			id := create(t, s, Settings{Questions: 20}, visits(t, 300, 1)).ID
			other := create(t, s, Settings{Questions: 20}, visits(t, 300, 2)).ID
			first := ask(t, s, id, mean(0))
			path := filepath.Join(dir, holdoutsDir, id, filepath.FromSlash(name))
			must(t, os.Remove(path))
			must(t, syscall.Mkfifo(path, 0o600))
			inTime := func(what string, do func()) { // and whoever waits is let go
				t.Helper()
				ended := make(chan struct{})
				go func() { defer close(ended); do() }()
				select {
				case <-ended:
				case <-time.After(await.Patience):
					f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
					must(t, errors.Join(err, f.Close()))
					<-ended
					t.Fatalf("%s waits for somebody who writes", what)
				}
			}
			damaged := func(what string) {
				t.Helper()
				var err error
				inTime(what, func() { _, err = s.Ask(t.Context(), analyst, id, []byte(mean(1)), "") })
				wantKind(t, what, err, Damaged)
				if a := ask(t, s, id, mean(0)); !a.Replayed || string(a.Body) != string(first.Body) {
					t.Errorf("%s: a replay: %s", what, a.Body)
				}
				ask(t, s, other, mean(len(what)))
			}
			if name != markFile { // which is read at the start alone
				s.tables.drop(id, func() {}) // opened anew by the next who asks
				damaged("live")
			}
			var err error
			inTime("verify", func() { _, err = Verify(t.Context(), dir, true) })
			if err == nil {
				t.Error("it verifies")
			}
			must(t, s.Close())
			s = open(t, dir)
			damaged("at a start")
		})
	}
}
