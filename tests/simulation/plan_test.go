package simulation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// plan is everything that is going to happen in a run: what people ask, and what befalls the machine. It comes from one number.
type plan struct {
	seed   uint64
	people [][]request
	events []event
}

// request is something that a person sends until it is answered, or until it gives up.
type request struct {
	pause   time.Duration // before it
	kind    string
	holdout int
	queries []int
	partial bool
	key     int             // of the person's Idempotency-Keys; 0: none
	leaves  time.Duration   // the caller leaves then; 0: it waits
	tries   int             // before it gives up
	again   []time.Duration // it is sent again after these, though it was answered
}

// Kinds of requests.
const (
	ask     = "ask"
	ready   = "ready"
	makeKey = "make a key"
	revoke  = "revoke the key" // the person's last one
	remove  = "delete"
)

// event befalls the machine.
type event struct {
	pause  time.Duration // before it
	kind   string
	calls  int           // the how manieth change of the disk from now on it is; how many fail; of a log that is cut, where and how
	length time.Duration // how long it lasts
	other  bool          // the next start, or the second server, comes by the other mount
}

// Kinds of events.
const (
	powerOff   = "the power goes"
	kill       = "the process is killed"
	restart    = "the server is started again"
	failSyncs  = "syncs fail"
	failWrites = "writes fail"
	failReads  = "reads fail"
	full       = "the disk is full"
	slow       = "a sync is slow"
	second     = "a second server comes"
	harm       = "the log is cut"
)

func draw(seed uint64) plan {
	r := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high time.Duration) time.Duration { return low + time.Duration(r.Int64N(int64(high-low))) }
	p := plan{seed: seed}
	for range 2 + r.IntN(2) {
		var all []request
		for key := range 2 + r.IntN(3) {
			q := request{kind: ask, holdout: r.IntN(holdouts), pause: between(time.Millisecond, 2*time.Second), tries: 1 + r.IntN(6), partial: r.IntN(2) == 0}
			if r.IntN(6) == 0 {
				q.pause += between(10*time.Second, 30*time.Second)
			}
			n := 1
			if r.IntN(2) == 0 {
				n = 2 + r.IntN(8) // of which a round pays for six
			}
			for range n {
				q.queries = append(q.queries, r.IntN(queriesOf))
			}
			if r.IntN(2) == 0 {
				q.key = key + 1
			}
			if r.IntN(6) == 0 {
				q.leaves = between(time.Microsecond, 20*time.Millisecond)
			}
			for range r.IntN(3) {
				q.again = append(q.again, between(time.Millisecond, 3*time.Second))
			}
			all = append(all, q)
			soon := func() time.Duration { return between(time.Millisecond, time.Second) }
			if r.IntN(4) == 0 {
				all = append(all, request{kind: ready, pause: soon(), tries: 1})
			}
			if r.IntN(8) == 0 {
				all = append(all, request{kind: makeKey, pause: soon(), tries: 3})
				if r.IntN(2) == 0 {
					all = append(all, request{kind: revoke, pause: soon(), tries: 3})
				}
			}
			if r.IntN(10) == 0 {
				all = append(all, request{kind: remove, holdout: r.IntN(holdouts), pause: soon(), tries: 3})
			}
		}
		p.people = append(p.people, all)
	}
	kinds := []string{powerOff, powerOff, powerOff, kill, kill, restart, failSyncs, failSyncs, failWrites, failReads, full, slow, second, second}
	for range 1 + r.IntN(4) {
		e := event{kind: kinds[r.IntN(len(kinds))], pause: between(time.Millisecond, 3*time.Second), other: r.IntN(3) == 0}
		switch e.kind {
		case powerOff, kill:
			e.calls = 1 + r.IntN(40)
		case failSyncs, failWrites, failReads:
			e.calls = 1 + r.IntN(3)
		case full:
			e.length = between(100*time.Millisecond, 15*time.Second)
			if r.IntN(4) == 0 {
				e.length = 2 * waits
			}
		case slow:
			e.length = between(time.Second, 15*time.Second)
		case second:
			e.length = max(0, between(-4*time.Second, 9*time.Second))
		}
		p.events = append(p.events, e)
		if e.kind == failSyncs && r.IntN(2) == 0 { // the next process sees what is not on the disk; what is built on that is lost with the machine
			p.events = append(p.events, event{kind: kill, pause: between(10*time.Millisecond, time.Second), calls: 1 + r.IntN(3)})
			p.events = append(p.events, event{kind: powerOff, pause: between(100*time.Millisecond, 2*time.Second), calls: 1 + r.IntN(40)})
		}
	}
	if r.IntN(12) == 0 { // whatever the disk does then, only this can lose anything
		p.events = []event{{kind: harm, pause: between(time.Second, 4*time.Second), calls: r.IntN(1 << 20), length: between(0, 3*time.Second)}}
	}
	return p
}

// smaller are the plans with something less in them.
func (p plan) smaller(yield func(plan) bool) {
	for i := range p.people {
		q := p
		q.people = slices.Delete(slices.Clone(p.people), i, i+1)
		if !yield(q) {
			return
		}
	}
	for i := range p.events {
		q := p
		q.events = slices.Delete(slices.Clone(p.events), i, i+1)
		if !yield(q) {
			return
		}
	}
	for i, all := range p.people {
		for j := range all {
			q := p
			q.people = slices.Clone(p.people)
			q.people[i] = slices.Delete(slices.Clone(all), j, j+1)
			if !yield(q) {
				return
			}
		}
	}
	for i, all := range p.people {
		for j, r := range all {
			for k := range r.again {
				less := r
				less.again = slices.Delete(slices.Clone(r.again), k, k+1)
				if !yield(p.with(i, j, less)) {
					return
				}
			}
			for k := range r.queries {
				if len(r.queries) == 1 {
					break
				}
				less := r
				less.queries = slices.Delete(slices.Clone(r.queries), k, k+1)
				if !yield(p.with(i, j, less)) {
					return
				}
			}
			if r.leaves > 0 {
				less := r
				less.leaves = 0
				if !yield(p.with(i, j, less)) {
					return
				}
			}
		}
	}
}

// with is the plan with another request in a place.
func (p plan) with(person, place int, r request) plan {
	p.people = slices.Clone(p.people)
	p.people[person] = slices.Clone(p.people[person])
	p.people[person][place] = r
	return p
}

func (p plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d\n", p.seed)
	for i, all := range p.people {
		for _, r := range all {
			fmt.Fprintf(&b, "  person %d: after %v %s", i, r.pause, r.kind)
			if r.kind == ask || r.kind == remove {
				fmt.Fprintf(&b, " holdout %d %v, partial %v, key %d, leaves after %v, %d tries, again after %v", r.holdout, r.queries, r.partial, r.key, r.leaves, r.tries, r.again)
			}
			b.WriteByte('\n')
		}
	}
	for _, e := range p.events {
		fmt.Fprintf(&b, "  after %v %s (calls %d, for %v, other mount %v)\n", e.pause, e.kind, e.calls, e.length, e.other)
	}
	return b.String()
}
