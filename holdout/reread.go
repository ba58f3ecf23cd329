package holdout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/model"
)

// A recorded answer is found by its question's id, which is the hash of the canonical form. A program that writes a question otherwise would look for another
// id, and sell the answer again. So each program reads all recorded questions with its own parser. It says which have another form now, or are not read any
// more, and goes on answering them from the ledger: the first by their new form, the others by the recorded one.

// Reread is a recorded question that this program does not read as it was recorded.
type Reread struct {
	Query    string          `json:"query"`             // its id
	Seq      int64           `json:"seq"`               // its place in the ledger
	Member   string          `json:"member,omitempty"`  // the first member that is written otherwise or refused; empty where none alone is
	Recorded json.RawMessage `json:"recorded"`          // the canonical form that its id is of
	Now      json.RawMessage `json:"now,omitempty"`     // the form that it has now; absent where it is not read
	Refused  string          `json:"refused,omitempty"` // why it is not read

	id string // that it has now; empty where it is not read
}

// Says is what differs, in public words: the vocabulary of queries, and nothing of what was asked.
func (r *Reread) Says() string {
	what, of := "is written otherwise now", ""
	if r.Now == nil {
		what = "is not read any more"
	}
	if r.Member != "" {
		of = ": the member " + r.Member
	}
	return what + of
}

// recognised are models of which a recorded question knows the digest alone.
type recognised struct{}

// Kept implements queries.Models.
func (recognised) Kept(sha256 string) *model.Model { return model.Digest(sha256) }

// reread reads a recorded question with this program's parser. It is nil where the question is what it was.
func reread(e *ledger.Entry) *Reread {
	if e.Kind != ledger.KindAnswer {
		return nil
	}
	r := &Reread{Query: e.Query, Seq: e.Seq, Recorded: e.Canonical}
	q, err := queries.Parse(e.Canonical, queries.KeptModels(recognised{}))
	if err != nil {
		r.Refused = err.Error()
		var wrong *queries.Error
		if errors.As(err, &wrong) {
			r.Member, _, _ = strings.Cut(strings.TrimPrefix(wrong.Violations[0].Pointer, "/"), "/")
		}
		return r
	}
	if r.id = q.ID(); r.id == e.Query {
		return nil
	}
	r.Now = q.Canonical()
	r.Member = firstMember(e.Canonical, r.Now)
	return r
}

// firstMember is the first name, in their order, whose member two objects have otherwise; empty where there is none.
func firstMember(a, b []byte) string {
	var in, other map[string]json.RawMessage
	if json.Unmarshal(a, &in) != nil || json.Unmarshal(b, &other) != nil {
		return ""
	}
	names := maps.Clone(in)
	maps.Copy(names, other)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(in[name], other[name]) {
			return name
		}
	}
	return ""
}

// rereading is what reading a holdout's recorded questions again has found. Its members stand when done is closed.
type rereading struct {
	done    chan struct{}
	err     error // the ledger could not be read now
	changed int
	refused int               // of changed
	now     map[string]string // recorded ids by the ids that their questions have now
}

// rereadings are those of all holdouts since the start.
type rereadings struct {
	mu   sync.Mutex
	byID map[string]*rereading
	all  chan struct{} // closed when those that were there at the start have been read
}

// forget drops what is known of a holdout, if it is this.
func (all *rereadings) forget(id string, r *rereading) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byID[id] == r {
		delete(all.byID, id)
	}
}

// mostSaid is how many questions of a holdout are named in the log and in a verification; of more, the number is said.
const mostSaid = 20

// rereading reads the recorded questions of a holdout again, once. What could not be read for a moment is tried again by who comes next.
func (s *Service) rereading(id string) *rereading {
	s.rereadings.mu.Lock()
	defer s.rereadings.mu.Unlock()
	r := s.rereadings.byID[id]
	if r != nil {
		select {
		case <-r.done:
			if r.err == nil {
				return r
			}
		default:
			return r
		}
	}
	r = &rereading{done: make(chan struct{}), now: map[string]string{}}
	if s.rereadings.byID == nil {
		s.rereadings.byID = map[string]*rereading{}
	}
	s.rereadings.byID[id] = r
	s.background(func(ctx context.Context) {
		defer close(r.done)
		r.err = s.reread(ctx, id, r)
	})
	return r
}

