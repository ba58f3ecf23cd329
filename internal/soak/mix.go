package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/holdoutd/holdoutd/client"
)

// A kind is one thing that clients do. Weight is how often, beside the others.
type kind struct {
	name   string
	weight int
	do     func(*soaker, context.Context) error
}

// kinds are what clients do. A reply to a question is checked where it is received; what only the whole chain can show, at the end.
var kinds = []kind{
	{"single", 400, (*soaker).single},
	{"batch", 80, (*soaker).batch},
	{"replay", 200, (*soaker).replay},
	{"explain", 80, (*soaker).explain},
	{"budget", 80, (*soaker).budget},
	{"history", 30, (*soaker).history},
	{"bad", 50, (*soaker).bad},
	{"hangup", 30, (*soaker).hangup},
	{"again", 60, (*soaker).again},
	{"key", 8, (*soaker).key},
	{"upload", 2, (*soaker).upload},
}

const (
	mostBatch   = 20                    // questions of a batch
	longestHang = 20 * time.Millisecond // after which a client leaves at the latest
	afterError  = 50 * time.Millisecond // before a client whose server is gone tries again
	pageSize    = 100                   // answers of a page of the history
)

// errNothing says that there was nothing to do of this kind: no reply is counted.
var errNothing = errors.New("nothing to do")

// A soaker is one client. It does one thing after the other.
type soaker struct {
	run    *run
	random *rand.Rand
}

func (s *soaker) work(ctx context.Context) {
	total := 0
	for _, k := range kinds {
		total += k.weight
	}
	for ctx.Err() == nil {
		pick := s.random.IntN(total)
		for _, k := range kinds {
			if pick -= k.weight; pick < 0 {
				s.one(ctx, k)
				break
			}
		}
	}
}

// one does one thing and counts how it went.
func (s *soaker) one(ctx context.Context, k kind) {
	begin := time.Now()
	// The run's end lets a request finish: what its client is not told would be in doubt.
	err := k.do(s, context.WithoutCancel(ctx))
	if errors.Is(err, errNothing) {
		return
	}
	s.run.counts.note(k.name, time.Since(begin), outcome(err))
	if err == nil {
		return
	}
	var p *client.Problem
	if errors.As(err, &p) && !passing(p) && p.Code != "budget-exhausted" {
		s.run.books.Wrong("%s: the server refused: %v", k.name, err)
	}
	time.Sleep(afterError)
}

// outcome is how a request ended, in a word of a closed set.
func outcome(err error) string {
	var p *client.Problem
	switch {
	case err == nil:
		return ""
	case errors.As(err, &p):
		return p.Code
	}
	return "no reply"
}

// passing says that a problem is a moment's: the server is busy, or its ledger cannot commit now.
func passing(p *client.Problem) bool {
	return p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests || p.Status == http.StatusBadGateway || p.Status == http.StatusGatewayTimeout
}

// settled says that a question was certainly not asked: its refusal is by public facts.
func settled(err error) bool {
	var p *client.Problem
	return errors.As(err, &p) && p.Status >= 400 && p.Status < 500 && !passing(p)
}

func (s *soaker) server() *client.Client {
	return s.run.analysts[s.random.IntN(len(s.run.analysts))]
}

// subject picks a holdout by its weight.
func (s *soaker) subject() *subject {
	pick := s.random.IntN(totalWeight)
	for _, h := range s.run.subjects {
		if pick -= h.weight; pick < 0 {
			return h
		}
	}
	return s.run.subjects[0]
}

// ask sends one question and notes all that the reply says.
func (s *soaker) ask(ctx context.Context, h *subject, question int64) error {
	atMost := s.run.books.Sent(h.id, question)
	reply, err := s.server().Ask(ctx, h.id, h.query(question))
	if err != nil {
		s.ended(h, err, question)
		return err
	}
	s.run.books.Answered(h.id, question, reply.Answer.Raw, reply.Replayed)
	s.run.books.Budget(h.id, leftOf(reply.Budget), atMost)
	s.run.counts.answered(1)
	return nil
}

// ended notes that a request for questions brought no answers.
func (s *soaker) ended(h *subject, err error, questions ...int64) {
	if settled(err) {
		s.run.books.Refused(h.id, questions...)
	} else {
		s.run.books.Lost(h.id, questions...)
	}
}

func leftOf(b client.Budget) map[string]int64 {
	left := map[string]int64{"questions": b.Questions.Left}
	if b.Tokens != nil {
		left["tokens"] = b.Tokens.Left
	}
	return left
}

