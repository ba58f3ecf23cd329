package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/rowfn"
)

// maxMeans is how many sums over the training part a holdout remembers: two for each column of the largest screen, twice, in about 4 MiB. When there are more, all are forgotten.
const maxMeans = 4*queries.MaxFeatures + 4

// trainingMeans remembers the sums of row functions over a training part, which never changes: the means and the moments of a column, clamped to a range, are asked for by each screen, each
// AUC's edges and each z-score again. The zero value has none.
type trainingMeans struct {
	mutex sync.Mutex
	sums  map[functionKey]int64
}

// functionKey is the start of a SHA-256 of a row function: as long as nobody finds two of one key in 2^64 tries.
type functionKey [16]byte

// of are the sums of row functions over all units of the training part. missing sums those that are not known.
func (m *trainingMeans) of(ctx context.Context, functions []queries.RowFunction, missing func(context.Context, []queries.RowFunction) ([]int64, error)) ([]int64, error) {
	sums := make([]int64, len(functions))
	keys := make([]functionKey, len(functions))
	var asked []queries.RowFunction
	var places []int
	var none functionKey // of what is not remembered
	var text []byte
	for i := range functions {
		var ok bool
		if text, ok = appendFunction(text[:0], &functions[i]); ok {
			digest := sha256.Sum256(text)
			keys[i] = functionKey(digest[:len(functionKey{})])
		}
	}
	m.mutex.Lock()
	for i, k := range keys {
		sum, ok := m.sums[k]
		if sums[i] = sum; !ok || k == none {
			asked, places = append(asked, functions[i]), append(places, i)
		}
	}
	m.mutex.Unlock()
	if len(asked) == 0 {
		return sums, ctx.Err()
	}
	found, err := missing(ctx, asked)
	if err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for i, at := range places {
		sums[at] = found[i]
		if keys[at] == none {
			continue
		}
		if m.sums == nil || len(m.sums) >= maxMeans {
			m.sums = map[functionKey]int64{}
		}
		m.sums[keys[at]] = found[i]
	}
	return sums, nil
}

// appendFunction appends a text that no other row function has; not ok for those with models, look-ups or numbers for each row, which are not remembered.
func appendFunction(text []byte, f *queries.RowFunction) (_ []byte, ok bool) {
	for _, x := range [3]float64{f.Lo, f.Hi, f.Null} {
		text = binary.LittleEndian.AppendUint64(text, math.Float64bits(x))
	}
	text = append(text, byte(f.PerUnit))
	for _, n := range [2]*rowfn.Node{f.Value, f.Where} {
		if text, ok = appendNode(text, n, 0); !ok {
			return text, false
		}
	}
	return text, true
}

// maxKeyDepth bounds the recursion. Deeper expressions are not remembered.
const maxKeyDepth = 32

// appendNode appends a node, its own part first, with the lengths of what has one.
func appendNode(text []byte, n *rowfn.Node, depth int) (_ []byte, ok bool) {
	if n == nil {
		return append(text, 0), true
	}
	if n.Model != nil || n.Texts != nil || n.Values != nil || depth > maxKeyDepth {
		return text, false
	}
	text = append(text, byte(n.Op), byte(n.Type))
	text = binary.LittleEndian.AppendUint64(text, math.Float64bits(n.Number))
	text = binary.AppendUvarint(text, uint64(len(n.Text)))
	text = append(text, n.Text...)
	text = binary.AppendUvarint(text, uint64(len(n.Args)))
	for _, a := range n.Args {
		if text, ok = appendNode(text, a, depth+1); !ok {
			return text, false
		}
	}
	return text, true
}
