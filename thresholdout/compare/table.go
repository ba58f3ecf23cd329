package compare

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/holdoutd/holdoutd/thresholdout"
)

// described is what a person wants to know of a method or an interval.
type described struct{ formula, assumes, source, published string }

var descriptions = map[string]described{
	MethodNonAdaptive: {"sqrt(ln(2k/β)/(2n))", assumesBatch, "Hoeffding 1963", "yes"},
	MethodSplitting: {"sqrt(ln(2k/β)/(2 floor(n/k))): every question has a slice of its own",
		assumesAlike, "Hoeffding 1963, [proof](proofs/split.md); for yes/no questions Clopper and Pearson 1934 on each slice is narrower", "yes"},
	MethodDFHPRR: {"max(2 sqrt(48 ln(8/β)/n), r + σ sqrt(2 ln(4k/β))), r the largest root of r³ - 8ρr² + (16ρ² - 64ρ ln sqrt(πρ)) r - 64ρ ln(1/β)",
		"nothing", "Dwork, Feldman, Hardt, Pitassi, Reingold, Roth, arXiv 1411.2664, as in the public code of Rogers et al., arXiv 1906.09231", "yes"},
	MethodBNSSSU: {"(e^ε - 1 + 2Tδ + σ sqrt(2 ln(4k/δ)))/(1-(1-β)^T), T = floor(1/β), ε = ρ + 2 sqrt(ρ ln(sqrt(πρ)/δ)), at the best δ",
		"nothing", "Bassily, Nissim, Smith, Steinke, Stemmer, Ullman, arXiv 1511.02513; ε from Bun, Steinke, arXiv 1605.02065", "yes"},
	MethodRZ: {"sqrt(min over λ of (2ρn - ln(1-λ))/(2nβλ)) + σ sqrt(2 ln(4k/β))",
		"nothing", "Russo, Zou, arXiv 1511.05219, in the form of Rogers et al., arXiv 1906.09231, theorem 2.1, with all of the noise", "yes"},
	MethodXR: {"sqrt((2/n)(2ρn/β + ln(4/β))) + σ sqrt(2 ln(4k/β))",
		"nothing", "Xu, Raginsky, arXiv 1705.07809, with all of the noise", "yes"},
	MethodJLNRSS20: {"e^ε - 1 + 6δ/β + σ z, z the (1-δ/k)-quantile of |N(0,1)|, ε as above, at the best δ",
		"nothing", "Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi, Shenfeld, arXiv 1909.03577, theorem 13, as in their code", "yes"},
	MethodJLNRSSPlus: {"α + e^ε - 1 + d + 2cδ with P(M > α)/d + 1/c = β, M = σ max |Z_j|, at the best α, c, ε; δ(ε) of ρ-zCDP",
		"nothing", "the same transfer theorem with free constants, as in Marchant, Rubinstein, arXiv 2405.13375; δ(ε) from Canonne, Kamath, Steinke, arXiv 2004.00010", "yes"},
	MethodJLNRSSGDP: {"the same with δ(ε) of μ-GDP, μ = sqrt(k)/(nσ)",
		"nothing", "the same; δ(ε) from Dong, Roth, Su, arXiv 1905.02383, corollary 2.13", "its parts; combined for this project"},
	MethodTanh: {"σ ES_β(k) + min over ε of [tanh(ε/4) + δ(ε)/β], ES the shortfall of max |Z_j|, δ(ε) of μ-GDP",
		"nothing", "[proof](proofs/tanh-transfer.md)", "no"},
	MethodConstant: {"the root W of 2 Σ pbar(W, σ, I_{j-1}) = 0.9 β, I_j = j/(8σ²(n-1)); about sqrt(I/(2n)) + sqrt(2(σ²+1/(4n)) ln(2k/β))",
		"nothing", "[proof](proofs/adaptive-hoeffding.md)", "no"},
	MethodScheduled: {"the same with σ_j = s(1-u_j), 6u² - 8u³ + 3u⁴ = (j-1/2)/k: early answers have more noise",
		"nothing", "[proof](proofs/adaptive-hoeffding.md)", "no"},
	MethodRounds: {"the same with the I of before the round, each round its own σ, the last one none",
		"questions come in rounds, those of a round fixed before any of its answers is seen", "[proof](proofs/adaptive-hoeffding.md)", "no"},
	MethodGuessCheck: {"|g-h| ≤ d, then n kl(g±d || x) ≤ E = ln(2k(B+1)/β) + ln C(j,f) + f ln c + …",
		"nothing to be valid; to stay this narrow, training means that agree with the holdout", "[proof](proofs/guess-and-check.md), after Rogers et al., arXiv 1906.09231", "no"},
	MethodThresholdout: {"T + u + sqrt(E/(2n)), E = n/(n-m) ln(6k(B+1)C(j-1,f)/β) + (n/m) I_f at the best m, u of the comparisons' noise",
		"nothing to be valid; to stay this narrow, training means that agree with the holdout", "[proof](proofs/adaptive-hoeffding.md), section 6, for the mechanism of Dwork et al., arXiv 1506.02629", "no"},
}

