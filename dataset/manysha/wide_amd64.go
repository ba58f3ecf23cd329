package manysha

import "golang.org/x/sys/cpu"

// wide says whether the processor has what the loops need.
var wide = cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW
