package holdout

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/lineage"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/dp/unit"
	"github.com/holdoutd/holdoutd/holdout/ledger"
	"github.com/holdoutd/holdoutd/holdout/release"
)

// A release is private statistics of the training part, for people who have nothing else of it. Its noise is a function of the holdout's key and of the request, and it is an entry of the holdout's chain, with what
// it spends, before it is shown: a crash in between loses nothing, for the same request makes the same noise again. No row of the check part or the holdout is read.

// DefaultReleaseEpsilon is what all releases of a holdout may spend together where the first one says nothing else: whoever has all of them can be at odds of at most 20 to 1 (e^3) that a unit is in the training part, where the odds
// were even; and of 403 to 1 (e^6) about one of its values, of a unit that is known to be in it.
const DefaultReleaseEpsilon = 3

// releaseVersion is the version of a recorded release.
const releaseVersion = 1

// NewRelease is what a release is made of.
type NewRelease struct {
	Epsilon         float64                 `json:"epsilon" doc:"what the release spends; at most six decimals"`
	ReleaseEpsilon  float64                 `json:"release_epsilon,omitempty" doc:"what all releases of the holdout may spend together, for ever; the first release says it, and later ones leave it out. Default: 3"`
	RowsPerUnit     int                     `json:"rows_per_unit,omitempty" doc:"at most so many rows of a unit count, chosen at random; noise grows with it. Default: 1. Left out where units are rows"`
	EarlierReleases string                  `json:"earlier_releases,omitempty" enum:"accepted" doc:"accepted: make the release although releases of other holdouts are of the same rows, or may have been forgotten with a restore. The card says so for good, with the sum that is known"`
	Columns         []release.ColumnRequest `json:"columns,omitempty" doc:"of which columns statistics are released; each part of the release has less of its epsilon the more there are"`
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
	// No word on other holdouts with the same rows: which those are is a function of the rows that no epsilon pays for.
	Warnings []Warning `json:"warnings,omitempty" doc:"that a restore may have forgotten releases, which add up to it"`
	release.Result
}

// releaseText is a request in its one form, as the ledger reads it.
type releaseText struct {
	ReleaseEpsilon release.Millionths `json:"release_epsilon"`
	release.Request
	Earlier []string `json:"earlier_releases,omitempty"` // as the server found: no part of what is asked for, and so of the id
}

// Releases are those of a holdout.
type Releases struct {
	ReleaseAccount
	Releases []json.RawMessage `json:"releases"`       // in the order of their creation, each the recorded bytes
	Next     int64             `json:"next,omitempty"` // the place to go on from; 0 on the last page
}

// ReleaseAccount is what releases of a holdout spend.
type ReleaseAccount struct {
	Epsilon float64  `json:"release_epsilon" doc:"what all releases may spend together; of a holdout without one the default"`
	Spent   float64  `json:"spent" doc:"what they have spent"`
	Left    float64  `json:"left" doc:"what is left"`
	Made    int64    `json:"made" doc:"how many there are"`
	Earlier []string `json:"earlier_releases,omitempty" doc:"other holdouts whose releases are of the same rows: what they have spent adds up, and an admin has accepted it"`
}

// Release makes a private release of the training part, or replays the one of the same request. Only admins may.
func (s *Service) Release(ctx context.Context, p Principal, id string, n NewRelease) (body json.RawMessage, err error) {
	if err := admins(p); err != nil {
		return nil, err
	}
	err = s.InTurn(ctx, p, Work{Bytes: pageBytes}, func(ctx context.Context) error {
		until, stop := s.untilDeleted(ctx, id)
		defer stop()
		if body, err = s.release(until, p, id, n); err != nil && context.Cause(until) == errDeletedMeanwhile {
			err = s.ledgerError(ledger.ErrDeleted)
		}
		return err
	})
	return body, err
}

