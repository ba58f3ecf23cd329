package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/release"
)

// A release is private statistics of the training part, for people who have nothing else of it. Its noise is a function of the holdout's key and of the request, and it is an entry of the holdout's chain, with what
// it spends, before it is shown: a crash in between loses nothing, for the same request makes the same noise again. No row of the check part or the holdout is read.

// DefaultReleaseEpsilon is what all releases of a holdout may spend together where the first one says nothing else: whoever has all of them can be at odds of at most 20 to 1 about a unit, where the odds were even.
const DefaultReleaseEpsilon = 3

// releaseVersion is the version of a recorded release.
const releaseVersion = 1

// NewRelease is what a release is made of.
type NewRelease struct {
	Epsilon        float64                 `json:"epsilon" doc:"what the release spends; at most six decimals"`
	ReleaseEpsilon float64                 `json:"release_epsilon,omitempty" doc:"what all releases of the holdout may spend together, for ever; the first release says it, and later ones leave it out. Default: 3"`
	RowsPerUnit    int                     `json:"rows_per_unit,omitempty" doc:"at most so many rows of a unit count, chosen at random; noise grows with it. Default: 1. Left out where units are rows"`
	Columns        []release.ColumnRequest `json:"columns,omitempty" doc:"of which columns statistics are released; each part of the release has less of its epsilon the more there are"`
}

// Released is what is recorded of a release, the same bytes for ever. The ledger puts its place behind it.
type Released struct {
	Version     int             `json:"version"`
	Holdout     string          `json:"holdout" doc:"its id"`
	Release     string          `json:"release" doc:"the id of the request"`
	Created     time.Time       `json:"created"`
	Epsilon     float64         `json:"epsilon" doc:"what the release has spent"`
	Delta       float64         `json:"delta" doc:"0: the protection is pure"`
	Unit        string          `json:"unit" doc:"what is protected: row, a column whose rows with the same value belong together, or day(column)"`
	RowsPerUnit int             `json:"rows_per_unit,omitempty" doc:"at most so many rows of a unit count; absent where units are rows"`
	Confidence  float64         `json:"confidence" doc:"of each interval by itself, and of the shares and counts of one column together. Intervals are about the rows that count, and about the noise alone"`
	Guarantee   string          `json:"guarantee" doc:"what is protected, and from whom, in words"`
	Request     json.RawMessage `json:"request" doc:"what was asked for, in its one form"`
	release.Result
}

// releaseText is a request in its one form, as the ledger reads it.
type releaseText struct {
	ReleaseEpsilon release.Millionths `json:"release_epsilon"`
	release.Request
}

// Releases are those of a holdout.
type Releases struct {
	ReleaseAccount
	Releases []json.RawMessage `json:"releases"` // in the order of their creation, each the recorded bytes
}

// ReleaseAccount is what releases of a holdout spend.
type ReleaseAccount struct {
	Epsilon float64 `json:"release_epsilon" doc:"what all releases may spend together; of a holdout without one the default"`
	Spent   float64 `json:"spent" doc:"what they have spent"`
	Left    float64 `json:"left" doc:"what is left"`
}

// Release makes a private release of the training part, or replays the one of the same request. Only admins may.
func (s *Service) Release(ctx context.Context, p Principal, id string, n NewRelease) (body json.RawMessage, err error) {
	if err := admins(p); err != nil {
		return nil, err
	}
	err = s.InTurn(ctx, p, Work{Bytes: pageBytes}, func(ctx context.Context) error {
		body, err = s.release(ctx, p, id, n)
		return err
	})
	return body, err
}

