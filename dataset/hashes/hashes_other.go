//go:build !amd64

package hashes

var wide = false

func words512(*words, *[lanes][block]byte) {}

func compress512(*state, *words) {}