// release is Release, in its turn. What public facts refuse is refused before the holdout's being a draft ends.
func (s *Service) release(ctx context.Context, p Principal, id string, n NewRelease) (json.RawMessage, error) {
	known, card, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	r, err := n.request(&card)
	if err != nil {
		return nil, err
	}
	text := releaseText{Request: r}
	if text.ReleaseEpsilon, err = n.limit(known.Released); err != nil {
		return nil, err
	}
	if n.EarlierReleases != "" && n.EarlierReleases != overlapAccepted {
		return nil, invalid("/earlier_releases", "earlier_releases must be %s, or left out", overlapAccepted)
	}
	canonical, err := json.Marshal(text)
	if err != nil {
		return nil, err
	}
	if len(canonical) > maxRequestBytes {
		return nil, &Error{Kind: TooLarge, Pointer: "/columns", Detail: fmt.Sprintf("a request of %d bytes in its one form, at most %d; ask for fewer columns, edges or texts", len(canonical), maxRequestBytes)}
	}
	query := ledger.HeadText(sha256.Sum256(canonical))
	if body, err := s.replayRelease(ctx, id, query, false); body != nil || err != nil {
		return body, err
	}
	forgotten := s.restores.warning(known.Created)
	switch left := int64(text.ReleaseEpsilon) - known.Released.Spent; {
	case known.Retired:
		return nil, invalid("", "this holdout is retired, and nothing is recorded behind that. Releases that were made are still replayed")
	case known.Closed:
		return nil, invalid("", "this holdout is closed by its final report, and nothing is recorded behind that. Releases that were made are still replayed")
	case known.Released.Made >= ledger.MaxReleases:
		return nil, &Error{Kind: TooLarge, Detail: fmt.Sprintf("a holdout has at most %d releases. Those that were made are still replayed", ledger.MaxReleases)}
	case int64(r.Epsilon) > left:
		return nil, s.releaseError(&ledger.EpsilonError{Requested: int64(r.Epsilon), Spent: known.Released.Spent, Limit: int64(text.ReleaseEpsilon)})
	case card.Units.Training == 0:
		return nil, fail(NotFound, "this holdout has no training part: it was created with holdout=1.0")
	case forgotten != nil && n.EarlierReleases == "":
		return nil, fail(ReleasedBefore, "%s. So releases may have been made that this server has forgotten, and what they spent adds up to this one. earlier_releases=accepted makes it all the same, and it says so for good", forgotten.Detail)
	}
	rows := card.Rows.Training
	steps, memory := r.Work(rows, card.Unit == rowUnit)
	if err := need(ctx, Work{Steps: steps + sketchSteps*rows, Bytes: memory + sketchBytes}); err != nil {
		return nil, err
	}
	end, err := s.aloneReleasing(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if body, err := s.replayRelease(ctx, id, query, true); body != nil || err != nil { // made while this one waited
		return body, err
	}
	if s.shared != nil { // as where a term begins: what another server has released may be forgotten since
		if err := s.lookAtMark(ctx, id); err != nil {
			return nil, s.ledgerError(err)
		}
	}
	now, err := s.ledger.Holdout(ctx, id)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	switch limit, err := n.limit(now.Released); { // another first release may have been made while this one waited
	case err != nil:
		return nil, err
	case limit != text.ReleaseEpsilon:
		return nil, fail(Conflict, "the first release of this holdout was made meanwhile, and said that all may spend %v together; send this one again", limit.Float())
	case int64(r.Epsilon) > int64(limit)-now.Released.Spent:
		return nil, s.releaseError(&ledger.EpsilonError{Requested: int64(r.Epsilon), Spent: now.Released.Spent, Limit: int64(limit)})
	}
	earlier, err := s.earlierReleases(ctx, id)
	if err != nil {
		return nil, err
	}
	if len(earlier) > 0 && n.EarlierReleases == "" {
		return nil, releasedBefore(earlier)
	}
	h, done, err := s.take(ctx, id) // ends its being a draft
	if err != nil {
		return nil, err
	}
	defer done()
	if err := r.Check(h.trainingTable.Schema().Fields, h.card.Unit == rowUnit); err != nil {
		return nil, releaseInvalid(err)
	}
	result, err := h.released(ctx, s.path(holdoutsDir, id), r, h.secret.Noise.Stream("private release 1", h.digest[:], []byte(query)))
	if err != nil {
		return nil, err
	}
	record := ledger.Release{Query: query, Principal: p.KeyID, Time: s.now().UTC().Truncate(time.Second)}
	for _, e := range earlier {
		text.Earlier = append(text.Earlier, e.Holdout)
	}
	said := Released{Version: releaseVersion, Holdout: id, Release: query, Created: record.Time, Epsilon: r.Epsilon.Float(), Unit: h.card.Unit, RowsPerUnit: r.RowsPerUnit,
		Confidence: release.Confidence, Guarantee: guaranteeOf(r, h.card.Unit), Request: canonical, Result: *result}
	if forgotten != nil {
		said.Warnings = append(said.Warnings, Warning{Code: Restored, Detail: forgotten.Detail + ". Releases that were forgotten add up to this one"})
	}
	if record.Canonical, err = json.Marshal(text); err != nil {
		return nil, err
	}
	if record.Core, err = json.Marshal(said); err != nil {
		return nil, err
	}
	return s.record(ctx, id, record)
}

// maxRequestBytes is of a request in its one form: behind it there is room for the ids of earlier holdouts.
const maxRequestBytes = ledger.MaxReleaseBytes - ledger.MaxEarlier*(ledger.MaxTextBytes+3)

// releaseTurn is how long a release waits for its turn: another one takes up to some seconds.
var releaseTurn = LedgerDeadline

// aloneReleasing waits until no other release is being made, by any server: else two holdouts of the same rows would each not see what the other is about to spend. All servers ask for the term of the first
// holdout that there was, which is never forgotten.
func (s *Service) aloneReleasing(ctx context.Context) (end func(), err error) {
	wait, cancel := context.WithTimeout(ctx, releaseTurn)
	defer cancel()
	busy := func() error { // ctx.Err, which is nil where its turn did not come: then the server was not too slow
		return &Error{Kind: Unavailable, Detail: fmt.Sprintf("other releases are being made, and this one's turn did not come within %v; send it again later", releaseTurn), Err: ctx.Err()}
	}
	select {
	case s.releasing <- struct{}{}:
	case <-wait.Done():
		return nil, busy()
	}
	all, err := s.ledger.Holdouts(ctx)
	leave := func() {}
	if err == nil {
		_, leave, err = s.tenures.enter(wait, all[0].ID)
	}
	if err != nil {
		<-s.releasing
		if wait.Err() != nil {
			return nil, busy()
		}
		return nil, s.ledgerError(err)
	}
	return func() {
		leave()
		<-s.releasing
	}, nil
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
		return s.replayRelease(ctx, id, r.Query, true)
	case errors.Is(err, ledger.ErrInvalid):
		if now, err := s.ledger.Holdout(ctx, id); err == nil && (now.Closed || now.Retired) {
			return nil, invalid("", "this holdout was closed or retired meanwhile, and nothing is recorded behind that; nothing was spent")
		}
		return nil, s.ledgerError(err)
	case err != nil:
		return nil, s.releaseError(err)
	}
	s.log.Info("release made", "holdout", id, "release", r.Query, "by", r.Principal)
	if err := s.markRelease(ctx, id, receipt.Seq, receipt.Head, true); err != nil {
		return nil, err
	}
	return receipt.Body, nil
}

