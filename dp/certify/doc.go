// Package certify makes the predictions of a classifier robust by noise on its input, and certifies how far the input can be
// moved without the prediction changing.
//
// The smoothed classifier predicts the label with the largest expected score when noise is added to the input. Noise makes
// those expectations differentially private in the input: moving it by r, in the norm that goes with the noise (L2 for
// Gaussian, L1 for Laplace), changes them by no more than a privacy guarantee for neighbours at distance r allows. So a lower
// bound on the top label's expectation and upper bounds on the others', both by Monte Carlo, give a radius: while the input
// moves by less, the prediction stays.
//
// Four certificates turn the two bounds into a radius:
//
//   - [PixelDP]: (eps,delta)-differential privacy, Lecuyer et al., arXiv:1802.03471.
//   - [Smoothing]: Cohen, Rosenfeld, Kolter, arXiv:1902.02918, for Gaussian noise, from the bound of the top label alone; Teng,
//     Lee, Yuan (2020) for Laplace noise.
//   - [TwoSided]: the same from bounds of all labels. For Gaussian noise it is Gaussian differential privacy (Dong, Roth, Su,
//     arXiv:1905.02383) and no certificate from the two bounds is larger; for Laplace noise the better of both sides of pure
//     differential privacy.
//   - [Renyi]: Rényi divergence, Li, Chen, Wang, Carin, arXiv:1809.03113, for comparison.
//
// # What is promised
//
// For any input that was chosen without knowledge of the seed, with probability at least 1-Alpha over the draws: either the
// certificate abstains, or the smoothed classifier predicts Label at every point nearer than Radius. The smoothed classifier
// is a function of exact expectations. Whoever runs a Monte-Carlo estimate of it instead meets the estimate's own error, as at
// the certified input itself.
//
// # What is not
//
// Nothing is said of whether the prediction is right: see [Accuracy]. Alpha is for one prediction; for k predictions together
// give Alpha/k. The theorems are about real numbers, inputs and noise are float64: an adversary who builds inputs out of the
// rounding of floating-point sums (Jin et al., arXiv:2205.10159) is outside of them. Noise comes from a seeded generator
// that is good for simulation, not secret: an adversary who knows the seed beforehand can choose the input by it.
package certify
