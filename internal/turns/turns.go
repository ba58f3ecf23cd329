// Package turns shares places and memory fairly among keys.
//
// A request acquires a place, and the bytes of memory that it may take, before it works. Where there is no room it waits, each key in
// a line of its own. Lines are served in turn, weighted by what their requests cost: start-time fair queueing (Goyal, Vin and Cheng,
// SIGCOMM 1996). A key that sends a thousand requests, or one that costs a thousand times as much, makes its own line long and not
// that of others.
//
// The promises, each kept by a test:
//
//   - Capacity: the places and the bytes that are held never exceed those of the queue.
//   - Share: one key never holds more than half of the places or of the bytes. So a single key, whatever it sends, cannot keep all
//     others waiting, however long its requests last.
//   - Fairness: between two keys that are both waiting, the costs of what was admitted differ by at most the cost of one request of each.
//   - No starvation: within a line requests are admitted as they came. A request whose turn it is and for which there is not enough
//     memory yet is not overtaken by smaller ones, except while its own key is at its share.
//   - A waiter who leaves gives up its place in line and costs its key nothing.
//
// A queue of processors ([Processors]) has no share, since its places are given back between small pieces of work ([Place.Yield]).
//
// The package knows no HTTP, no rows and no clock: time is the cost that was admitted.
package turns

import (
	"container/list"
	"context"
	"fmt"
	"sync"
)

// Load is what one request takes.
type Load struct {
	Bytes int64   // of memory, until its release; from 0
	Cost  float64 // of work, from 0, in a unit that is the same for all requests: what the turn is weighted by
}

// Queue is a number of places and bytes. It is safe for concurrent use.
type Queue struct {
	places int
	bytes  int64
	whole  bool // one key can hold all of it

	mu    sync.Mutex
	used  int
	held  int64
	clock float64 // virtual time: the start of the request that was admitted last
	lines map[string]*line
	order int64 // of arrivals, for lines with equal starts
}

// line is one key's: what it holds and who waits for it.
type line struct {
	key    string
	used   int
	held   int64
	finish float64 // virtual time up to which the line has had its share
	since  float64 // the queue's clock when the line began to wait
	wait   list.List
}

// waiter is a request in its line.
type waiter struct {
	load    Load
	order   int64
	at      *list.Element // in its line
	granted chan struct{} // closed when it has its place
}

// New returns a queue of places requests at a time that hold at most bytes together. Both are at least 1.
func New(places int, bytes int64) *Queue {
	return &Queue{places: max(places, 1), bytes: max(bytes, 1), lines: map[string]*line{}}
}

// Processors returns a queue of places that one key can have all of while nobody else wants them. It is for work that yields often
// ([Place.Yield]); its requests take no bytes.
func Processors(places int) *Queue {
	q := New(places, 1)
	q.whole = true
	return q
}

// SharePlaces is how many places one key can hold: half of them, rounded up; of processors all.
func (q *Queue) SharePlaces() int {
	if q.whole {
		return q.places
	}
	return q.places/2 + q.places%2
}

// ShareBytes is how many bytes one key can hold, and so the largest request that is ever admitted: half of them, rounded up.
func (q *Queue) ShareBytes() int64 { return q.bytes/2 + q.bytes%2 }

// LargeError is a request that has no room even in an empty queue.
type LargeError struct{ Bytes, Most int64 }

func (e *LargeError) Error() string {
	return fmt.Sprintf("turns: %d bytes, at most %d", e.Bytes, e.Most)
}

// Acquire waits for a place of a key and returns it, to be released once. Errors are ctx's, or a *[LargeError] at once.
func (q *Queue) Acquire(ctx context.Context, key string, load Load) (*Place, error) {
	load = Load{Bytes: max(load.Bytes, 0), Cost: max(load.Cost, 0)}
	if most := q.ShareBytes(); load.Bytes > most {
		return nil, &LargeError{load.Bytes, most}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	place, w := q.enter(key, load)
	select {
	case <-w.granted:
		return place, nil
	case <-ctx.Done():
		q.leave(place, w)
		return nil, ctx.Err()
	}
}

// enter puts a request at the end of its key's line. The place is the request's once it is granted.
func (q *Queue) enter(key string, load Load) (*Place, *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lines[key]
	if l == nil {
		l = &line{key: key}
		q.lines[key] = l
	}
	if l.wait.Len() == 0 {
		l.since = q.clock
	}
	q.order++
	w := &waiter{load: load, order: q.order, granted: make(chan struct{})}
	w.at = l.wait.PushBack(w)
	q.admit()
	return &Place{queue: q, line: l, bytes: load.Bytes}, w
}

// leave takes a request out of its line, or gives back what it has just been granted.
func (q *Queue) leave(place *Place, w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.granted:
		place.release()
	default:
		place.line.wait.Remove(w.at)
		place.released = true
		q.admit() // those behind it may fit
		q.tidy(place.line)
	}
}