// reread reads a holdout's recorded questions, a few at a time. A chain that is damaged somewhere is read up to there: what is wrong with it is said elsewhere.
func (s *Service) reread(ctx context.Context, id string, r *rereading) error {
	for after := int64(0); ; {
		entries, err := s.ledger.Answers(ctx, id, "", after, pageRead)
		switch {
		case errors.Is(err, ledger.ErrCorrupt) || errors.Is(err, ledger.ErrVersion):
			entries = nil
		case err != nil:
			return err
		}
		for i := range entries {
			after = entries[i].Seq
			found := reread(&entries[i])
			if found == nil {
				continue
			}
			if r.changed++; r.changed <= mostSaid {
				s.log.Warn("a recorded question is not read as it was recorded; its answer replays", "holdout", id, "query", found.Query, "seq", found.Seq, "what", found.Says())
			}
			if found.id == "" {
				r.refused++
			} else if r.now[found.id] == "" {
				r.now[found.id] = found.Query
			}
		}
		if len(entries) < pageRead {
			break
		}
	}
	if r.changed > 0 {
		s.log.Warn("recorded questions are not read as they were recorded", "holdout", id, "otherwise", r.changed-r.refused, "refused", r.refused)
	}
	return s.withoutAsked(ctx, id, r)
}

// withoutAsked forgets forms under which their question was asked, and paid, once more: that answer is theirs.
func (s *Service) withoutAsked(ctx context.Context, id string, r *rereading) error {
	for now := range r.now {
		_, asked, err := s.ledger.Answer(ctx, id, now)
		if err != nil {
			return err
		}
		if asked {
			delete(r.now, now)
		}
	}
	return nil
}

// rereadAll reads the recorded questions of all holdouts again, one holdout after another.
func (s *Service) rereadAll(ctx context.Context) {
	defer close(s.rereadings.all)
	holdouts, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return // who asks reads them
	}
	for _, h := range holdouts {
		if h.Deleted {
			continue
		}
		select {
		case <-s.rereading(h.ID).done:
		case <-ctx.Done():
			return
		}
	}
}

// asRecorded is the id under which a question is recorded: its own, unless an older program wrote the question otherwise. Of one that has no answer under its own id nobody can know
// until the recorded questions have been read, so it waits.
func (s *Service) asRecorded(ctx context.Context, id, query string) (string, error) {
	r := s.rereading(id)
	select {
	case <-r.done:
	default:
		if _, ok, err := s.ledger.Answer(ctx, id, query); err == nil && ok {
			return query, nil
		}
	}
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	select {
	case <-r.done:
	case <-ctx.Done():
		return "", &Error{Kind: Unavailable, Detail: "the recorded questions of this holdout are being read again after a start; ask again: nothing was debited", Err: ctx.Err()}
	}
	switch {
	case errors.Is(r.err, ledger.ErrNotFound):
		s.rereadings.forget(id, r)
		return query, nil
	case r.err != nil:
		return "", s.ledgerError(r.err)
	}
	if recorded, ok := r.now[query]; ok {
		return recorded, nil
	}
	return query, nil
}

// asText is the recorded question that a body spells in its recorded form, where this program does not read the body; else nil.
func (s *Service) asText(ctx context.Context, id string, body []byte) (*queries.Query, error) {
	canonical := queries.Arrange(body)
	if canonical == nil {
		return nil, nil
	}
	q := queries.Recorded(canonical)
	_, ok, err := s.ledger.Answer(ctx, id, q.ID())
	if err != nil || !ok {
		return nil, err
	}
	return q, nil
}

// QuestionsReread is the code of the card's warning of recorded questions that this program does not read as they were recorded.
const QuestionsReread = "questions-reread"

// rereadWarning is what the card says of recorded questions that are not read as they were; nil where there are none, or they have not been read yet.
func (s *Service) rereadWarning(id string) *Warning {
	s.rereadings.mu.Lock()
	r := s.rereadings.byID[id]
	s.rereadings.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
	default:
		return nil
	}
	if r.changed == 0 {
		return nil
	}
	return &Warning{Code: QuestionsReread, Detail: fmt.Sprintf("this version of the server writes %d recorded questions otherwise and does not read %d; their answers replay at no cost, and holdoutd verify names them", r.changed-r.refused, r.refused)}
}
