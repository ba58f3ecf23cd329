package attack

import (
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"

	"github.com/holdoutd/holdoutd/internal/figure"
)

// Write says the report in words and a table.
func (r Report) Write(out io.Writer) error {
	g := r.Guarantee
	fmt.Fprintf(out, "%s, %s questions about %s units, confidence %v; attacked on simulated rows, of which the truth is known\n\n", g.Mechanism, figure.Thousands(g.Questions), figure.Thousands(g.N), g.Confidence)
	if err := r.writeIntervals(out); err != nil {
		return err
	}
	r.Tracing.write(out)
	r.OneRow.write(out)
	_, err := fmt.Fprintln(out, r.Verdict())
	return err
}

// Verdict is the result in one sentence.
func (r Report) Verdict() string {
	var broken []string
	for _, i := range r.Intervals {
		if i.Broken {
			broken = append(broken, fmt.Sprintf("the analyst %q makes intervals miss in at least %.3g of runs, where %.3g are promised", i.Attack, i.Missed.Low, *i.Promised))
		}
	}
	if t := r.Tracing; t != nil && t.Broken {
		broken = append(broken, fmt.Sprintf("tracing has an advantage of at least %.3g, where %.3g is promised", t.Low, *t.Promised))
	}
	if o := r.OneRow; o != nil && o.Broken {
		broken = append(broken, fmt.Sprintf("the noise hides less than it promises: %s is at least %.3g, where %.3g is promised", o.Measure, o.Low, o.Promised))
	}
	switch {
	case len(broken) > 0:
		return fmt.Sprintf("REFUTED (false alarm %.2g): %s.", 1-r.Confidence, strings.Join(broken, "; "))
	case r.Powerless:
		return "Nothing is shown: so few games could not have refuted anything. Give them more time."
	case !promisesIntervals(r.Guarantee):
		return "Nothing is promised, so nothing could be refuted."
	}
	return fmt.Sprintf("No promise is refuted (a sound holdout would be with probability %.2g).", 1-r.Confidence)
}

func (r Report) writeIntervals(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ANALYST\tRUNS WITH A MISS\tPROBABILITY\tPROMISED\tREFUTED FROM\tLARGEST ERROR\tOF ITS HALF-WIDTH")
	for _, i := range r.Intervals {
		promised, from, reach := "nothing", "", ""
		if i.Promised != nil {
			promised, from = fmt.Sprintf("at most %.3g", *i.Promised), "never: too few"
			reach = fmt.Sprintf("%.2f, at most %.2f", i.Reach[2], i.Reach[4])
			if i.Noticed > 0 {
				from = fmt.Sprint(i.Noticed)
			}
		}
		missed := fmt.Sprintf("%d of %d", i.Missed.Events, i.Missed.Of)
		probability := fmt.Sprintf("%.3f to %.3f", i.Missed.Low, i.Missed.High)
		if i.Promised == nil {
			missed, probability = "no intervals", ""
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.4f\t%s\n", i.Attack, missed, probability, promised, from, i.Error, reach)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return nil
}

func (t *Tracing) write(out io.Writer) {
	if t == nil {
		return
	}
	fmt.Fprintf(out, "Who is in the holdout, by %s answers: of its units %.3f more are found than strangers are accused (at least %.3f, %d games)", figure.Thousands(t.Questions), t.Advantage, max(0, t.Low), t.Games)
	if t.Promised != nil {
		fmt.Fprintf(out, "; at most %.3f is promised", *t.Promised)
	} else {
		fmt.Fprint(out, "; nothing is promised of it")
	}
	fmt.Fprint(out, ".\n\n")
}

func (o *OneRow) write(out io.Writer) {
	if o == nil {
		return
	}
	fmt.Fprintf(out, "Whether %s rows are in the holdout, to whoever knows all others, by %d answers: found in %d of %d runs, accused in %d of %d. %s is %.3f, at least %.3f; at most %.3f is promised.",
		figure.Thousands(o.Group), o.Answers, o.Found.Events, o.Found.Of, o.Accused.Events, o.Accused.Of, strings.ToUpper(o.Measure[:1])+o.Measure[1:], o.Measured, o.Low, o.Promised)
	if o.MuOfRow > 0 {
		fmt.Fprintf(out, "\nOf a single row the noise of a whole run promises mu %.3f: a guess of whether it is in is right with probability %.3f at most.", o.MuOfRow, 0.5+0.5*math.Erf(o.MuOfRow/2/math.Sqrt2))
	}
	fmt.Fprint(out, "\n\n")
}
