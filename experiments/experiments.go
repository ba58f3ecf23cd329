// Package experiments names the experiments: those of the literature, attacks on the mechanisms, and private learning. docs/EXPERIMENTS.md
// has a section for each.
//
// Every experiment has a folder, whose package comment says which paper and section it is of. It uses the public packages, as any
// program may, the framework in experiments/run, and what several share: experiments/analysts (who asks, and of what) and
// experiments/tables (the real data sets).
//
// What no attack can show (noise at half its scale, a bound at half its width: the strongest attack known moves an answer by a quarter
// of the half-width) is the business of the tests of the noise's law and of the exact searches in thresholdout/bounds.
package experiments

import (
	"github.com/holdoutd/holdoutd/experiments/adaptivity"
	"github.com/holdoutd/holdoutd/experiments/agents"
	"github.com/holdoutd/holdoutd/experiments/certify"
	"github.com/holdoutd/holdoutd/experiments/coverage"
	"github.com/holdoutd/holdoutd/experiments/dpsgd"
	"github.com/holdoutd/holdoutd/experiments/fairness"
	"github.com/holdoutd/holdoutd/experiments/featureselection"
	"github.com/holdoutd/holdoutd/experiments/freedman"
	"github.com/holdoutd/holdoutd/experiments/leaderboard"
	"github.com/holdoutd/holdoutd/experiments/manyquestions"
	"github.com/holdoutd/holdoutd/experiments/phacking"
	"github.com/holdoutd/holdoutd/experiments/privatemean"
	"github.com/holdoutd/holdoutd/experiments/reconstruction"
	"github.com/holdoutd/holdoutd/experiments/run"
	"github.com/holdoutd/holdoutd/experiments/widths"
)

// All experiments, in the order of a list.
var All = []run.Experiment{
	coverage.Experiment,
	widths.Experiment,
	adaptivity.Experiment,
	featureselection.Experiment,
	freedman.Experiment,
	leaderboard.Experiment,
	phacking.Experiment,
	fairness.Experiment,
	agents.Experiment,
	reconstruction.Experiment,
	manyquestions.Experiment,
	certify.Experiment,
	privatemean.Experiment,
	dpsgd.Experiment,
}
