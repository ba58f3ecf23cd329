package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/internal/printed"
	"github.com/holdoutd/holdoutd/session/workload"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

func planCommand() *cobra.Command {
	var request compare.Request
	var asJSON, asTable, answers bool
	var asked string
	var plots []string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Say beforehand how narrow intervals can be, for every method",
		Long: `Compares what every method promises for questions that are chosen adaptively, about a holdout of so many independent
units, when all intervals are to hold together with the given confidence. Half-widths are for row functions with
values in [0,1]; one with another range scales them by its width.

With --workload it says what a list of questions costs under each mechanism, and how wide its intervals are in their own
units: each kind of question is COUNT TYPE [of CATEGORIES] [in LOW..HIGH] [sd DEVIATION] [at MEAN] [where SHARE].

With --half-width it also says how many questions each method answers within it. --plot draws half-width against number
of questions into an .svg or .png file, and may be given twice. --table prints a page in Markdown about all methods.`,
		Example: `  holdoutd plan --n 100000 --questions 1000
  holdoutd plan --n 20000 --half-width 0.1 --rounds 5 --plot half-width.svg
  holdoutd plan --n 30000 --training 70000 --questions 1000 --tokens 20 --json
  holdoutd plan --n 30000 --training 70000 --workload "60 accuracy, 60 auc, 10 groups of 12 in -60..180 sd 39"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case asTable:
				return printFixed(cmd, "--table", compare.WriteTable)
			case answers:
				return printFixed(cmd, "--answers", compare.WriteAnswers)
			}
			if request.N == 0 {
				return misuse("name the number of units in the holdout: --n 10000")
			}
			var estimate *workload.Estimate
			if asked != "" {
				e, questions, err := workload.For(cmd.Context(), request, asked)
				if err != nil {
					return plainRequest(err)
				}
				estimate, request.Questions = &e, questions
			}
			for _, file := range plots {
				if err := checkPlot(file); err != nil {
					return err
				}
			}
			report, err := compare.Plan(cmd.Context(), request)
			if err != nil {
				return plainRequest(err)
			}
			if err := writePlots(plots, request, report); err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				if estimate == nil {
					return encoder.Encode(report)
				}
				return encoder.Encode(struct {
					compare.Report
					Workload *workload.Estimate `json:"workload"`
				}{report, estimate})
			}
			if estimate != nil {
				return printWorkload(cmd.OutOrStdout(), request, *estimate)
			}
			return printPlan(cmd.OutOrStdout(), report)
		},
	}
	f := cmd.Flags()
	f.Int64Var(&request.N, "n", 0, "independent units in the holdout")
	f.Int64Var(&request.Questions, "questions", 0, "questions, each of one row function (default: as many as a holdout of this size gets)")
	f.Float64Var(&request.Confidence, "confidence", 0.95, "that all intervals hold together")
	f.Float64Var(&request.HalfWidth, "half-width", 0, "how wide answers may be: says how many questions are possible")
	f.Int64Var(&request.Rounds, "rounds", 0, "batches that the questions come in, each fixed before its answers are seen")
	f.Int64Var(&request.Training, "training", 0, "units in the training part, for mechanisms that compare with it")
	f.Int64Var(&request.Tokens, "tokens", 0, fmt.Sprintf("how many guesses may be wrong; each one costs a token (default %d)", thresholdout.DefaultTokens))
	f.BoolVar(&request.Published, "published", false, "only bounds of the literature")
	f.Int64Var(&request.Cells, "cells", 0, "how many cells are declared, where all questions are about declared columns with listed values and edges")
	f.StringVar(&asked, "workload", "", "what is to be asked, such as '60 accuracy, 60 auc, 10 groups of 12 in -60..180 sd 39'; prints what it costs under each mechanism")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	f.BoolVar(&answers, "answers", false, "print how wide one holdout's answers are by their kind: checks, measured answers, the final report")
	f.BoolVar(&asTable, "table", false, "print the page docs/BOUNDS.md: all methods at 100,000 units, and what they are")
	f.StringArrayVar(&plots, "plot", nil, "draw into this .svg or .png file")
	return cmd
}

// printFixed prints what has sizes of its own: it takes no other flag.
func printFixed(cmd *cobra.Command, flag string, write func(io.Writer) error) error {
	if cmd.Flags().NFlag() > 1 {
		return misuse("%s has sizes of its own; leave the other flags out", flag)
	}
	return write(cmd.OutOrStdout())
}

// plainRequest names the flag instead of the package.
func plainRequest(err error) error {
	var wrong *compare.RequestError
	if errors.As(err, &wrong) {
		return misuse("--%s: %s", strings.ReplaceAll(wrong.Field, "_", "-"), wrong.Detail)
	}
	var misread *workload.RequestError
	if errors.As(err, &misread) {
		return misuse("--%s: %s", misread.Field, misread.Detail)
	}
	return err
}

func printPlan(out io.Writer, r compare.Report) error {
	fmt.Fprintf(out, "%s questions about a holdout of %s units, %s confidence for all of them together\n\n",
		thousands(r.Questions), thousands(r.N), percent(r.Confidence))
	if r.Chosen != "" {
		fmt.Fprintf(out, "%s\n\n", r.Chosen)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	header := "METHOD\tHALF-WIDTH\tNOISE\tPARTS"
	if r.HalfWidth > 0 {
		header = fmt.Sprintf("METHOD\tHALF-WIDTH\tQUESTIONS AT ±%v\tNOISE\tPARTS", r.HalfWidth)
	}
	fmt.Fprintln(w, header)
	footnotes := map[string]string{}
	var marks []string
	for _, m := range r.Methods {
		name := m.Method
		if name == r.Recommended {
			name = "* " + name
		} else {
			name = "  " + name
		}
		if m.Assumes != compare.AssumesNothing {
			footnotes[m.Method] = m.Assumes
			marks = append(marks, m.Method)
			name += fmt.Sprintf(" [%d]", len(marks))
		}
		cells := []string{name, halfWidth(m.HalfWidth)}
		if r.HalfWidth > 0 {
			cells = append(cells, reachable(m.QuestionsWithin))
		}
		cells = append(cells, noise(m.NoiseSigma), parts(m.Parts))
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for i, m := range marks {
		fmt.Fprintf(out, "[%d] assumes %s\n", i+1, footnotes[m])
	}
	fmt.Fprintf(out, "* recommended; every method assumes independent units and that everything is counted\n\n")
	for _, note := range r.Notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

// halfWidth is what a person reads; from 1/2 on an interval says nothing.
func halfWidth(w *float64) string {
	switch {
	case w == nil:
		return "none"
	case *w >= 0.5:
		return fmt.Sprintf("(%.3g)", *w)
	}
	return "±" + significant(*w)
}

func noise(sigma float64) string {
	if sigma == 0 {
		return "none"
	}
	return significant(sigma)
}

func reachable(k *int64) string {
	switch {
	case k == nil:
		return ""
	case *k >= bounds.MaxQuestions:
		return "no limit"
	}
	return thousands(*k)
}

// parts in the order in which one thinks of them.
func parts(parts map[string]float64) string {
	var text []string
	for _, name := range []string{"sampling", "sampling_and_noise", "sampling_and_adaptivity", "adaptivity", "noise", "threshold", "disagreement"} {
		if v, ok := parts[name]; ok {
			text = append(text, strings.ReplaceAll(name, "_", " ")+" "+significant(v))
		}
	}
	return strings.Join(text, ", ")
}

// significantDigits are those of a number by itself.
const significantDigits = 3

// atMost is a bound that holds as it is printed: rounded up.
func atMost(v float64) string { return significant(printed.HighOf(v, significantDigits)) }

// significant writes three significant digits, without an exponent where a person would not.
func significant(v float64) string {
	switch {
	case v == 0:
		return "0"
	case v < 1e-6 || v >= 1e6:
		return fmt.Sprintf("%.2e", v)
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	digits := 2 - int(math.Floor(math.Log10(v)))
	return strconv.FormatFloat(v, 'f', max(digits, 0), 64)
}

func percent(p float64) string {
	return strconv.FormatFloat(math.Round(p*1e9)/1e7, 'f', -1, 64) + "%"
}

// thousands writes 4231 as 4,231.
func thousands(count int64) string { return printed.Thousands(count) }
