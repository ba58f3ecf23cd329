package certify

import (
	"errors"
)

// Errors that callers tell apart. All come wrapped with the values that caused them.
var (
	// ErrOptions: options that no certificate is defined for.
	ErrOptions = errors.New("certify: options")
	// ErrLabel: a classifier returned a label outside of 0 to Classes-1.
	ErrLabel = errors.New("certify: label out of range")
	// ErrScores: a classifier returned scores outside of [0,1], or that sum to more than 1, for which no bound holds.
	ErrScores = errors.New("certify: scores are not a distribution over labels")
	// ErrInput: an input of another length than the noise's, or with values that are not finite.
	ErrInput = errors.New("certify: input")
)
