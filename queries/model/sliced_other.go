//go:build !amd64

package model

var wide = false

func walk512(*slicedSplit, int, *lanes, *lanes, *[8]lanes) {}

func add512(*float64, int, *[slicedLeaves]float64, int, *[8]lanes) {}
