package thresholdout

import (
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Names of its methods, and of the bounds that its answers name.
const (
	MethodPublished = "jlnrss-gdp"
	MethodConstant  = "adaptive-hoeffding"
	MethodScheduled = "adaptive-hoeffding-scheduled"
	MethodRounds    = "adaptive-hoeffding-rounds"

	// MethodPromised names the bound of answers whose promise held; no planner lists it, since it depends on the promise.
	MethodPromised = "adaptive-hoeffding-promised"

	// Of the last round: by the sample's own moments, and of a yes/no mean by its count.
	MethodSample = "sample-moments"
	MethodCounts = "clopper-pearson"
)

// gaussianVersion is the version of its stored form. In the first one account with one M (Subsample) paid for vectors, selections and Chernoff's cuts, a vector bore the noise
// of its first question, the last question bore noise, and there were no promises. Such a guarantee goes on as it was planned. Since the third last answers are read by [moments.BestTilts].
const gaussianVersion = 3

var gaussianKind = Kind{
	Name:  Gaussian,
	Says:  "answers every question with the holdout mean and Gaussian noise",
	Takes: []string{ParamTokens, ParamRounds, ParamHalfWidth, ParamSigma, ParamBounds, ParamCapped},
	Variants: []Variant{
		{"one by one, or in rounds", (*gaussian)(nil)},
		{"with published bounds", (*published)(nil)},
	},
	Methods: []Method{
		{Name: MethodPublished, Formula: "the same with δ(ε) of μ-GDP, μ = sqrt(k)/(nσ)",
			Source: "the same; δ(ε) from Dong, Roth, Su, arXiv 1905.02383, corollary 2.13", Published: "its parts; combined for this project"},
		{Name: MethodConstant, Formula: "the root W of 2 Σ pbar(W, σ, I_{j-1}) = 0.9 β, I_j = j/(8σ²(n-1)); about sqrt(I/(2n)) + sqrt(2(σ²+1/(4n)) ln(2k/β))",
			Source: "[proof](proofs/adaptive-hoeffding.md)", Sigma: BestSigma},
		{Name: MethodScheduled, Formula: "the same with σ_j = s(1-u_j), 6u² - 8u³ + 3u⁴ = (j-1/2)/k: early answers have more noise, the last one none",
			Source: "[proof](proofs/adaptive-hoeffding.md)"},
		{Name: MethodRounds, Formula: "the same with the I of before the round, each round its own σ, the last one none; there an answer is read by its own sample at the level 2nW², mostly far narrower",
			Source: "proofs [1](proofs/adaptive-hoeffding.md), [2](proofs/final-batch.md)", InRounds: true},
	},
	Version: gaussianVersion,
	Oldest:  GuaranteeVersion,
	Plan:    planGaussian,
	Read:    readGaussian,
}

// gaussian releases the holdout mean plus Gaussian noise: as much for every question, less and less by a schedule, or in rounds (rounds.go).
type gaussian struct {
	Head
	Sigma      float64   `json:"sigma,omitempty" doc:"the standard deviation of the noise; where scheduled, the scale of the schedule"` // the noise's standard deviation, or the schedule's s
	Scheduled  bool      `json:"scheduled,omitempty" doc:"later questions have less noise"`                                             // sigma_j = s(1-u_j), thresholdout/bounds.ScheduledSigma
	RoundSigma []float64 `json:"round_sigma,omitempty" doc:"the noise of each round"`                                                   // in rounds: of each round; the last has none

	// Widths are the half-widths W_1, W_2, … of plain answers when so many promises are broken (promise.go); nil without promises.
	Widths []float64 `json:"widths,omitempty" doc:"of plain answers when one, two, … promises that questions bore have turned out broken, each at a token: half_width is that before the first, and the last of these is that when all tokens are spent. Absent where no promises are checked"`

	// LastExact says that the last question bears no noise, for nothing is chosen after it.
	LastExact bool `json:"last_exact,omitempty" doc:"the last question has no noise"`

	// Capped is the share of the probability of error that pays for answers that are not plain and for cuts, and Blocks or, in the first version, Subsample is its
	// account (together.go, cut.go).
	Capped    float64 `json:"capped" doc:"the share of the probability of error that pays for vectors, selections and narrower intervals near 0 and 1"`
	Subsample int64   `json:"subsample,omitempty" doc:"of the account of that share, of guarantees of the first version"`
	// Blocks are how many questions each has, and Subsamples their M.
	Blocks     []int64 `json:"blocks,omitempty" doc:"runs of questions, by how many each has: the vectors and selections of one have an account"`
	Subsamples []int64 `json:"subsamples,omitempty" doc:"of the account of each block"`
}

// planGaussian plans the noise and the half-width of plain answers.
func planGaussian(s Spec) (Mechanism, error) {
	var m Mechanism
	var err error
	if s.Tokens, err = s.planBroken(); err != nil {
		return nil, err
	}
	if s.Published && s.Capped != 0 {
		return nil, wrong(ParamCapped, "published bounds know no vectors and no cuts; leave capped or bounds out")
	}
	switch {
	case s.Tokens > 0:
		m, err = planPromised(s)
	case s.Rounds != 0:
		m, err = planRounds(s)
	case s.Published:
		m, err = planPublished(s)
	default:
		m, err = planOneByOne(s)
	}
	if err != nil {
		return nil, err
	}
	if h := m.Common(); s.HalfWidth != 0 && h.HalfWidth > s.HalfWidth {
		return nil, wrong("half_width", "%d questions about %d units get ±%.4g, not ±%v; ask for fewer questions or a wider interval", h.Questions, h.N, h.HalfWidth, s.HalfWidth)
	}
	return m, nil
}

// readGaussian reads any of these, by its members.
func readGaussian(text []byte) (Mechanism, error) {
	m, err := ReadAs[published](text)
	if err == nil && m.(*published).Published {
		if h := m.Common(); h.Tokens != 0 || h.Version != GuaranteeVersion {
			return nil, errHead
		}
		return m, nil
	}
	m, err = ReadAs[gaussian](text)
	if err != nil {
		return nil, err
	}
	return m, m.(*gaussian).check()
}

// check refuses stored noise with which an answer would mean nothing.
func (m *gaussian) check() error {
	if int64(len(m.RoundSigma)) != m.Rounds || m.Rounds == 0 && !(m.Sigma > 0) && !(m.LastExact && m.Questions == 1) || m.LastExact && !m.Scheduled {
		return errHead
	}
	if err := m.checkWidths(); err != nil {
		return err
	}
	if m.Version == GuaranteeVersion {
		if m.Subsample < 1 || m.Blocks != nil || m.Subsamples != nil || m.LastExact {
			return errHead
		}
		return nil
	}
	return m.checkBlocks()
}

// plainBeta is the probability of error of plain answers; the rest is Capped's.
func (m *gaussian) plainBeta() float64 { return m.Beta() * (1 - m.Capped) }

// reach sets the number of questions, where it is left open, to as many as get the wanted half-width with this probability of error.
func (s Spec) reach(beta float64, most func(n int64, beta, w float64) (int64, error)) (Spec, error) {
	if s.Questions != 0 {
		return s, nil
	}
	s.Questions = DefaultQuestions
	if s.HalfWidth == 0 {
		return s, nil
	}
	k, err := most(s.N, beta, s.HalfWidth)
	if err != nil {
		return s, err
	}
	if k == 0 {
		return s, wrong("half_width", "%v is narrower than one question about %d units allows; ask for a wider one", s.HalfWidth, s.N)
	}
	s.Questions = k
	return s, nil
}

// newGaussian is one that is to be planned.
func newGaussian(s Spec) *gaussian {
	m := &gaussian{Head: s.Head(), Capped: s.capped()}
	m.Version = gaussianVersion
	return m
}

// planOneByOne: any question after any answer, with the schedule's noise, or constant noise where the owner names it.
func planOneByOne(s Spec) (Mechanism, error) {
	s, err := s.reach((1-s.Confidence)*(1-s.capped()), bounds.QuestionsWithin)
	if err != nil {
		return nil, err
	}
	m := newGaussian(s)
	var b bounds.Bound
	if s.Sigma != 0 {
		b, err = bounds.ConstantNoise(s.N, s.Questions, m.plainBeta(), s.Sigma)
	} else {
		b, err = bounds.LastExact(s.N, s.Questions, m.plainBeta())
		m.LastExact = true
	}
	m.Sigma, m.Scheduled, m.HalfWidth = b.Sigma, b.Scheduled, b.HalfWidth
	m.divide()
	return m, err
}

// BestSigma is the constant noise with which k plain answers about n units are narrowest.
func BestSigma(n, k int64, confidence float64) (float64, error) {
	m := gaussian{Head: Head{Confidence: confidence}, Capped: cappedShare}
	b, err := bounds.AdaptiveHoeffding(n, k, m.plainBeta())
	return b.Sigma, err
}

// sigmaOf is the standard deviation of the next answer's noise; 0 for an exact answer, after which nothing is chosen.
func (m *gaussian) sigmaOf(s State) float64 {
	switch {
	case m.Rounds > 0:
		return m.RoundSigma[s.Rounds]
	case m.LastExact && s.Questions >= m.Questions-1:
		return 0
	case m.Scheduled:
		return bounds.ScheduledSigma(m.Sigma, s.Questions+1, m.Questions)
	}
	return m.Sigma
}

// Release implements [Mechanism]: the holdout mean plus N(0, sigma_j^2), or less noise where a promise holds (promise.go).
func (m *gaussian) Release(s State, in Input, from Noise) (Output, Memory, error) {
	if in.Promise != nil && s.Tokens < m.Tokens {
		return m.releasePromised(s, in, from)
	}
	out := m.releasePlain(s, in, from)
	if in.Promise != nil {
		out.Promise = &Kept{Pledge: in.Promise.Pledge}
	}
	return out, s.Memory, nil
}

// releasePlain is an answer without a promise, in a state that knows of a promise that this very answer broke.
func (m *gaussian) releasePlain(s State, in Input, from Noise) Output {
	value := in.Holdout.noisy(from, m.sigmaOf(s))
	return Output{Value: value, Source: FromHoldout, Interval: m.interval(s, value)}
}

// noisy is the mean plus N(0, sigma^2), exactly where sigma is 0.
func (m Mean) noisy(from Noise, sigma float64) float64 {
	z := int64(0)
	if sigma > 0 {
		z = noise.RoundedNormal(from.Answer("release", 0, sigma), steps(sigma, m.N))
	}
	return m.value(z)
}

// Preview implements [Mechanism].
func (m *gaussian) Preview(s State, value float64) *Interval { return m.interval(s, value) }

// interval is that of a plain answer.
func (m *gaussian) interval(s State, value float64) *Interval {
	width := m.widthAt(s.Tokens)
	i := around(value, width, m.bound(), m.parts(s, width))
	m.cut(s, value, i)
	return i
}

func (m *gaussian) bound() string {
	switch {
	case m.Rounds > 0:
		return MethodRounds
	case m.Scheduled:
		return MethodScheduled
	}
	return MethodConstant
}

// parts of a half-width: about what earlier answers cost this one, and the rest.
func (m *gaussian) parts(s State, width float64) map[string]float64 {
	adaptivity := min(width, m.adaptivity(s))
	return map[string]float64{"sampling_and_noise": width - adaptivity, "adaptivity": adaptivity}
}

// adaptivity is about what earlier answers cost this one, sqrt(I/(2n)).
func (m *gaussian) adaptivity(s State) float64 {
	return math.Sqrt(m.releasedAtMost(s) / (2 * float64(m.N)))
}

// releasedAtMost bounds from above how many nats the answers before the next one have released. With the schedule, where 12u(1-u)^2 du =
// dj/k, the integral of 1/(8 sigma^2 (n-1)) is 3k u^2/(4 s^2 (n-1)); the sum over the midpoints of the first questions is
// at most the integral half a question further, for the terms grow.
func (m *gaussian) releasedAtMost(s State) float64 {
	n := float64(m.N)
	switch {
	case m.Rounds > 0:
		total := 0.0
		for r := range s.Rounds {
			total += float64(m.RoundSize(r)) * bounds.Information(n, 0.25, m.RoundSigma[r])
		}
		return total
	case m.Scheduled && s.Questions > 0:
		u := 1 - bounds.ScheduledSigma(1, s.Questions+1, m.Questions)
		return 3 * float64(m.Questions) * u * u / (4 * m.Sigma * m.Sigma * (n - 1))
	case m.Scheduled:
		return 0
	}
	return float64(s.Questions) * bounds.Information(n, 0.25, m.Sigma)
}

// Promise implements [Mechanism].
func (m *gaussian) Promise(s State) (Promise, bool) {
	width := m.widthAt(s.Tokens)
	promise := Promise{HalfWidth: width, Sigma: m.Sigma, Parts: m.parts(s, width)}
	if m.Rounds > 0 {
		promise.Sigma = m.RoundSigma[0]
	}
	return promise, true
}

// reread is the mechanism with its noise as it is and intervals at another level, for answers when so many promises are broken.
func (m *gaussian) reread(level float64, broken int64) (*gaussian, bool) {
	other := *m
	var ok bool
	if other.Head, ok = m.at(level); !ok {
		return nil, false
	}
	var err error
	switch {
	case m.Widths != nil:
		other.HalfWidth, err = bounds.PromisedWidth(m.N, m.Questions, m.Sigma, bounds.PromisedShare(broken, m.Tokens)*other.plainBeta(), broken, true)
		other.Widths = slices.Repeat([]float64{other.HalfWidth}, len(m.Widths)) // no other is asked for
	case m.Rounds > 0:
		other.HalfWidth, err = bounds.RoundsNoise(m.N, m.Questions, other.plainBeta(), m.RoundSigma)
	case m.LastExact:
		other.HalfWidth, err = bounds.LastExactNoise(m.N, m.Questions, other.plainBeta(), m.Sigma)
	case m.Scheduled:
		other.HalfWidth, err = bounds.ScheduledNoise(m.N, m.Questions, other.plainBeta(), m.Sigma)
	default:
		other.HalfWidth, err = bounds.GivenNoise(m.N, m.Questions, other.plainBeta(), m.Sigma)
	}
	return &other, err == nil
}

// At implements [Levels]. What an answer said of its promise, and how many were broken with it, are facts at every level.
func (m *gaussian) At(s State, o Output, level float64) (low, high float64, ok bool) {
	s.Tokens += o.Tokens
	other, ok := m.reread(level, s.Tokens)
	switch {
	case !ok:
		return 0, 0, false
	case o.last != nil:
		return other.lastInterval(s, m, o.last).ends()
	}
	if k := o.Promise; k != nil && k.Held {
		return other.PreviewPledge(s, k.Pledge, o.Value).ends()
	}
	if m.Rounds > 0 && m.exact(s) { // all answers of the last round have one m, at every level: see [gaussian.lastLevel]
		other.HalfWidth = math.Sqrt(other.lastLevel(s, m, 1) / (2 * float64(m.N)))
	}
	return other.interval(s, o.Value).ends()
}

// Fresh implements [Fresh]: the first answers, before anything was told; a broken promise tells something, too.
func (m *gaussian) Fresh(begun, s State) (units int64, sigma float64, ok bool) {
	if begun.Questions > 0 || s.Tokens > 0 {
		return 0, 0, false
	}
	return m.N, m.sigmaOf(s), true
}
