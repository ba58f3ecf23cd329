package holdout

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// The history of a holdout: its recorded answers, each with what a reader needs beside it. Nothing of it is read from holdout rows. What was
// recorded is the ledger's; the rest is worked out anew from the query's text and from the training part, so that it is there for answers of any age.

// PastAnswer is an answer in the history.
type PastAnswer struct {
	Body      json.RawMessage       `json:"answer"`    // the recorded bytes, the same for ever
	Canonical json.RawMessage       `json:"canonical"` // the query
	Note      *string               `json:"note"`      // nil where none was given, or notes were not kept yet
	AskedBy   Asker                 `json:"asked_by"`
	Time      time.Time             `json:"time"` // when it was recorded, in whole seconds
	Measure   queries.Measure       `json:"measure"`
	Per       string                `json:"per"`       // what has one vote each, where units have several rows: a unit as the card names it, or row
	Outcome   *thresholdout.Outcome `json:"outcome"`   // nil of an answer that was recorded before outcomes were
	Reference *Reference            `json:"reference"` // nil where no part has a say in the query, or it cannot be read now

	Seq int64 `json:"-"` // the answer's place in the ledger
}

// Asker is who asked a question first.
type Asker struct {
	ID   string  `json:"id" doc:"of the key"`
	Name *string `json:"name" doc:"of the key; null where the server does not know it any more"`
}

// Reference is what the training part or the check part says to a query: what an answer is to be compared with. It is the number that explain says.
type Reference struct {
	Part     session.ValueFrom `json:"part" enum:"check,training,training+check" doc:"which part says so"`
	Value    *float64          `json:"value" doc:"null where the answer is items or a selection, or is undefined"`
	Items    []ReferenceItem   `json:"items,omitempty" doc:"where the answer is many numbers"`
	Selected string            `json:"selected,omitempty" doc:"of a selection: the candidate that the part would select"`
}

// ReferenceItem is one number of a reference that is many.
type ReferenceItem struct {
	Of    string   `json:"of" doc:"what the number is about"`
	Value *float64 `json:"value" doc:"null where it is undefined"`
}

// AnswerPage is a piece of the history of a holdout, oldest first. Next is the cursor of the next page, 0 at the end.
type AnswerPage struct {
	Answers []PastAnswer `json:"answers"`
	Next    int64        `json:"next,omitempty"`
}

// What a page of the history has at most. Where the limit of answers is larger, the page ends before it, with a cursor.
const (
	// MaxPage is the largest page of Answers.
	MaxPage = ledger.MaxAnswers / 2
	// pageBytes are those of queries and answers, but for the first: a query may have megabytes of a model.
	pageBytes = 1 << 20
	// pageSteps is the work on references that are not known yet, but for the first: about two seconds of one processor.
	pageSteps = 2e9
	// pageRead is how many entries are read from the ledger at a time. Each can have some megabytes.
	pageRead = 16
)

// Answers returns a page of at most limit answers with a place in the ledger above after, oldest first: an analyst's
// own, or everybody's for an admin. A page may be shorter than the limit; Next says whether there is more.
func (s *Service) Answers(ctx context.Context, p Principal, id string, after int64, limit int) (page AnswerPage, err error) {
	r, err := s.rightTo(ctx, p, id)
	if err != nil {
		return AnswerPage{}, err
	}
	_, card, err := s.find(ctx, id)
	if err != nil {
		return AnswerPage{}, err
	}
	if limit <= 0 || limit > MaxPage {
		limit = MaxPage
	}
	err = s.InTurn(ctx, p, Work{Bytes: 3 * pageBytes}, func(ctx context.Context) error {
		h := historian{service: s, principal: p, right: r, id: id, unit: card.Unit}
		defer h.end()
		page, err = h.page(ctx, after, limit)
		return err
	})
	return page, err
}

// historian makes one page.
type historian struct {
	service   *Service
	principal Principal
	right     right
	id        string
	unit      string // of the card

	names   map[string]string // of keys, by id; nil until one is needed
	opened  *opened           // nil until a reference is worked out, or where it cannot be opened
	tried   bool
	release func()
	steps   int64 // on references of this page
}

