// Package tracing tells an OpenTelemetry collector what requests did: spans, over OTLP/HTTP. A span can say no value. Its numbers are counts with a name from a list, its texts are words of
// closed lists (routes, query types, mechanisms, codes of problems) that are made before the first request, and it has neither events nor messages. A word that is in no list leaves as "other".
//
// Requests that ask have no durations, as in logs and metrics: all times of their spans are that of the request's end, which its line of the log has, too. What a scan takes is nobody's to see
// (docs/SECURITY.md).
package tracing

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"sync"
	"time"
)

// A Count is the name of a number that a span may have.
type Count string

const (
	Status    Count = "http.response.status_code"
	Queries   Count = "holdoutd.queries"   // of a request
	Questions Count = "holdoutd.questions" // that they cost, by their price
	Replays   Count = "holdoutd.replays"   // queries that had their answer before
	LeftOut   Count = "holdoutd.spans_left_out"
)

// A Word is the name of a text that a span may have: one of a closed list.
type Word string

const (
	Method    Word = "http.request.method"
	Route     Word = "http.route"
	Problem   Word = "holdoutd.problem"
	QueryType Word = "holdoutd.query.types"
	Mechanism Word = "holdoutd.mechanism"
)

// A Stage is the name of a part of a request.
type Stage string

const (
	Parse  Stage = "parse"  // queries are read
	Admit  Stage = "admit"  // they are compiled and priced, and what they need is reserved
	Scan   Stage = "scan"   // rows are read
	Commit Stage = "commit" // answers become durable
)

// other stands for a word that is in no list.
const other = "other"

// spansOfTrace bounds the spans of one request: a batch whose questions are read one by one has two for each.
const spansOfTrace = 100 // and so the memory that a request without durations holds until its end

// A Tracer makes spans and sends them. A nil one makes none.
type Tracer struct {
	exporter *exporter
	words    map[Word]map[string]bool
}

// Allow adds words to the list of a name. It is not for use beside requests.
func (t *Tracer) Allow(name Word, words ...string) {
	if t == nil {
		return
	}
	if t.words[name] == nil {
		t.words[name] = map[string]bool{}
	}
	for _, word := range words {
		t.words[name][word] = true
	}
}

// trace is what the spans of one request share.
type trace struct {
	tracer *Tracer
	id     [16]byte

	mu    sync.Mutex
	timed bool           // until a row is read
	read  map[Stage]bool // stages that were begun and look at rows: each is shown once, for how often they are begun depends on what the rows say
	spans int
	left  int     // spans that are beyond spansOfTrace
	held  []*Span // of a request without durations, until its end
}

// A Span is a request, or a stage of one. Its methods do nothing on a nil one, and it is for one goroutine.
type Span struct {
	trace      *trace
	id, parent [8]byte
	name       string
	server     bool
	begin, end time.Time
	counts     []count
	words      []words
	failed     bool
}

type count struct {
	name Count
	n    int64
}

type words struct {
	name Word
	all  []string
}

type spanKey struct{}

// Begin begins the span of a request that came by a method and a route. Where its header traceparent (W3C Trace Context) names a trace, it is part of that; where that says that the trace is not kept, there is no span. Without
// timed all of its spans have the time of its end.
func (t *Tracer) Begin(ctx context.Context, method, route, traceparent string, timed bool) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	tr := &trace{tracer: t, timed: timed, read: map[Stage]bool{}, spans: 1}
	s := &Span{trace: tr, server: true, begin: time.Now()}
	id, parent, kept, ok := parseParent(traceparent)
	switch {
	case ok && !kept:
		return ctx, nil
	case ok:
		tr.id, s.parent = id, parent
	default:
		rand.Read(tr.id[:]) // never fails
	}
	rand.Read(s.id[:])
	s.Say(Method, method)
	s.Say(Route, route)
	s.name = s.words[0].all[0] + " " + s.words[1].all[0]
	return context.WithValue(ctx, spanKey{}, s), s
}

// parseParent reads a header traceparent: version 00, or the beginning of a later one.
func parseParent(text string) (trace [16]byte, span [8]byte, kept, ok bool) {
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || parts[0] == "ff" || parts[0] == "00" && len(parts) != 4 || len(parts[3]) != 2 {
		return trace, span, false, false
	}
	var flags [1]byte
	for i, to := range [][]byte{trace[:], span[:], flags[:]} {
		part := parts[i+1]
		if len(part) != 2*len(to) || strings.ToLower(part) != part {
			return trace, span, false, false
		}
		if _, err := hex.Decode(to, []byte(part)); err != nil {
			return trace, span, false, false
		}
	}
	return trace, span, flags[0]&1 == 1, trace != [16]byte{} && span != [8]byte{}
}

// Start begins a stage of the request whose context it is, if that has a span.
func Start(ctx context.Context, stage Stage) (context.Context, *Span) {
	above, _ := ctx.Value(spanKey{}).(*Span)
	if above == nil {
		return ctx, nil
	}
	t := above.trace
	t.mu.Lock()
	defer t.mu.Unlock()
	if stage == Scan || stage == Commit {
		t.timed = false // whatever the route
		if t.read[stage] {
			return ctx, nil
		}
		t.read[stage] = true
	}
	if t.spans == spansOfTrace {
		t.left++
		return ctx, nil
	}
	t.spans++
	s := &Span{trace: t, parent: above.id, name: string(stage), begin: time.Now()}
	rand.Read(s.id[:])
	return context.WithValue(ctx, spanKey{}, s), s
}

// Set gives the span a count.
func (s *Span) Set(name Count, n int) {
	if s != nil {
		s.counts = append(s.counts, count{name, int64(n)})
	}
}

// Say gives the span words of a closed list; each different one once.
func (s *Span) Say(name Word, all ...string) {
	if s == nil || len(all) == 0 {
		return
	}
	w, seen := words{name: name}, map[string]bool{}
	for _, word := range all {
		if !s.trace.tracer.words[name][word] {
			word = other
		}
		if !seen[word] {
			w.all, seen[word] = append(w.all, word), true
		}
	}
	s.words = append(s.words, w)
}

// Fail says that the request, or its stage, failed. It says no more.
func (s *Span) Fail() {
	if s != nil {
		s.failed = true
	}
}

// Done ends a stage, which failed if there is an error. Of the error nothing is said.
func (s *Span) Done(err error) {
	if err != nil {
		s.Fail()
	}
	s.End()
}

// End ends the span, and hands it on.
func (s *Span) End() {
	if s == nil {
		return
	}
	t := s.trace
	s.end = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = append(t.held, s)
	if s.server && t.left > 0 {
		s.Set(LeftOut, t.left)
	}
	if !s.server && !t.timed {
		return
	}
	for _, held := range t.held {
		if !t.timed {
			held.begin, held.end = s.end, s.end
		}
		t.tracer.exporter.take(held)
	}
	t.held = nil
}
