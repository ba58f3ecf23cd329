package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/printed"
)

// A Report is what a gate found, for people.
type Report struct {
	Verdict             Verdict
	Metric              Metric
	By                  float64
	Baseline, Candidate string // names of their files
	BaselineID          string // digests of their contents, from ID
	CandidateID         string
	Holdout             client.Card
	Reply               client.Reply
}

// ID is a short digest of a file's contents: two files with the same one are the same.
func ID(contents []byte) string {
	sum := sha256.Sum256(contents)
	return "sha256:" + hex.EncodeToString(sum[:6])
}

// Key is the Idempotency-Key of a question to a holdout: the same for the same contents, so that a pipeline that runs again sends the same request.
func Key(holdout string, query []byte) string {
	sum := sha256.Sum256([]byte(holdout + "\n" + string(query)))
	return "gate-" + hex.EncodeToString(sum[:16])
}

// Sentence says in words what was found, with the interval.
func (r Report) Sentence() string {
	asked := "better than the baseline"
	if r.By > 0 {
		asked += " by more than " + exact(r.By)
	}
	low, high, ok := Gain(r.Reply.Answer, r.Metric.Least)
	if !ok {
		return fmt.Sprintf("It is not shown that the candidate is %s in %s: no interval is known. That is no finding of no difference.", asked, r.Metric.Name)
	}
	d := r.decimals(low, high)
	from := between(low, high, d)
	switch {
	case r.Verdict == Passed:
		return fmt.Sprintf("The candidate is %s in %s: its gain lies %s.", asked, r.Metric.Name, from)
	case r.Verdict == Worse:
		return fmt.Sprintf("The candidate is worse than the baseline in %s: its gain lies %s.", r.Metric.Name, from)
	case high <= r.By && low > 0:
		return fmt.Sprintf("It is not shown that the candidate is %s in %s. It is better, but by less: its gain lies %s.", asked, r.Metric.Name, from)
	case high <= r.By:
		return fmt.Sprintf("It is not shown that the candidate is %s in %s, and its gain is not that large: it lies %s.", asked, r.Metric.Name, from)
	}
	return fmt.Sprintf("It is not shown that the candidate is %s in %s: its gain lies %s. That is no finding of no difference.", asked, r.Metric.Name, from)
}

// decimals show an interval to about a hundredth of its half-width, and always on which sides of 0 and of what was asked for it lies.
func (r Report) decimals(low, high float64) int {
	d := printed.Decimals((high - low) / 2)
	for ; d < 17; d++ {
		l, h := read(printed.Low(low, d)), read(printed.High(high, d))
		if (l > r.By) == (low > r.By) && (h <= r.By) == (high <= r.By) && (l > 0) == (low > 0) && (h < 0) == (high < 0) {
			break
		}
	}
	return d
}

// Markdown is a summary for the page of a pipeline.
func (r Report) Markdown() string {
	var b strings.Builder
	a := r.Reply.Answer
	fmt.Fprintf(&b, "### Holdout gate: %s\n\n%s\n\n| | |\n|---|---|\n", r.Verdict, r.Sentence())
	row := func(name, value string) { fmt.Fprintf(&b, "| %s | %s |\n", name, value) }
	gain, value := "candidate minus baseline", "none"
	if r.Metric.Least {
		gain = "baseline minus candidate, so that more is better"
	}
	low, high, bounded := Gain(a, r.Metric.Least)
	d := printed.Decimals(0)
	if bounded {
		d = r.decimals(low, high)
	}
	if a.Value != nil {
		v := *a.Value
		if r.Metric.Least {
			v = 0 - v
		}
		value = signed(v, printed.Near(v, d))
	}
	if bounded {
		value += ", " + between(low, high, d)
	}
	row("gain in "+r.Metric.Name+" ("+gain+")", value)
	row("must be more than", exact(r.By))
	if i := a.Interval; i != nil {
		row("the interval holds", fmt.Sprintf("at %s%% for %s", exact(math.Round(i.Confidence*1e9)/1e7), text(i.Scope)))
	}
	row("baseline", fmt.Sprintf("%s (%s)", text(r.Baseline), r.BaselineID))
	row("candidate", fmt.Sprintf("%s (%s)", text(r.Candidate), r.CandidateID))
	row("holdout", strings.TrimPrefix(fmt.Sprintf("%s, %s units, %s", text(r.Holdout.Name), printed.Thousands(r.Holdout.Units.Holdout), r.Holdout.ID), ", "))
	row("price", Price(r.Reply))
	row("left", Left(r.Reply.Budget))
	for _, w := range append(a.Warnings[:len(a.Warnings):len(a.Warnings)], r.Reply.Warnings...) {
		row("warning", text(w.Detail))
	}
	return b.String()
}

// Price is what an answer cost, and nothing where it was asked before.
func Price(r client.Reply) string {
	cost := CostText(r.Answer.Cost)
	if r.Replayed {
		return "nothing: asked before, for " + cost
	}
	return cost
}

// CostText is a price in words.
func CostText(c client.Cost) string {
	words := count(c.Questions, "question")
	if c.Tokens > 0 {
		words += ", " + count(c.Tokens, "token")
	}
	if c.Rounds > 0 {
		words += ", " + count(c.Rounds, "round")
	}
	return words
}

// Left is what is left of a budget, in words.
func Left(b client.Budget) string {
	words := meter(b.Questions, "questions")
	if b.Tokens != nil {
		words += ", " + meter(*b.Tokens, "tokens")
	}
	if b.Rounds != nil {
		words += ", " + meter(*b.Rounds, "rounds")
	}
	if b.NextRound > 0 {
		words += fmt.Sprintf(" (%s in the next)", printed.Thousands(b.NextRound))
	}
	return words
}

func meter(m client.Meter, name string) string {
	return fmt.Sprintf("%s of %s %s", printed.Thousands(m.Left), printed.Thousands(m.Of), name)
}

func count(n int64, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return printed.Thousands(n) + " " + name + "s"
}

// exact is a number in the fewest digits that are it.
func exact(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// signed is a printed number with its sign.
func signed(x float64, shown string) string {
	if x > 0 {
		return "+" + shown
	}
	return shown
}

// between are the ends of an interval, rounded outward.
func between(low, high float64, decimals int) string {
	return fmt.Sprintf("between %s and %s", signed(low, printed.Low(low, decimals)), signed(high, printed.High(high, decimals)))
}

// read is a number as it was printed.
func read(shown string) float64 {
	x, err := strconv.ParseFloat(shown, 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// text is a text that Markdown takes for nothing else, in one line. An @ would call a person.
func text(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case unicode.IsControl(r): // it would also move a terminal
			b.WriteByte(' ')
		case r == '@' || r == '&' || r == '<':
			fmt.Fprintf(&b, "&#%d;", r)
		case strings.ContainsRune("\\`*[]>#|~!", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
