package compare

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// others are intervals and prices beside the plan's methods: what they are for, the formula with what it assumes, and the
// source. None of them is published.
var others = [][3]string{
	{"Thresholdout, Laplace form", "shortfall of the largest error at level b + min over ε of [tanh(ε/4) + δ(ε)/(β-b)], ρ = B/(σn)²",
		"[proof](proofs/tanh-transfer.md), for arXiv 1506.02629, figure 1"},
	{"choices made on the way", "the root W of 2 pcap(W, σ, I, m) = share, one m for the holdout, shares that add up to at most β",
		"[proof](proofs/account.md)"},
	{"vectors, quiet questions", "I += V/(2σ²(n-1)), V a sure bound of the rows' variance, summed over coordinates",
		"[proof](proofs/account.md)"},
	{"selections", "I += η²(n+2)/(8n²), whatever the number of candidates",
		"[proof](proofs/account.md)"},
	{"comparisons ¹", "I += η²V/(8(n-1))",
		"[proof](proofs/account.md)"},
	{"adaptive p-values ¹", "min over m of e^{(n/m-1)I} p^{1-m/n}, p valid for a test fixed beforehand",
		"[proof](proofs/account.md)"},
	{"exact answers of the last round", "2nW² = min over m of n/(n-m) ln(2/share) + (n/m) I, if nothing is chosen afterwards",
		"[proof](proofs/account.md)"},
	{"means far from one half", "{p : n kl(a ± σz || p) ≤ L}",
		"Chernoff 1952; [proof](proofs/account.md)"},
	{"yes/no questions", "the binomial tail at e^-L, for units of one law",
		"Clopper, Pearson 1934; [proof](proofs/account.md)"},
	{"observed variance, nearly exact answers ¹", "(n/m-1)I becomes Σ J_j, by reference runs",
		"[proof](proofs/account.md)"},
}

var (
	spreadUnits    = []int64{10_000, 1_000_000}
	tableQuestions = []int64{10, 100, 1000, 10_000}
)

const (
	tableUnits      = 100_000 // one size is enough: half-widths go with 1/sqrt(n), as the page says
	tableConfidence = 0.95
	tableRounds     = 5
	tableCells      = 100
)

// WriteTable writes the page docs/BOUNDS.md: half-widths of every method, and what each method is.
func WriteTable(out io.Writer) error {
	w, all := bufio.NewWriter(out), methods()
	fmt.Fprintf(w, `# Bounds

Half-widths of intervals that hold together at %v%%, for k questions about n independent units. Each question is the
mean of numbers in [0,1]; for another range multiply by its width. `+"`holdoutd plan --table`"+` prints this page;
`+"`holdoutd plan --help`"+` says how to get other numbers and figures.

## n = %s

For another n they go with 1/sqrt(n) (dfhprr with n^-0.4). From ±0.5 on (in parentheses) an interval says nothing.
**Bold** is the narrowest of those that assume nothing. [What they are](#what-they-are) names the mechanisms; under
`+"`gaussian`"+` half-widths are those of single means, which have nine tenths of β. A method without a mechanism is a formula
of the literature, with its own best noise. There are %d rounds. guess-and-check and thresholdout have n training units
and %d unspent tokens, cells has %d declared cells.

| method |`, tableConfidence*100, thousands(tableUnits), tableRounds, thresholdout.DefaultTokens, tableCells)
	for _, k := range tableQuestions {
		fmt.Fprintf(w, " k = %s |", thousands(k))
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(tableQuestions)))
	if err := writeRows(w, tableUnits); err != nil {
		return err
	}
	if err := writeSpreads(w); err != nil {
		return err
	}
	fmt.Fprint(w, `
## What they are

β = 1 - confidence, ρ = k/(2n²σ²), σ the noise. Every method assumes independent units, and that all that depends on
the holdout is counted. Our own proofs are not peer-reviewed; `+"`bounds: published`"+` keeps a holdout to the others.

| method | mechanism | half-width | assumes, beside independent units | source | published |
|---|---|---|---|---|---|
`)
	for _, m := range all {
		mechanism := string(m.mechanism)
		if mechanism != "" {
			mechanism = "`" + mechanism + "`"
		}
		writeDescription(w, m.name+" | "+mechanism, m.described)
	}
	fmt.Fprint(w, `
Further intervals and prices of our own (I in nats). No mechanism uses those with ¹.

| for | what | source |
|---|---|---|
`)
	for _, o := range others {
		fmt.Fprintf(w, "| %s | %s | %s |\n", o[0], cell(o[1]), o[2])
	}
	return w.Flush()
}

func writeDescription(w io.Writer, name string, d described) {
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", name, cell(d.formula), d.assumes, d.source, cmp.Or(d.published, "no"))
}

// cell is a formula inside a table, where a bar ends a cell.
func cell(formula string) string { return strings.ReplaceAll(formula, "|", "\\|") }

// writeRows writes the half-widths for one n.
func writeRows(w io.Writer, n int64) error {
	r := Request{N: n, Confidence: tableConfidence, Rounds: tableRounds, Training: n, Tokens: thresholdout.DefaultTokens, Cells: tableCells}
	all := methods()
	widths := make([][]float64, len(all))
	narrowest := make([]float64, len(tableQuestions))
	for i, m := range all {
		for j, k := range tableQuestions {
			half, err := HalfWidthOf(m.name, r, k)
			if err != nil {
				return err
			}
			widths[i] = append(widths[i], half)
			if m.assumes == AssumesNothing && (narrowest[j] == 0 || half < narrowest[j]) {
				narrowest[j] = half
			}
		}
	}
	for i, m := range all {
		fmt.Fprintf(w, "| %s |", m.name)
		for j, half := range widths[i] {
			text := fmt.Sprintf("%#.3g", half)
			switch {
			case half >= 0.5:
				text = fmt.Sprintf("(%.2f)", half)
			case half == narrowest[j]:
				text = "**" + text + "**"
			}
			fmt.Fprintf(w, " %s |", text)
		}
		fmt.Fprintln(w)
	}
	return nil
}
