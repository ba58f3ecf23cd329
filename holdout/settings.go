package holdout

import (
	"errors"
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/rowfn"
	"github.com/holdoutd/holdoutd/rowfn/cells"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// DefaultHoldout is the fraction of the units that is held out when the owner says nothing. How many questions there are then, thresholdout.Spec.WithBudget
// says, and what else the guarantee has, thresholdout.Plan.
const DefaultHoldout = 0.3

// DefaultCheck is the fraction of the units in the check part where a label is named and the owner says nothing: a model's value then is known about as well as the
// holdout knows it, and half of the table is left to fit models to. Without a label there is none by default, for then nobody says that models will be asked about.
const DefaultCheck = 0.2

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
	if set.Overlap == overlapRefused {
		set.Overlap = ""
	}
	if err := checkName("name", set.Name); err != nil {
		return set, err
	}
	if set.Cells != "" {
		domain, err := cells.Parse(set.Cells)
		if err != nil {
			return set, invalid("cells", "cells: %s", err.Error())
		}
		set.Cells = domain.String()
	}
	if err := set.chooseMechanism(allowNaive); err != nil {
		return set, err
	}
	switch {
	case math.IsNaN(set.Holdout) || set.Holdout < 0 || set.Holdout > 1 && set.Holdout != math.Floor(set.Holdout):
		return set, invalid("holdout", "holdout must be a fraction in (0, 1] or a whole number of units above 1")
	case set.Check != nil && (math.IsNaN(*set.Check) || *set.Check < 0 || *set.Check == 1 || *set.Check > 1 && *set.Check != math.Floor(*set.Check)):
		return set, invalid("check", "check must be a fraction from 0 on and below 1, or a whole number of units above 1; 0 makes no check part")
	case set.Features != "" && set.Features != featuresPublic:
		return set, invalid("features", "features must be %q or %q", featuresSecret, featuresPublic)
	case set.Features == featuresPublic && set.Label == "":
		return set, invalid("label", "with features=public everything but the label is given out; name the label")
	case set.Overlap != "" && set.Overlap != overlapAccepted:
		return set, invalid("overlap", "overlap must be %q or %q", overlapRefused, overlapAccepted)
	case set.Succeeds != "" && !strings.HasPrefix(set.Succeeds, IDPrefix):
		return set, invalid("succeeds", "succeeds must be the id of a retired holdout, %s…", IDPrefix)
	case set.LargestUnit < 0 || set.LargestUnit > dataset.MaxRows:
		return set, invalid("largest_unit", "largest_unit must be a number of rows")
	case set.LargestUnit > 0 && set.Unit == "":
		return set, invalid("largest_unit", "largest_unit is about units; name the unit column")
	}
	return set, set.checkSplit()
}

// chooseMechanism settles "auto" and what does not go together.
func (set *Settings) chooseMechanism(allowNaive bool) error {
	if set.Bounds != boundsAny && set.Bounds != boundsOfPapers {
		return invalid("bounds", "bounds must be %q or %q", boundsAny, boundsOfPapers)
	}
	if set.Mechanism == "" || set.Mechanism == string(thresholdout.Auto) {
		// thresholdout.Plan chooses when the sizes of the parts are known.
		set.Mechanism = string(thresholdout.Auto)
		switch {
		case strings.HasPrefix(set.Split, splitByTimeOf): // drift would spend tokens
			set.Mechanism = string(thresholdout.Gaussian)
		case set.Bounds == boundsOfPapers && set.unlikeUnits() != nil: // auto could choose split
			set.Mechanism = string(thresholdout.Gaussian)
		}
	}
	if err := set.spec(Counts{}).Check(); err != nil {
		return refusedSpec(err)
	}
	kind := set.kind()
	switch {
	case set.Sealed > 0 && set.unlikeUnits() != nil:
		return invalid("sealed", "where the held-out rows are known to differ, by strata or since their features are public, the sealed ones alone would not stand for all of them; leave sealed out")
	case kind.Unprotected && !allowNaive:
		return invalid("mechanism", "the mechanism %s protects nothing; a server takes it only when it was started with --allow-naive", kind.Name)
	case thresholdout.Does[thresholdout.Celled](kind) && set.Cells == "":
		return invalid("cells", `cells is missing: declare the columns that questions are about, with their values and edges, such as {"member":[true,false],"region":["north","south"],"age":[18,40,65]}`)
	case set.knowsNoUnits() && set.Unit != "":
		return invalid("unit", "a %s compares submissions row by row; it knows no units", kind.Name)
	case thresholdout.Does[thresholdout.Slices](kind):
		return set.unlikeUnits()
	}
	return nil
}

