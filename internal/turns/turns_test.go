package turns

//holdoutd:race

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// asked is a request of a test, which knows no goroutines: what is granted when is decided by the order of calls alone.
type asked struct {
	key   string
	load  Load
	place *Place
	w     *waiter
}

func (a *asked) granted() bool {
	select {
	case <-a.w.granted:
		return true
	default:
		return false
	}
}

func enter(q *Queue, key string, load Load) *asked {
	a := &asked{key: key, load: load}
	a.place, a.w = q.enter(key, load)
	return a
}

// TestOneKeyCannotFillTheQueue: whatever one key sends, another one's first request has a place and memory at once.
func TestOneKeyCannotFillTheQueue(t *testing.T) {
	q := New(8, 1000)
	for range 40 {
		enter(q, "hog", Load{Bytes: 10, Cost: 1e9})
	}
	if victim := enter(q, "victim", Load{Bytes: 500, Cost: 1}); !victim.granted() {
		t.Error("forty requests of one key keep another key's request waiting")
	}
	if q := New(math.MaxInt, math.MaxInt64); !enter(q, "a", Load{Bytes: math.MaxInt64 / 2}).granted() || !enter(q, "b", Load{Bytes: math.MaxInt64 / 2}).granted() {
		t.Error("a queue without limits has no room")
	}
	q = New(8, 1000)
	for range 4 {
		enter(q, "hog", Load{Bytes: 250, Cost: 1})
	}
	if victim := enter(q, "victim", Load{Bytes: 500, Cost: 1}); !victim.granted() {
		t.Error("the memory of one key's requests keeps another key's request waiting")
	}
}

// TestTurns: with one place, lines are served in turn, whatever their lengths, and by cost.
func TestTurns(t *testing.T) {
	q := New(1, 1)
	var waiting []*asked
	add := func(key string, cost float64, n int) {
		for range n {
			waiting = append(waiting, enter(q, key, Load{Cost: cost}))
		}
	}
	add("a", 1, 100)
	add("b", 1, 3)
	add("dear", 3, 3)
	served := ""
	for range 14 {
		at := slices.IndexFunc(waiting, (*asked).granted)
		served += waiting[at].key[:1]
		waiting[at].place.Release()
		waiting = slices.Delete(waiting, at, at+1)
	}
	// One of a costs 1 and one of dear 3: between two of dear there are three of a, and three of b while it has any.
	if want := "abdababadaaada"; served != want {
		t.Errorf("served %s, want %s", served, want)
	}
}

// TestNoCredit: a key that comes late has no claim to the turns that it did not take before.
func TestNoCredit(t *testing.T) {
	q := New(1, 1)
	working := enter(q, "a", Load{Cost: 1})
	waiting := make([]*asked, 0, 20)
	for range 10 {
		waiting = append(waiting, enter(q, "a", Load{Cost: 1}))
	}
	for _, next := range waiting[:8] {
		working.place.Release()
		working = next
	}
	for range 10 {
		waiting = append(waiting, enter(q, "late", Load{Cost: 1}))
	}
	working.place.Release()
	waiting[10].place.Release() // the first of the latecomer's
	if !waiting[8].granted() {
		t.Error("the latecomer has two turns where the other waits for one")
	}
}

// TestLargeIsNotOvertaken: a request that waits for memory gets it before later and smaller ones of others; but a line that is at its
// own share holds nobody up.
func TestLargeIsNotOvertaken(t *testing.T) {
	q := New(10, 100)
	first, second := enter(q, "a", Load{Bytes: 40}), enter(q, "b", Load{Bytes: 30})
	large, small := enter(q, "c", Load{Bytes: 50}), enter(q, "d", Load{Bytes: 1})
	if large.granted() || small.granted() {
		t.Fatal("granted beyond the memory, or overtaken")
	}
	first.place.Release()
	if !large.granted() || !small.granted() {
		t.Fatal("what was given back was not granted")
	}
	enter(q, "d", Load{Bytes: 19})
	if blocked, other := enter(q, "c", Load{Bytes: 1}), enter(q, "e", Load{}); blocked.granted() || !other.granted() {
		t.Error("a line at its share holds others up")
	}
	second.place.Release()
}

