// Package holdout is the heart of the service: it makes holdouts from uploads, keeps them secret, and answers
// questions about them: compile, scan, step, commit, reveal.
package holdout