func (h *historian) end() {
	if h.release != nil {
		h.release()
	}
}

// errPageFull ends a page before an answer that is too much for it.
var errPageFull = errors.New("holdout: the page is full")

func (h *historian) page(ctx context.Context, after int64, limit int) (AnswerPage, error) {
	who := h.principal.KeyID
	if h.principal.Scope == Admin {
		who = ""
	}
	page, bytes := AnswerPage{Answers: []PastAnswer{}}, 0
	for {
		entries, err := h.service.ledger.Answers(ctx, h.id, who, after, pageRead)
		if err != nil {
			return AnswerPage{}, h.service.ledgerError(err)
		}
		for i := range entries {
			e, first := &entries[i], len(page.Answers) == 0
			bytes += len(e.Body) + len(e.Canonical)
			full := len(page.Answers) == limit || !first && bytes > pageBytes
			var past PastAnswer
			if !full {
				past, err = h.past(ctx, e, first)
				full = errors.Is(err, errPageFull)
			}
			switch {
			case full:
				page.Next = after
				return page, nil
			case err != nil:
				return AnswerPage{}, err
			}
			page.Answers = append(page.Answers, past)
			after = e.Seq
		}
		if len(entries) < pageRead {
			return page, nil
		}
	}
}

// past is an entry as the history shows it. The first of a page is shown whatever it takes.
func (h *historian) past(ctx context.Context, e *ledger.Entry, first bool) (a PastAnswer, err error) {
	a = PastAnswer{Body: e.Body, Canonical: e.Canonical, AskedBy: Asker{ID: e.Principal}, Measure: queries.MeasureOfText(e.Canonical), Per: votes(h.unit, func() []byte { return e.Canonical }), Seq: e.Seq,
		// No finer: the time is taken after the rows were read, and how long that took is nobody's to know.
		Time: e.Time.UTC().Truncate(time.Second)}
	if e.Note != "" {
		a.Note = &e.Note
	}
	if h.right.shows != ShowsFull {
		if a.AskedBy.Name, err = h.name(ctx, e.Principal); err == nil {
			a.Body, err = h.right.shown(e.Body)
		}
		return a, err
	}
	var said struct{ Outcome thresholdout.Outcome }
	if json.Unmarshal(e.Body, &said) == nil && said.Outcome != "" {
		a.Outcome = &said.Outcome
	}
	if a.AskedBy.Name, err = h.name(ctx, e.Principal); err != nil {
		return a, err
	}
	a.Reference, err = h.reference(ctx, e, first)
	return a, err
}

// name is that of a key, or nil.
func (h *historian) name(ctx context.Context, id string) (*string, error) {
	if id == h.principal.KeyID {
		return &h.principal.Name, nil
	}
	if h.names == nil {
		keys, err := h.service.ledger.Keys(ctx)
		if err != nil {
			return nil, h.service.ledgerError(err)
		}
		h.names = make(map[string]string, len(keys))
		for _, k := range keys {
			h.names[k.ID] = k.Name
		}
	}
	if name, ok := h.names[id]; ok {
		return &name, nil
	}
	return nil, nil
}

// reference is what is said to a recorded query beside the holdout. It is a function of two things that never change, so it is worked out once and kept.
func (h *historian) reference(ctx context.Context, e *ledger.Entry, first bool) (*Reference, error) {
	if known, ok := h.service.references.of(h.id, e.Query); ok {
		return known, nil
	}
	holdout, err := h.open(ctx)
	if holdout == nil || err != nil || holdout.trainingTable == nil {
		return nil, err
	}
	r, err := h.workOut(ctx, holdout, e, first)
	switch {
	case err == nil:
		h.service.references.keep(h.id, e.Query, r)
		return r, nil
	case errors.Is(err, errPageFull) || errors.Is(err, errMoreMemory) || ctx.Err() != nil:
		return nil, err
	}
	return nil, nil // as explain would refuse it now; the answer is no less for it
}

