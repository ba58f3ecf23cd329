//go:build nofigures

package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/experiments/attacks"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// errNoFigures is what a program says that was built with the tag nofigures, as make demo builds it: the experiments and the library that draws
// are a seventh of the packages that a first build compiles, and no server needs them.
var errNoFigures = errors.New("this program was built by make demo, which leaves out the experiments and figures: make build, then ./holdoutd has them")

func experimentCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "experiment",
		Short:              "Reproduce the experiments of the literature (left out here: make build)",
		DisableFlagParsing: true, // whatever is asked of it, that is the answer
		RunE:               func(*cobra.Command, []string) error { return errNoFigures },
	}
}

func checkPlot(string) error { return errNoFigures }

func writePlots([]string, compare.Request, compare.Report) error { return nil } // checkPlot refuses every file

func writeAuditPlots([]string, attacks.Report) error { return nil } // so it does here
