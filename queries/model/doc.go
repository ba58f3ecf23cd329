// Package model reads predictive models from JSON and evaluates them a block of rows at a time.
//
// A model is linear, softmax, an ensemble of trees, a network, a kernel machine, nearest neighbours or a mixture of other models; docs/MODELS.md is the format. Whatever its form, it is two things: the
// [Feature]s that it reads of a row, each a number, and a [Scorer] that turns them into one score for each output. What a
// score means, a probability or the number itself, is the model's [Link].
//
// Scores do not depend on how rows are cut into blocks or shared among workers: each is computed from its own row by the same
// operations in the same order. A model takes the same steps for every row, whatever the row holds.
package model

// Limits of a model, with all models of a mixture together. The size of a question bounds models as well; these bound what a row costs.
const (
	MaxWeights = 1 << 17 // of a linear model, those of texts and of every class counted
	MaxClasses = 128     // each is a score of its own
	MaxTrees   = 1 << 12
	MaxNodes   = 1 << 17 // of all trees together, as lists; a canonical form with more has arrays
	MaxDepth   = 1 << 10 // of a tree; every row takes as many steps as the tree is deep
	MaxSteps   = 1 << 16 // of a row: the depths of all trees, summed; some 150 µs
	MaxTexts   = 1 << 10 // text columns by class of a linear model, different lists of texts in splits: each takes a worker 8 KiB
	MaxInputs  = 1 << 11 // columns that trees read, one whose nulls go left and right counted twice: likewise

	// MaxArrayNodes bounds the nodes of all trees together, as arrays: some 200 MiB in memory. A thousand trees of 8,192 nodes have as many.
	MaxArrayNodes = 1 << 23

	// MaxVectors bounds the numbers of all vectors, their coefficients and their values together: 8 MiB in memory.
	MaxVectors = 1 << 20
	// MaxRowSteps bounds what vectors take a row: some millisecond.
	MaxRowSteps = 1 << 20

	MaxModels = 1 << 6 // of a mixture
	MaxUnits  = 1 << 8 // of a network's layer, axes of a space: two layers take a worker 4 MiB
	MaxLayers = 1 << 3 // of a network, behind the first

	// MaxForm is the longest canonical form, in bytes, that is a part of a question's. With the question around it, it is what a server takes and records of
	// one question by default.
	MaxForm = 1<<22 - 1<<16

	// MaxMagnitude bounds every number of a model: sums of products with numbers of the same bound stay finite.
	MaxMagnitude = 1e150
)
