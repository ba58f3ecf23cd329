package experiments

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// freedmanLevel is the level at which regressors are screened, as in the paper.
const freedmanLevel = 0.25

// Conditions of Freedman, Row.Condition.
const (
	freedmanFirst  = "all regressors"
	freedmanSecond = "screened, refitted"
	freedmanAsking = "screened by asking a holdout"
)

// Measures of Freedman, Row.Set.
const (
	freedmanR2          = "R2"
	freedmanF           = "F"
	freedmanRejects     = "F test with P below 0.05"
	freedmanKept        = "share of regressors kept"
	freedmanSignificant = "share of coefficients with P below 0.05"
	freedmanHits        = "hits, as told"
	freedmanFinds       = "the last interval excludes 1/2"
	freedmanMisses      = "any interval misses"
	freedmanLow         = "lower end of its interval"
	freedmanHigh        = "upper end of its interval"
	freedmanTold        = "R2 of as many hits as told"
)

// Designs of the paper's analyst, who has no holdout: Row.Method.
const (
	freedmanIndependent = "independent regressors"
	freedmanOrthonormal = "orthonormal regressors"
)

var freedmanExperiment = Experiment{
	Name:  "freedman",
	Short: "how well a regression on noise seems to fit after its regressors were screened on the same data, and through a holdout",
	Paper: `D. A. Freedman, A note on screening regression equations (The American Statistician 37, 1983, doi 10.1080/00031305.1983.10482729): a response
and 50 regressors in 100 rows, all noise. A first regression has R2 of about p/n = 0.5 and an F statistic of about 1. Those regressors that are significant at 25%
are kept, and the regression is run again on the same data: R2 is about 72% of the first, F about 4.0 with a P-value off the scale, and many
coefficients are significant. With r = p/n, a = 0.25, l its two-sided normal quantile and g = E[Z^2; |Z| > l] = 0.72 the limits are g r for R2 and
(g/a)(1 - a r)/(1 - g r) for F, and a coefficient's t is Z given |Z| > l, times sqrt((1 - a r)/(1 - g r)). The paper proves them for orthonormal regressors. For independent normal
regressors, which it simulates, the limits are a little lower: R2 is A + a r (r - A) with A = r (1 - r) g/(1 - g r), as derived in docs/proofs/freedman-limits.md. For one prediction out of
covariances, the weighted vote of the regressors kept, the share of the response's signs that it hits is 1/2 + arctan(sqrt(g r))/pi on the data it was made of, and truly half.`,
	Flags: []Flag{
		{Name: "n", Usage: "rows of the holdout, with half as many regressors (default 10000; 2000 with --quick)"},
	},
	Small: Options{Quick: true, Repetitions: 6, Set: map[string]string{"n": "1000"}},
	Run:   Freedman,
}

// freedmanSize is a number of rows and regressors of a design, fitted so many times.
type freedmanSize struct {
	design            string
	n, p, repetitions int
	fit               func(seed uint64, n, p int) (freedmanRun, error)
}

// freedmanMethods are those that the analyst asks through.
var freedmanMethods = []thresholdout.Mechanism{thresholdout.Naive, thresholdout.Gaussian, thresholdout.Thresholdout}

// freedmanLimits are those of the second regression for p/n = r.
type freedmanLimits struct{ r2, f, significant float64 }

// freedmanQuantile is l.
func freedmanQuantile() float64 { return distuv.UnitNormal.Quantile(1 - freedmanLevel/2) }

// freedmanShare is g.
func freedmanShare() float64 {
	l := freedmanQuantile()
	return freedmanLevel + 2*l*distuv.UnitNormal.Prob(l)
}

// newFreedmanLimits: a coefficient's t is slope Z + noise N with Z given |Z| > l, Z and N standard normal. For orthonormal regressors
// both regressions have the same coefficients, so that there is no noise.
func newFreedmanLimits(design string, r float64) freedmanLimits {
	a, g := freedmanLevel, freedmanShare()
	r2, slope, noise := g*r, math.Sqrt((1-a*r)/(1-g*r)), 0.0
	if design == freedmanIndependent {
		known := r * (1 - r) * g / (1 - g*r)
		r2 = known + a*r*(r-known)
		scale := (1 - a*r) / math.Sqrt(1-r2)
		slope, noise = scale*math.Sqrt(1-r)/(1-g*r), scale*math.Sqrt((r-known)/(1-a*r))
	}
	return freedmanLimits{r2: r2, f: r2 / (a * r) * (1 - a*r) / (1 - r2), significant: freedmanBeyond(slope, noise)}
}