// replayRelease is the recorded release of a request, or nil. It shows none that has no mark: that was recorded, and shown to nobody. alone says that no other release is being made.
func (s *Service) replayRelease(ctx context.Context, id, query string, alone bool) (json.RawMessage, error) {
	e, ok, err := s.ledger.ReleaseOf(ctx, id, query)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	if !ok {
		return nil, nil
	}
	if err := s.markRelease(ctx, id, e.Seq, ledger.HeadText(e.Head), alone); err != nil {
		return nil, err
	}
	return e.Body, nil
}

// markRelease makes the marks beside a holdout's tables say that its chain has come as far as a release, durably, or fails: no release is shown before, so that a ledger that forgot one is noticed. Of a holdout that makes no new
// ones nothing is written.
func (s *Service) markRelease(ctx context.Context, id string, seq int64, head string, alone bool) error {
	if _, forGood := s.quarantine.of(id); forGood {
		return nil
	}
	dir := s.path(holdoutsDir, id)
	m, err := readMark(dir)
	if err == nil && m.Seq >= seq {
		return nil
	}
	if err == nil && !alone { // of two servers the slower would put an older mark in the place of a newer one
		end, err := s.aloneReleasing(ctx)
		if err != nil {
			return err
		}
		defer end()
		return s.markRelease(ctx, id, seq, head, true)
	}
	if err == nil {
		m.Seq, m.Head = seq, head
		err = errors.Join(m.write(dir, releaseMark), dataset.SyncDir(dir))
	}
	if err != nil {
		return storageError(fmt.Errorf("holdout: the mark of a release of %s: %w", id, err))
	}
	return nil
}

// EarlierRelease is another holdout whose releases are of the same rows.
type EarlierRelease struct {
	Holdout string   `json:"holdout" doc:"its id; it may be deleted"`
	Share   float64  `json:"share" doc:"how many rows at least, rounded up to tenths: of this training part or of the other one, whichever is more"`
	Epsilon *float64 `json:"epsilon,omitempty" doc:"what its releases have spent; absent where nobody knows any more"`

	spent int64
}

// What recognising rows takes.
const (
	sketchSteps = 500      // of a row
	sketchBytes = 64 << 20 // of sketches, and of the rows that are kept of them
)