// open is the holdout with its tables, or nil where they cannot be read: its recorded answers can be.
func (h *historian) open(ctx context.Context) (*opened, error) {
	if h.tried {
		return h.opened, nil
	}
	holdout, release, err := h.service.take(ctx, h.id)
	if ctx.Err() != nil {
		return nil, scanError(ctx.Err())
	}
	if h.tried = true; err == nil {
		h.opened, h.release = holdout, release
	}
	return h.opened, nil
}

// workOut asks the training part, the check part or both. The work is bounded by public facts before it is done.
func (h *historian) workOut(ctx context.Context, holdout *opened, e *ledger.Entry, first bool) (*Reference, error) {
	reading := bodyWork(1, len(e.Canonical))
	if err := h.afford(ctx, Work{Steps: reading.Steps, Pass: reading.Bytes}, first); err != nil {
		return nil, err
	}
	q, err := queries.Parse(e.Canonical, queries.KeptModels(h.service.models))
	if err != nil {
		return nil, err
	}
	asked, err := holdout.question(ctx, q)
	if err != nil {
		return nil, err
	}
	pass := holdout.passWork([]*queries.Plan{asked.Plan}, 0, false)
	pass.Pass += reading.Bytes + heldWork(asked.Plan).Bytes
	if err := h.afford(ctx, pass, first); err != nil {
		return nil, err
	}
	sums, err := session.TrainingSums(ctx, asked.Plan, holdout.reference)
	if err != nil {
		return nil, err
	}
	result, err := holdout.session.Training(asked.Plan, sums)
	if err != nil {
		return nil, err
	}
	if sums.None() {
		return nil, nil
	}
	r := &Reference{Part: sums.From, Value: result.Value, Selected: result.Selected}
	for _, item := range result.Items {
		r.Items = append(r.Items, ReferenceItem{item.Of, item.Value})
	}
	return r, nil
}

// afford adds work to the page, or ends it with errPageFull. The first answer of a page may need as much as any request.
func (h *historian) afford(ctx context.Context, w Work, first bool) error {
	if h.steps = saturated(h.steps, w.Steps); !first && h.steps > pageSteps {
		return errPageFull
	}
	err := need(ctx, w)
	if !first && KindOf(err) == TooLarge {
		return errPageFull
	}
	return err
}

// references keeps what parts said to recorded queries.
type references struct {
	mu    sync.Mutex
	known map[[2]string]*Reference // by holdout and query
	size  int                      // about, in numbers
}

// maxReferences bounds what is kept, in numbers of some 64 bytes. When there are more, all are forgotten and worked out anew as they are needed.
const maxReferences = 1 << 18

func (r *references) of(holdout, query string) (known *Reference, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, ok = r.known[[2]string{holdout, query}]
	return known, ok
}

func (r *references) keep(holdout, query string, known *Reference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	size := 4 // the names
	if known != nil {
		size += 2 * len(known.Items)
	}
	if r.size+size > maxReferences || r.known == nil {
		r.known, r.size = map[[2]string]*Reference{}, 0
	}
	r.known[[2]string{holdout, query}] = known
	r.size += size
}

// news tells those who follow a holdout that there is another answer.
type news struct {
	mu      sync.Mutex
	waiting map[string]*waiters // by holdout, those for which somebody waits
}

// waiters are those who wait for news of one holdout.
type waiters struct {
	told chan struct{}
	n    int
}

// News is closed when an answer of the holdout has become durable after the call. over is to be called when nobody waits for it any more.
func (s *Service) News(id string) (told <-chan struct{}, over func()) {
	n := &s.news
	n.mu.Lock()
	defer n.mu.Unlock()
	w := n.waiting[id]
	if w == nil {
		if n.waiting == nil {
			n.waiting = map[string]*waiters{}
		}
		w = &waiters{told: make(chan struct{})}
		n.waiting[id] = w
	}
	w.n++
	return w.told, sync.OnceFunc(func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if w.n--; w.n == 0 && n.waiting[id] == w {
			delete(n.waiting, id) // anybody can ask for the news of an id that is no holdout's
		}
	})
}

// tell wakes those who wait for news of a holdout.
func (n *news) tell(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if w := n.waiting[id]; w != nil {
		close(w.told)
		delete(n.waiting, id)
	}
}