func (s *Service) release(ctx context.Context, p Principal, id string, n NewRelease) (json.RawMessage, error) {
	known, card, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := n.request(&card)
	if err != nil {
		return nil, err
	}
	account, earlier, err := s.releases(ctx, id)
	if err != nil {
		return nil, err
	}
	text := releaseText{Request: r}
	if text.ReleaseEpsilon, err = n.limit(account); err != nil {
		return nil, err
	}
	record := ledger.Release{Principal: p.KeyID}
	if record.Canonical, err = json.Marshal(text); err != nil {
		return nil, err
	}
	if len(record.Canonical) > ledger.MaxReleaseBytes {
		return nil, &Error{Kind: TooLarge, Pointer: "/columns", Detail: fmt.Sprintf("a request of %d bytes in its one form, at most %d; ask for fewer columns, edges or texts", len(record.Canonical), ledger.MaxReleaseBytes)}
	}
	record.Query = ledger.HeadText(sha256.Sum256(record.Canonical))
	if e := findRelease(earlier, record.Query); e != nil {
		return e.Body, nil
	}
	switch left := int64(text.ReleaseEpsilon) - account.Spent; {
	case known.Retired:
		return nil, invalid("", "this holdout is retired, and nothing is recorded behind that. Releases that were made are still replayed")
	case known.Closed:
		return nil, invalid("", "this holdout is closed by its final report, and nothing is recorded behind that. Releases that were made are still replayed")
	case len(earlier) >= ledger.MaxReleases:
		return nil, &Error{Kind: TooLarge, Detail: fmt.Sprintf("a holdout has at most %d releases. Those that were made are still replayed", ledger.MaxReleases)}
	case int64(r.Epsilon) > left:
		return nil, s.releaseError(&ledger.EpsilonError{Requested: int64(r.Epsilon), Spent: account.Spent, Limit: int64(text.ReleaseEpsilon)})
	}
	h, done, err := s.take(ctx, id) // ends its being a draft
	if err != nil {
		return nil, err
	}
	defer done()
	if h.trainingTable == nil {
		return nil, fail(NotFound, "this holdout has no training part: it was created with holdout=1.0")
	}
	if err := r.Check(h.trainingTable.Schema().Fields, h.card.Unit == rowUnit); err != nil {
		return nil, releaseInvalid(err)
	}
	if err := need(ctx, h.releaseWork()); err != nil {
		return nil, err
	}
	result, err := h.released(ctx, s.path(holdoutsDir, id), r, h.secret.Noise.Stream("private release 1", h.digest[:], []byte(record.Query)))
	if err != nil {
		return nil, err
	}
	record.Time = s.now().UTC().Truncate(time.Second)
	record.Core, err = json.Marshal(Released{Version: releaseVersion, Holdout: id, Release: record.Query, Created: record.Time, Epsilon: r.Epsilon.Float(), Unit: h.card.Unit, RowsPerUnit: r.RowsPerUnit,
		Confidence: release.Confidence, Guarantee: guaranteeOf(r, h.card.Unit), Request: record.Canonical, Result: *result})
	if err != nil {
		return nil, err
	}
	return s.record(ctx, id, record)
}

// record makes a release durable, and returns its recorded bytes; those of the same request where that was faster.
func (s *Service) record(ctx context.Context, id string, r ledger.Release) (json.RawMessage, error) {
	wait, cancel := withDeadline(ctx)
	defer cancel()
	var receipt ledger.Receipt
	err := s.ledger.Update(wait, id, func(tx *ledger.Tx) (err error) {
		receipt, err = tx.Release(r)
		return err
	})
	switch {
	case errors.Is(err, ledger.ErrAnswered):
		_, list, err := s.releases(ctx, id)
		if err != nil {
			return nil, err
		}
		return findRelease(list, r.Query).Body, nil // nothing is ever removed
	case err != nil:
		return nil, s.releaseError(err)
	}
	s.log.Info("release made", "holdout", id, "release", r.Query, "by", r.Principal)
	return receipt.Body, nil
}

// releases are those of a holdout, and what they have spent.
func (s *Service) releases(ctx context.Context, id string) (ledger.Epsilons, []ledger.Entry, error) {
	list, err := s.ledger.Releases(ctx, id)
	if err != nil {
		return ledger.Epsilons{}, nil, s.ledgerError(err)
	}
	account, err := ledger.EpsilonsOf(list)
	if err != nil {
		return account, nil, s.ledgerError(err)
	}
	return account, list, nil
}