// freedmanBeyond is the probability that |slope Z + noise N| exceeds the normal quantile of 5%, given |Z| > l.
func freedmanBeyond(slope, noise float64) float64 {
	beyond := func(z float64) float64 {
		const q = 1.959964
		if noise == 0 {
			return indicator(slope*z > q)
		}
		return distuv.UnitNormal.CDF((slope*z-q)/noise) + distuv.UnitNormal.CDF((-slope*z-q)/noise)
	}
	// The midpoint rule over what is left of the normal distribution beyond l, in its own probability.
	const steps = 100000
	sum := 0.0
	for i := range steps {
		sum += beyond(-distuv.UnitNormal.Quantile(freedmanLevel / 2 * (float64(i) + 0.5) / steps))
	}
	return sum / steps
}

// freedmanVote is how often the vote hits a sign on the data it was made of.
func freedmanVote(r float64) float64 { return 0.5 + math.Atan(math.Sqrt(freedmanShare()*r))/math.Pi }

// Freedman screens noise and fits it again, on the same data and through a holdout.
func Freedman(ctx context.Context, o Options) (Result, error) {
	result := Result{Experiment: "freedman", Seed: o.Seed, Quick: o.Quick}
	n := 10000
	sizes := []freedmanSize{
		{freedmanIndependent, 100, 50, 50 * o.repetitions(20), freedmanFit},
		{freedmanOrthonormal, 100, 50, 50 * o.repetitions(20), freedmanOrthonormalFit},
		{freedmanIndependent, 1000, 500, o.repetitions(20), freedmanFit},
		{freedmanOrthonormal, 1000, 500, 50 * o.repetitions(20), freedmanOrthonormalFit},
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
	params, err := freedmanParams(int64(n))
	if err != nil {
		return result, err
	}
	var classical []freedmanFindings
	for i, s := range sizes {
		fits, finished, err := Repeat(ctx, o, fmt.Sprintf("%s in %d rows", s.design, s.n), s.repetitions, func(_ context.Context, j int) (freedmanRun, error) {
			return s.fit(seedOf(o.Seed, 1, uint64(i), uint64(j)), s.n, s.p)
		})
		classical = append(classical, freedmanFindings{s, taken(fits, finished)})
		if err != nil {
			return freedmanResult(result, classical, nil), err
		}
	}
	repetitions := o.repetitions(20)
	games, finished, err := Repeat(ctx, o, "holdouts", len(params)*repetitions, func(_ context.Context, i int) (freedmanGame, error) {
		return freedmanAsk(params[i%len(params)], seedOf(o.Seed, 2, uint64(i)))
	})
	asked := make([]freedmanAsked, len(params))
	for i, p := range params {
		asked[i].params = p
		for j := i; j < len(games); j += len(params) {
			if finished[j] {
				asked[i].games = append(asked[i].games, games[j])
			}
		}
	}
	result.Complete = err == nil
	return freedmanResult(result, classical, asked), err
}

// taken are the values that are finished.
func taken[T any](values []T, finished []bool) []T {
	var out []T
	for i, v := range values {
		if finished[i] {
			out = append(out, v)
		}
	}
	return out
}

// freedmanParams are the guarantees of holdouts with n rows, for n/2 regressors and the regression of those kept.
func freedmanParams(n int64) ([]thresholdout.Params, error) {
	var out []thresholdout.Params
	for _, m := range freedmanMethods {
		p := thresholdout.Params{Mechanism: m, N: n, Questions: n/2 + 1}
		if m == thresholdout.Thresholdout {
			p.Training = n
		}
		p, err := thresholdout.New(p)
		if err != nil {
			return nil, fmt.Errorf("experiments: freedman: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// freedmanFindings are the regressions of one size.
type freedmanFindings struct {
	size freedmanSize
	runs []freedmanRun
}

// freedmanAsked are the games through one mechanism.
type freedmanAsked struct {
	params thresholdout.Params
	games  []freedmanGame
}

func freedmanResult(result Result, classical []freedmanFindings, asked []freedmanAsked) Result {
	for _, f := range classical {
		result.Rows = append(result.Rows, f.rows()...)
	}
	for _, a := range asked {
		result.Rows = append(result.Rows, a.rows()...)
	}
	if result.Complete {
		result.Checks = freedmanChecks(classical, result.Rows)
	}
	result.Notes = freedmanNotes(classical, asked)
	result.Summary = [][]string{{"ANALYST", "METHOD", "ROWS", "REGRESSORS", "MEASURE", "MEAN", "95% INTERVAL", "REPETITIONS"}}
	for _, r := range result.Rows {
		result.Summary = append(result.Summary, []string{r.Condition, r.Method, fmt.Sprint(r.N), fmt.Sprint(r.K), r.Set, fmt.Sprintf("%.4f", r.Mean),
			fmt.Sprintf("%.4f to %.4f", r.Low, r.High), fmt.Sprint(r.Repetitions)})
	}
	result.Figures = freedmanFigures(classical, result.Rows)
	return result
}

func freedmanNotes(classical []freedmanFindings, asked []freedmanAsked) []string {
	var notes []string
	for _, f := range classical {
		notes = append(notes, fmt.Sprintf("%d regressions with an intercept of normal noise on %d %s in %d rows, and again on those with P below %v.",
			len(f.runs), f.size.p, f.size.design, f.size.n, freedmanLevel))
	}
	if len(asked) > 0 {
		p := asked[0].params
		notes = append(notes, fmt.Sprintf("Through a holdout of %d rows the analyst asks for the covariance of each of %d regressors with the response, products cut at %v; keeps those beyond "+
			"their 25%% quantile, the spread of the answers being the scale; weights them by the answers; and asks how often the sign of this prediction hits that of the response. "+
			"Truly all covariances are 0, and half of the signs are hit. %d repetitions. Without noise (naive) the last interval is the plain one, 1.96 standard errors; "+
			"with noise it is the mechanism's, for all questions together.", p.N, p.Questions-1, freedmanCut, len(asked[0].games)))
	}
	for _, a := range asked {
		if a.params.Mechanism == thresholdout.Gaussian {
			notes = append(notes, fmt.Sprintf("Half-width of gaussian: %.4f.", a.params.HalfWidth))
		}
	}
	return notes
}

func (f freedmanFindings) rows() []Row {
	if len(f.runs) == 0 {
		return nil
	}
	var rows []Row
	add := func(condition, set string, rate bool, of func(r freedmanRun) float64) {
		rows = append(rows, measuredRow(Row{Condition: condition, Method: f.size.design, N: int64(f.size.n), K: int64(f.size.p), Set: set, Rate: rate}, f.runs, of))
	}
	for _, pass := range []struct {
		condition string
		of        func(r freedmanRun) regression
	}{{freedmanFirst, func(r freedmanRun) regression { return r.First }}, {freedmanSecond, func(r freedmanRun) regression { return r.Second }}} {
		add(pass.condition, freedmanR2, false, func(r freedmanRun) float64 { return pass.of(r).R2 })
		add(pass.condition, freedmanF, false, func(r freedmanRun) float64 { return pass.of(r).F })
		add(pass.condition, freedmanRejects, true, func(r freedmanRun) float64 { return indicator(pass.of(r).P < 0.05) })
		add(pass.condition, freedmanSignificant, false, func(r freedmanRun) float64 {
			return float64(pass.of(r).Significant) / math.Max(1, float64(pass.of(r).Regressors))
		})
	}
	add(freedmanSecond, freedmanKept, false, func(r freedmanRun) float64 { return float64(r.Second.Regressors) / float64(f.size.p) })
	return rows
}

func (a freedmanAsked) rows() []Row {
	if len(a.games) == 0 {
		return nil
	}
	base := Row{Condition: freedmanAsking, Method: string(a.params.Mechanism), N: a.params.N, K: a.params.Questions - 1, Confidence: a.params.Confidence}
	var rows []Row
	add := func(set string, rate bool, of func(g freedmanGame) float64) {
		r := base
		r.Set, r.Rate = set, rate
		rows = append(rows, measuredRow(r, a.games, of))
	}
	add(freedmanHits, false, func(g freedmanGame) float64 { return g.Told })
	add(freedmanFinds, true, func(g freedmanGame) float64 { return indicator(g.Low > 0.5 || g.High < 0.5) })
	add(freedmanLow, false, func(g freedmanGame) float64 { return g.Low })
	add(freedmanHigh, false, func(g freedmanGame) float64 { return g.High })
	add(freedmanTold, false, func(g freedmanGame) float64 { return fitOfHits(g.Told) })
	if a.params.Mechanism != thresholdout.Naive {
		add(freedmanMisses, true, func(g freedmanGame) float64 { return indicator(g.Missed) })
	}
	return rows
}

// measuredRow is a row of one number of each run: its mean, or the share of runs where it is 1.
func measuredRow[T any](r Row, runs []T, of func(T) float64) Row {
	values, sum := make([]float64, len(runs)), 0.0
	for i, run := range runs {
		values[i] = of(run)
		sum += values[i]
	}
	r.Repetitions = len(runs)
	r.summarise(values)
	if r.Rate {
		// The arguments are in range, so there is no error to see.
		r.Low, r.High, _ = bounds.ClopperPearson(int64(math.Round(sum)), int64(len(runs)), 0.05)
	}
	return r
}

// indicator is 1 where something is so.
func indicator(so bool) float64 {
	if so {
		return 1
	}
	return 0
}

// findRow is the row of a condition, a method, a size and a measure.
func findRow(rows []Row, condition, method string, n int64, set string) Row {
	for _, r := range rows {
		if r.Condition == condition && r.Method == method && r.N == n && r.Set == set {
			return r
		}
	}
	return Row{}
}

const (
	// freedmanTolerance of shares and R2 and freedmanFTolerance of an F statistic of about 4, times 100/n: limits are reached as 1/n.
	freedmanTolerance, freedmanFTolerance = 0.03, 0.3
	// nearErrors is how many standard errors are allowed beside a tolerance: by chance a mean is farther once in two million times.
	nearErrors = 5
	// rateLevel is how often a rate's interval misses by chance.
	rateLevel = 1e-6
)

// near is a check that a mean is within a tolerance and some standard errors of what is expected.
func near(what string, expected, tolerance float64, r Row) Check {
	c := Within(what, expected, tolerance+nearErrors*r.SD/math.Sqrt(float64(r.Repetitions)), r)
	c.Criterion = fmt.Sprintf("within %v and %d standard errors", tolerance, nearErrors)
	return c
}

// nearRate is a check that a rate may have the probability that is expected.
func nearRate(what string, expected float64, r Row) Check {
	low, high, _ := bounds.ClopperPearson(int64(math.Round(r.Mean*float64(r.Repetitions))), int64(r.Repetitions), rateLevel)
	return Check{What: what, Expected: expected, Got: r.Mean, Low: r.Low, High: r.High,
		Criterion: fmt.Sprintf("within the Clopper-Pearson interval at level 1-%v", rateLevel), Agrees: low <= expected && expected <= high}
}

func freedmanChecks(classical []freedmanFindings, rows []Row) []Check {
	var checks []Check
	for _, f := range classical {
		n := int64(f.size.n)
		limit := newFreedmanLimits(f.size.design, float64(f.size.p)/float64(f.size.n))
		first := func(set string) Row { return findRow(rows, freedmanFirst, f.size.design, n, set) }
		second := func(set string) Row { return findRow(rows, freedmanSecond, f.size.design, n, set) }
		of := fmt.Sprintf("%d rows, %d %s: ", f.size.n, f.size.p, f.size.design)
		share := 100 / float64(f.size.n)
		checks = append(checks,
			near(of+"R2 of the first regression", float64(f.size.p)/float64(f.size.n-1), 0, first(freedmanR2)),
			nearRate(of+"F tests of the first that reject at 5%", 0.05, first(freedmanRejects)),
			near(of+"share kept", freedmanLevel, 0, second(freedmanKept)),
			near(of+"R2 of the second regression", limit.r2, freedmanTolerance*share, second(freedmanR2)),
			near(of+"F of the second regression", limit.f, freedmanFTolerance*share, second(freedmanF)),
			near(of+"coefficients of the second significant at 5%", limit.significant, freedmanTolerance*share, second(freedmanSignificant)),
			AtLeast(of+"F tests of the second that reject at 5%", 0.9, second(freedmanRejects)))
	}
	var asking []Row
	for _, r := range rows {
		if r.Condition == freedmanAsking {
			asking = append(asking, r)
		}
	}
	for _, r := range asking {
		what := fmt.Sprintf("%s, %d rows: %s", r.Method, r.N, r.Set)
		naive := r.Method == string(thresholdout.Naive)
		switch {
		case r.Set == freedmanHits && naive:
			checks = append(checks, near(what, freedmanVote(0.5), 0.01, r))
		case r.Set == freedmanFinds && naive:
			checks = append(checks, AtLeast(what, 0.95, r))
		case r.Set == freedmanFinds || r.Set == freedmanMisses:
			checks = append(checks, AtMost(what, 1-r.Confidence, r))
		}
	}
	return checks
}
