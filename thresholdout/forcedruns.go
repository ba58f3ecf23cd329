package thresholdout

import (
	"math"
	"math/big"

	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/moments"
)

// MethodThresholdout is the name of its method.
const MethodThresholdout = "thresholdout"

// Version of the stored form of the Gaussian form. In the first what sampling adds was Hoeffding's, the same for every mean; in the second it was Chernoff's, and all was released mean by mean. Since the third
// answers speak of variances (comparedruns.go); since the fourth their intervals are read by [moments.BestTilts]. The Laplace form has version 1.
const (
	forcedRunsVersion   = 2
	comparedRunsVersion = 3
	thresholdoutVersion = 4
)

var thresholdoutKind = Kind{
	Name:    Thresholdout,
	Says:    "answers with the mean of the training and check parts (of a model, of the check part) where the holdout agrees, by a noisy comparison; else with the holdout mean and noise, for a token",
	Takes:   []string{ParamTokens, ParamSigma, ParamThreshold, ParamForm, ParamPreset},
	Assumes: "the training part mostly agrees with the holdout: each question about which it does not spends a token and widens later intervals, and without tokens no new question is answered. The intervals themselves hold in any case",
	Variants: []Variant{
		{"form=gaussian", (*comparedRuns)(nil)},
		{"form=laplace", (*laplace)(nil)},
	},
	Methods: []Method{{Name: MethodThresholdout, Formula: "T + u + sqrt(E/(2n)), E = n/(n-m) L + (n/m) I_f at the best m, L = ln(6k/β) − ln Polya(j,f,w) + …, u of the comparisons' noise. If a question varies less, T and u are smaller, and the rest follows its variance",
		Source: "proofs [1](proofs/adaptive-hoeffding.md), section 6, [2](proofs/two-moments.md), section 9, for the mechanism of Dwork et al., arXiv 1506.02629"}},
	Version: thresholdoutVersion,
	Oldest:  GuaranteeVersion,
	Plan:    planThresholdout,
	Read:    readThresholdout,
}

// Form is the published form of Thresholdout.
type Form string

const (
	// FormGaussian is Science 2015 (doi 10.1126/science.aaa9375): Gaussian noise in every comparison and release; interval
	// by forced runs (docs/proofs/adaptive-hoeffding.md).
	FormGaussian Form = "gaussian"
	// FormLaplace is NIPS 2015 (arXiv 1506.02629, figure 1): Laplace noise, the threshold noise redrawn only after a
	// token; interval by the tanh transfer bound (docs/proofs/tanh-transfer.md).
	FormLaplace Form = "laplace"
)

// PresetScience2015 is the parameters of the experiment of Dwork et al., Science 2015: threshold 4/sqrt(n), noise 1/sqrt(n).
const PresetScience2015 = "science2015"

// Comparison is what both forms of Thresholdout have: it answers with the training mean while that is near the holdout mean.
type Comparison struct {
	Form      Form    `json:"form" doc:"gaussian or laplace"`
	Preset    string  `json:"preset,omitempty" doc:"where one was asked for"`
	Threshold float64 `json:"threshold" doc:"how far the training mean may be from the holdout mean"` // T
	Sigma     float64 `json:"sigma" doc:"the standard deviation of the noise"`                        // the noise's standard deviation; of the Laplace form, its scale
}

// ComparesWithTraining implements [Compares].
func (Comparison) ComparesWithTraining() {}

// forcedRuns is Thresholdout in its Gaussian form.
type forcedRuns struct {
	Head
	Comparison
}

const boundForcedRuns = "thresholdout-forced-runs"

// planThresholdout plans either form.
func planThresholdout(s Spec) (Mechanism, error) {
	if s.Training < 1 {
		return nil, wrong("mechanism", "thresholdout compares with a training part, and there is none; use gaussian")
	}
	s, err := s.withTokens()
	if err != nil {
		return nil, err
	}
	c := Comparison{Form: s.Form, Preset: s.Preset, Threshold: s.Threshold, Sigma: s.Sigma}
	if c.Form == "" {
		c.Form = FormGaussian
	}
	if c.Form != FormGaussian && c.Form != FormLaplace {
		return nil, wrong("form", "there is no form %q; use gaussian (Science 2015) or laplace (NIPS 2015)", c.Form)
	}
	m := &forcedRuns{s.Head(), c}
	m.Version = forcedRunsVersion
	switch {
	case s.Preset == PresetScience2015:
		if s.Threshold != 0 || s.Sigma != 0 {
			return nil, wrong("preset", "science2015 sets threshold and sigma; give the preset or the numbers")
		}
		m.Threshold, m.Sigma = 4/math.Sqrt(float64(s.N)), 1/math.Sqrt(float64(s.N))
	case s.Preset != "":
		return nil, wrong("preset", "there is no preset %q; use science2015", s.Preset)
	default:
		m.tune()
	}
	if c.Form == FormLaplace {
		m.Version = GuaranteeVersion
		return planLaplace(m.Head, m.Comparison), nil
	}
	m.Version = thresholdoutVersion
	return &comparedRuns{forcedRuns: *m, Relative: s.Threshold == 0 && s.Sigma == 0 && s.Preset == "", Deviations: moments.Deviations(m.Questions)}, nil
}