// findRelease is the release of a request, or nil.
func findRelease(list []ledger.Entry, query string) *ledger.Entry {
	i := slices.IndexFunc(list, func(e ledger.Entry) bool { return e.Query == query })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// Releases lists the releases of a holdout, with what they have spent. Only admins may.
func (s *Service) Releases(ctx context.Context, p Principal, id string) (Releases, error) {
	if err := admins(p); err != nil {
		return Releases{}, err
	}
	if _, _, err := s.find(ctx, id); err != nil {
		return Releases{}, err
	}
	account, list, err := s.releases(ctx, id)
	if err != nil {
		return Releases{}, err
	}
	limit, spent := release.Millionths(DefaultReleaseEpsilon*1_000_000), release.Millionths(account.Spent)
	if account.Limit > 0 {
		limit = release.Millionths(account.Limit)
	}
	out := Releases{ReleaseAccount{Epsilon: limit.Float(), Spent: spent.Float(), Left: (limit - spent).Float()}, make([]json.RawMessage, len(list))}
	for i := range list {
		out.Releases[i] = list[i].Body
	}
	return out, nil
}

// request is what is asked for, as far as the card can tell that it is right.
func (n *NewRelease) request(card *Card) (r release.Request, err error) {
	ok := false
	if r.Epsilon, ok = release.EpsilonOf(n.Epsilon); !ok {
		return r, invalid("/epsilon", "epsilon must be from %v to %v, with at most six decimals", release.MinEpsilon.Float(), release.MaxEpsilon.Float())
	}
	r.Columns, r.RowsPerUnit = n.Columns, n.RowsPerUnit
	if r.RowsPerUnit == 0 && card.Unit != rowUnit {
		r.RowsPerUnit = 1
	}
	fields := make([]dataset.Field, len(card.Columns))
	for i, c := range card.Columns {
		fields[i] = dataset.Field{Name: c.Name, Kind: c.Kind}
	}
	if err := r.Check(fields, card.Unit == rowUnit); err != nil {
		return r, releaseInvalid(err)
	}
	return r.Sorted(), nil
}

// limit is what all releases may spend together: what the first one says.
func (n *NewRelease) limit(account ledger.Epsilons) (release.Millionths, error) {
	limit := release.Millionths(DefaultReleaseEpsilon * 1_000_000)
	if account.Limit > 0 {
		limit = release.Millionths(account.Limit)
	}
	if n.ReleaseEpsilon == 0 {
		return limit, nil
	}
	said, ok := release.EpsilonOf(n.ReleaseEpsilon)
	switch {
	case !ok:
		return 0, invalid("/release_epsilon", "release_epsilon must be from %v to %v, with at most six decimals", release.MinEpsilon.Float(), release.MaxEpsilon.Float())
	case account.Limit > 0 && said != limit:
		return 0, invalid("/release_epsilon", "the first release of this holdout said that all may spend %v together, and that never changes; leave release_epsilon out", limit.Float())
	}
	return said, nil
}

// releaseInvalid is the refusal of a request that is wrong.
func releaseInvalid(err error) error {
	var wrong *release.RequestError
	if errors.As(err, &wrong) {
		return &Error{Kind: Invalid, Pointer: wrong.Pointer, Detail: wrong.Detail, Err: err}
	}
	return err
}

// releaseError is that of a ledger that records no release.
func (s *Service) releaseError(err error) error {
	var lacks *ledger.EpsilonError
	if !errors.As(err, &lacks) {
		return s.ledgerError(err)
	}
	requested, left, limit := release.Millionths(lacks.Requested).Float(), release.Millionths(lacks.Limit-lacks.Spent).Float(), release.Millionths(lacks.Limit).Float()
	return &Error{Kind: EpsilonExhausted, Pointer: "/epsilon", Err: err, Members: map[string]any{"requested": requested, "remaining": left, "release_epsilon": limit},
		Detail: fmt.Sprintf("the release would spend %v, and %v of %v is left for all releases of this holdout; nothing was spent. Releases that were made are still replayed", requested, left, limit)}
}

// guaranteeOf says in words what a release protects.
func guaranteeOf(r release.Request, of string) string {
	what := "one row"
	if of != rowUnit {
		what = "all rows with one value of " + of
	}
	return fmt.Sprintf("%v-differentially private (pure) for %s of the training part, added or removed; replaced by another: %v. It protects from people who have only this release. "+
		"The training part itself is handed out to keys that may download it, and releases of one holdout add up. No held-out row was read.", r.Epsilon.Float(), what, 2*r.Epsilon.Float())
}

// releaseWork is what a release holds: of each row a number, its owner and a place; of each unit an entry of a map.
func (h *opened) releaseWork() Work {
	rows, w := int64(h.trainingTable.Rows()), Work{}
	w.Bytes, w.Steps = 40*rows, 20*rows
	if h.card.Unit != rowUnit {
		w.Bytes += 32*rows + 256*h.card.Units.Training
	}
	return w
}

// released computes a release of the training part, and reads nothing else. dir is the holdout's.
func (h *opened) released(ctx context.Context, dir string, r release.Request, s *noise.Stream) (result *release.Result, err error) {
	var owners []unit.Owner
	if h.card.Unit != rowUnit {
		offsets, err := readUnits(filepath.Clean(dir), trainingDir+unitsSuffix, &h.card)
		if err != nil {
			return nil, h.faulted(err)
		}
		owners = make([]unit.Owner, h.trainingTable.Rows())
		for u := range len(offsets) - 1 {
			for row := offsets[u]; row < offsets[u+1]; row++ {
				owners[row].User = uint64(u)
			}
		}
	}
	if faulted := dataset.Guarded(func() { result, err = release.Of(ctx, h.trainingTable, owners, r, s) }); faulted != nil {
		return nil, h.faulted(faulted)
	}
	if err != nil {
		return nil, scanError(err)
	}
	return result, nil
}
