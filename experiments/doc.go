// Package experiments measures what the mechanisms do under attack: analysts of the literature, and some of our own, play
// against the real [thresholdout.Step] on simulated data whose truth is known.
//
// [Coverage] counts how often any interval of a run misses its target. [Adaptivity] finds how many questions a holdout
// of n units answers before its error leaves a tolerance. What no attack can show (noise at half its scale, a bound at
// half its width: the strongest attack known moves an answer by a quarter of the half-width) is the business of the
// tests of the noise's law and of the exact searches in thresholdout/bounds.
//
// An experiment is a function of its options: the same seed gives the same rows on any number of cores.
package experiments