// single asks something new; now and then twice under one Idempotency-Key, as a client does that was not sure.
func (s *soaker) single(ctx context.Context) error {
	h := s.subject()
	question := h.next()
	if s.random.IntN(10) > 0 {
		return s.ask(ctx, h, question)
	}
	ctx = client.WithIdempotencyKey(ctx, fmt.Sprintf("soak-%s-%d", h.id, question))
	if err := s.ask(ctx, h, question); err != nil {
		return err
	}
	return s.ask(ctx, h, question)
}

// batch asks several new questions and some old ones, one of them twice.
func (s *soaker) batch(ctx context.Context) error {
	h := s.subject()
	var questions []int64
	for range 1 + s.random.IntN(mostBatch-3) {
		questions = append(questions, h.next())
	}
	questions = append(questions, h.earlier(s.random), questions[0])
	queries := make([]any, len(questions))
	for i, q := range questions {
		queries[i] = h.query(q)
	}
	atMost := s.run.books.Sent(h.id, questions...)
	reply, err := s.server().AskBatch(ctx, h.id, queries, s.random.IntN(2) == 0)
	if err != nil {
		s.ended(h, err, questions...)
		return err
	}
	if len(reply.Answers) != len(questions) {
		s.run.books.Wrong("%s: a batch of %d has %d answers", h.id, len(questions), len(reply.Answers))
		return nil
	}
	answers := 0
	for i, item := range reply.Answers {
		if item.Answer == nil {
			s.run.books.Refused(h.id, questions[i])
			continue
		}
		s.run.books.Answered(h.id, questions[i], item.Answer.Raw, item.Replayed)
		answers++
	}
	s.run.books.Budget(h.id, leftOf(reply.Budget), atMost)
	s.run.counts.answered(answers)
	return nil
}

// replay asks what was asked before.
func (s *soaker) replay(ctx context.Context) error {
	h := s.subject()
	return s.ask(ctx, h, h.earlier(s.random))
}

// again asks a question of which nobody knows what became: its server was killed, or its client left.
func (s *soaker) again(ctx context.Context) error {
	h := s.subject()
	question, ok := s.run.books.Again(h.id)
	if !ok {
		return errNothing
	}
	return s.ask(ctx, h, question)
}

func (s *soaker) explain(ctx context.Context) error {
	h := s.subject()
	_, err := s.server().Explain(ctx, h.id, h.query(h.earlier(s.random)))
	return err
}

func (s *soaker) budget(ctx context.Context) error {
	h := s.subject()
	atMost := s.run.books.Sent(h.id)
	b, err := s.server().Budget(ctx, h.id)
	if err == nil {
		s.run.books.Budget(h.id, leftOf(b), atMost)
	}
	return err
}

// history reads a page from somewhere in the middle. What it shows must be what the chain has.
func (s *soaker) history(ctx context.Context) error {
	h := s.subject()
	var page struct {
		Answers []struct {
			Answer json.RawMessage `json:"answer"`
		} `json:"answers"`
	}
	path := fmt.Sprintf("/v1/holdouts/%s/answers?limit=%d&after=%d", h.id, pageSize, s.random.Int64N(h.asked.Load()+1))
	status, err := s.raw(ctx, http.MethodGet, path, "", "", &page)
	if err != nil || status != http.StatusOK {
		return plain(status, err)
	}
	for _, a := range page.Answers {
		s.run.books.Shown(h.id, a.Answer)
	}
	return nil
}

// hangup asks something new and does not wait for the answer, which is debited all the same if rows were read.
func (s *soaker) hangup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(s.random.Int64N(int64(longestHang))))
	defer cancel()
	h := s.subject()
	err := s.ask(ctx, h, h.next())
	if ctx.Err() != nil {
		return nil // it left, as it meant to
	}
	return err
}

// badRequests must be refused, each by one of these statuses, and cost nothing.
var badRequests = []struct {
	body   string
	status int
}{
	{`{"type":"mean","of":"x","range":[0,1]`, http.StatusBadRequest},
	{`{"type":"mean","type":"mean","of":"x","range":[0,1]}`, http.StatusBadRequest},
	{`{"type":"meen","of":"x","range":[0,1]}`, http.StatusUnprocessableEntity},
	{`{"type":"mean","of":"nothing","range":[0,1]}`, http.StatusUnprocessableEntity},
	{`{"type":"mean","of":"x +","range":[0,1]}`, http.StatusUnprocessableEntity},
	{`{"type":"mean","of":"x","range":[1,0]}`, http.StatusUnprocessableEntity},
	{`[]`, http.StatusUnprocessableEntity},
	{`{"type":"fraction","of":"g > 1"}`, http.StatusUnprocessableEntity},
}

