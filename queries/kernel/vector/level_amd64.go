package vector

import "golang.org/x/sys/cpu"

func detected() Level {
	x := &cpu.X86
	switch {
	case !x.HasAVX2:
		return None
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return AVX512
	}
	return AVX2
}
