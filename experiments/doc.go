// Package experiments reproduces experiments of the literature and measures what the mechanisms do under attack, with the packages
// that the server uses: docs/EXPERIMENTS.md has a section for each of [All].
//
// An experiment is a function of its options: the same seed gives the same numbers on any number of cores, and however often
// it was interrupted. Its work is done by [Repeat], piece by piece; a [Checkpoint] keeps what is finished. A [Result] has
// measured rows, comparisons with a paper or a theorem by a stated criterion, and figures; [Perform] runs an experiment and
// writes all of that with a report that stands alone, and [WriteIndex] one page of several.
//
// [Coverage] and [Adaptivity] let analysts of the literature, and some of our own, play against the real [thresholdout.Step] on
// simulated data whose truth is known: the one counts how often any interval of a run misses its target, the other finds how many
// questions a holdout of n units answers before its error leaves a tolerance. What no attack can show (noise at half its
// scale, a bound at half its width: the strongest attack known moves an answer by a quarter of the half-width) is the business of
// the tests of the noise's law and of the exact searches in thresholdout/bounds.
//
// [FeatureSelection] is the experiment of Science 2015 (doi 10.1126/science.aaa9375).
package experiments