// earlierReleases are the other holdouts, deleted ones among them, that have releases of the training rows of this one. Only training parts are compared: nothing else is ever released of. Rows are recognised as those of an upload are
// (docs/decisions/0011-lineage.md); a holdout of which no sketch is left counts as one of all rows.
func (s *Service) earlierReleases(ctx context.Context, id string) (found []EarlierRelease, err error) {
	all, err := s.ledger.Holdouts(ctx)
	if err != nil {
		return nil, s.ledgerError(err)
	}
	lost, err := s.forgotten(all) // they may have had releases
	if err != nil {
		return nil, storageError(err)
	}
	// A ledger that was set back may have forgotten releases of a holdout that it knows: the mark beside its tables says that there were some, or what is remembered of it where it was deleted. Nobody knows then what was spent.
	others := slices.DeleteFunc(all, func(h ledger.Holdout) bool {
		return h.ID == id || h.Released.Made == 0 && s.remembered(h).Released.Made == 0 && !isThere(s.path(holdoutsDir, h.ID), releaseMark)
	})
	named := ids(lost)
	for _, h := range lost {
		if h.Released.Made > 0 {
			others = append(others, ledger.Holdout{ID: h.ID}) // of which nobody knows what was spent
		}
	}
	for _, lost := range slices.Sorted(maps.Values(s.lostTables)) { // of which no sketches are left
		if u, ok := s.readUse(lost); !named[lost] && (!ok || u.Released) {
			others = append(others, ledger.Holdout{ID: lost})
		}
	}
	if len(others) == 0 {
		return nil, nil
	}
	sketchOf := func(h ledger.Holdout) (*lineage.Sketch, error) { // read again for each use: of many holdouts they are large
		of, err := s.sketchesOf(ctx, h)
		if err != nil {
			return nil, storageError(err)
		}
		return of[trainingDir], nil
	}
	var watch lineage.Watch
	for _, h := range others {
		old, err := sketchOf(h)
		switch {
		case err != nil:
			return nil, err
		case old == nil && !h.Deleted:
			return nil, fail(Conflict, "whether the holdout %s, which has releases, has these rows nobody can tell: its files are damaged, or not in this server's directory; restore them, or delete it, first", h.ID)
		case old != nil && !watch.Add(old):
			return nil, fail(Conflict, "there are more holdouts with releases than this one can be compared with")
		}
	}
	t, err := dataset.Open(s.path(holdoutsDir, id, trainingDir))
	if err != nil {
		return nil, storageError(err)
	}
	mine, err := lineage.New(s.lineage.rows, t, &watch)
	if err := errors.Join(err, t.Close()); err != nil {
		return nil, storageError(err)
	}
	for _, h := range others {
		if err := ctx.Err(); err != nil {
			return nil, scanError(err)
		}
		old, err := sketchOf(h)
		if err != nil {
			return nil, err
		}
		share := 1. // of which nothing is known
		if old != nil {
			o := lineage.Compare(old, mine)
			share = math.Ceil(10*min(1, max(o.OfOld, o.OfNew))-1e-9) / 10
		}
		if share > 0 {
			e := EarlierRelease{Holdout: h.ID, Share: share, spent: h.Released.Spent}
			if h.Released.Made > 0 {
				e.Epsilon = new(release.Millionths(h.Released.Spent).Float())
			}
			found = append(found, e)
		}
	}
	if len(found) > ledger.MaxEarlier {
		return nil, fail(Conflict, "the releases of %d other holdouts are of the same rows, at most %d can be accepted", len(found), ledger.MaxEarlier)
	}
	return found, nil
}

// known64 is what earlier releases have spent, in millionths.
func known64(earlier []EarlierRelease) (sum int64) {
	for _, e := range earlier {
		sum += e.spent
	}
	return sum
}

// releasedBeforeCode is the code of the warning that releases of other holdouts are of the same rows.
const releasedBeforeCode = "released-before"

// sumOf says what adds up.
func sumOf(known float64, earlier []EarlierRelease) string {
	said := make([]string, 0, len(earlier))
	for _, e := range earlier[:min(len(earlier), maxOverlapsSaid)] {
		spent := "an epsilon that nobody knows any more"
		if e.Epsilon != nil {
			spent = fmt.Sprint(*e.Epsilon)
		}
		said = append(said, fmt.Sprintf("%s (%s)", e.Holdout, spent))
	}
	if more := len(earlier) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("releases of other holdouts are of the same rows, and add up to these: %s. Whoever has all of them is told with an epsilon of %v together, as far as it is known", strings.Join(said, ", "), known)
}

