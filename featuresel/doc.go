// Package featuresel selects features of a linear classifier by asking a holdout: the correlation filter and the sign classifier of
// Dwork et al. (Science 2015, doi 10.1126/science.aaa9375), forward selection and a stepwise search.
//
// An analyst here holds a training part and asks an [Oracle] about the holdout. The same code plays against the holdout
// itself ([Exact], the standard reuse), against a mechanism in this process ([Holdout]) and against a server over HTTP
// (package experiments), and sees only what each of them tells.
//
// Labels are -1 or 1. The correlation of a column with the label is the mean of their product, without centring: columns
// are taken to have mean about 0 and standard deviation about 1.
package featuresel
