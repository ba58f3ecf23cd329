package holdout

import (
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// DefaultHoldout is the fraction of the units that is held out when the owner says nothing. What the guarantee is then,
// thresholdout.New says.
const DefaultHoldout = 0.3

// Ways to split.
const (
	splitByHash    = "hash"
	splitByTimeOf  = "time:"
	splitGiven     = "given"
	boundsAny      = "any"
	boundsOfPapers = "published"
	featuresSecret = "secret"
	featuresPublic = "public"
)

// withDefaults fills what was left out and refuses what is wrong whatever the table is.
func (set Settings) withDefaults(allowNaive bool) (Settings, error) {
	if set.Holdout == 0 {
		set.Holdout = DefaultHoldout
	}
	if set.Split == "" {
		set.Split = splitByHash
	}
	if set.Bounds == "" {
		set.Bounds = boundsAny
	}
	if set.Unit == rowUnit {
		set.Unit = ""
	}
	if set.Features == featuresSecret {
		set.Features = ""
	}
	if err := checkName("name", set.Name); err != nil {
		return set, err
	}
	if err := set.chooseMechanism(allowNaive); err != nil {
		return set, err
	}
	switch {
	case math.IsNaN(set.Holdout) || set.Holdout < 0 || set.Holdout > 1 && set.Holdout != math.Floor(set.Holdout):
		return set, invalid("holdout", "holdout must be a fraction in (0, 1] or a whole number of units above 1")
	case set.Features != "" && set.Features != featuresPublic:
		return set, invalid("features", "features must be %q or %q", featuresSecret, featuresPublic)
	case set.Features == featuresPublic && set.Label == "":
		return set, invalid("label", "with features=public everything but the label is given out; name the label")
	case set.Questions < 0:
		return set, invalid("questions", "questions must be at least 1")
	case set.Rounds < 0:
		return set, invalid("rounds", "rounds must be at least 1")
	case set.Tokens < 0:
		return set, invalid("tokens", "tokens must be at least 1")
	case set.Confidence != 0 && !(set.Confidence > 0 && set.Confidence < 1):
		return set, invalid("confidence", "confidence must lie between 0 and 1, such as 0.95")
	case set.LargestUnit < 0 || set.LargestUnit > dataset.MaxRows:
		return set, invalid("largest_unit", "largest_unit must be a number of rows")
	case set.LargestUnit > 0 && set.Unit == "":
		return set, invalid("largest_unit", "largest_unit is about units; name the unit column")
	}
	for name, v := range map[string]float64{"sigma": set.Sigma, "half_width": set.HalfWidth, "threshold": set.Threshold} {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			return set, invalid(name, "%s must be a positive number", name)
		}
	}
	return set, set.checkSplit()
}

// chooseMechanism settles "auto" and what does not go together.
func (set *Settings) chooseMechanism(allowNaive bool) error {
	if set.Bounds != boundsAny && set.Bounds != boundsOfPapers {
		return invalid("bounds", "bounds must be %q or %q", boundsAny, boundsOfPapers)
	}
	if set.Mechanism == "" || set.Mechanism == string(thresholdout.Auto) {
		// thresholdout.New chooses when the sizes of the parts are known.
		set.Mechanism = string(thresholdout.Auto)
		switch {
		case strings.HasPrefix(set.Split, splitByTimeOf): // drift would spend tokens
			set.Mechanism = string(thresholdout.Gaussian)
		case set.Bounds == boundsOfPapers && set.unlikeUnits() != nil: // auto could choose split
			set.Mechanism = string(thresholdout.Gaussian)
		}
	}
	switch m := thresholdout.Mechanism(set.Mechanism); {
	case !slices.Contains(mechanisms, m):
		return invalid("mechanism", "mechanism must be auto, gaussian, guess_and_check, thresholdout, split or ladder")
	case m == thresholdout.Naive && !allowNaive:
		return invalid("mechanism", "the mechanism naive protects nothing; a server takes it only when it was started with --allow-naive")
	case set.Bounds == boundsOfPapers && (comparesParts(m) || m == thresholdout.Naive || m == thresholdout.Leaderboard):
		return invalid("bounds", "the intervals of %s do not rest on a published bound; with bounds=published use gaussian, split or auto", m)
	case m == thresholdout.Leaderboard && set.Unit != "":
		return invalid("unit", "a ladder compares submissions row by row; it knows no units")
	case set.Rounds != 0 && m != thresholdout.Gaussian && m != thresholdout.Auto:
		return invalid("rounds", "the mechanism %s does not know rounds; use gaussian or auto", m)
	case m != thresholdout.Auto && !comparesParts(m) && set.Tokens != 0:
		return invalid("tokens", "the mechanism %s knows no tokens", m)
	}
	if set.Mechanism == string(thresholdout.Split) {
		if err := set.unlikeUnits(); err != nil {
			return err
		}
	}
	for name, given := range map[string]bool{"form": set.Form != "", "preset": set.Preset != "", "threshold": set.Threshold != 0} {
		if given && set.Mechanism != string(thresholdout.Thresholdout) && !(name == "threshold" && set.Mechanism == string(thresholdout.Leaderboard)) {
			return invalid(name, "%s belongs to the mechanism thresholdout", name)
		}
	}
	return nil
}

