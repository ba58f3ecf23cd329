package thresholdout

import (
	"slices"
	"strings"
)

// Kind is a row of the table of mechanisms: what is known of one before anything is planned.
type Kind struct {
	Name Name
	Says string // what it does, in a sentence for the owner
	// Takes are the parameters that it takes, by the names of the API, beside questions and confidence.
	Takes []string
	// Assumes is what the budget needs to last, or what the target needs to be the one that is named; "" for nothing.
	Assumes string
	// Unprotected says that it protects nothing and gives no interval.
	Unprotected bool
	// Variants are what Plan can make of it; of a choice among other mechanisms there are none.
	Variants []Variant
	// Methods are the rows that the planner has for it (thresholdout/compare).
	Methods []Method
	// Version is that of its stored form; 0 is the first. Oldest is the oldest that is read too; 0 is Version alone.
	Version, Oldest int
	Plan            func(Spec) (Mechanism, error)
	Read            func(text []byte) (Mechanism, error) // a stored one; nil for a choice
}

// Variant is one form of a mechanism. Is is a nil pointer of its type, which says what it is able to do and which numbers it has.
type Variant struct {
	Says string // when it is planned; "" where there is one form only
	Is   Mechanism
}

// Method is a way to plan a mechanism for so many units and questions, as a planner lists it beside the bounds of the literature.
type Method struct {
	Name      string
	Formula   string // of the half-width, for people
	Source    string
	Published string // "yes", or what of it is; "" for a bound of this project
	InRounds  bool   // for questions in rounds
	// Sigma is the constant noise that is asked for; nil leaves it to Plan.
	Sigma func(n, k int64, confidence float64) (float64, error)
}

// kinds is the table of mechanisms, in the order in which they are shown. It is filled by init because a choice among mechanisms
// looks them up in it.
var kinds []Kind

func init() {
	kinds = []Kind{autoKind, gaussianKind, guessAndCheckKind, thresholdoutKind, splitKind, cellsKind, ladderKind, naiveKind}
}

// Kinds are the mechanisms, in the order in which they are shown.
func Kinds() []Kind { return slices.Clone(kinds) }

// KindOf is the mechanism of this name.
func KindOf(name Name) (Kind, bool) {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return Kind{}, false
	}
	return kinds[i], true
}

// KindNames are the names of the mechanisms that protect, in the order in which they are shown.
func KindNames() (names []string) {
	for _, k := range kinds {
		if !k.Unprotected {
			names = append(names, string(k.Name))
		}
	}
	return names
}

// Does reports whether a variant of the mechanism has an ability: Does[Slices](kind).
func Does[Ability any](k Kind) bool {
	return slices.ContainsFunc(k.Variants, func(v Variant) bool { _, ok := v.Is.(Ability); return ok })
}

// HasTokens reports whether the mechanism spends tokens.
func (k Kind) HasTokens() bool { return len(k.Variants) > 0 && slices.Contains(k.Takes, ParamTokens) }

// Names of the parameters that not every mechanism takes, as in the API.
const (
	ParamTokens    = "tokens"
	ParamRounds    = "rounds"
	ParamHalfWidth = "half_width"
	ParamSigma     = "sigma"
	ParamThreshold = "threshold"
	ParamForm      = "form"
	ParamPreset    = "preset"
	ParamBounds    = "bounds"
	ParamCapped    = "capped"
	ParamSealed    = "sealed"
	ParamCells     = "cells"
)

// params are these parameters, and whether a spec has them.
var params = []struct {
	name  string
	given func(Spec) bool
}{
	{ParamTokens, func(s Spec) bool { return s.Tokens != 0 }},
	{ParamRounds, func(s Spec) bool { return s.Rounds != 0 }},
	{ParamHalfWidth, func(s Spec) bool { return s.HalfWidth != 0 }},
	{ParamSigma, func(s Spec) bool { return s.Sigma != 0 }},
	{ParamThreshold, func(s Spec) bool { return s.Threshold != 0 }},
	{ParamForm, func(s Spec) bool { return s.Form != "" }},
	{ParamPreset, func(s Spec) bool { return s.Preset != "" }},
	{ParamBounds, func(s Spec) bool { return s.Published }},
	{ParamCapped, func(s Spec) bool { return s.Capped != 0 }},
	{ParamSealed, func(s Spec) bool { return s.Sealed != 0 }},
	{ParamCells, func(s Spec) bool { return s.Cells != 0 }},
}

// Takers are the mechanisms that take a parameter, in the order in which they are shown.
func Takers(param string) (names []string) {
	for _, k := range kinds {
		if slices.Contains(k.Takes, param) {
			names = append(names, string(k.Name))
		}
	}
	return names
}

// takers says who takes a parameter.
func takers(param string) string {
	names := Takers(param)
	if len(names) == 1 {
		return names[0] + " does"
	}
	return listed(names, "and") + " do"
}

// either lists names: "a, b or c".
func either(names []string) string { return listed(names, "or") }

func listed(names []string, last string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + last + " " + names[len(names)-1]
}
