package holdout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/internal/turns"
	"github.com/holdoutd/holdoutd/queries/engine"
)

// Work is what a request takes, from public facts alone: what was asked, rows, units and the rounded sizes of dictionaries. It decides
// whether and when a request is served, so nothing in it may depend on holdout rows.
type Work struct {
	Steps int64 // about nanoseconds of one processor
	Bytes int64 // of memory, held until the reply is written
	Pass  int64 // of memory while rows are read; passes come one after another, so the largest counts

	refused error // by a source that does not do it
}

func (w Work) plus(other Work) Work {
	refused := w.refused
	if refused == nil {
		refused = other.refused
	}
	return Work{saturated(w.Steps, other.Steps), saturated(w.Bytes, other.Bytes), max(w.Pass, other.Pass), refused}
}

// memory is what the request holds at most.
func (w Work) memory() int64 { return saturated(w.Bytes, w.Pass) }

// requestSteps is what every request costs its key's line, for parsing, looking up and committing, however little it asks.
const requestSteps = 1_000_000

// InTurn runs f when it is the turn of the principal's key and there is memory for the work, which f holds until it returns. Keys take
// turns, weighted by the steps of their requests, and no key has more than half of the places or of the memory at a time: see package
// turns. Passes over rows take turns for processors, too. A request is told that the server is busy (Kind Busy) when its turn does not come within Limits.Wait.
//
// What turns out to be needed while f runs is added by need, which can end in f being run once more from its beginning. So f must
// change nothing before its last call of need.
func (s *Service) InTurn(ctx context.Context, p Principal, w Work, f func(ctx context.Context) error) error {
	for bytes := w.memory(); ; {
		again, err := s.takeTurn(ctx, p, w, bytes, f)
		if again == 0 {
			return err
		}
		bytes = again
	}
}

// takeTurn is one attempt of InTurn. If f needs more memory than there is now, again is how many bytes to come back with.
func (s *Service) takeTurn(ctx context.Context, p Principal, w Work, bytes int64, f func(ctx context.Context) error) (again int64, err error) {
	t := &turn{service: s}
	if err := t.fits(w); err != nil {
		return 0, err
	}
	wait, cancel := context.WithTimeout(ctx, s.limits.Wait)
	defer cancel()
	t.place, err = s.turns.Acquire(wait, p.KeyID, turns.Load{Bytes: bytes, Cost: float64(requestSteps) + float64(w.Steps)})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return 0, &Error{Kind: Unavailable, Detail: "the request ended before its turn; nothing was done", Err: ctx.Err()}
	default:
		return 0, &Error{Kind: Busy, RetryAfter: s.limits.Wait,
			Detail: fmt.Sprintf("too many requests are being worked on; this one's turn did not come in %v", s.limits.Wait)}
	}
	defer t.place.Release()
	t.work = w
	ctx = engine.WithProcessors(ctx, processors{s.processors, p.KeyID})
	err = f(context.WithValue(ctx, turnKey{}, t))
	if errors.Is(err, errMoreMemory) {
		// Twice what it had when there was no room, so that a request of many parts comes back a few times and not for each.
		return min(max(t.work.memory(), 2*bytes), s.turns.ShareBytes()), nil
	}
	return 0, err
}

// turn is a request that has its place.
type turn struct {
	service *Service
	place   *turns.Place
	work    Work
}

type turnKey struct{}

// errMoreMemory ends an attempt that needs more memory than is free now.
var errMoreMemory = errors.New("holdout: no memory for the request now")

// need adds work to the request that ctx belongs to, before it is done: it refuses what is too much for any request, and ends the
// attempt (see InTurn) where memory is short now. Outside of InTurn it does nothing.
func need(ctx context.Context, w Work) error {
	t, ok := ctx.Value(turnKey{}).(*turn)
	if !ok {
		return nil
	}
	total := t.work.plus(w)
	if err := t.fits(total); err != nil {
		return err
	}
	t.work = total
	if more := total.memory() - t.place.Bytes(); more > 0 && !t.place.Grow(more) {
		return errMoreMemory
	}
	t.place.Charge(float64(w.Steps))
	return nil
}

// admitted is ctx for what follows the reading of holdout rows: nothing is refused any more, so need does nothing. rest gives the
// request's place to others, for the time in which its reply is kept; its memory stays its own.
func admitted(ctx context.Context) (after context.Context, rest func()) {
	rest = func() {}
	if t, ok := ctx.Value(turnKey{}).(*turn); ok {
		rest = t.place.Rest
	}
	return context.WithValue(ctx, turnKey{}, nil), rest
}

// processors are what the passes of a key's requests take turns for.
type processors struct {
	queue *turns.Queue
	key   string
}

// Enter implements [engine.Processors].
func (p processors) Enter(ctx context.Context) (engine.Processor, error) {
	place, err := p.queue.Acquire(ctx, p.key, turns.Load{})
	if err != nil {
		return nil, err
	}
	return processor{place}, nil
}

// processor is a place among them. What it costs is the time that its chunks took: a chunk takes the same steps whatever rows hold.
type processor struct{ place *turns.Place }

// Yield implements [engine.Processor].
func (p processor) Yield(ctx context.Context, worked time.Duration) error {
	return p.place.Yield(ctx, float64(worked))
}

// Leave implements [engine.Processor].
func (p processor) Leave() { p.place.Release() }

// fits refuses what is too much for any request.
func (t *turn) fits(w Work) error {
	if w.refused != nil {
		return w.refused
	}
	if most := t.service.limits.Work; w.Steps > most {
		return fail(TooLarge, "the request needs about %v of a processor, at most %v are given to one; ask in smaller batches or with shorter expressions",
			rounded(w.Steps), rounded(most))
	}
	if most := t.service.turns.ShareBytes(); w.memory() > most {
		return fail(TooLarge, "the request needs about %d MiB of memory, at most %d MiB are given to one; ask in smaller batches, or about fewer features, categories or bins at once",
			w.memory()>>20, most>>20)
	}
	return nil
}

// rounded is a number of steps as a time.
func rounded(steps int64) time.Duration {
	return time.Duration(steps).Round(time.Millisecond)
}

// Working is the number of requests that have a place now.
func (s *Service) Working() int {
	places, _, _ := s.turns.Load()
	return places
}

// Limits are those that the service holds requests to, defaults filled in.
func (s *Service) Limits() Limits { return s.limits }
