package holdout

import (
	"container/list"
	"context"
	"sync"

	"github.com/holdoutd/holdoutd/queries"
)

// keptShare is the part of Limits.Memory that numbers may take which came with queries and can be named by their digest afterwards: a sixteenth.
const keptShare = 16

// keptNumbers are the numbers for each row that came with queries, by holdout and digest. The least recently used go when there are too many; who names them then is told to send them
// again. What is kept depends on what was sent alone, so that it says nothing of a holdout row.
type keptNumbers struct {
	most int64 // bytes

	mu    sync.Mutex
	bytes int64
	order *list.List // of *keptVector, the most recently used first
	by    map[keptName]*list.Element
}

type keptName struct{ holdout, digest string }

type keptVector struct {
	name   keptName
	values []float64
}

func newKeptNumbers(most int64) *keptNumbers {
	return &keptNumbers{most: most, order: list.New(), by: map[keptName]*list.Element{}}
}

func (k *keptNumbers) keep(name keptName, values []float64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.by[name]; ok {
		k.order.MoveToFront(e)
		return
	}
	size := 8 * int64(len(values))
	if size > k.most {
		return
	}
	k.by[name] = k.order.PushFront(&keptVector{name, values})
	for k.bytes += size; k.bytes > k.most; {
		last := k.order.Back()
		v := last.Value.(*keptVector)
		k.order.Remove(last)
		delete(k.by, v.name)
		k.bytes -= 8 * int64(len(v.values))
	}
}

func (k *keptNumbers) get(name keptName) []float64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.by[name]
	if !ok {
		return nil
	}
	k.order.MoveToFront(e)
	return e.Value.(*keptVector).values
}

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
	*keptNumbers
	holdout string
	rows    func() int64
}

// Keep implements queries.Numbers.
func (k keptOf) Keep(digest string, values []float64) {
	if int64(len(values)) == k.rows() {
		k.keep(keptName{k.holdout, digest}, values)
	}
}

// Kept implements queries.Numbers.
func (k keptOf) Kept(digest string) []float64 { return k.get(keptName{k.holdout, digest}) }