// others are intervals beside the plan's methods, with what they are for.
var others = []struct {
	name string
	described
}{
	{"Thresholdout, Laplace form", described{"shortfall of the largest error at level b + min over ε of [tanh(ε/4) + δ(ε)/(β-b)], ρ = B/(σn)²", "nothing",
		"[proof](proofs/tanh-transfer.md), for arXiv 1506.02629, figure 1", "no"}},
	{"choices made on the way", described{"the root W of 2 pcap(W, σ, I, m) = share, one m for the holdout, shares that add up to at most β", "nothing",
		"[proof](proofs/account.md)", "no"}},
	{"vectors, quiet questions", described{"I += V/(2σ²(n-1)), V a sure bound of the rows' variance, summed over coordinates", "nothing", "[proof](proofs/account.md)", "no"}},
	{"selections", described{"I += η²(n+2)/(8n²), whatever the number of candidates", "nothing", "[proof](proofs/account.md)", "no"}},
	{"comparisons", described{"I += η²V/(8(n-1))", "nothing", "[proof](proofs/account.md)", "no"}},
	{"adaptive p-values", described{"min over m of e^{(n/m-1)I} p^{1-m/n}", "p is valid for a test fixed beforehand", "[proof](proofs/account.md)", "no"}},
	{"exact answers of the last round", described{"2nW² = min over m of n/(n-m) ln(2/share) + (n/m) I", "nothing is chosen afterwards", "[proof](proofs/account.md)", "no"}},
	{"means far from one half", described{"{p : n kl(a ± σz || p) ≤ L}", "nothing", "Chernoff 1952; [proof](proofs/account.md)", "no"}},
	{"yes/no questions", described{"the binomial tail at e^-L", "units of one law", "Clopper, Pearson 1934; [proof](proofs/account.md)", "no"}},
	{"observed variance, nearly exact answers", described{"(n/m-1)I becomes Σ J_j, by reference runs", "nothing", "[proof](proofs/account.md)", "no"}},
}

var (
	tableUnits     = []int64{10_000, 100_000, 1_000_000}
	tableQuestions = []int64{10, 100, 1000, 10_000}
)

const (
	tableConfidence = 0.95
	tableRounds     = 5
)

// WriteTable writes the page docs/BOUNDS.md: half-widths of every method, and what each method is.
func WriteTable(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, `# Bounds

Made by `+"`holdoutd plan --table`"+`. Half-widths of intervals that hold together at %v%%, for k questions about n independent units. Each question is the mean of numbers in [0,1]; for a
query with another range multiply by the width of the range. Every method has its own best noise. A method that belongs to a mechanism has the half-width that a holdout created with it gets for
a single mean (under `+"`gaussian`"+` single means have nine tenths of β). The others are formulas of the literature, named by the initials of their authors; the table at the end has names and papers.

From ±0.5 on (in parentheses) an interval says nothing. There are %d rounds. guess-and-check and Thresholdout have a training part of n units and %d tokens, all unspent. **Bold** is the narrowest
of those that assume nothing. For other numbers, and for figures: `+"`holdoutd plan --help`"+`.
`, tableConfidence*100, tableRounds, thresholdout.DefaultTokens)
	for _, n := range tableUnits {
		fmt.Fprintf(w, "\n## n = %s\n\n| method |", thousands(n))
		for _, k := range tableQuestions {
			fmt.Fprintf(w, " k = %s |", thousands(k))
		}
		fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(tableQuestions)))
		if err := writeRows(w, n); err != nil {
			return err
		}
	}
	fmt.Fprint(w, `
## What they are

β = 1 - confidence, ρ = k/(2n²σ²), σ the noise. Every method assumes independent units and that everything which depends on the holdout is counted. A method with a proof here is not peer-reviewed; `+"`bounds: published`"+` keeps a holdout to the others.

| method | mechanism | half-width | assumes, beside independent units | source | published |
|---|---|---|---|---|---|
`)
	for _, m := range methods {
		mechanism := string(m.mechanism)
		if mechanism != "" {
			mechanism = "`" + mechanism + "`"
		}
		writeDescription(w, m.name+" | "+mechanism, descriptions[m.name])
	}
	fmt.Fprint(w, "\nFurther intervals and prices (I in nats):\n\n| for | what | assumes, beside independent units | source | published |\n|---|---|---|---|---|\n")
	for _, o := range others {
		writeDescription(w, o.name, o.described)
	}
	return w.Flush()
}

func writeDescription(w io.Writer, name string, d described) {
	fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", name, strings.ReplaceAll(d.formula, "|", "\\|"), d.assumes, d.source, d.published)
}

// writeRows writes the half-widths for one n.
func writeRows(w io.Writer, n int64) error {
	r := Request{N: n, Confidence: tableConfidence, Rounds: tableRounds, Training: n, Tokens: thresholdout.DefaultTokens}
	widths := make([][]float64, len(methods))
	narrowest := make([]float64, len(tableQuestions))
	for i, m := range methods {
		for j, k := range tableQuestions {
			half, err := HalfWidthOf(m.name, r, k)
			if err != nil {
				return err
			}
			widths[i] = append(widths[i], half)
			if descriptions[m.name].assumes == AssumesNothing && (narrowest[j] == 0 || half < narrowest[j]) {
				narrowest[j] = half
			}
		}
	}
	for i, m := range methods {
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
