package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/holdoutd/holdoutd/client"
)

func releaseCommand() *cobra.Command {
	var f lookFlags
	var n client.NewRelease
	var columns []string
	var holdout string
	var list bool
	cmd := &cobra.Command{
		Use:   "release",
		Short: "Release private statistics of the training part, for people who have nothing else of it",
		Long: `Works on a running server, with an admin key. A release is differentially private for each unit of the training part: a page or a paper may show it. It has the
number of units and, of each --column, the share of rows without a value and what you ask for, each with an interval of 95%:

  --column member            a column of truth values: how many rows are false and true
  --column age=18..90        of numbers: the mean and the quartiles, of values moved between these bounds
  --column age=18,40,65      of numbers: how many rows are below 18, from 18 to below 40, and so on
  --column city=Rome,Oslo    of texts: how many rows have each, and how many another one

Take bounds, edges and texts that are public, or that you know without a look at the rows. Every part has an equal share of epsilon: name few columns.

What a release spends is recorded before it is shown. All releases of a holdout together spend at most what the first one says with
--release-epsilon, for ever. The same release again is the recorded one, and costs nothing; --list shows all. Releases of the same rows add up, and so do
those of other rows of the same units: of this holdout, of others, and of other servers, which nobody counts. Where this server knows of releases of the
same rows it refuses; --earlier-releases accepted makes one all the same, and the cards say so for good. A release protects from people who
have nothing but releases: keys may download the training part itself. No held-out row is read.

` + findingHelp,
		Example: `  holdoutd release --epsilon 1 --column age=18..90 --column city=Rome,Oslo
  holdoutd release --holdout customers --list`,
		Args: cobra.NoArgs,
		RunE: asClient(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if list == (n.Epsilon > 0) || list && len(columns) > 0 {
				return misuse("say --epsilon, which is what the release spends, or --list")
			}
			c, card, err := f.open(ctx, holdout)
			if err != nil {
				return err
			}
			if list {
				all, err := c.Releases(ctx, card.ID)
				if err != nil {
					return err
				}
				if f.json {
					return printJSON(cmd.OutOrStdout(), all)
				}
				for _, r := range all.Releases {
					if err := printRelease(cmd, r); err != nil {
						return err
					}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%v of %v is spent, and %v left\n", all.Spent, all.ReleaseEpsilon, all.Left)
				return nil
			}
			if n.Columns, err = releasedColumns(columns, card.Columns); err != nil {
				return err
			}
			r, err := c.Release(ctx, card.ID, n)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			return printRelease(cmd, r)
		}),
	}
	f.add(cmd)
	flags := cmd.Flags()
	flags.StringVar(&holdout, "holdout", "", "the holdout, by its name or id (default: HOLDOUTD_HOLDOUT, or the only one that there is)")
	flags.Float64Var(&n.Epsilon, "epsilon", 0, "what the release spends")
	flags.Float64Var(&n.ReleaseEpsilon, "release-epsilon", 0, "what all releases of the holdout may spend together; the first release says it (default 3)")
	flags.Int64Var(&n.RowsPerUnit, "rows-per-unit", 0, "at most so many rows of a unit count (default 1; not where units are rows)")
	flags.StringVar(&n.EarlierReleases, "earlier-releases", "", "accepted: although releases of other holdouts are of the same rows, or may be forgotten")
	flags.StringArrayVar(&columns, "column", nil, "a column, as above; may be repeated")
	flags.BoolVar(&list, "list", false, "show all releases, and what is left")
	completeFlag(cmd, "holdout", func(c *cobra.Command, _ string) []string { return f.serverFlags.holdouts(c) })
	return cmd
}

// releasedColumns reads --column. What is said of one column more than once is said together.
func releasedColumns(texts []string, card []client.Column) ([]client.ColumnRequest, error) {
	var all []client.ColumnRequest
	at := map[string]int{}
	for _, text := range texts {
		name, of, _ := strings.Cut(text, "=")
		kind := ""
		for _, c := range card {
			if c.Name == name {
				kind = c.Kind
			}
		}
		if _, known := at[name]; !known {
			at[name], all = len(all), append(all, client.ColumnRequest{Name: name})
		}
		c := &all[at[name]]
		low, high, bounds := strings.Cut(of, "..")
		switch {
		case of == "":
		case kind == "number" && bounds:
			numbers, err := floats(low, high)
			if err != nil {
				return nil, misuse("--column %s: bounds are two numbers, such as 18..90", text)
			}
			c.Low, c.High = &numbers[0], &numbers[1]
		case kind == "number":
			numbers, err := floats(strings.Split(of, ",")...)
			if err != nil {
				return nil, misuse("--column %s: edges are numbers, such as 18,40,65", text)
			}
			c.Edges = numbers
		default:
			c.Texts = append(c.Texts, strings.Split(of, ",")...)
		}
	}
	return all, nil
}

func floats(texts ...string) (all []float64, err error) {
	for _, text := range texts {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil {
			return nil, err
		}
		all = append(all, x)
	}
	return all, nil
}

// printRelease shows a release as a table.
func printRelease(cmd *cobra.Command, r client.PrivateRelease) error {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s\n%s\n", r.Release, r.Guarantee)
	for _, warning := range r.Warnings {
		fmt.Fprintf(out, "%s\n", printable(warning.Detail))
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(column, what string, e client.Statistic) {
		fmt.Fprintf(w, "%s\t%s\t%.6g\t%.6g\t%.6g\n", printable(column), printable(what), e.Value, e.Low, e.High)
	}
	fmt.Fprintln(w, "COLUMN\tWHAT\tVALUE\tLOW\tHIGH")
	line("", "units", r.Units)
	if r.Rows != nil {
		line("", "rows", *r.Rows)
	}
	for _, c := range r.Columns {
		line(c.Name, "share without a value", c.Nulls)
		for _, cell := range c.Cells {
			line(c.Name, "rows "+cellName(cell), cell.Count)
		}
		if c.Mean != nil {
			line(c.Name, "mean", *c.Mean)
		}
		for _, q := range c.Quantiles {
			line(c.Name, fmt.Sprintf("quantile %v", q.Rank), client.Statistic{Value: q.Value, Low: q.Low, High: q.High})
		}
	}
	return w.Flush()
}

func cellName(c client.Cell) string {
	switch {
	case c.Text != nil:
		return *c.Text
	case c.Bool != nil:
		return strconv.FormatBool(*c.Bool)
	case c.Other:
		return "of another text"
	case c.From == nil:
		return fmt.Sprintf("below %v", *c.To)
	case c.To == nil:
		return fmt.Sprintf("from %v", *c.From)
	}
	return fmt.Sprintf("from %v to below %v", *c.From, *c.To)
}
