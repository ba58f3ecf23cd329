package holdout

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/internal/await"
)

// sweeping is a shared ledger whose other servers take uploads, and whose commits wait, as a test wants it.
type sweeping struct {
	numberedTerms
	taking  atomic.Bool  // another server takes an upload
	kept    atomic.Int64 // locks against uploads
	entered chan struct{}
	wait    chan struct{} // before an update; nil: none waits
}

func (l *sweeping) SweepFiles(context.Context) (func(), bool, error) {
	if l.taking.Load() {
		return func() {}, false, nil
	}
	l.kept.Add(1)
	return func() { l.kept.Add(-1) }, true, nil
}

func (l *sweeping) Update(ctx context.Context, id string, fn func(*ledger.Tx) error) error {
	if l.wait != nil {
		if l.kept.Load() != 1 {
			panic("a retirement is recorded while other servers may take uploads")
		}
		close(l.entered)
		<-l.wait
	}
	return l.Ledger.Update(ctx, id, fn)
}

// TestRetireBesideUploads: a holdout is not retired while another server takes an upload, whose rows may be the same; and until the entry is durable no upload begins, here or there, also when who asked for the retirement
// has gone. It notices rows that are released while they become held out.
func TestRetireBesideUploads(t *testing.T) {
	s := open(t, t.TempDir())
	id := create(t, s, Settings{Questions: 20, Mechanism: "gaussian"}, visits(t, 400, 1)).ID
	l := &sweeping{numberedTerms: numberedTerms{Ledger: s.ledger}}
	own := s.ledger
	t.Cleanup(func() { s.ledger = own })
	s.ledger, s.shared, s.tenures.shared, s.tenures.look = l, l, l, s.lookAtMark
	l.taking.Store(true)
	_, err := s.Retire(t.Context(), admin, id)
	if KindOf(err) != Unavailable || !strings.Contains(err.Error(), "taking an upload") || len(s.creating) != 0 {
		t.Fatalf("beside an upload to another server: %v", err)
	}
	if card, err := s.Card(t.Context(), admin, id); err != nil || card.Retired {
		t.Fatalf("it is retired: %v", err)
	}
	l.taking.Store(false)
	l.entered, l.wait = make(chan struct{}), make(chan struct{})
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Retire(ctx, admin, id)
		ended <- err
	}()
	<-l.entered
	leave()
	if err := <-ended; KindOf(err) != Unavailable {
		t.Errorf("who has gone is told %v", err)
	}
	if l.kept.Load() != 1 || len(s.creating) != 1 {
		t.Errorf("uploads may begin before the entry is durable: %d locks against those of others, %d against the server's own", l.kept.Load(), len(s.creating))
	}
	close(l.wait)
	await.Until(t, "uploads may begin again", func() bool { return l.kept.Load() == 0 && len(s.creating) == 0 })
	if h, err := own.Holdout(t.Context(), id); err != nil || !h.Retired {
		t.Errorf("it is not retired: %v", err)
	}
}
