package hashes

import "golang.org/x/sys/cpu"

// wide tells that the processor has registers of 512 bits.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL

// words512 reads the words of sixteen blocks.
//
//go:noescape
func words512(w *words, blocks *[lanes][block]byte)

// compress512 is the compression function of SHA-256 for sixteen messages.
//
//go:noescape
func compress512(state *state, w *words)