// unlikeUnits says why the units of the holdout are known not to be alike, so that the mechanism split cannot be honest: the
// units that answer one question are then no sample of what its interval is about (docs/proofs/split.md). It is nil where units may be
// alike.
func (set *Settings) unlikeUnits() error {
	switch {
	case set.Features == featuresPublic:
		return invalid("features", "with features=public the held-out rows are known to differ, and an interval of split, which reads a few rows for each question, would not be about all of them; use gaussian")
	case set.Stratify != "":
		return invalid("stratify", "the strata of a stratified holdout differ, and an interval of split, which reads a few units for each question, would not be about all of them; use gaussian")
	}
	return nil
}

// mechanisms are those of Settings.
var mechanisms = []thresholdout.Mechanism{thresholdout.Auto, thresholdout.Gaussian, thresholdout.GuessAndCheck,
	thresholdout.Thresholdout, thresholdout.Split, thresholdout.Leaderboard, thresholdout.Naive}

// comparesParts reports whether a mechanism compares the training part with the holdout, at the price of tokens.
func comparesParts(m thresholdout.Mechanism) bool {
	return thresholdout.Params{Mechanism: m}.HasTokens()
}

func (set *Settings) checkSplit() error {
	column, byTime := strings.CutPrefix(set.Split, splitByTimeOf)
	compares := comparesParts(thresholdout.Mechanism(set.Mechanism))
	switch {
	case set.Split == splitByHash:
	case set.Split == splitGiven:
		if set.Stratify != "" {
			return invalid("stratify", "parts that are given are not split, so nothing can be stratified")
		}
	case byTime && column != "":
		if set.Stratify != "" {
			return invalid("stratify", "a split by time cannot be stratified")
		}
		if compares {
			return invalid("mechanism", "%s compares the training part with the holdout; after a split by time they differ by drift, which would spend its tokens. Use gaussian", set.Mechanism)
		}
	default:
		return invalid("split", `split must be "hash", "time:COLUMN" or "given"`)
	}
	if set.Split != splitGiven && set.Holdout == 1 {
		if compares {
			return invalid("holdout", "%s needs a training part, and holdout=1.0 leaves none", set.Mechanism)
		}
		if set.Stratify != "" {
			return invalid("stratify", "holdout=1.0 is not split, so nothing can be stratified")
		}
		if set.Unit != "" && set.LargestUnit == 0 {
			return invalid("largest_unit", "without a training part the size of the largest unit must be declared, for it must not be read off the holdout")
		}
	}
	return nil
}

// params is the guarantee for parts of these sizes.
func (set Settings) params(units Counts) (thresholdout.Params, error) {
	p, err := thresholdout.New(thresholdout.Params{
		Mechanism: thresholdout.Mechanism(set.Mechanism), N: units.Holdout, Training: units.Training,
		Questions: set.Questions, Rounds: set.Rounds, Published: set.Bounds == boundsOfPapers, Tokens: set.Tokens, Confidence: set.Confidence,
		Sigma: set.Sigma, HalfWidth: set.HalfWidth,
		Form: thresholdout.Form(set.Form), Preset: set.Preset, Threshold: set.Threshold,
	})
	var wrong *thresholdout.ParamError
	if errors.As(err, &wrong) {
		return p, &Error{Kind: Invalid, Pointer: wrong.Field, Detail: wrong.Field + ": " + wrong.Detail, Err: err}
	}
	if err != nil {
		return p, &Error{Kind: Invalid, Detail: "these settings give no guarantee: " + err.Error(), Err: err}
	}
	return p, nil
}
