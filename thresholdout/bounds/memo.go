package bounds

import (
	"sync"
)

// memo keeps the last results of a search for the best noise: a planner asks for the same few again and again, and one at ten
// thousand questions takes many evaluations of ten thousand terms.
type memo[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]V
}

// memoSize is how many results a memo keeps; all are dropped when there are more, which bounds memory at about 100 kB.
const memoSize = 1024

func (m *memo[K, V]) remembered(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.known[key]
	return v, ok
}

func (m *memo[K, V]) remember(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil || len(m.known) >= memoSize {
		m.known = make(map[K]V)
	}
	m.known[key] = v
}

// search is what a Bound depends on. beta comes from a caller and is no NaN: check refuses that before.
type search struct {
	n, k      int64
	beta      float64
	scheduled bool
	lastExact bool
}

var searches memo[search, Bound]
