package model

import "golang.org/x/sys/cpu"

// wide tells that the processor has registers of 512 bits, one for all rows of a slot.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

// walk512 is the walk of n splits.
//
//go:noescape
func walk512(splits *slicedSplit, n int, conditions, slots *lanes, numbers *[8]lanes)

// add512 is addLeaves of so many times eight rows.
//
//go:noescape
func add512(dst *float64, eights int, values *[slicedLeaves]float64, bits int, numbers *[8]lanes)
