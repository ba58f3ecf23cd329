package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// Release is a private release of a holdout's training part, as an entry of its chain: what was asked for, what was said, and so what was spent. It debits no meter: what releases spend is
// counted in epsilon, and their limit is that of the first one, for ever.
type Release struct {
	Query     string // the id of the request, "sha256:…": released at most once per holdout
	Canonical []byte // the request in its one form: a JSON object; its members epsilon and release_epsilon are what it spends and what all releases of the holdout may spend together
	Principal string // who asked first
	Core      []byte // what is released: a non-empty JSON object in UTF-8 without surrounding space
	Time      time.Time
}

// Limits of releases. An update reads the requests of all earlier ones.
const (
	MaxReleases     = 100     // of a holdout
	MaxReleaseBytes = 1 << 20 // of Release.Canonical: a thousand columns with ten edges each
)

// ErrEpsilon: a release would spend more than is left.
var ErrEpsilon = errors.New("ledger: more epsilon than is left")

// EpsilonError is the refusal of a release that would spend more than is left. All are in millionths.
type EpsilonError struct{ Requested, Spent, Limit int64 }

func (e *EpsilonError) Error() string {
	return fmt.Sprintf("ledger: a release of epsilon %d millionths, where %d of %d are spent", e.Requested, e.Spent, e.Limit)
}

// Unwrap returns ErrEpsilon.
func (e *EpsilonError) Unwrap() error { return ErrEpsilon }

// Epsilons is an account of a holdout's releases: what they have spent, and what they may spend together, in millionths. A Limit of 0 says that there was none.
type Epsilons struct {
	Spent, Limit int64
	ids          map[string]bool
}

// EpsilonsOf is the account of releases in the order of the chain. An entry that could not have been recorded behind those before it is an error.
func EpsilonsOf(releases []Entry) (a Epsilons, err error) {
	for i := range releases {
		if err := a.add(releases[i].Query, releases[i].Canonical); err != nil {
			return a, &CorruptError{Seq: releases[i].Seq, Reason: "a release", Err: err}
		}
	}
	return a, nil
}

// add debits a release. It is ErrAnswered where the request was released before, an *EpsilonError where it spends more than is left, and else ErrInvalid. An error has debited nothing.
func (a *Epsilons) add(query string, canonical []byte) error {
	var said struct {
		Epsilon json.Number `json:"epsilon"`
		Limit   json.Number `json:"release_epsilon"`
	}
	if len(canonical) > MaxReleaseBytes || !utf8.Valid(canonical) {
		return invalid("a release's request of %d bytes: at most %d, in UTF-8", len(canonical), MaxReleaseBytes)
	}
	if err := json.Unmarshal(canonical, &said); err != nil {
		return invalid("a release's request: %v", err)
	}
	epsilon, ok := millionths(said.Epsilon)
	limit, limited := millionths(said.Limit)
	switch {
	case !ok || !limited:
		return invalid("a release's request with epsilon %q of %q: both are numbers above 0 of at most six decimals", short(said.Epsilon.String()), short(said.Limit.String()))
	case a.ids[query]:
		return fmt.Errorf("%w: release %s", ErrAnswered, short(query))
	case len(a.ids) >= MaxReleases:
		return invalid("a holdout has at most %d releases", MaxReleases)
	case len(a.ids) > 0 && limit != a.Limit:
		return invalid("a release under a limit of %d millionths, where the first one said %d", limit, a.Limit)
	case epsilon > limit-a.Spent:
		return &EpsilonError{Requested: epsilon, Spent: a.Spent, Limit: limit}
	}
	if a.ids == nil {
		a.ids = map[string]bool{}
	}
	a.Spent, a.Limit, a.ids[query] = a.Spent+epsilon, limit, true
	return nil
}

// maxEpsilon is 2^40 millionths: sums of MaxReleases stay exact.
const maxEpsilon = 1 << 40

// millionths of a number above 0 with at most six decimals.
func millionths(n json.Number) (int64, bool) {
	x, err := n.Float64()
	whole := math.Round(x * 1e6)
	return int64(whole), err == nil && whole >= 1 && whole <= maxEpsilon && whole/1e6 == x
}

// Release debits and records a release. It fails with ErrAnswered if the request was released before, with an *EpsilonError if all releases would spend more than their limit, and with ErrInvalid where the limit is
// not that of the first release, where the holdout is closed or retired, and for what cannot be recorded. A zero r.Time is now.
func (tx *Tx) Release(r Release) (Receipt, error) {
	if tx.over {
		return Receipt{}, invalid("a release after the update's end")
	}
	if tx.err != nil {
		return Receipt{}, tx.err
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	b := &tx.books
	if err := errors.Join(checkText("release id", r.Query, false), checkText("principal", r.Principal, true), checkTime(r.Time), checkCore(r.Core)); err != nil {
		return Receipt{}, err
	}
	if b.Closed || b.Retired {
		return Receipt{}, invalid("a release of a holdout that is closed or retired")
	}
	earlier, err := tx.before.Releases()
	if err != nil {
		tx.fail(err)
		return Receipt{}, tx.err
	}
	account, err := EpsilonsOf(earlier)
	for i := 0; i < len(tx.entries) && err == nil; i++ {
		if e := &tx.entries[i]; e.Kind == KindRelease {
			err = account.add(e.Query, e.Canonical)
		}
	}
	if err != nil {
		tx.fail(err)
		return Receipt{}, tx.err
	}
	if err := account.add(r.Query, r.Canonical); err != nil {
		return Receipt{}, err
	}
	e := Entry{Version: EntryVersion, Seq: b.Seq + 1, Kind: KindRelease, Time: r.Time.UTC(), Query: r.Query, Canonical: bytes.Clone(r.Canonical), Principal: r.Principal, Debit: b.Limits.none(), Spent: b.Spent}
	e.seal(b.Head, r.Core)
	b.Seq, b.Head = e.Seq, e.Head
	tx.entries = append(tx.entries, e)
	return Receipt{Seq: e.Seq, Head: HeadText(e.Head), Body: bytes.Clone(e.Body)}, nil
}
