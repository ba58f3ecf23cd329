// Package freedman is the experiment of D. A. Freedman, A note on screening regression equations (The American Statistician 37, 1983,
// doi 10.1080/00031305.1983.10482729): regressors of pure noise are screened, and the regression is run again on the same data. Then the
// same analyst asks for the screening and for the fit through a holdout. The limits that results are compared with are derived in
// docs/proofs/freedman-limits.md. Through a holdout it has 10,000 rows: with the paper's 100 no honest interval says anything.
package freedman

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/seeds"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// screeningLevel is the level at which regressors are screened, as in the paper.
const screeningLevel = 0.25

// What is regressed, and who screens: run.Row.Condition.
const (
	allRegressors  = "all regressors"
	screened       = "screened, refitted"
	throughHoldout = "screened by asking a holdout"
)

// What is measured: run.Row.Set.
const (
	rSquared         = "R2"
	fStatistic       = "F"
	testRejects      = "F test with P below 0.05"
	shareKept        = "share of regressors kept"
	shareSignificant = "share of coefficients with P below 0.05"
	hitsTold         = "hits, as told"
	lastFinds        = "the last interval excludes 1/2"
	anyMisses        = "any interval misses"
	lowerEnd         = "lower end of its interval"
	upperEnd         = "upper end of its interval"
	fitTold          = "R2 of as many hits as told"
)

// Regressors of the paper's analyst, who has no holdout: run.Row.Method.
const (
	independent = "independent regressors"
	orthonormal = "orthonormal regressors"
)

// Experiment is Freedman's screening of noise.
var Experiment = run.Experiment{
	Name:  "freedman",
	Short: "how well a regression on noise seems to fit after its regressors were screened on the same data, and through a holdout",
	Paper: `D. A. Freedman, A note on screening regression equations (The American Statistician 37, 1983, doi 10.1080/00031305.1983.10482729): a response
and 50 regressors in 100 rows, all noise. The first regression has R2 of about p/n = 0.5 and an F statistic of about 1. The regressors that are
significant at 25% are kept, and the regression is run again on the same data. Now R2 is about 72% of the first, F is about 4.0 with a P-value off
the scale, and many coefficients are significant. The paper proves these limits for orthonormal regressors. For independent normal ones, which it
simulates, they are a little lower; docs/proofs/freedman-limits.md derives both. The vote of the regressors kept, each weighted by its covariance,
hits the response's sign in 67% of the rows that it was made of for p/n = 0.5, and truly in half of them. At the sizes themselves both regressions are
compared with an independent program, which draws and fits all of the data (experiments/freedman/reference.py).`,
	Flags: []run.Flag{
		{Name: "n", Usage: "rows of the holdout, with half as many regressors (default 10000; 2000 with --quick)"},
	},
	Small: run.Options{Quick: true, Repetitions: 6, Set: map[string]string{"n": "1000"}},
	Run:   measure,
}

// regressionSize is a table to regress on: n rows of p regressors, drawn and fitted so many times.
type regressionSize struct {
	design            string
	n, p, repetitions int
	fit               func(seed uint64, n, p int) (analysis, error)
}

// mechanisms are those that the analyst asks through.
var mechanisms = []thresholdout.Name{thresholdout.Naive, thresholdout.Gaussian, thresholdout.Thresholdout, thresholdout.GuessAndCheck}

// measure screens noise and fits it again, on the same data and through a holdout.
func measure(ctx context.Context, o run.Options) (run.Result, error) {
	result := run.Result{Experiment: "freedman", Seed: o.Seed, Quick: o.Quick}
	n := 10000
	sizes := []regressionSize{
		{independent, 100, 50, 50 * o.RepetitionsOr(20), analyse},
		{orthonormal, 100, 50, 50 * o.RepetitionsOr(20), analyseOrthonormal},
		{independent, 1000, 500, o.RepetitionsOr(20), analyse},
		{orthonormal, 1000, 500, 50 * o.RepetitionsOr(20), analyseOrthonormal},
	}
	if o.Quick {
		n, sizes = 2000, sizes[:2]
	}
	n, err := o.Int("n", n)
	if err != nil {
		return result, err
	}
	if n < 100 || n%2 != 0 {
		return result, fmt.Errorf("experiments: --n is an even number from 100 up, not %d", n)
	}
	planned, err := guarantees(int64(n))
	if err != nil {
		return result, err
	}
	var classical []regressions
	for i, s := range sizes {
		fits, finished, err := run.Repeat(ctx, o, fmt.Sprintf("%s in %d rows", s.design, s.n), s.repetitions, func(_ context.Context, j int) (analysis, error) {
			return s.fit(seeds.Of(o.Seed, 1, uint64(i), uint64(j)), s.n, s.p)
		})
		classical = append(classical, regressions{s, run.Finished(fits, finished)})
		if err != nil {
			interrupted, _ := resultOf(result, classical, nil)
			return interrupted, err
		}
	}
	repetitions := o.RepetitionsOr(20)
	games, finished, err := run.Repeat(ctx, o, "holdouts", len(planned)*repetitions, func(_ context.Context, i int) (game, error) {
		return playAnalyst(planned[i%len(planned)], seeds.Of(o.Seed, 2, uint64(i)))
	})
	asked := make([]holdoutGames, len(planned))
	for i, p := range planned {
		asked[i].guarantee = p
		for j := i; j < len(games); j += len(planned) {
			if finished[j] {
				asked[i].games = append(asked[i].games, games[j])
			}
		}
	}
	result.Complete = err == nil
	result, broken := resultOf(result, classical, asked)
	return result, errors.Join(err, broken)
}

