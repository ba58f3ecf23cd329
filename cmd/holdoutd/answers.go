package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/gate"
	"github.com/holdoutd/holdoutd/internal/printed"
)

// How answers, prices and cards look to a person.

// figureText is a number with the decimals that a half-width deserves.
func figureText(x *float64, halfWidth float64) string {
	if x == nil {
		return "no value"
	}
	return printed.Near(*x, printed.Decimals(halfWidth))
}

// widestText is a half-width that nothing is wider than.
func widestText(w *float64) string {
	if w == nil {
		return "none"
	}
	up := printed.HighOf(*w, significantDigits)
	return widthText(&up)
}

// widthText is a planned half-width in a question's own units.
func widthText(w *float64) string {
	if w == nil {
		return "none"
	}
	return "±" + significant(*w)
}

// intervalText is [low, high], rounded outward, and nothing where no interval is known.
func intervalText(low, high *float64) string {
	if low == nil || high == nil {
		return ""
	}
	d := printed.Decimals(halfOf(low, high))
	return "[" + printed.Low(*low, d) + ", " + printed.High(*high, d) + "]"
}

func halfOf(low, high *float64) float64 {
	if low == nil || high == nil {
		return math.NaN()
	}
	return (*high - *low) / 2
}

// endsOf are the ends of an answer that is one number.
func endsOf(a client.Answer) (low, high *float64) {
	if a.Interval == nil {
		return nil, nil
	}
	return a.Interval.Low, a.Interval.High
}

