package holdout

import (
	"fmt"
	"slices"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/queries/engine/remote"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/session"
)

// What a request holds in memory beside what engine.Estimate says of its passes, in bytes. TestMemoryIsWithinItsEstimate measures the first four
// of them on queries that take most for their length.
const (
	queryMemory    = 16 << 10 // of a query, whatever it asks
	jsonMemory     = 80       // of a byte of JSON: the text, its members, its tree (of "b||b||b" a node for three bytes), its canonical form
	functionMemory = 1 << 10  // of a row function: its names, its sums, what is released of it
	nodeMemory     = 192      // of a node of a row function, which others may share
	answerMemory   = 4        // of a byte of an answer: the answer, what is recorded, and the reply
)

// bodyWork is what reading queries takes.
func bodyWork(queries, bytes int) Work {
	n, size := int64(queries), int64(bytes)
	return Work{Steps: 100 * size, Bytes: n*queryMemory + size*jsonMemory}
}

// trainingWork is what one pass over the training part takes.
func (h *opened) trainingWork(batch rowfn.Batch) Work {
	if h.trainingTable == nil {
		return Work{}
	}
	e := engine.EstimateBatch(batch, h.trainingShape)
	return Work{Steps: e.Total(h.trainingShape.Rows), Pass: e.Memory}
}

// referenceWork is what it takes at most to read the parts that answers are compared with, each once.
func (h *opened) referenceWork(batch rowfn.Batch) Work {
	w := h.trainingWork(batch)
	if h.checkTable == nil {
		return w
	}
	e := engine.EstimateBatch(batch, h.checkShape)
	return w.plus(Work{Steps: e.Total(h.checkShape.Rows), Pass: e.Memory})
}

// heldWork is what a compiled plan holds until the reply.
func heldWork(p *queries.Plan) Work {
	nodes := map[*rowfn.Node]bool{}
	watched := session.WatchedBy([]*queries.Plan{p}).Functions
	for _, f := range slices.Concat(p.Functions, watched) {
		collect(nodes, f.Value)
		collect(nodes, f.Where)
	}
	bytes := functionMemory*int64(len(p.Functions)+len(watched)) + nodeMemory*int64(len(nodes))
	for n := range nodes {
		bytes += 8 * int64(len(n.Values)) // of numbers that are named by their digest no text was counted
	}
	return Work{Bytes: bytes}
}

// collect adds the nodes of a tree that are not counted yet.
func collect(nodes map[*rowfn.Node]bool, n *rowfn.Node) {
	if n == nil || nodes[n] {
		return
	}
	nodes[n] = true
	for _, arg := range n.Args {
		collect(nodes, arg)
	}
}

// passWork is what it takes to read the rows for plans, whose answers have at most so many bytes together: of the holdout, and of the
// training and the check part where the mechanism compares with them; or to explain them, from these alone.
func (h *opened) passWork(plans []*queries.Plan, answers int64, holdout bool) Work {
	batch := h.passOf(plans)
	w := Work{Bytes: answerMemory * answers}
	if h.session.ReadsTraining() || !holdout {
		w = w.plus(h.referenceWork(batch))
	} else if suggested := suggesting(plans); len(suggested) > 0 {
		w = w.plus(h.referenceWork(h.passOf(suggested)))
	}
	if watched := session.WatchedBy(plans); len(watched.Functions) > 0 {
		w = w.plus(h.trainingWork(watched))
	}
	if holdout {
		e := engine.EstimateBatch(batch, h.holdoutShape)
		w = w.plus(Work{Steps: e.Total(h.holdoutShape.Rows), Pass: saturated(e.Memory, h.blockMemory())})
		if half := session.Halves(plans); len(half.Functions) > 0 {
			e := engine.EstimateBatch(half, h.holdoutShape)
			w = w.plus(Work{Steps: e.Total(h.holdoutShape.Rows/2 + 1), Pass: e.Memory})
		}
	}
	return w
}

// blockMemory is what a block of rows takes that is read from a source: its text and its columns.
func (h *opened) blockMemory() int64 {
	if h.at == nil {
		return 0
	}
	const cell = 32 // of a column's value and its bytes on the way
	return min(remote.BlockRows, h.holdoutShape.Rows) * int64(len(h.schema.Fields)) * cell
}

// suggesting are the plans to which the training part suggests a promise when they are asked.
func suggesting(plans []*queries.Plan) (some []*queries.Plan) {
	for _, p := range plans {
		if p.Beside().Suggest {
			some = append(some, p)
		}
	}
	return some
}

// passOf is the most that one pass over a part has to sum for plans.
func (h *opened) passOf(plans []*queries.Plan) (all rowfn.Batch) {
	for _, p := range plans {
		for _, form := range h.session.Forms(p) {
			all.Join(form.Pass(true))
		}
	}
	return all
}

// checkAnswers refuses a batch of so many queries whose answers could have so many bytes together.
func (s *Service) checkAnswers(bytes int64, queries int) error {
	most := s.limits.AnswerBytes
	if bytes <= most {
		return nil
	}
	fit := max(1, int64(float64(queries)*float64(most)/float64(bytes)))
	return &Error{Kind: TooLarge, Pointer: "/queries",
		Detail: fmt.Sprintf("the answers of these %d queries could have %d bytes together, at most %d are given at once; ask in batches of about %d such queries",
			queries, bytes, most, fit),
		Members: map[string]any{"limit": most}}
}

// shapeOf is the public shape of a part's table.
func shapeOf(t *dataset.Table, source engine.Source) dataset.Shape {
	s := t.Shape()
	if units := source.Units(); units != s.Rows {
		s.Units = units
	}
	return s
}