// readThresholdout reads either form.
func readThresholdout(text []byte) (Mechanism, error) {
	m, err := ReadAs[forcedRuns](text)
	if err == nil && m.(*forcedRuns).Form == FormLaplace {
		if m.Common().Version != GuaranteeVersion {
			return nil, errHead
		}
		return ReadAs[laplace](text)
	}
	if err == nil && m.Common().Version >= comparedRunsVersion {
		if m, err = ReadAs[comparedRuns](text); err == nil {
			err = m.(*comparedRuns).check()
		}
	}
	return m, err
}

// tune chooses threshold and noise, where they are not given, for the narrowest interval of an honest analyst.
//
// The threshold is three standard deviations of the difference of a training and a holdout mean at their largest (a row
// function that is 0 or 1 with equal probability): a fixed question then fails about three times in a thousand by chance. A smaller
// one would be narrower and spend tokens faster.
func (m *forcedRuns) tune() {
	if m.Threshold == 0 {
		m.Threshold = min(1, 1.5*math.Sqrt(1/float64(m.N)+1/float64(m.Training)))
	}
	if m.Sigma == 0 {
		m.Sigma = min(MaxSigma, max(MinSigma, m.runs().TunedNoise()))
	}
}

func (m *forcedRuns) runs() bounds.ForcedRuns {
	return bounds.ForcedRuns{N: m.N, Questions: m.Questions, Tokens: m.Tokens, Beta: m.Beta(),
		Threshold: m.Threshold, Comparison: m.Sigma, Release: m.Sigma}
}

// Release implements [Mechanism] (Science 2015): the training mean while |training - holdout| <= T + N(0,
// sigma^2), with fresh noise for each comparison; else the holdout mean + N(0, sigma^2), for a token.
func (m *forcedRuns) Release(s State, in Input, from Noise) (Output, Memory, error) {
	eta := noise.RoundedNormal(from.Answer("compare", s.Tokens, m.Sigma), steps(m.Sigma, m.N))
	if !in.beyond(steps(m.Threshold, m.N), eta) {
		value := in.Training.value(0)
		return Output{Value: value, Source: FromTraining, Interval: m.interval(s, value, FromTraining)}, s.Memory, nil
	}
	xi := noise.RoundedNormal(from.Answer("release", s.Tokens, m.Sigma), steps(m.Sigma, m.N))
	value := in.Holdout.value(xi)
	return Output{Value: value, Source: FromHoldout, Tokens: 1, Interval: m.interval(s, value, FromHoldout)}, s.Memory, nil
}

// interval is that of an answer from the training part, which the comparison keeps within the threshold and its noise of the holdout mean, or from the holdout, which is within the noise of its
// release. Sampling adds Hoeffding's deviation or, narrower for means far from one half, Chernoff's at the same level.
func (m *forcedRuns) interval(s State, value float64, source Source) *Interval {
	runs := m.runs()
	sampling, u := runs.Sampling(s.Questions, s.Tokens), runs.ComparisonNoise()
	near, parts := m.Threshold+u, map[string]float64{"threshold": m.Threshold, "noise": u}
	if source == FromHoldout {
		near = runs.ReleaseNoise()
		parts = map[string]float64{"noise": near}
	}
	parts["sampling_and_adaptivity"] = sampling
	i := around(value, near+sampling, boundForcedRuns, parts)
	if m.Version == GuaranteeVersion {
		return i
	}
	if low, high := runs.Within(value-near-gridError, value+near+gridError, s.Questions, s.Tokens); low > i.Low || high < i.High {
		i.Low, i.High = max(low, i.Low), min(high, i.High)
		i.Bound += "+chernoff"
		parts["sampling_and_adaptivity"] = max(0, max(i.High-value, value-i.Low)-near)
	}
	return i
}

// Preview implements [Mechanism].
func (m *forcedRuns) Preview(s State, value float64) *Interval {
	return m.interval(s, value, FromTraining)
}

// Promise implements [Mechanism]: of an answer about one half that agrees with training.
func (m *forcedRuns) Promise(s State) (Promise, bool) {
	runs := m.runs()
	half, near := runs.Pass(s.Questions, s.Tokens), m.Threshold+runs.ComparisonNoise()
	if half < 0.5 { // beyond, an interval about one half is cut off
		i := m.Preview(s, 0.5)
		half = min(half, max(i.High-0.5, 0.5-i.Low))
	}
	return Promise{HalfWidth: half, Sigma: m.Sigma,
		Parts: map[string]float64{"threshold": m.Threshold, "noise": runs.ComparisonNoise(), "sampling_and_adaptivity": half - near}}, true
}

// At implements [Levels].
func (m *forcedRuns) At(s State, o Output, level float64) (low, high float64, ok bool) {
	h, ok := m.at(level)
	if !ok {
		return 0, 0, false
	}
	return (&forcedRuns{h, m.Comparison}).interval(s, o.Value, o.Source).ends()
}

// beyond reports whether |training mean - holdout mean| exceeds the threshold plus noise, all exact: both means times
// N_t N_h 2^30, threshold and noise in steps of the holdout's sum.
func (in Input) beyond(threshold float64, noises ...int64) bool {
	scaled := func(sum, n int64) *big.Int { return new(big.Int).Mul(big.NewInt(sum), big.NewInt(n)) }
	difference := scaled(in.Training.Sum, in.Holdout.N)
	difference.Sub(difference, scaled(in.Holdout.Sum, in.Training.N))
	limit := big.NewInt(int64(math.Round(threshold)))
	for _, v := range noises {
		limit.Add(limit, big.NewInt(v))
	}
	limit.Mul(limit, big.NewInt(in.Training.N))
	return difference.Abs(difference).Cmp(limit) > 0
}
