package holdout

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/queries"
)

// keptShare is the part of Limits.Memory that numbers may take which came with queries and can be named by their digest afterwards, and again the part
// that models may take: a sixteenth.
const keptShare = 16

// kept is what was sent and can be named afterwards. The least recently used goes when there is too much; who names it then is told to send it
// again. What is kept depends on what was sent alone, so that it says nothing of a holdout row.
type kept[K comparable, V any] struct {
	most int64         // bytes
	life time.Duration // after the last use; 0: as long as there is room

	mu    sync.Mutex
	bytes int64
	order *list.List // of *keptItem[K, V], the most recently used first
	by    map[K]*list.Element
	now   func() time.Time
}

type keptItem[K comparable, V any] struct {
	name  K
	value V
	size  int64
	until time.Time
}

func newKept[K comparable, V any](most int64, life time.Duration) *kept[K, V] {
	return &kept[K, V]{most: most, life: life, order: list.New(), by: map[K]*list.Element{}, now: time.Now}
}

// keep keeps a value of so many bytes, if it is not too large by itself. until is when it goes if it is not used, where things go by time.
func (k *kept[K, V]) keep(name K, value V, size int64) (until time.Time, fits bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if item := k.find(name); item != nil {
		return item.until, true
	}
	if size > k.most {
		return until, false
	}
	until = k.now().Add(k.life)
	k.by[name] = k.order.PushFront(&keptItem[K, V]{name, value, size, until})
	for k.bytes += size; k.bytes > k.most; {
		k.drop(k.order.Back())
	}
	return until, true
}

func (k *kept[K, V]) get(name K) (value V, until time.Time, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if item := k.find(name); item != nil {
		return item.value, item.until, true
	}
	return value, until, false
}

// find uses an item: nil if it is not there, or its time is over. Whatever has been used least goes first, so that what is over is at the end.
func (k *kept[K, V]) find(name K) *keptItem[K, V] {
	now := k.now()
	for e := k.order.Back(); k.life > 0 && e != nil && now.After(e.Value.(*keptItem[K, V]).until); e = k.order.Back() {
		k.drop(e)
	}
	e, ok := k.by[name]
	if !ok {
		return nil
	}
	k.order.MoveToFront(e)
	item := e.Value.(*keptItem[K, V])
	item.until = now.Add(k.life)
	return item
}

func (k *kept[K, V]) drop(e *list.Element) {
	item := e.Value.(*keptItem[K, V])
	k.order.Remove(e)
	delete(k.by, item.name)
	k.bytes -= item.size
}

// keptNumbers are the numbers for each row that came with queries, by holdout and digest.
type keptNumbers = kept[keptName, []float64]

type keptName struct{ holdout, digest string }

// numbersOf is the place for numbers that come with queries about a holdout. It takes those that a question of it can have: one for each row whose features are public.
func (s *Service) numbersOf(ctx context.Context, id string) queries.Numbers {
	return keptOf{s.numbers, id, sync.OnceValue(func() int64 {
		_, card, err := s.find(ctx, id)
		if err != nil || card.Settings.Features != featuresPublic {
			return 0
		}
		return card.Rows.Holdout + card.Rows.Check
	})}
}

type keptOf struct {
	numbers *keptNumbers
	holdout string
	rows    func() int64
}

// Keep implements queries.Numbers.
func (k keptOf) Keep(digest string, values []float64) {
	if int64(len(values)) == k.rows() {
		k.numbers.keep(keptName{k.holdout, digest}, values, 8*int64(len(values)))
	}
}

// Kept implements queries.Numbers.
func (k keptOf) Kept(digest string) []float64 {
	values, _, _ := k.numbers.get(keptName{k.holdout, digest})
	return values
}
