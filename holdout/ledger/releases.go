package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"
)

// Release is a private release of a holdout's training part, as an entry of its chain: what was asked for, what was said, and so what was spent. It debits no meter: what releases spend is
// counted in epsilon, and their limit is that of the first one, for ever.
type Release struct {
	Query     string // the id of the request, "sha256:…": released at most once per holdout
	Canonical []byte // the request in its one form: a JSON object; its members epsilon and release_epsilon are what it spends and what all releases of the holdout may spend together, and earlier_releases, if it has it, are the ids of the holdouts whose releases are known to be of the same rows
	Principal string // who asked first
	Core      []byte // what is released: a non-empty JSON object in UTF-8 without surrounding space
	Time      time.Time
}

// Limits of releases.
const (
	MaxReleases     = 100     // of a holdout
	MaxReleaseBytes = 1 << 20 // of Release.Canonical: as much as a result may have, and a request has less than its result
	MaxEarlier      = 100     // of Epsilons.Earlier, of which an update reads all
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

// Epsilons is where a holdout's releases stand. It is kept with the books. The zero value is that of a holdout without a release.
type Epsilons struct {
	Spent int64 `json:"spent"` // in millionths, as is Limit
	Limit int64 `json:"limit"` // what all releases may spend together, as the first one said
	Made  int64 `json:"made"`
	// Earlier are the holdouts, in order, whose releases are known to be of the same rows: theirs and these add up.
	Earlier []string `json:"earlier,omitempty"`
}

// Text is what is kept of an account: JSON, and "" of none.
func (a Epsilons) Text() string {
	if a.Made == 0 {
		return ""
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err) // numbers and texts
	}
	return string(text)
}

// ParseEpsilons is the reverse of Text.
func ParseEpsilons(text string) (a Epsilons, err error) {
	if text == "" {
		return a, nil
	}
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return a, fmt.Errorf("ledger: the account of releases: %w", err)
	}
	if a.Text() != text || a.Spent > a.Limit {
		return a, errors.New("ledger: the account of releases is none")
	}
	return a, nil
}

// With debits a release with this request. It is an *EpsilonError where that spends more than is left, and else ErrInvalid.
func (a Epsilons) With(canonical []byte) (Epsilons, error) {
	var said struct {
		Epsilon json.Number `json:"epsilon"`
		Limit   json.Number `json:"release_epsilon"`
		Earlier []string    `json:"earlier_releases"`
	}
	if len(canonical) > MaxReleaseBytes || !utf8.Valid(canonical) {
		return a, invalid("a release's request of %d bytes: at most %d, in UTF-8", len(canonical), MaxReleaseBytes)
	}
	if err := json.Unmarshal(canonical, &said); err != nil {
		return a, invalid("a release's request: %v", err)
	}
	for _, id := range said.Earlier {
		if err := checkText("earlier release's holdout", id, false); err != nil {
			return a, err
		}
	}
	epsilon, ok := millionths(said.Epsilon)
	limit, limited := millionths(said.Limit)
	switch {
	case !ok || !limited:
		return a, invalid("a release's request with epsilon %q of %q: both are numbers above 0 of at most six decimals", short(said.Epsilon.String()), short(said.Limit.String()))
	case a.Made >= MaxReleases:
		return a, invalid("a holdout has at most %d releases", MaxReleases)
	case a.Made > 0 && limit != a.Limit:
		return a, invalid("a release under a limit of %d millionths, where the first one said %d", limit, a.Limit)
	case epsilon > limit-a.Spent:
		return a, &EpsilonError{Requested: epsilon, Spent: a.Spent, Limit: limit}
	}
	earlier := slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Earlier, said.Earlier))))
	if len(earlier) > MaxEarlier {
		return a, invalid("the releases of %d other holdouts are of the same rows: at most %d", len(earlier), MaxEarlier)
	}
	return Epsilons{Spent: a.Spent + epsilon, Limit: limit, Made: a.Made + 1, Earlier: earlier}, nil
}

// CheckReleases compares books with the requests of a chain's releases, in their order. The reason is "" if they agree.
func CheckReleases(books Epsilons, requests [][]byte) (reason string) {
	var chain Epsilons
	for _, r := range requests {
		var err error
		if chain, err = chain.With(r); err != nil {
			return err.Error()
		}
	}
	if books.Text() != chain.Text() {
		return fmt.Sprintf("the books say of releases %q, the chain %q", books.Text(), chain.Text())
	}
	return ""
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
	switch known, err := tx.released(r.Query); {
	case err != nil:
		tx.fail(err)
		return Receipt{}, tx.err
	case known:
		return Receipt{}, fmt.Errorf("%w: release %s", ErrAnswered, short(r.Query))
	}
	account, err := b.Released.With(r.Canonical)
	if err != nil {
		return Receipt{}, err
	}
	e := Entry{Version: EntryVersion, Seq: b.Seq + 1, Kind: KindRelease, Time: r.Time.UTC(), Query: r.Query, Canonical: bytes.Clone(r.Canonical), Principal: r.Principal, Debit: b.Limits.none(), Spent: b.Spent}
	e.seal(b.Head, r.Core)
	b.Seq, b.Head, b.Released = e.Seq, e.Head, account
	tx.entries = append(tx.entries, e)
	return Receipt{Seq: e.Seq, Head: HeadText(e.Head), Body: bytes.Clone(e.Body)}, nil
}

// released reports whether a request was released before: by an earlier commit, by what is ahead in this one, or by this Tx.
func (tx *Tx) released(query string) (bool, error) {
	for i := range tx.entries {
		if e := &tx.entries[i]; e.Kind == KindRelease && e.Query == query {
			return true, nil
		}
	}
	return tx.before.Released(query)
}