// kind is the mechanism that was chosen.
func (set *Settings) kind() thresholdout.Kind {
	kind, _ := thresholdout.KindOf(thresholdout.Name(set.Mechanism))
	return kind
}

// knowsNoUnits reports whether the mechanism goes by rows, whatever the table is.
func (set *Settings) knowsNoUnits() bool {
	return thresholdout.Does[thresholdout.Submissions](set.kind())
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

func (set *Settings) checkSplit() error {
	column, byTime := strings.CutPrefix(set.Split, splitByTimeOf)
	compares := thresholdout.Does[thresholdout.Compares](set.kind())
	switch {
	case set.Split == splitByHash:
	case set.Split == splitGiven:
		if set.Stratify != "" {
			return invalid("stratify", "parts that are given are not split, so nothing can be stratified")
		}
		if set.Check != nil && *set.Check > 0 {
			return invalid("check", "parts that are given are not split: give the check part as a part of its own, named check")
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
		if set.Check != nil && *set.Check > 0 {
			return invalid("check", "holdout=1.0 leaves no rows for a check part")
		}
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

// defaultCheck is the fraction of the units in the check part where the owner says nothing.
func (set *Settings) defaultCheck() float64 {
	if set.Label == "" {
		return 0
	}
	return DefaultCheck
}

// chosenCheck is the setting as the card says it: what the default was. Of a part that was given there is nothing to say.
func (set *Settings) chosenCheck(units Counts) *float64 {
	var chosen float64
	switch {
	case set.Check != nil || set.Split == splitGiven && units.Check > 0:
		return set.Check
	case units.Check > 0:
		chosen = set.defaultCheck()
	}
	return &chosen
}

// spec is what the settings ask for, of parts of these sizes. What is planned is for a comparison with the smallest part: one with more units fails less often.
func (set Settings) spec(units Counts) thresholdout.Spec {
	return thresholdout.Spec{
		Mechanism: thresholdout.Name(set.Mechanism), N: units.Holdout, Training: units.least(),
		Questions: set.Questions, Rounds: set.Rounds, Published: set.Bounds == boundsOfPapers, Tokens: set.Tokens, Confidence: set.Confidence,
		Sigma: set.Sigma, HalfWidth: set.HalfWidth, Capped: set.Capped, Sealed: set.Sealed, Cells: set.declaredCells(),
		Form: thresholdout.Form(set.Form), Preset: set.Preset, Threshold: set.Threshold,
	}
}

// declaredCells is how many there are; 0 without a declaration.
func (set *Settings) declaredCells() int64 {
	domain, err := cells.Parse(set.Cells)
	if err != nil {
		return 0
	}
	return domain.Count()
}

// checkCells refuses declared columns that the table does not have, or has as something else.
func (set *Settings) checkCells(s dataset.Schema) error {
	if set.Cells == "" {
		return nil
	}
	domain, err := cells.Parse(set.Cells)
	if err != nil {
		return invalid("cells", "cells: %s", err.Error())
	}
	for _, c := range domain.Columns {
		f := fieldOf(s, c.Name)
		if f == nil {
			return noColumn("cells", c.Name, s)
		}
		if want, ok := cellKinds[f.Kind]; !ok || want.is != c.Type {
			return invalid("cells", "cells: the column %q has %s; %s", c.Name, want.has, want.instead)
		}
	}
	return nil
}

// cellKinds say what a column of each kind can be declared as.
var cellKinds = map[dataset.Kind]struct {
	is           rowfn.Type
	has, instead string
}{
	dataset.Bool:   {rowfn.Condition, "true and false", "declare it as [true,false]"},
	dataset.Text:   {rowfn.Text, "texts", "list those that questions are about, in quotes"},
	dataset.Number: {rowfn.Number, "numbers", "list the edges at which they are cut, such as [18,40,65]"},
	dataset.Time:   {0, "times", "only columns of numbers, texts and of true and false can be declared; upload what questions are about, such as the year, as a column of numbers"},
}

// guarantee is the one for parts of these sizes. Where the owner says nothing of a budget, it has the one of [thresholdout.Spec.WithBudget].
func (set Settings) guarantee(units Counts) (thresholdout.Guarantee, error) {
	g, err := thresholdout.Plan(set.spec(units).WithBudget())
	if err != nil {
		return g, refusedSpec(err)
	}
	return g, nil
}

// refusedSpec says which setting gives no guarantee.
func refusedSpec(err error) error {
	var wrong *thresholdout.ParamError
	if errors.As(err, &wrong) {
		return &Error{Kind: Invalid, Pointer: wrong.Field, Detail: wrong.Field + ": " + wrong.Detail, Err: err}
	}
	return &Error{Kind: Invalid, Detail: "these settings give no guarantee: " + err.Error(), Err: err}
}
