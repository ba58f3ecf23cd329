package holdout

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/rowfn"
)

// AnswerTime says when the reply to a question leaves.
type AnswerTime string

const (
	// AnswerSoon is the default: a reply leaves when it is ready.
	AnswerSoon AnswerTime = "soon"
	// AnswerPublic keeps a reply until the time that its work should take by public facts alone (see [engine.Estimate]); if it is not
	// ready then, until twice that time, four times, and so on. So the time of a reply says at most which of these it was.
	AnswerPublic AnswerTime = "public"
)

const (
	// paceHeadroom is how much slower than measured at start a scan may be before its reply misses its time: other requests share the
	// processors, and tables may have to be read from disk.
	paceHeadroom = 4
	// paceCommit is what a reply may take beside the work: a commit of the ledger, with its fsync.
	paceCommit = 50 * time.Millisecond
	// paceSource is what a statement may take on its way to a source and back, and its start there; it has at most 100 sums.
	paceSource = 250 * time.Millisecond
	// paceFunction is what making and recording the answer to a row function may take.
	paceFunction = 50 * time.Microsecond
	// maxPace bounds the time that a reply is kept for work that is as large as a request may be.
	maxPace = time.Hour
)

// sourceSums is how many sums a statement has at most, as rowfn/sql prints them.
const sourceSums = 100

// pace keeps replies until their public time. A nil pace keeps none.
type pace struct {
	step  float64 // nanoseconds of a step of engine.Work, headroom included
	now   func() time.Time
	sleep func(time.Duration)
}

// newPace measures how fast this machine works, in a fraction of a second. It is nil unless the mode is AnswerPublic.
func newPace(mode AnswerTime) (*pace, error) {
	switch mode {
	case "", AnswerSoon:
		return nil, nil
	case AnswerPublic:
	default:
		return nil, fmt.Errorf("holdout: the answer time must be soon or public, not %q", mode)
	}
	step, err := measureStep()
	if err != nil {
		return nil, fmt.Errorf("holdout: measuring how long questions take: %w", err)
	}
	return &pace{step: paceHeadroom * step, now: time.Now, sleep: time.Sleep}, nil
}

// begin is called before the rows of questions are read. The function that it returns is called when they were read, or could not be, and
// returns when that may be known: before anything is recorded, since what the ledger has is shown to everyone with a key. It does not
// end early for a client that left, nor for a server that stops: others would see that. It calls rest before it waits.
func (p *pace) begin(h *opened, wave []*question, rest func()) (ready func()) {
	if p == nil {
		return func() {}
	}
	plans := make([]*queries.Plan, len(wave))
	for i, q := range wave {
		plans[i] = q.asked.Plan
	}
	begun, time := p.now(), p.time(h, h.passOf(plans))
	return func() {
		rest()
		p.sleep(untilPublic(p.now().Sub(begun), time))
	}
}

// time is how long the work should take, by public facts alone.
func (p *pace) time(h *opened, batch rowfn.Batch) time.Duration {
	steps := int64(0)
	if h.session.ReadsTraining() && h.trainingTable != nil {
		steps = h.referenceWork(batch).Steps
	}
	w := engine.EstimateBatch(batch, h.holdoutShape)
	scan := float64(steps) + float64(w.Total(h.card.Rows.Holdout))
	if h.at != nil {
		steps := time.Duration(1 + len(batch.Functions)/sourceSums)
		return paceCommit + steps*paceSource + min(maxPace, time.Duration(min(scan*p.step, float64(maxPace)))+time.Duration(len(batch.Functions))*paceFunction)
	}
	return paceCommit + min(maxPace, time.Duration(min(scan*p.step, float64(maxPace)))+time.Duration(len(batch.Functions))*paceFunction)
}

// untilPublic is how long to wait after some time so that the whole is the public time, or the least double of a double of it that is
// not over yet.
func untilPublic(passed, public time.Duration) time.Duration {
	for public < passed && public < math.MaxInt64/2 {
		public *= 2
	}
	return max(0, public-passed)
}

// measureStep is how many nanoseconds a step of engine.Work takes on one processor, the slowest of a few runs.
func measureStep() (nanoseconds float64, err error) {
	const rows, runs = 1 << 16, 5
	x, codes := make([]float64, rows), make([]uint32, rows)
	texts := make([]string, 1<<10)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	for i := range rows {
		x[i], codes[i] = float64(i%1000), uint32(i%(len(texts)+1))
	}
	t, err := dataset.FromColumns(
		dataset.Column{Field: dataset.Field{Name: "x", Kind: dataset.Number}, Numbers: x},
		dataset.Column{Field: dataset.Field{Name: "t", Kind: dataset.Text}, Codes: codes, Dictionary: dataset.NewDictionary(texts...)})
	if err != nil {
		return 0, err
	}
	source, err := engine.NewTable(t, nil, 1)
	if err != nil {
		return 0, err
	}
	for _, of := range []string{"x > 500 && x * 2.0 < 1500.0", "log(x) / 7.0 < 0.5", "t.contains('9')"} {
		q, err := queries.Parse(fmt.Appendf(nil, `{"type":"fraction","of":%q}`, of))
		if err != nil {
			return 0, err
		}
		plan, err := q.Compile(context.Background(), t.Schema())
		if err != nil {
			return 0, err
		}
		steps := engine.Estimate(plan.Functions, t.Shape()).Total(rows)
		for range runs {
			begun := time.Now()
			if _, err := source.Sums(context.Background(), plan.Functions, 0, source.Units()); err != nil {
				return 0, err
			}
			nanoseconds = max(nanoseconds, float64(time.Since(begun).Nanoseconds())/float64(steps))
		}
	}
	return nanoseconds, nil
}
