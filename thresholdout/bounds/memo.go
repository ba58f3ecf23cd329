package bounds

import "sync"

// memo keeps the last searches for the best noise: a planner asks for the same few again and again, and one at ten thousand
// questions takes many evaluations of ten thousand terms.
var memo = struct {
	sync.Mutex
	bounds map[search]Bound
}{bounds: map[search]Bound{}}

// memoSize is how many searches are kept; all are dropped when there are more, which bounds memory at about 100 kB.
const memoSize = 1024

// search is what a Bound depends on. beta comes from a caller and is no NaN: check refuses that before.
type search struct {
	n, k      int64
	beta      float64
	scheduled bool
}

func (s search) remembered() (Bound, bool) {
	memo.Lock()
	defer memo.Unlock()
	b, ok := memo.bounds[s]
	return b, ok
}

func (s search) remember(b Bound) {
	memo.Lock()
	defer memo.Unlock()
	if len(memo.bounds) >= memoSize {
		clear(memo.bounds)
	}
	memo.bounds[s] = b
}