// bad sends what must be refused, or a key that nobody has.
func (s *soaker) bad(ctx context.Context) error {
	h := s.subject()
	i := s.random.IntN(len(badRequests) + 1)
	key, body, want := "", `{"type":"fraction","of":"x > 0.5"}`, http.StatusUnauthorized
	if i < len(badRequests) {
		body, want = badRequests[i].body, badRequests[i].status
	} else {
		key = "hk_" + strconv.FormatUint(s.random.Uint64(), 36)
	}
	status, err := s.raw(ctx, http.MethodPost, "/v1/holdouts/"+h.id+"/queries", key, body, nil)
	if err == nil && status != want && status < http.StatusInternalServerError && status != http.StatusTooManyRequests {
		s.run.books.Wrong("%s was answered with %d; it must be %d", body, status, want)
	}
	if err == nil && status == want {
		return nil
	}
	return plain(status, err)
}

// key makes a key, uses it and revokes it. From then on it must be nobody's.
func (s *soaker) key(ctx context.Context) error {
	admin := s.run.admins[s.random.IntN(len(s.run.admins))]
	made, err := admin.CreateKey(ctx, "soak", "analyst")
	if err != nil {
		return err
	}
	h := s.subject()
	path := "/v1/holdouts/" + h.id + "/budget"
	status, err := s.raw(ctx, http.MethodGet, path, made.Secret, "", nil)
	if err == nil && status == http.StatusUnauthorized {
		s.run.books.Wrong("a key that was just made is refused")
	}
	if err := admin.RevokeKey(ctx, made.ID); err != nil {
		return err
	}
	if status, err = s.raw(ctx, http.MethodGet, path, made.Secret, "", nil); err == nil && status < 300 {
		s.run.books.Wrong("a revoked key still reads budgets")
	}
	return plain(status, err, http.StatusUnauthorized)
}

// upload makes a holdout of its own, asks it something, balances its books and deletes it.
func (s *soaker) upload(ctx context.Context) error {
	admin := s.run.admins[s.random.IntN(len(s.run.admins))]
	h := &subject{mechanism: "gaussian", settings: client.Settings{Name: "soak, for a moment", Holdout: 0.5, Mechanism: "gaussian", Questions: 20}}
	if err := h.create(ctx, admin, s.random, smallTable); err != nil {
		return err
	}
	var failed error
	for range 3 {
		if failed = s.ask(ctx, h, h.next()); failed != nil {
			break
		}
	}
	if failed == nil {
		failed = s.run.balance(ctx, admin, h)
	}
	if err := admin.Delete(ctx, h.id); err != nil {
		return err
	}
	s.run.books.Forget(h.id)
	status, err := s.raw(ctx, http.MethodGet, "/v1/holdouts/"+h.id, "", "", nil)
	if err == nil && status == http.StatusOK {
		s.run.books.Wrong("%s was deleted and is still there", h.id)
	}
	return errors.Join(failed, plain(status, err, http.StatusNotFound))
}

// raw sends one request that is none of the client package's, with an analyst's key unless another is named.
func (s *soaker) raw(ctx context.Context, method, path, key, body string, into any) (status int, err error) {
	i := s.random.IntN(len(s.run.options.URLs))
	r, err := http.NewRequestWithContext(ctx, method, s.run.options.URLs[i]+path, stringBody(body))
	if err != nil {
		return 0, err
	}
	if key == "" {
		key = s.run.analystKeys[s.random.IntN(len(s.run.analystKeys))]
		if method == http.MethodGet {
			key = s.run.options.Key // an admin's history has everybody's answers
		}
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	reply, err := s.run.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	if into != nil && reply.StatusCode == http.StatusOK {
		return reply.StatusCode, json.NewDecoder(reply.Body).Decode(into)
	}
	_, err = io.Copy(io.Discard, reply.Body)
	return reply.StatusCode, err
}

// plain makes a status that is not what was meant an error, as the client package does.
func plain(status int, err error, meant ...int) error {
	if err != nil {
		return err
	}
	for _, m := range meant {
		if status == m {
			return nil
		}
	}
	return &client.Problem{Status: status, Code: strconv.Itoa(status), Detail: http.StatusText(status)}
}