// releasedBefore refuses a release of rows of which there are others.
func releasedBefore(earlier []EarlierRelease) error {
	return &Error{Kind: ReleasedBefore, Members: map[string]any{"holdout": earlier[0].Holdout, "earlier_releases": earlier},
		Detail: sumOf(release.Millionths(known64(earlier)).Float(), earlier) + " before this one. Use its releases. earlier_releases=accepted makes it all the same, and the card says so for good"}
}

// addUp puts on the card of a holdout with releases what is known of others of the same rows: of those that its own were made behind, and of those that were made behind its own.
func (c *Card) addUp(all []ledger.Holdout) {
	at := slices.IndexFunc(all, func(h ledger.Holdout) bool { return h.ID == c.ID })
	if at < 0 || all[at].Released.Made == 0 {
		return
	}
	own := all[at].Released
	var earlier []EarlierRelease
	for _, h := range all {
		if slices.Contains(own.Earlier, h.ID) || slices.Contains(h.Released.Earlier, c.ID) {
			earlier = append(earlier, EarlierRelease{Holdout: h.ID, Epsilon: new(release.Millionths(h.Released.Spent).Float()), spent: h.Released.Spent})
		}
	}
	for _, id := range own.Earlier { // of a ledger that was lost
		if !slices.ContainsFunc(earlier, func(e EarlierRelease) bool { return e.Holdout == id }) {
			earlier = append(earlier, EarlierRelease{Holdout: id})
		}
	}
	if len(earlier) > 0 {
		c.Warnings = append(slices.Clone(c.Warnings), Warning{Code: releasedBeforeCode, Detail: sumOf(release.Millionths(own.Spent+known64(earlier)).Float(), earlier)})
	}
}

// Releases lists the releases of a holdout behind a place in its chain, with what all have spent. Only admins may.
func (s *Service) Releases(ctx context.Context, p Principal, id string, after int64) (out Releases, err error) {
	if err := admins(p); err != nil {
		return Releases{}, err
	}
	err = s.InTurn(ctx, p, Work{Bytes: 2 * (releasesPage + ledger.MaxCoreBytes)}, func(ctx context.Context) error {
		out, err = s.listReleases(ctx, id, after)
		return err
	})
	return out, err
}

// releasesPage is how many bytes a page of releases has at most, but for the last one on it.
const releasesPage = 4 << 20

func (s *Service) listReleases(ctx context.Context, id string, after int64) (Releases, error) {
	known, _, err := s.find(ctx, id)
	if err != nil {
		return Releases{}, err
	}
	limit, spent := release.Millionths(DefaultReleaseEpsilon*1_000_000), release.Millionths(known.Released.Spent)
	if known.Released.Made > 0 {
		limit = release.Millionths(known.Released.Limit)
	}
	out := Releases{ReleaseAccount: ReleaseAccount{Epsilon: limit.Float(), Spent: spent.Float(), Left: (limit - spent).Float(), Made: known.Released.Made, Earlier: known.Released.Earlier}, Releases: []json.RawMessage{}}
	for bytes := 0; ; {
		next, err := s.ledger.Releases(ctx, id, after, 1) // one at a time: each can be large
		if err != nil {
			return Releases{}, s.ledgerError(err)
		}
		if len(next) == 0 {
			return out, nil
		}
		if bytes > releasesPage {
			out.Next = after
			return out, nil
		}
		if err := s.markRelease(ctx, id, next[0].Seq, ledger.HeadText(next[0].Head), false); err != nil {
			return Releases{}, err
		}
		out.Releases = append(out.Releases, next[0].Body)
		bytes, after = bytes+len(next[0].Body), next[0].Seq
	}
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

// guaranteeOf says in words what a release protects, and what not.
func guaranteeOf(r release.Request, of string) string {
	what, same, nulls := "one row", "the same rows", ""
	if of != rowUnit {
		what, same, nulls = "all rows with one value of "+of, "the same rows, or of other rows with the same values of "+of, " A row without a value of "+of+" is protected by itself."
	}
	e := r.Epsilon.Float()
	return fmt.Sprintf("%v-differentially private (pure) for %s of the training part, added or removed: the odds that it is there move by a factor of at most e^%v = %.3g. Replaced by another it is %v: so much the odds about a value can move, "+
		"by e^%v = %.3g, and all odds of somebody who knows the exact number of rows or units, which the holdout's card says.%s "+
		"It protects from people who have only this release. The training part itself is handed out to keys that may download it. Releases of %s add up: of this holdout, of other holdouts, and of other servers, which nobody counts. No held-out row was read.",
		e, what, e, math.Exp(e), 2*e, 2*e, math.Exp(2*e), nulls, same)
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
