package compare

import (
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// formulas are the bounds of the literature with which no holdout is created, each with its own best noise.
var formulas = []method{
	{MethodNonAdaptive, "", described{"sqrt(ln(2k/β)/(2n))", assumesBatch, "Hoeffding 1963", "yes"}, always, nonAdaptive},
	{MethodDFHPRR, "", described{"max(2 sqrt(48 ln(8/β)/n), r + σ sqrt(2 ln(4k/β))), r the largest root of r³ - 8ρr² + (16ρ² - 64ρ ln sqrt(πρ)) r - 64ρ ln(1/β)",
		AssumesNothing, "Dwork, Feldman, Hardt, Pitassi, Reingold, Roth, arXiv 1411.2664, as in the public code of Rogers et al., arXiv 1906.09231", "yes"}, always, formula(bounds.DFHPRR)},
	{MethodBNSSSU, "", described{"(e^ε - 1 + 2Tδ + σ sqrt(2 ln(4k/δ)))/(1-(1-β)^T), T = floor(1/β), ε = ρ + 2 sqrt(ρ ln(sqrt(πρ)/δ)), at the best δ",
		AssumesNothing, "Bassily, Nissim, Smith, Steinke, Stemmer, Ullman, arXiv 1511.02513; ε from Bun, Steinke, arXiv 1605.02065", "yes"}, always, formula(bounds.BNSSSU)},
	{MethodRZ, "", described{"sqrt(min over λ of (2ρn - ln(1-λ))/(2nβλ)) + σ sqrt(2 ln(4k/β))",
		AssumesNothing, "Russo, Zou, arXiv 1511.05219, in the form of Rogers et al., arXiv 1906.09231, theorem 2.1, with all of the noise", "yes"}, always, formula(bounds.RZ)},
	{MethodXR, "", described{"sqrt((2/n)(2ρn/β + ln(4/β))) + σ sqrt(2 ln(4k/β))",
		AssumesNothing, "Xu, Raginsky, arXiv 1705.07809, with all of the noise", "yes"}, always, formula(bounds.XR)},
	{MethodJLNRSS20, "", described{"e^ε - 1 + 6δ/β + σ z, z the (1-δ/k)-quantile of |N(0,1)|, ε as above, at the best δ",
		AssumesNothing, "Jung, Ligett, Neel, Roth, Sharifi-Malvajerdi, Shenfeld, arXiv 1909.03577, theorem 13, as in their code", "yes"}, always, formula(bounds.JLNRSS20)},
	{MethodJLNRSSPlus, "", described{"α + e^ε - 1 + d + 2cδ with P(M > α)/d + 1/c = β, M = σ max |Z_j|, at the best α, c, ε; δ(ε) of ρ-zCDP",
		AssumesNothing, "the same transfer theorem with free constants, as in Marchant, Rubinstein, arXiv 2405.13375; δ(ε) from Canonne, Kamath, Steinke, arXiv 2004.00010", "yes"}, always, formula(bounds.JLNRSSPlus)},
	{MethodTanh, "", described{"σ ES_β(k) + min over ε of [tanh(ε/4) + δ(ε)/β], ES the shortfall of max |Z_j|, δ(ε) of μ-GDP",
		AssumesNothing, "[proof](proofs/tanh-transfer.md)", ""}, always, formula(bounds.TanhTransfer)},
}

func always(Request) bool { return true }

// formula is a bound with its own best noise.
func formula(f func(n, k int64, beta float64) (bounds.Transfer, error)) func(Request, int64) (promise, error) {
	return func(r Request, k int64) (promise, error) {
		t, err := f(r.N, k, r.beta())
		return promise{halfWidth: t.HalfWidth, sigma: t.Sigma, assumes: AssumesNothing,
			parts: map[string]float64{"noise": t.Noise, "sampling_and_adaptivity": t.Adaptivity}}, err
	}
}

func nonAdaptive(r Request, k int64) (promise, error) {
	w := bounds.Exact(float64(r.N), float64(k), r.beta(), 0)
	return promise{halfWidth: w, parts: map[string]float64{"sampling": w}, rounds: 1, assumes: assumesBatch}, nil
}
