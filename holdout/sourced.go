package holdout

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/sources"
)

// place is a source of a service.
type place struct {
	sources.Source
	name string

	mu    sync.Mutex
	asked time.Time // when it was asked whether it answers
	said  error
}

// readyFor is how long a source that has answered is taken to answer.
const readyFor = time.Second

// readyWithin is how long a source has to say that it answers.
const readyWithin = 3 * time.Second

// ready asks the source whether it answers, at most once a second.
func (p *place) ready(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.asked) < readyFor {
		return p.said
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin) // others hear of it, too
	defer cancel()
	p.said, p.asked = p.Ready(ctx), time.Now()
	return p.said
}

// placed reports whether the source's rows have places.
func (p *place) placed() bool {
	rows, ok := p.Source.(sources.Placed)
	return ok && rows.RowsHavePlaces()
}

// sourceError says an error of a source in the service's words. What the source itself has said is for the log: it may quote rows.
func sourceError(err error) error {
	var ours *Error
	if err == nil || errors.As(err, &ours) {
		return err
	}
	var theirs *sources.Error
	if errors.As(err, &theirs) {
		e := &Error{Kind: Internal, Detail: theirs.Detail, Err: err}
		switch theirs.Kind {
		case sources.NotFound, sources.Refused:
			e.Kind = SourceRefused
		case sources.Changed:
			e.Kind = SourceChanged
		case sources.Dear:
			e.Kind = SourceTooDear
		case sources.Unavailable:
			e.Kind = SourceUnavailable
		}
		if theirs.Column != "" {
			e.Members = map[string]any{"column": theirs.Column}
		}
		return e
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &Error{Kind: SourceUnavailable, Detail: "the source did not answer in time; send the request again", Err: err}
	}
	if errors.Is(err, dataset.ErrDamaged) {
		return err
	}
	return &Error{Kind: Internal, Detail: "the source failed; the server's log has what it said", Err: err}
}

// checkSource refuses settings with which no holdout of a table of a source can be made.
func (set Settings) checkSource(from *place) error {
	switch {
	case set.Features == featuresPublic:
		return invalid("features", "features=public is for uploads: of a table of a source no held-out row leaves its place")
	case set.Split == splitGiven:
		return invalid("split", "split=given is for uploads: a table of a source is split by the server; use hash or time:COLUMN")
	case set.Unit != "" && len(set.Key) > 0:
		return invalid("key", "key identifies rows where each is a unit; with unit=%s leave it out", set.Unit)
	case set.Unit == "" && len(set.Key) == 0 && !from.placed():
		return invalid("key", "rows of %s have no places by which they could be told apart: name the columns whose values together identify a row as key, or a unit", from.name)
	}
	return nil
}
