package ledgertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdoutd/holdoutd/holdout/ledger"
)

// testRelease spends 0.4 of 1.
func testRelease(id string) ledger.Release {
	return ledger.Release{Query: "sha256:" + id, Canonical: []byte(`{"epsilon":0.4,"release_epsilon":1,"of":"` + id + `"}`), Principal: "a", Core: []byte(`{"release":"` + id + `"}`), Time: time.Unix(9, 1).UTC()}
}

func release(ctx context.Context, l ledger.Ledger, id string, r ledger.Release) (receipt ledger.Receipt, err error) {
	err = l.Update(ctx, id, func(tx *ledger.Tx) (err error) {
		receipt, err = tx.Release(r)
		return err
	})
	return receipt, err
}

// releases are entries of the chain, kept as they were made, also of a deleted holdout; none spends more than is left, and what is refused leaves nothing.
func releases(t *testing.T, s *suite) {
	l := s.open(t)
	ctx := t.Context()
	first := testHoldout("ho_1", 100, 10)
	create(t, l, first)
	create(t, l, testHoldout("ho_2", 100, 10))
	create(t, l, testHoldout("ho_3", 100, 10))
	create(t, l, testHoldout("ho_5", 100, 10))
	if err := l.DeleteHoldout(ctx, "ho_3", "p"); err != nil {
		t.Fatal(err)
	}
	create(t, l, testHoldout("ho_6", 100, 10))
	closing(t, l, "ho_5")
	retirement(t, l, "ho_6")
	said := func(id, epsilon, limit string) ledger.Release {
		r := testRelease(id)
		r.Canonical = []byte(`{"epsilon":` + epsilon + `,"release_epsilon":` + limit + `}`)
		return r
	}
	a, b, other := testRelease("a"), testRelease("b"), said("a", "2", "2")
	a.Canonical = []byte(`{"epsilon":0.4,"release_epsilon":1,"earlier_releases":["ho_7","ho_2"]}`)
	bodies := map[string]string{}
	for _, r := range []struct {
		holdout string
		release ledger.Release
	}{{"ho_1", b}, {"ho_1", a}, {"ho_2", other}} {
		receipt, err := release(ctx, l, r.holdout, r.release)
		if err != nil || !strings.HasPrefix(string(receipt.Body), strings.TrimSuffix(string(r.release.Core), "}")) {
			t.Fatalf("%s: %v", receipt.Body, err)
		}
		bodies[r.holdout+r.release.Query] = string(receipt.Body)
	}
	var lacks *ledger.EpsilonError
	if _, err := release(ctx, l, "ho_1", testRelease("d")); !errors.As(err, &lacks) || *lacks != (ledger.EpsilonError{Requested: 400_000, Spent: 800_000, Limit: 1_000_000}) {
		t.Errorf("more than is left: %v", err)
	}
	long := testRelease("d")
	long.Canonical = append([]byte(`{"epsilon":0.1,"release_epsilon":1,"of":"`), bytes.Repeat([]byte("x"), ledger.MaxReleaseBytes)...)
	long.Canonical = append(long.Canonical, `"}`...)
	bare, nameless, unnamed := testRelease("d"), testRelease("d"), said("d", "0.1", `1,"earlier_releases":[""]`)
	bare.Core, nameless.Query = []byte("{}"), ""
	for name, refused := range map[string]struct {
		holdout string
		release ledger.Release
		want    error
	}{
		"a known id":          {"ho_1", a, ledger.ErrAnswered},
		"another limit":       {"ho_1", said("d", "0.1", "9"), ledger.ErrInvalid},
		"an unknown holdout":  {"x", a, ledger.ErrNotFound},
		"a deleted holdout":   {"ho_3", a, ledger.ErrDeleted},
		"a closed holdout":    {"ho_5", a, ledger.ErrInvalid},
		"a retired holdout":   {"ho_6", a, ledger.ErrInvalid},
		"no epsilon":          {"ho_1", said("d", "0", "1"), ledger.ErrInvalid},
		"less than none":      {"ho_1", said("d", "-0.1", "1"), ledger.ErrInvalid},
		"too many decimals":   {"ho_1", said("d", "0.1000001", "1"), ledger.ErrInvalid},
		"more than a number":  {"ho_1", said("d", "1e300", "1e300"), ledger.ErrInvalid},
		"a request of no use": {"ho_1", said("d", "{}", "1"), ledger.ErrInvalid},
		"a long request":      {"ho_1", long, ledger.ErrInvalid},
		"nothing to say":      {"ho_1", bare, ledger.ErrInvalid},
		"a nameless holdout":  {"ho_1", unnamed, ledger.ErrInvalid},
		"no id":               {"ho_1", nameless, ledger.ErrInvalid},
	} {
		if _, err := release(ctx, l, refused.holdout, refused.release); !errors.Is(err, refused.want) {
			t.Errorf("%s: %v, want %v", name, err, refused.want)
		}
	}
	c := said("c", "0.2", "1")
	err := l.Update(ctx, "ho_1", func(tx *ledger.Tx) error { // in one commit with another, which would be too much behind it
		receipt, err := tx.Release(c)
		bodies["ho_1"+c.Query] = string(receipt.Body)
		if _, over := tx.Release(said("e", "0.000001", "1")); !errors.Is(over, ledger.ErrEpsilon) {
			t.Errorf("behind all that was left, in one update: %v", over)
		}
		return err
	})
	if err != nil {
		t.Errorf("all that is left: %v", err)
	}
	next := testHoldout("ho_4", 100, 10)
	next.Digest = ledger.Successor(first.Digest, "ho_1")
	if err := l.ReplaceHoldout(ctx, ledger.Replaced{ID: "ho_1"}, next, nil); !errors.Is(err, ledger.ErrAsked) {
		t.Errorf("a holdout with releases is replaced: %v", err)
	}
	h, err := l.Holdout(ctx, "ho_1")
	for name, spent := range h.Spent {
		if spent != 0 || err != nil {
			t.Errorf("releases spent %d %s (%v)", spent, name, err)
		}
	}
	for turn := range 2 {
		if turn == 1 {
			if err := l.DeleteHoldout(ctx, "ho_2", "p"); err != nil {
				t.Fatal(err)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = s.open(t)
		}
		for holdout, want := range map[string][]ledger.Release{"ho_1": {b, a, c}, "ho_2": {other}, "ho_5": nil} {
			got, err := l.Releases(ctx, holdout, 0, 100)
			if err != nil || len(got) != len(want) {
				t.Fatalf("releases of %q: %+v (%v)", holdout, got, err)
			}
			for i, e := range got {
				if r := want[i]; e.Kind != ledger.KindRelease || e.Query != r.Query || string(e.Canonical) != string(r.Canonical) || e.Principal != r.Principal || !e.Time.Equal(r.Time) || string(e.Body) != bodies[holdout+r.Query] {
					t.Errorf("release %d of %q: %+v, want %+v", i, holdout, e, r)
				}
			}
			var export bytes.Buffer
			if err := l.Export(ctx, holdout, &export); err != nil {
				t.Fatal(err)
			}
			report, err := ledger.VerifyExport(&export)
			spent := map[string]float64{"ho_1": 1, "ho_2": 2}[holdout]
			if err != nil || report.Releases != int64(len(want)) || report.Epsilon != spent {
				t.Errorf("the export of %q: %+v (%v)", holdout, report, err)
			}
		}
		if _, err := l.Releases(ctx, "ho_9", 0, 1); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("releases of nothing: %v", err)
		}
		if page, err := l.Releases(ctx, "ho_1", 1, 1); err != nil || len(page) != 1 || page[0].Query != a.Query {
			t.Errorf("a page behind the first release: %+v (%v)", page, err)
		}
		if e, ok, err := l.ReleaseOf(ctx, "ho_1", c.Query); err != nil || !ok || string(e.Body) != bodies["ho_1"+c.Query] {
			t.Errorf("a release by its id: %+v, %v (%v)", e, ok, err)
		}
		if _, ok, err := l.ReleaseOf(ctx, "ho_1", "sha256:other"); err != nil || ok {
			t.Errorf("a release that is none: %v (%v)", ok, err)
		}
		for id, want := range map[string]ledger.Epsilons{"ho_1": {Spent: 1_000_000, Limit: 1_000_000, Made: 3, Earlier: []string{"ho_2", "ho_7"}}, "ho_2": {Spent: 2_000_000, Limit: 2_000_000, Made: 1}, "ho_5": {}} {
			if h, err := l.Holdout(ctx, id); err != nil || h.Released.Text() != want.Text() {
				t.Errorf("the account of %s: %q, want %q (%v)", id, h.Released.Text(), want.Text(), err)
			}
		}
		if answers, err := l.Answers(ctx, "ho_1", "", 0, 0); err != nil || len(answers) != 0 {
			t.Errorf("releases among the answers: %+v (%v)", answers, err)
		}
	}
}

// releasesArePaid: of releases that race for what is left, as many are made as it pays, whichever server they came to.
func releasesArePaid(t *testing.T, s *suite) {
	all := s.openAll(t)
	create(t, all[0], testHoldout("ho_1", 100, 10))
	var made atomic.Int64
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			switch _, err := release(t.Context(), all[i%len(all)], "ho_1", testRelease(fmt.Sprint("r", i))); {
			case err == nil:
				made.Add(1)
			case !errors.Is(err, ledger.ErrEpsilon):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := all[0].Releases(t.Context(), "ho_1", 0, 100); made.Load() != 2 || len(list) != 2 || err != nil {
		t.Errorf("%d made, %d kept (%v), want two", made.Load(), len(list), err)
	}
}