// TestTurnPassesOn: where a request waits for memory and its line loses the turn, because the line comes to its share or is charged, whoever is next and fits is admitted then, and not at the next release.
func TestTurnPassesOn(t *testing.T) {
	for name, lose := range map[string]func(*Place){
		"its line comes to its share": func(p *Place) { p.Grow(1) },
		"its line is charged":         func(p *Place) { p.Charge(1) },
	} {
		q := New(10, 100)
		working := enter(q, "a", Load{Bytes: 5})
		enter(q, "b", Load{Bytes: 50})
		enter(q, "c", Load{Bytes: 5})
		turn, next := enter(q, "a", Load{Bytes: 45}), enter(q, "d", Load{Bytes: 1})
		if turn.granted() || next.granted() {
			t.Fatal("granted beyond the memory, or overtaken")
		}
		if lose(working.place); turn.granted() || !next.granted() {
			t.Errorf("a request waits for memory, %s, and the one behind it is still held up", name)
		}
	}
}

// TestLeavers: whoever leaves the line gives up its place in it and is charged nothing; who has no room ever is told at once.
func TestLeavers(t *testing.T) {
	q := New(1, 10)
	holder := enter(q, "a", Load{})
	ctx, cancel := context.WithCancel(context.Background())
	left := make(chan error)
	go func() {
		_, err := q.Acquire(ctx, "b", Load{Cost: 1e6})
		left <- err
	}()
	for waiting := 0; waiting == 0; _, _, waiting = q.Load() {
	}
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	b, c := enter(q, "b", Load{Cost: 1}), enter(q, "c", Load{Cost: 1})
	holder.place.Release()
	if !b.granted() || c.granted() {
		t.Error("a key pays for what it left")
	}
	b.place.Release()
	b.place.Release()
	if !c.granted() {
		t.Error("the place was not given on")
	}
	if enter(q, "d", Load{}).granted() {
		t.Error("a second Release gave a second place")
	}
	if _, err := q.Acquire(ctx, "e", Load{}); !errors.Is(err, context.Canceled) {
		t.Error("who comes with an ended context gets", err)
	}
	var large *LargeError
	if _, err := q.Acquire(context.Background(), "e", Load{Bytes: 6}); !errors.As(err, &large) || *large != (LargeError{6, 5}) {
		t.Errorf("6 bytes of 10: %v", err)
	}
}

// TestGrowAndCharge: growing never waits and never passes the limits; what is charged later delays the key's next request.
func TestGrowAndCharge(t *testing.T) {
	q := New(2, 100)
	a, b := enter(q, "a", Load{Bytes: 10}), enter(q, "b", Load{Bytes: 40})
	if !a.place.Grow(40) || a.place.Grow(1) || a.place.Bytes() != 50 {
		t.Error("grew to", a.place.Bytes())
	}
	if b.place.Grow(11) || !b.place.Grow(10) || b.place.Grow(-1) || b.place.Grow(math.MaxInt64) {
		t.Error("grew beyond the queue")
	}
	q = New(1, 1)
	a = enter(q, "a", Load{})
	a.place.Charge(100)
	again, first, second := enter(q, "a", Load{}), enter(q, "b", Load{Cost: 30}), enter(q, "b", Load{Cost: 30})
	for _, turn := range []*asked{a, first, second, again} {
		if !turn.granted() {
			t.Fatal("what was charged later did not count")
		}
		turn.place.Release()
	}
}