// headline is an answer in a line: what it found, with its interval.
func headline(a client.Answer) string {
	low, high := endsOf(a)
	var words []string
	switch {
	case a.Passed != nil && *a.Passed:
		words = append(words, "passed")
	case a.Passed != nil:
		words = append(words, "not passed")
	case a.Selected != "":
		words = append(words, printable(a.Selected))
		if a.Regret != nil {
			words = append(words, "(the best is at most "+atMost(*a.Regret)+" better)")
		}
	case len(a.Items) > 0:
		words = append(words, fmt.Sprintf("%d numbers", len(a.Items)))
	default:
		if a.Verdict != "" {
			words = append(words, a.Verdict+":")
		}
		words = append(words, figureText(a.Value, halfOf(low, high)), intervalText(low, high))
	}
	if a.PValue != nil {
		words = append(words, "p = "+atMost(*a.PValue))
	}
	if a.PlainPValue != nil {
		words = append(words, "(by itself p = "+atMost(*a.PlainPValue)+")")
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// printAnswer writes an answer: its line, its numbers where they are many, what it is valid for.
func printAnswer(out io.Writer, a client.Answer) error {
	fmt.Fprint(out, headline(a))
	if i := a.Interval; i != nil {
		fmt.Fprintf(out, "  at %s for %s", percent(i.Confidence), i.Scope)
	}
	if hidden := hiddenText(a.Shows); hidden != "" {
		fmt.Fprint(out, "  ("+hidden+")")
	}
	fmt.Fprintln(out)
	return printItems(out, a.Items)
}

// hiddenText says of an answer that is not shown whole what is missing.
func hiddenText(shows string) string {
	switch shows {
	case "value":
		return "the grant of this key shows no intervals"
	case "bit":
		return "the grant of this key shows whether it passed, and no more"
	}
	return ""
}

func printItems(out io.Writer, items []client.AnswerItem) error {
	if len(items) == 0 {
		return nil
	}
	t := table{header: []string{"OF", "VALUE", "INTERVAL"}}
	for _, item := range items {
		t.add(item.Of, figureText(item.Value, halfOf(item.Low, item.High)), intervalText(item.Low, item.High))
	}
	return t.write(out, terminalWidth(out))
}

// printReply writes an answer with its price and what is left. Warnings are no part of what was asked for.
func printReply(out, errs io.Writer, r client.Reply) error {
	if err := printAnswer(out, r.Answer); err != nil {
		return err
	}
	if r.Per != "" {
		fmt.Fprintf(out, "per %s; ", printable(r.Per))
	}
	fmt.Fprintf(out, "cost %s; left %s\n", gate.Price(r), gate.Left(r.Budget))
	warn(errs, append(r.Answer.Warnings[:len(r.Answer.Warnings):len(r.Answer.Warnings)], r.Warnings...))
	return nil
}

func warn(errs io.Writer, warnings []client.Warning) {
	for _, w := range warnings {
		fmt.Fprintln(errs, "holdoutd: warning:", printable(inFlags(w.Detail)))
	}
}

// foreseen is a price before it is paid: tokens are spent only where a guess is wrong.
func foreseen(c client.Cost) string {
	sure := c
	sure.Tokens = 0
	switch {
	case c.Tokens == 1:
		return gate.CostText(sure) + ", at most 1 token"
	case c.Tokens > 1:
		return gate.CostText(sure) + ", at most " + thousands(c.Tokens) + " tokens"
	}
	return gate.CostText(sure)
}

// printExplanation writes what a question would cost and tell.
func printExplanation(out, errs io.Writer, e client.Explanation) error {
	cost := foreseen(e.Cost)
	if e.Answered {
		cost = "nothing: it was answered before"
	}
	width := widthText(e.HalfWidth) + " planned, " + widestText(e.WidestHalfWidth) + " at the widest"
	fmt.Fprintf(out, "price  %s\nwidth  %s\n", cost, width)
	if e.ValueFrom != "" && e.Training != nil {
		w := math.NaN()
		if e.HalfWidth != nil {
			w = *e.HalfWidth
		}
		fmt.Fprintf(out, "value  %s in the part %s\n", figureText(e.Training, w), e.ValueFrom)
	}
	if len(e.Outcomes) > 0 {
		t := table{header: []string{"OUTCOME", "PRICE", "PLANNED", "WIDEST"}}
		for _, o := range e.Outcomes {
			t.add(o.Outcome, gate.CostText(o.Cost), widthText(o.HalfWidth), widestText(o.WidestHalfWidth))
		}
		if err := t.write(out, terminalWidth(out)); err != nil {
			return err
		}
	}
	warn(errs, e.Warnings)
	return nil
}

// longMember is how many bytes of a member a line about its query shows.
const longMember = 60

// queryText is a query in a line: its type, what it is about, and its other members.
func queryText(canonical json.RawMessage) string {
	var q map[string]json.RawMessage
	if json.Unmarshal(canonical, &q) != nil {
		return "?"
	}
	plain := func(raw json.RawMessage) string {
		var s string
		switch {
		case json.Unmarshal(raw, &s) == nil:
			return s
		case len(raw) > longMember:
			return "{…}"
		}
		return string(raw)
	}
	words := []string{plain(q["type"])}
	shown := []string{"type"}
	for _, name := range []string{"test", "of", "x", "y", "label"} {
		if q[name] != nil {
			words = append(words, plain(q[name]))
			shown = append(shown, name)
		}
	}
	var names []string
	for name := range q {
		if !slices.Contains(shown, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		words = append(words, name+"="+plain(q[name]))
	}
	return strings.Join(words, " ")
}

// printCard writes the card of a holdout, with its warnings.
func printCard(out io.Writer, c client.Card) {
	line := func(name, text string) { fmt.Fprintf(out, "%-10s %s\n", name, printable(text)) }
	name := c.Name
	if c.ID != "" {
		name = strings.TrimSpace(name + " (" + c.ID + ")")
	}
	line("holdout", name)
	units := fmt.Sprintf("%s held out, %s to train on", thousands(c.Units.Holdout), thousands(c.Units.Training))
	if c.Units.Check > 0 {
		units += fmt.Sprintf(", %s to check models with", thousands(c.Units.Check))
	}
	g := c.Guarantee
	if g.Sealed > 0 {
		units += fmt.Sprintf("; %s of the held-out ones are sealed for the final report", thousands(g.Sealed))
	}
	line("units", units+"; a unit is "+c.Unit)
	promise := fmt.Sprintf("%s questions at %s together, by %s", thousands(g.Questions), percent(g.Confidence), g.Mechanism)
	if g.Tokens > 0 {
		promise += fmt.Sprintf(", with %s tokens", thousands(g.Tokens))
	}
	if g.Rounds > 0 {
		promise += fmt.Sprintf(", in %s rounds", thousands(g.Rounds))
	}
	if g.HalfWidth > 0 {
		promise += "; a share to ±" + significant(g.HalfWidth)
	}
	line("guarantee", promise)
	if c.Budget != nil {
		line("left", gate.Left(*c.Budget))
	}
	if c.Retired {
		line("retired", "its rows were released: holdoutd download retired "+c.ID)
	}
	if len(c.SucceededBy) > 0 {
		line("next", "succeeded by "+strings.Join(c.SucceededBy, ", "))
	}
	if c.Succeeds != "" {
		line("before", "it succeeds "+c.Succeeds)
	}
	if c.Settings.Label != "" {
		line("label", c.Settings.Label)
	}
	var columns []string
	for _, column := range c.Columns {
		kind := column.Kind
		if column.Note != "" {
			kind += ": " + column.Note
		}
		if len(column.Order) > 0 {
			kind += ", ordered"
		}
		columns = append(columns, column.Name+" ("+kind+")")
	}
	line("columns", strings.Join(columns, ", "))
	for _, s := range c.Skipped {
		line("skipped", s.Name+": "+s.Reason)
	}
	if c.Draft {
		line("draft", "nothing of it was shown yet: the same table may be uploaded again with other settings")
	}
	if c.State != "" {
		line("state", c.State+": it gives no new answers")
	}
	if c.Assumes != "" {
		line("assumes", c.Assumes)
	}
	for _, w := range c.Warnings {
		line("warning", w.Detail)
	}
}