// admit gives places to the lines whose turn it is, while there is room.
func (q *Queue) admit() {
	for {
		l := q.next()
		if l == nil {
			return
		}
		w := l.wait.Front().Value.(*waiter)
		if q.used == q.places || w.load.Bytes > q.bytes-q.held {
			return
		}
		l.wait.Remove(l.wait.Front())
		start := l.start()
		q.clock = max(q.clock, start)
		l.finish = start + w.load.Cost
		q.used, q.held = q.used+1, q.held+w.load.Bytes
		l.used, l.held = l.used+1, l.held+w.load.Bytes
		close(w.granted)
	}
}

// next is the line whose turn it is: of those that wait and are below their share, the one whose first request starts earliest.
func (q *Queue) next() (turn *line) {
	var first *waiter
	for _, l := range q.lines {
		if l.wait.Len() == 0 {
			continue
		}
		w := l.wait.Front().Value.(*waiter)
		if l.used >= q.SharePlaces() || w.load.Bytes > q.ShareBytes()-l.held {
			continue
		}
		if turn == nil || l.start() < turn.start() || l.start() == turn.start() && w.order < first.order {
			turn, first = l, w
		}
	}
	return turn
}

// start is the virtual time at which the first waiter of the line would start.
func (l *line) start() float64 { return max(l.finish, l.since) }

// idle reports whether nothing of the line is here.
func (l *line) idle() bool { return l.used == 0 && l.held == 0 && l.wait.Len() == 0 }

// tidy forgets a line that has nothing to remember.
func (q *Queue) tidy(l *line) {
	if l.idle() && l.finish <= q.clock {
		delete(q.lines, l.key)
	}
	for _, l := range q.lines {
		if !l.idle() {
			return
		}
	}
	clear(q.lines) // nobody is here: what lines have had does not matter to those who come
	q.clock = 0
}

// Place is what a request holds.
type Place struct {
	queue    *Queue
	line     *line
	bytes    int64
	released bool
	resting  bool // its place is given back, its bytes are not
}

// Grow takes so many more bytes for a request that turned out larger. It does not wait, since one who holds memory must not wait for
// memory: false means that there is no room now, and nothing has changed.
func (p *Place) Grow(bytes int64) bool {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.released || bytes < 0 || bytes > q.bytes-q.held || bytes > q.ShareBytes()-p.line.held {
		return false
	}
	p.bytes, p.line.held, q.held = p.bytes+bytes, p.line.held+bytes, q.held+bytes
	q.admit() // where this line's next request was waited for and is now above its share, it is another one's turn
	return true
}

// Charge adds to the cost of the request what was not known when it was admitted. The key's next requests wait for it.
func (p *Place) Charge(cost float64) {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	p.line.finish += max(cost, 0)
	q.admit() // another line may have its turn now, and fit
}

// Yield adds to the cost of the request, and lets other keys go before it whose turn it is now: it gives the place back and waits for
// the next one, before the other requests of its own key. An error is ctx's; then the place is given back.
func (p *Place) Yield(ctx context.Context, cost float64) error {
	w := p.yield(cost)
	if w == nil {
		return nil
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
		p.queue.leave(p, w)
		return ctx.Err()
	}
}

// yield puts the request back into its line where another line is behind it, and gives its place on; else it is nil, and what follows
// is as if it had been admitted now.
func (p *Place) yield(cost float64) *waiter {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	p.line.finish += max(cost, 0)
	if turn := q.next(); turn == nil || turn == p.line || turn.start() >= p.line.finish {
		q.clock = max(q.clock, p.line.finish)
		return nil
	}
	if p.line.wait.Len() == 0 {
		p.line.since = q.clock
	}
	q.order++
	w := &waiter{load: Load{Bytes: p.bytes}, order: q.order, granted: make(chan struct{})}
	w.at = p.line.wait.PushFront(w)
	q.used, q.held = q.used-1, q.held-p.bytes
	p.line.used, p.line.held = p.line.used-1, p.line.held-p.bytes
	q.admit()
	return w
}

// Rest gives the place back and keeps the bytes, for a request that has done its work and only has to let time pass. A second call
// does nothing; Release then gives back the bytes.
func (p *Place) Rest() {
	q := p.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.released || p.resting {
		return
	}
	p.resting = true
	q.used--
	p.line.used--
	q.admit()
}

// Bytes is what the request holds.
func (p *Place) Bytes() int64 {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	return p.bytes
}

// Release gives the place and its bytes back. A second call does nothing.
func (p *Place) Release() {
	p.queue.mu.Lock()
	defer p.queue.mu.Unlock()
	p.release()
}

// release is Release with the queue locked.
func (p *Place) release() {
	if p.released {
		return
	}
	q := p.queue
	p.released = true
	if !p.resting {
		q.used--
		p.line.used--
	}
	q.held -= p.bytes
	p.line.held -= p.bytes
	q.admit()
	q.tidy(p.line)
}

// Load is what is held and how many wait, of all keys together.
func (q *Queue) Load() (places int, bytes int64, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines {
		waiting += l.wait.Len()
	}
	return q.used, q.held, waiting
}
