package thresholdout

import (
	"fmt"
	"math"
	"slices"

	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// Spec is what an owner asks for. What is zero is left to [Plan]. All scales are in units of the row function's [0,1].
type Spec struct {
	Mechanism Name
	N         int64 // units of the holdout
	Training  int64 // units of the training part, 0 without one

	Questions  int64
	Tokens     int64
	Rounds     int64
	Confidence float64 // of all intervals together

	HalfWidth float64 // that every answer should have; without Questions, as many as get it
	Sigma     float64 // constant noise
	Threshold float64 // thresholdout: T; ladder: the board's step
	Form      Form
	Preset    string
	Published bool    // intervals rest on published bounds alone
	Sealed    float64 // guess_and_check: the share of the units that no question reads, for the final report alone; 0 is none
	Cells     int64   // cells: how many the owner has declared
	Capped    float64 // gaussian: the share of the probability of error for vectors, selections and cuts; 0 is a tenth
}

// Defaults of Plan.
const (
	DefaultQuestions  = 1000
	DefaultConfidence = 0.95

	// DefaultSubmissions of a ladder, whose intervals hardly depend on their number: a million would widen the widest by a fifth.
	DefaultSubmissions = 10_000

	// DefaultCellsQuestions are more answers than a ledger keeps: under cells their number widens nothing, and each has its debit all the same.
	DefaultCellsQuestions = 1_000_000_000

	// DefaultTokens lets an honest analyst guess wrong a few times; each time widens later intervals.
	DefaultTokens = 20
)

// Limits of Plan.
const (
	// MaxUnits keeps a sum of 2^30 grid steps a unit within 2^61 (dp/noise.Saturation).
	MaxUnits = 1 << 31
	// MaxConfidence keeps beta far above the smallest probabilities that the bounds compute.
	MaxConfidence = 1 - 1e-9

	// MinConfidence keeps beta below 1 where it is taken from 1. Nobody means so little.
	MinConfidence = 1e-9
	// MaxSigma: noise as wide as the range of a row function says nothing more.
	MaxSigma = 1
	// MinSigma keeps noise coarser than the grid of values, 2^-30.
	MinSigma = 1e-9
)

// ParamError says which parameter is wrong, why, and what to do.
type ParamError struct {
	Field  string // as in the API
	Detail string
}

func (e *ParamError) Error() string { return "thresholdout: " + e.Field + ": " + e.Detail }

func wrong(field, format string, args ...any) error {
	return &ParamError{Field: field, Detail: fmt.Sprintf(format, args...)}
}

// Plan makes the guarantee that an owner asks for: it chooses what was left open and checks every number. N must be set, and Training for
// a mechanism that compares. [Auto] is replaced by the mechanism that it chooses. Errors are *[ParamError], but for faults of
// the bounds.
func Plan(s Spec) (Guarantee, error) {
	m, err := planned(s)
	if err != nil {
		return Guarantee{}, err
	}
	return of(m), nil
}

func planned(s Spec) (Mechanism, error) {
	if s.Confidence == 0 {
		s.Confidence = DefaultConfidence
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if s.N < bounds.MinUnits || s.N > MaxUnits {
		return nil, wrong("holdout", "%d units in the holdout; between %d and %d are possible", s.N, bounds.MinUnits, int64(MaxUnits))
	}
	kind, _ := KindOf(s.Mechanism)
	m, err := kind.Plan(s)
	if err != nil {
		return nil, err
	}
	if h := m.Common(); math.IsInf(h.HalfWidth, 0) || math.IsNaN(h.HalfWidth) {
		return nil, wrong("questions", "%d questions about %d units have no interval at all; ask for fewer questions, or hold out more units", h.Questions, h.N)
	}
	return m, nil
}

// Check refuses what is wrong however large the parts are: a mechanism that there is not, a parameter that it does not take and would
// ignore in silence, a number that is out of its range. Errors are *[ParamError].
func (s Spec) Check() error {
	kind, ok := KindOf(s.Mechanism)
	if !ok {
		return wrong("mechanism", "there is no mechanism %q; use %s", s.Mechanism, either(KindNames()))
	}
	if s.Confidence != 0 && !(s.Confidence >= MinConfidence && s.Confidence <= MaxConfidence) {
		return wrong("confidence", "%v is not between 0 and 1; 0.95 is usual", s.Confidence)
	}
	if s.Questions < 0 || s.Questions > bounds.MaxQuestions {
		return wrong("questions", "%d is not between 1 and %d", s.Questions, int64(bounds.MaxQuestions))
	}
	for _, p := range params {
		if p.given(s) && !slices.Contains(kind.Takes, p.name) {
			return wrong(p.name, "the mechanism %s does not take it; %s", s.Mechanism, takers(p.name))
		}
	}
	for field, count := range map[string]int64{ParamTokens: s.Tokens, ParamRounds: s.Rounds} {
		if count < 0 {
			return wrong(field, "%d is less than 1", count)
		}
	}
	if s.Cells != 0 && (s.Cells < minCells || s.Cells > MaxUnits) {
		return wrong(ParamCells, "%d cells are not between %d and %d", s.Cells, minCells, int64(MaxUnits))
	}
	for _, f := range []struct {
		field string
		value float64
	}{{"sigma", s.Sigma}, {"threshold", s.Threshold}, {"half_width", s.HalfWidth}} {
		if !(f.value >= 0 && f.value <= MaxSigma) {
			return wrong(f.field, "%v is not between 0 and %v, the width of a row function's range", f.value, MaxSigma)
		}
	}
	if s.Capped != 0 && !(s.Capped > 0 && s.Capped <= mostCapped) {
		return wrong(ParamCapped, "%v is not above 0 and at most %v: it is the share of the probability of error that vectors, selections and narrower intervals near 0 and 1 have; single means have the rest", s.Capped, mostCapped)
	}
	if !(s.Sealed >= 0 && s.Sealed <= mostSealed) {
		return wrong(ParamSealed, "%v is not between 0 and %v: it is the share of the units that no question reads, kept for the final report; questions read the others", s.Sealed, mostSealed)
	}
	if s.Sigma != 0 && s.Sigma < MinSigma {
		return wrong("sigma", "%v is finer than the grid of answers; the least is %v", s.Sigma, MinSigma)
	}
	return nil
}

// Head is the head of the guarantee that is planned of the spec, but for what its mechanism plans.
func (s Spec) Head() Head {
	return Head{Version: GuaranteeVersion, Mechanism: s.Mechanism, N: s.N, Training: s.Training,
		Questions: s.Questions, Tokens: s.Tokens, Rounds: s.Rounds, Confidence: s.Confidence}
}

// orDefault leaves the number of questions, where it is left open, to the mechanism.
func (s Spec) orDefault(questions int64) Spec {
	if s.Questions == 0 {
		s.Questions = questions
	}
	return s
}

// withTokens is for a mechanism that has tokens.
func (s Spec) withTokens() (Spec, error) {
	s = s.orDefault(DefaultQuestions)
	if s.Tokens == 0 {
		s.Tokens = min(DefaultTokens, s.Questions)
	}
	if s.Tokens < 1 || s.Tokens > s.Questions {
		return s, wrong("tokens", "%d is not between 1 and the number of questions, %d", s.Tokens, s.Questions)
	}
	return s, nil
}
