package sqlite

import (
	"bytes"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// Limits of what is remembered. What is beyond them is looked up in the database, as what is not known is: they cost time, and never an answer.
const (
	maxAsked     = 1 << 20 // queries of all holdouts together: a word and its share of a table for each
	maxAskedRead = 1 << 16 // queries that are read for a holdout at once, while others wait for the writer
	maxKeys      = 4096    // API keys: some hundred bytes each
)

// memory is what the writer has committed last, for the look-ups that every answer needs. It is exact because one process has the file and one goroutine of
// it writes: what changes the database changes the memory too, before the caller hears of it. What became of a commit that failed is not known, and then all
// of it is forgotten. A ledger that is open for replay only has none.
type memory struct {
	mu    sync.RWMutex
	known map[string]*known // by holdout
	asked int               // queries of all of them
	seed  maphash.Seed

	keys  map[[32]byte]ledger.Key // that are not revoked, by hash
	epoch int64                   // counts how often keys were forgotten
}

// known is what is remembered of a holdout.
type known struct {
	books *books              // as they were committed last; nothing of them is changed. nil while a commit of them is under way
	asked map[uint64]struct{} // hashes of the queries that have an answer, and perhaps of some that have none; nil: there are too many
}

func newMemory() *memory {
	m := &memory{seed: maphash.MakeSeed()}
	m.forget()
	return m
}

// forget drops everything.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.asked = map[string]*known{}, 0
	m.keys = map[[32]byte]ledger.Key{}
	m.epoch++
}

// drop forgets a holdout.
func (m *memory) drop(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k := m.known[id]; k != nil {
		m.asked -= len(k.asked)
		delete(m.known, id)
	}
}

// begin remembers a holdout whose books were read, and which queries have an answer. queries are nil if they were not read.
func (m *memory) begin(b *books, queries []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.hold(b.ID)
	k.books = b
	if queries == nil || k.asked != nil {
		return
	}
	k.asked = make(map[uint64]struct{}, len(queries))
	for _, q := range queries {
		m.note(k, q)
	}
}

// hold is a holdout's place in the memory. The lock is held.
func (m *memory) hold(id string) *known {
	k := m.known[id]
	if k == nil {
		k = &known{}
		m.known[id] = k
	}
	return k
}

// note adds a query to those that have an answer. The lock is held.
func (m *memory) note(k *known, query string) {
	if k.asked == nil {
		return
	}
	before := len(k.asked)
	k.asked[maphash.String(m.seed, query)] = struct{}{}
	if m.asked += len(k.asked) - before; m.asked > maxAsked {
		m.asked -= len(k.asked)
		k.asked = nil
	}
}

// foresee is before a group is committed: until keep, its books and queries are looked up in the database, which alone knows when they are durable.
func (m *memory) foresee(g *group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range g.books {
		if k := m.known[id]; k != nil {
			k.books = nil
		}
	}
	for id, answers := range g.answers {
		k := m.known[id]
		for query := range answers {
			if k != nil {
				m.note(k, query)
			}
		}
	}
}

// keep remembers the books of a group, after it was committed.
func (m *memory) keep(g *group) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, b := range g.books {
		m.hold(id).books = b
	}
}

// unanswered reports that a query of a holdout has no answer, for certain.
func (m *memory) unanswered(id, query string) bool {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k := m.known[id]
	if k == nil || k.asked == nil {
		return false
	}
	_, maybe := k.asked[maphash.String(m.seed, query)]
	return !maybe
}

// of are a holdout's books, or nil.
func (m *memory) of(id string) *books {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k := m.known[id]
	if k == nil {
		return nil
	}
	return k.books
}

// standing are a holdout's books as a reader gets them. Where a grant has expired it does not know them: the database has the sums.
func (m *memory) standing(id string, now time.Time) (ledger.Books, bool) {
	known := m.of(id)
	if known == nil || !known.Due.IsZero() && !now.Before(known.Due) {
		return ledger.Books{}, false
	}
	b := known.Books
	b.Limits, b.Spent, b.Held, b.State = maps.Clone(b.Limits), maps.Clone(b.Spent), maps.Clone(b.Held), bytes.Clone(b.State)
	return b, true
}

// ungranted reports that nothing of a holdout was ever granted, for certain.
func (m *memory) ungranted(id string) bool {
	known := m.of(id)
	return known != nil && known.Grants == 0
}

// key returns a key that is not revoked, and the epoch for keepKey.
func (m *memory) key(hash [32]byte) (k ledger.Key, ok bool, epoch int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	k, ok = m.keys[hash]
	k.Holdouts = slices.Clone(k.Holdouts)
	return k, ok, m.epoch
}

// keepKey remembers a key that was read since the epoch, unless keys were forgotten meanwhile: it may be revoked.
func (m *memory) keepKey(k ledger.Key, epoch int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if epoch != m.epoch {
		return
	}
	if len(m.keys) >= maxKeys {
		clear(m.keys)
	}
	k.Holdouts = slices.Clone(k.Holdouts)
	m.keys[k.Hash] = k
}

// forgetKeys is before and after every write that may revoke one: what was read before the write is not kept after it.
func (m *memory) forgetKeys() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.keys)
	m.epoch++
}