// TestYield: a key that works alone has every place and is not held up; another one's first piece goes next, and from then on both have
// equal shares of what is done, however many requests each of them has. Nobody has credit for the time in which it did not ask.
func TestYield(t *testing.T) {
	q := Processors(2)
	hog := []*asked{enter(q, "hog", Load{}), enter(q, "hog", Load{}), enter(q, "hog", Load{})}
	if !hog[0].granted() || !hog[1].granted() || hog[2].granted() {
		t.Fatal("a key that is alone has not both of two places")
	}
	for range 100 {
		if hog[0].place.yield(1) != nil || hog[1].place.yield(1) != nil {
			t.Fatal("a request yields to nobody")
		}
	}
	victim := enter(q, "victim", Load{})
	done := map[string]int{}
	working := []*asked{hog[0], hog[1]}
	for range 40 {
		next := working[0]
		working = working[1:]
		done[next.key]++
		if next.w = next.place.yield(1); next.w == nil {
			working = append(working, next)
		}
		for _, a := range []*asked{hog[0], hog[1], victim} {
			if a.w != nil && a.granted() && !slices.Contains(working, a) && len(working) < 2 {
				working = append(working, a)
			}
		}
	}
	if d := done["hog"] - done["victim"]; d < -3 || d > 3 {
		t.Errorf("of 40 pieces the one that came late has %d", done["victim"])
	}
	if hog[2].granted() {
		t.Error("a request that yielded to another key lost its turn to one of its own key")
	}
	q = Processors(1)
	early := enter(q, "early", Load{})
	for range 100 {
		early.place.yield(1)
	}
	late := enter(q, "late", Load{})
	if early.w = early.place.yield(1); early.w == nil || !late.granted() {
		t.Fatal("no turn for the one that came late")
	}
	for range 3 {
		late.place.yield(1)
	}
	if !early.granted() {
		t.Error("the one that came late has the turns that it did not take before")
	}
}

// TestYieldersLeave: whoever leaves while another has its place gives nothing back twice.
func TestYieldersLeave(t *testing.T) {
	q := Processors(1)
	a, b := enter(q, "a", Load{}), enter(q, "b", Load{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.place.Yield(ctx, 5); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	a.place.Release()
	if !b.granted() || enter(q, "c", Load{}).granted() {
		t.Error("one place, and not one request that has it")
	}
}

// TestRest: who only lets time pass keeps its memory and gives its place to others.
func TestRest(t *testing.T) {
	q := New(1, 10)
	a, b, large := enter(q, "a", Load{Bytes: 5}), enter(q, "b", Load{Bytes: 5}), enter(q, "c", Load{Bytes: 1})
	a.place.Rest()
	a.place.Rest()
	if !b.granted() || large.granted() {
		t.Fatal("the place was not given on, or twice")
	}
	b.place.Release()
	if !large.granted() {
		t.Fatal("what was given back was not granted")
	}
	if places, bytes, _ := q.Load(); places != 1 || bytes != 6 {
		t.Errorf("%d places, %d bytes", places, bytes)
	}
	a.place.Release()
	a.place.Release()
	large.place.Release()
	if places, bytes, _ := q.Load(); places != 0 || bytes != 0 || len(q.lines) != 0 {
		t.Errorf("%d places, %d bytes, %d lines", places, bytes, len(q.lines))
	}
}

// TestModel plays random requests against what the package promises: capacity, shares, order within a line, no idle room, and fairness
// by cost between lines that wait all the time. It would notice a place that is given twice or lost, an overtaken request, and a turn
// that forgets what it cost.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.IntRange(1, 6).Draw(t, "places")
		bytes := rapid.Int64Range(1, 60).Draw(t, "bytes")
		q := New(places, bytes)
		keys := []string{"a", "b", "c", "d"}
		var waiting, working []*asked
		check := func() {
			waiting = slices.DeleteFunc(waiting, func(a *asked) bool {
				if a.granted() {
					working = append(working, a)
				}
				return a.granted()
			})
			used, held := map[string]int{}, map[string]int64{}
			total := int64(0)
			for _, a := range working {
				used[a.key]++
				held[a.key] += a.place.Bytes()
				total += a.place.Bytes()
			}
			if len(working) > places || total > bytes {
				t.Fatalf("%d of %d places, %d of %d bytes", len(working), places, total, bytes)
			}
			for _, k := range keys {
				if used[k] > (places+1)/2 || held[k] > (bytes+1)/2 {
					t.Fatalf("%s holds %d of %d places, %d of %d bytes", k, used[k], places, held[k], bytes)
				}
			}
			// The first of each line: if all of them that are below their share fit, one of them must have been admitted.
			first := map[string]*asked{}
			for _, a := range waiting {
				if first[a.key] == nil {
					first[a.key] = a
				}
			}
			fits, eligible := true, 0
			for k, a := range first {
				if used[k] >= (places+1)/2 || held[k]+a.load.Bytes > (bytes+1)/2 {
					continue
				}
				eligible++
				fits = fits && total+a.load.Bytes <= bytes
			}
			if eligible > 0 && fits && len(working) < places {
				t.Fatalf("room for each of %d lines, and nobody has it", eligible)
			}
			if n, b, w := q.Load(); n != len(working) || b != total || w != len(waiting) {
				t.Fatalf("the queue counts %d places, %d bytes, %d waiting; there are %d, %d, %d", n, b, w, len(working), total, len(waiting))
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				load := Load{Bytes: rapid.Int64Range(0, (bytes+1)/2).Draw(t, "load"), Cost: rapid.Float64Range(0, 10).Draw(t, "cost")}
				waiting = append(waiting, enter(q, rapid.SampledFrom(keys).Draw(t, "key"), load))
			case 3:
				if len(working) > 0 {
					i := rapid.IntRange(0, len(working)-1).Draw(t, "released")
					working[i].place.Release()
					working = slices.Delete(working, i, i+1)
				}
			case 4:
				if len(waiting) > 0 {
					i := rapid.IntRange(0, len(waiting)-1).Draw(t, "left")
					q.leave(waiting[i].place, waiting[i].w)
					waiting = slices.Delete(waiting, i, i+1)
				}
			case 5:
				if len(working) > 0 {
					a := working[rapid.IntRange(0, len(working)-1).Draw(t, "grown")]
					a.place.Grow(rapid.Int64Range(0, bytes).Draw(t, "by"))
					a.place.Charge(rapid.Float64Range(0, 10).Draw(t, "charge"))
				}
			}
			check()
			for i, a := range waiting { // in order within a line
				for _, later := range waiting[i+1:] {
					if a.key == later.key && a.w.order > later.w.order {
						t.Fatal("a line is out of order")
					}
				}
			}
		}
		for len(working) > 0 { // nobody starves: all that wait are admitted in the end
			working[0].place.Release()
			working = working[1:]
			check()
		}
		if len(waiting) > 0 || len(q.lines) > 0 || q.clock != 0 {
			t.Fatalf("%d still wait, %d lines are kept, the clock is at %v", len(waiting), len(q.lines), q.clock)
		}
	})
}

