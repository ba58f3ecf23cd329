package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/holdoutd/holdoutd/session/workload"
	"github.com/holdoutd/holdoutd/thresholdout/compare"
)

// printWorkload prints what a workload costs: a table for each mechanism.
func printWorkload(out io.Writer, r compare.Request, e workload.Estimate) error {
	fmt.Fprintf(out, "about a holdout of %s units, %s confidence for all intervals together\n", thousands(r.N), percent(r.Confidence))
	for _, p := range e.Plans {
		mark := "  "
		if p.Name == e.Recommended {
			mark = "* "
		}
		fmt.Fprintf(out, "\n%s%s", mark, p.Name)
		if p.Refused != "" {
			fmt.Fprintf(out, ": %s\n", p.Refused)
			continue
		}
		fmt.Fprintf(out, ": questions=%d", p.Questions)
		if p.Tokens > 0 {
			fmt.Fprintf(out, " tokens=%d", p.Tokens)
		}
		if p.Assumes != "" {
			fmt.Fprintf(out, "; assumes %s", p.Assumes)
		}
		fmt.Fprintln(out)
		if err := printPrices(out, e.Items, p.Items); err != nil {
			return err
		}
	}
	fmt.Fprintln(out)
	for _, note := range e.Notes {
		fmt.Fprintln(out, note)
	}
	return nil
}

// printPrices prints what one mechanism has for each kind of question.
func printPrices(out io.Writer, kinds []workload.Kind, prices []workload.Price) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "    COUNT\tOF\tQUESTIONS EACH\tPLANNED HALF-WIDTH\tWIDEST\tFOR")
	for i, one := range prices {
		price, planned, widest := strconv.FormatInt(one.Questions, 10), "none", "unknown"
		if one.HalfWidth != nil {
			planned = "±" + significant(*one.HalfWidth)
		}
		if one.Widest != nil {
			widest = "±" + atMost(*one.Widest)
		}
		if one.Refused != "" {
			price, planned, widest = "not answered", one.Refused, ""
		}
		fmt.Fprintf(w, "    %d\t%s\t%s\t%s\t%s\t%s\n", kinds[i].Count, kinds[i].Of, price, planned, widest, kinds[i].Assumes)
	}
	return w.Flush()
}