// guarantees are the guarantees of holdouts with n rows, for n/2 regressors and the regression of those kept.
func guarantees(n int64) ([]thresholdout.Guarantee, error) {
	var out []thresholdout.Guarantee
	for _, m := range mechanisms {
		spec := thresholdout.Spec{Mechanism: m, N: n, Questions: n/2 + 1}
		if m == thresholdout.Thresholdout || m == thresholdout.GuessAndCheck {
			spec.Training = n
		}
		p, err := thresholdout.Plan(spec)
		if err != nil {
			return nil, fmt.Errorf("experiments: freedman: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// regressions are the regressions of one size.
type regressions struct {
	size regressionSize
	runs []analysis
}

// holdoutGames are the games through one mechanism.
type holdoutGames struct {
	guarantee thresholdout.Guarantee
	games     []game
}

func resultOf(result run.Result, classical []regressions, asked []holdoutGames) (run.Result, error) {
	for _, f := range classical {
		result.Rows = append(result.Rows, f.rows()...)
	}
	for _, a := range asked {
		result.Rows = append(result.Rows, a.rows()...)
	}
	var err error
	if result.Complete {
		result.Checks, err = checksOf(classical, result.Rows)
	}
	result.Notes = notesOf(classical, asked)
	result.Summary = [][]string{{"ANALYST", "METHOD", "ROWS", "REGRESSORS", "MEASURE", "MEAN", "95% INTERVAL", "REPETITIONS"}}
	for _, r := range result.Rows {
		result.Summary = append(result.Summary, []string{r.Condition, r.Method, fmt.Sprint(r.N), fmt.Sprint(r.K), r.Set, fmt.Sprintf("%.4f", r.Mean),
			fmt.Sprintf("%.4f to %.4f", r.Low, r.High), fmt.Sprint(r.Repetitions)})
	}
	result.Figures = figuresOf(classical, result.Rows)
	return result, err
}

func notesOf(classical []regressions, asked []holdoutGames) []string {
	var notes []string
	for _, f := range classical {
		notes = append(notes, fmt.Sprintf("%d regressions with an intercept of normal noise on %d %s in %d rows, and again on those with P below %v.",
			len(f.runs), f.size.p, f.size.design, f.size.n, screeningLevel))
	}
	if len(asked) > 0 {
		p := asked[0].guarantee
		notes = append(notes, fmt.Sprintf("Through a holdout of %d rows the analyst asks for the covariance of each of %d regressors with the response, products cut at %v; keeps those beyond "+
			"their 25%% quantile, the spread of the answers being the scale; weights them by the answers; and asks how often the sign of this prediction hits that of the response. "+
			"Truly all covariances are 0, and half of the signs are hit. %d repetitions. Without noise (naive) the last interval is the plain one, 1.96 standard errors; "+
			"with noise it is the mechanism's, for all questions together.", p.N, p.Questions-1, productCut, len(asked[0].games)))
	}
	for _, a := range asked {
		if a.guarantee.Mechanism == thresholdout.Gaussian {
			notes = append(notes, fmt.Sprintf("Half-width of gaussian: %.4f.", a.guarantee.HalfWidth))
		}
	}
	return notes
}

func (f regressions) rows() []run.Row {
	if len(f.runs) == 0 {
		return nil
	}
	var rows []run.Row
	add := func(condition, set string, rate bool, of func(r analysis) float64) {
		rows = append(rows, run.Measured(run.Row{Condition: condition, Method: f.size.design, N: int64(f.size.n), K: int64(f.size.p), Set: set, Rate: rate}, f.runs, of))
	}
	for _, pass := range []struct {
		condition string
		of        func(r analysis) regression
	}{{allRegressors, func(r analysis) regression { return r.First }}, {screened, func(r analysis) regression { return r.Second }}} {
		add(pass.condition, rSquared, false, func(r analysis) float64 { return pass.of(r).R2 })
		add(pass.condition, fStatistic, false, func(r analysis) float64 { return pass.of(r).F })
		add(pass.condition, testRejects, true, func(r analysis) float64 { return run.Indicator(pass.of(r).P < 0.05) })
		add(pass.condition, shareSignificant, false, func(r analysis) float64 {
			return float64(pass.of(r).Significant) / math.Max(1, float64(pass.of(r).Regressors))
		})
	}
	add(screened, shareKept, false, func(r analysis) float64 { return float64(r.Second.Regressors) / float64(f.size.p) })
	return rows
}

func (a holdoutGames) rows() []run.Row {
	if len(a.games) == 0 {
		return nil
	}
	base := run.Row{Condition: throughHoldout, Method: string(a.guarantee.Mechanism), N: a.guarantee.N, K: a.guarantee.Questions - 1, Confidence: a.guarantee.Confidence}
	var rows []run.Row
	add := func(set string, rate bool, of func(g game) float64) {
		r := base
		r.Set, r.Rate = set, rate
		rows = append(rows, run.Measured(r, a.games, of))
	}
	add(hitsTold, false, func(g game) float64 { return g.Told })
	add(lastFinds, true, func(g game) float64 { return run.Indicator(g.Low > 0.5 || g.High < 0.5) })
	add(lowerEnd, false, func(g game) float64 { return g.Low })
	add(upperEnd, false, func(g game) float64 { return g.High })
	add(fitTold, false, func(g game) float64 { return fitOfHits(g.Told) })
	if a.guarantee.Mechanism != thresholdout.Naive {
		add(anyMisses, true, func(g game) float64 { return run.Indicator(g.Missed) })
	}
	return rows
}

// shareTolerance of shares and R2 and fTolerance of an F statistic of about 4, times 100/n: limits are reached as 1/n.
const shareTolerance, fTolerance = 0.03, 0.3

//go:embed reference.json
var referenceText []byte

// reference is what an independent program finds by both regressions: see reference.py.
type reference struct {
	Cells []struct {
		Design      string                `json:"design"`
		N           int                   `json:"n"`
		Repetitions int                   `json:"repetitions"`
		Numbers     map[string]run.Stored `json:"numbers"` // by measures
	} `json:"cells"`
}

// measures are what is compared with the reference, by its names.
var measures = []struct {
	name string
	of   func(a analysis, p int) float64
}{
	{"R2 of the first", func(a analysis, _ int) float64 { return a.First.R2 }},
	{"F of the first", func(a analysis, _ int) float64 { return a.First.F }},
	{"R2 of the second", func(a analysis, _ int) float64 { return a.Second.R2 }},
	{"F of the second", func(a analysis, _ int) float64 { return a.Second.F }},
	{"share kept", func(a analysis, p int) float64 { return float64(a.Second.Regressors) / float64(p) }},
	{"significant of the second", func(a analysis, _ int) float64 {
		return float64(a.Second.Significant) / math.Max(1, float64(a.Second.Regressors))
	}},
}

func checksOf(classical []regressions, rows []run.Row) ([]run.Check, error) {
	var known reference
	if err := json.Unmarshal(referenceText, &known); err != nil {
		return nil, fmt.Errorf("experiments: reference: %w", err)
	}
	var checks run.Checks
	for _, f := range classical {
		n := int64(f.size.n)
		limit := newLimits(f.size.design, float64(f.size.p)/float64(f.size.n))
		first := func(set string) run.Row { return run.Find(rows, allRegressors, f.size.design, n, set) }
		second := func(set string) run.Row { return run.Find(rows, screened, f.size.design, n, set) }
		of := fmt.Sprintf("%d rows, %d %s: ", f.size.n, f.size.p, f.size.design)
		share := 100 / float64(f.size.n)
		checks.Equal(of+"R2 of the first regression", float64(f.size.p)/float64(f.size.n-1), 0, first(rSquared))
		checks.Equal(of+"F tests of the first that reject at 5%", 0.05, 0, first(testRejects))
		checks.Equal(of+"share kept", screeningLevel, 0, second(shareKept))
		checks.Equal(of+"R2 of the second regression, against the limit of large tables", limit.r2, shareTolerance*share, second(rSquared))
		checks.Equal(of+"F of the second regression, against the limit", limit.f, fTolerance*share, second(fStatistic))
		checks.Equal(of+"coefficients of the second significant at 5%, against the limit", limit.significant, shareTolerance*share, second(shareSignificant))
		checks.AtLeast(of+"F tests of the second that reject at 5%", 0.9, second(testRejects))
		for _, r := range known.Cells {
			if r.Design != f.size.design || r.N != f.size.n {
				continue
			}
			var pairs []run.Pair
			for _, m := range measures {
				stored := r.Numbers[m.name]
				stored.Repetitions = r.Repetitions
				values := make([]float64, len(f.runs))
				for i, a := range f.runs {
					values[i] = m.of(a, f.size.p)
				}
				pairs = append(pairs, run.Pair{At: m.name, Values: values, Stored: stored})
			}
			checks.Stored(fmt.Sprintf("%d rows, %s", f.size.n, f.size.design), pairs)
		}
	}
	var asking []run.Row
	for _, r := range rows {
		if r.Condition == throughHoldout {
			asking = append(asking, r)
		}
	}
	for _, r := range asking {
		what := fmt.Sprintf("%s, %d rows: %s", r.Method, r.N, r.Set)
		naive := r.Method == string(thresholdout.Naive)
		switch {
		case r.Set == hitsTold && naive:
			checks.Equal(what, voteHits(0.5), 0.01, r)
		case r.Set == lastFinds && naive:
			checks.AtLeast(what, 0.95, r)
		case r.Set == lastFinds || r.Set == anyMisses:
			checks.AtMost(what, 1-r.Confidence, r)
		}
	}
	return checks.Decide(), nil
}