// TestFairByCost: of lines that wait all the time, what is admitted differs by at most one request of each, from the beginning to any time.
func TestFairByCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(1, 1)
		keys := rapid.IntRange(2, 5).Draw(t, "keys")
		largest, admitted := make([]float64, keys), make([]float64, keys)
		var waiting []*asked
		add := func(k int) {
			cost := rapid.Float64Range(0.1, 10).Draw(t, "cost")
			largest[k] = max(largest[k], cost)
			waiting = append(waiting, enter(q, fmt.Sprint(k), Load{Cost: cost}))
		}
		holder := enter(q, "holder", Load{})
		for k := range keys {
			add(k)
			add(k)
		}
		holder.place.Release()
		for range 50 {
			at := slices.IndexFunc(waiting, (*asked).granted)
			a := waiting[at]
			waiting = slices.Delete(waiting, at, at+1)
			k := int(a.key[0] - '0')
			admitted[k] += a.load.Cost
			add(k) // before the release, so that no line is ever empty
			a.place.Release()
			for i := range keys {
				for j := range i {
					if d := math.Abs(admitted[i] - admitted[j]); d > largest[i]+largest[j]+1e-9 {
						t.Fatalf("%v and %v were admitted of two lines with requests of at most %v and %v", admitted[i], admitted[j], largest[i], largest[j])
					}
				}
			}
		}
	})
}

// TestManyGoroutines: with real goroutines nothing is lost, and the places are all free in the end.
func TestManyGoroutines(t *testing.T) {
	q := New(3, 10)
	var group sync.WaitGroup
	var mutex sync.Mutex
	working := 0
	for i := range 200 {
		group.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if i%5 == 0 {
				go cancel()
			}
			place, err := q.Acquire(ctx, fmt.Sprint(i%7), Load{Bytes: int64(i % 5), Cost: float64(i % 3)})
			if err != nil {
				return
			}
			mutex.Lock()
			working++
			if working > 3 {
				t.Error("more than three places")
			}
			mutex.Unlock()
			mutex.Lock()
			working--
			mutex.Unlock()
			place.Release()
		})
	}
	group.Wait()
	if places, bytes, waiting := q.Load(); places != 0 || bytes != 0 || waiting != 0 || len(q.lines) != 0 {
		t.Errorf("%d places, %d bytes, %d waiting, %d lines", places, bytes, waiting, len(q.lines))
	}
}
