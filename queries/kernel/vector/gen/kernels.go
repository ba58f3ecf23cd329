package main

const (
	onesOfBytes = 0x0101010101010101
	signOfAll   = 0x8000000000000000
	halfBits    = 0x3FE0000000000000
)

// Predicates of VCMPPD. A null makes all false but the one that asks for it, and none raises an exception.
const (
	equalTo    = 0x00
	unordered  = 0x03
	ordered    = 0x07
	differs    = 0x0C
	below      = 0x11
	belowOrAt  = 0x12
	aboveOrAt  = 0x1D
	strictlyUp = 0x1E
)

// Roundings of VRNDSCALEPD and VROUNDPD, without exceptions.
const (
	roundDown = 0x09
	roundUp   = 0x0A
)

// Registers that hold what all turns need; 0 to 7 are for a turn.
const (
	first = 8 + iota
	second
	third
	fourth
	half
	spare // of a turn too
	more  // the same
	zero
)

func kernels() (all []kernel) {
	add := func(k ...kernel) { all = append(all, k...) }

	// The constant is the first side, so that rows are read from memory: k > a for a < k.
	add(compareConst("LessConst", "<", strictlyUp), compareConst("LessEqConst", "<=", aboveOrAt), compareConst("GreaterConst", ">", below),
		compareConst("GreaterEqConst", ">=", belowOrAt), compareConst("EqualConst", "==", equalTo), compareConst("DifferConst", "!=", differs))
	add(compare("Less", "<", below), compare("LessEq", "<=", belowOrAt), compare("Equal", "==", equalTo), compare("Differ", "!=", differs))
	add(kernel{name: "IsNull", doc: "writes 1 where a is NaN, else 0.", args: []argument{{"dst", bytes}, {"a", numbers}}, turn: func(a *assembler) {
		a.compared(func(row, to int) {
			a.op("VMOVUPD %s, %s", a.row("a", row), a.r(first))
			a.cmp(unordered, a.r(first), first, to)
		})
	}})

	add(logic("And", "the conjunction of a and b", "VPAND"), logic("Or", "the disjunction of a and b", "VPOR"))
	add(onBytes("Not", "writes 1 where a is 0 and 0 where it is 1.", func(a *assembler, x int) { a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(first), a.r(x), a.r(x)) }),
		onBytes("IsTrue", "writes the lowest bit of a: whether a Bool is true.", func(a *assembler, x int) { a.op("%s %s, %s, %s", a.all("VPAND"), a.r(first), a.r(x), a.r(x)) }),
		onBytes("IsNullBool", "writes the second bit of a, at most 3: whether a Bool is null.", func(a *assembler, x int) {
			a.op("VPSRLW $1, %s, %s", a.r(x), a.r(x))
			a.op("%s %s, %s, %s", a.all("VPAND"), a.r(first), a.r(x), a.r(x))
		}))
	add(above(), count(), codeTest("CodeEqual", "writes 1 where a code is the one that is repeated in the word, else 0.", false),
		codeTest("CodeDiffers", "writes 1 where a code is neither 0 nor the one that is repeated in the word, else 0.", true))

	add(arithmeticConst("AddConst", "+", "VADDPD"), arithmeticConst("MulConst", "*", "VMULPD"), arithmeticConst("DivConst", "/", "VDIVPD"))
	add(arithmetic("Add", "+", "VADDPD"), arithmetic("Sub", "-", "VSUBPD"), arithmetic("Mul", "*", "VMULPD"), arithmetic("Div", "/", "VDIVPD"))
	add(extreme("Min", "smaller", "VMINPD"), extreme("Max", "larger", "VMAXPD"))
	add(onNumbers("Neg", "writes -a.", signOfAll, func(a *assembler, x int) { a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(first), a.r(x), a.r(x)) }),
		onNumbers("Abs", "writes |a|.", ^uint64(signOfAll), func(a *assembler, x int) { a.op("%s %s, %s, %s", a.all("VPAND"), a.r(first), a.r(x), a.r(x)) }),
		onNumbers("Sqrt", "writes the square roots of a.", 0, func(a *assembler, x int) { a.op("VSQRTPD %s, %s", a.r(x), a.r(x)) }),
		onNumbers("Floor", "writes the largest integers not above a.", 0, func(a *assembler, x int) { a.round(roundDown, x, x) }),
		onNumbers("Ceil", "writes the smallest integers not below a.", 0, func(a *assembler, x int) { a.round(roundUp, x, x) }),
		onNumbers("Finite", "writes a, and NaN for what is not finite.", 0, func(a *assembler, x int) {
			a.op("VSUBPD %s, %s, %s", a.r(x), a.r(x), a.r(x+4))
			a.op("VADDPD %s, %s, %s", a.r(x+4), a.r(x), a.r(x))
		}))
	add(clamp(), choose())
	add(sumFixed("SumFixed", false, false), sumFixed("SumFixedWhere", true, false), sumFixed("FixedValues", false, true), sumFixed("FixedValuesWhere", true, true))
	for _, bare := range []bool{false, true} {
		add(chain("SumChain", chainAlone, bare), chain("SumChainTimes", chainTimes, bare), chain("SumChainSquare", chainSquare, bare))
	}
	add(ranks())
	add(timeParts()...)
	return all
}

// cmp compares a second side, in a register or memory, with the register of the first. In AVX-512 the result is in mask register to.
func (a *assembler) cmp(predicate int, memory string, register, to int) {
	if a.wide() {
		a.op("VCMPPD $0x%02x, %s, %s, K%d", predicate, memory, a.r(register), to)
	} else {
		a.op("VCMPPD $0x%02x, %s, %s, %s", predicate, memory, a.r(register), a.r(to))
	}
}

// compared writes the bytes of a turn into dst. each must compare the rows from row on, as many as a register holds, into the mask register, or
// of AVX2 the register, to: one of 0 to 7.
func (a *assembler) compared(each func(row, to int)) {
	if a.wide() {
		for i := range 8 {
			each(8*i, i)
		}
		for i := 0; i < 8; i += 2 {
			a.op("KUNPCKBW K%d, K%d, K%d", i, i+1, i+1)
		}
		a.op("KUNPCKWD K1, K3, K3")
		a.op("KUNPCKWD K5, K7, K7")
		a.op("KUNPCKDQ K3, K7, K7")
		a.flags()
		return
	}
	for at := 0; at < step; at += 32 {
		for i := range 8 {
			each(at+4*i, i)
		}
		for i := range 4 { // the lower halves of the masks of eight rows
			a.op("VSHUFPS $0x88, Y%d, Y%d, Y%d", 2*i+1, 2*i, i)
		}
		a.packed(at, "VPUNPCKLWD", "VPUNPCKHWD", false)
	}
}

// flags writes the bytes of the 64 rows of mask register K7.
func (a *assembler) flags() {
	a.op("VPMOVM2B K7, Z0")
	a.op("VPABSB Z0, Z0")
	a.op("VMOVDQU64 Z0, %s", a.row("dst", 0))
}

// packed writes the bytes of 32 rows, of which masks of 4 bytes are in Y0 to Y3. Packing works in halves of registers: what has to be
// interleaved afterwards says how the rows lie in them.
func (a *assembler) packed(at int, low, high string, negated bool) {
	a.op("VPACKSSDW Y1, Y0, Y0")
	a.op("VPACKSSDW Y3, Y2, Y2")
	a.op("VPACKSSWB Y2, Y0, Y0")
	a.op("VPABSB Y0, Y0")
	if negated {
		a.op("VPXOR Y%d, Y0, Y0", second)
	}
	a.op("VEXTRACTI128 $1, Y0, X1")
	a.op("%s X1, X0, X2", low)
	a.op("%s X1, X0, X3", high)
	a.op("VMOVDQU X2, %s", a.row("dst", at))
	a.op("VMOVDQU X3, %s", a.row("dst", at+16))
}

func compareConst(name, symbol string, predicate int) kernel {
	return kernel{name: name, doc: "writes 1 where a " + symbol + " k, else 0. NaN is neither below, nor above, nor equal to anything, nor different.",
		args:   []argument{{"dst", bytes}, {"a", numbers}, {"k", number}},
		before: func(a *assembler) { a.broadcast("k", first) },
		turn: func(a *assembler) {
			a.compared(func(row, to int) { a.cmp(predicate, a.row("a", row), first, to) })
		}}
}

func compare(name, symbol string, predicate int) kernel {
	return kernel{name: name, doc: "writes 1 where a " + symbol + " b and neither is NaN, else 0.", args: []argument{{"dst", bytes}, {"a", numbers}, {"b", numbers}},
		turn: func(a *assembler) {
			a.compared(func(row, to int) {
				a.op("VMOVUPD %s, %s", a.row("a", row), a.r(first))
				a.cmp(predicate, a.row("b", row), first, to)
			})
		}}
}

// load and store move a register of any type.
func (a *assembler) load(memory string, register int) {
	a.op("%s %s, %s", map[bool]string{true: "VMOVDQU64", false: "VMOVDQU"}[a.wide()], memory, a.r(register))
}

func (a *assembler) store(register int, memory string) {
	a.op("%s %s, %s", map[bool]string{true: "VMOVDQU64", false: "VMOVDQU"}[a.wide()], a.r(register), memory)
}

func logic(name, what, mnemonic string) kernel {
	return kernel{name: name, doc: "writes " + what + ", bytes of 0 and 1.", args: []argument{{"dst", bytes}, {"a", bytes}, {"b", bytes}}, turn: func(a *assembler) {
		for row := 0; row < step; row += a.bytes() {
			a.load(a.row("a", row), 0)
			a.op("%s %s, %s, %s", a.all(mnemonic), a.row("b", row), a.r(0), a.r(0))
			a.store(0, a.row("dst", row))
		}
	}}
}

func onBytes(name, doc string, each func(a *assembler, x int)) kernel {
	return kernel{name: name, doc: doc, args: []argument{{"dst", bytes}, {"a", bytes}}, before: func(a *assembler) { a.bits64(onesOfBytes, first) },
		turn: func(a *assembler) {
			for row := 0; row < step; row += a.bytes() {
				a.load(a.row("a", row), 0)
				each(a, 0)
				a.store(0, a.row("dst", row))
			}
		}}
}

func above() kernel {
	return kernel{name: "Above", doc: "writes 1 where rank is above the byte that is repeated in the word, else 0; all are at most 127.",
		args:   []argument{{"dst", bytes}, {"rank", bytes}, {"k", word}},
		before: func(a *assembler) { a.op("VPBROADCASTQ %s, %s", a.at["k"], a.r(first)) },
		turn: func(a *assembler) {
			if a.wide() {
				a.load(a.row("rank", 0), 0)
				a.op("VPCMPB $6, Z%d, Z0, K7", first)
				a.flags()
				return
			}
			for row := 0; row < step; row += 32 {
				a.load(a.row("rank", row), 0)
				a.op("VPCMPGTB Y%d, Y0, Y0", first)
				a.op("VPABSB Y0, Y0")
				a.store(0, a.row("dst", row))
			}
		}}
}

func count() kernel {
	return kernel{name: "Count", doc: "is the sum of bytes.", args: []argument{{"a", bytes}}, sum: true,
		before: func(a *assembler) {
			a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(zero), a.r(zero), a.r(zero))
			a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(0), a.r(0), a.r(0))
		},
		turn: func(a *assembler) {
			for row := 0; row < step; row += a.bytes() {
				a.op("VPSADBW %s, %s, %s", a.row("a", row), a.r(zero), a.r(2))
				a.op("VPADDQ %s, %s, %s", a.r(2), a.r(0), a.r(0))
			}
		},
		after: func(a *assembler) { a.add64(0) }}
}

func codeTest(name, doc string, other bool) kernel {
	return kernel{name: name, doc: doc, args: []argument{{"dst", bytes}, {"codes", codes}, {"code", word}},
		before: func(a *assembler) {
			a.op("VPBROADCASTQ %s, %s", a.at["code"], a.r(first))
			a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(zero), a.r(zero), a.r(zero))
			if !a.wide() {
				a.bits64(onesOfBytes, second)
			}
		},
		turn: func(a *assembler) {
			if a.wide() {
				for i := range 4 {
					a.load(a.row("codes", 16*i), 0)
					if other {
						a.op("VPCMPD $4, Z0, Z%d, K4", first)
						a.op("VPTESTMD Z0, Z0, K4, K%d", i)
					} else {
						a.op("VPCMPEQD Z0, Z%d, K%d", first, i)
					}
				}
				a.op("KUNPCKWD K0, K1, K1")
				a.op("KUNPCKWD K2, K3, K3")
				a.op("KUNPCKDQ K1, K3, K7")
				a.flags()
				return
			}
			for at := 0; at < step; at += 32 {
				for i := range 4 {
					a.load(a.row("codes", at+8*i), i)
					if other {
						a.op("VPCMPEQD Y%d, Y%d, Y4", i, zero)
					}
					a.op("VPCMPEQD Y%d, Y%d, Y%d", i, first, i)
					if other {
						a.op("VPOR Y4, Y%d, Y%d", i, i)
					}
				}
				a.packed(at, "VPUNPCKLDQ", "VPUNPCKHDQ", other)
			}
		}}
}

// fourRegisters are a turn of loops over numbers.
const fourRegisters = 4

// eachNumber emits the rows of a turn of four registers, one after the other; x is one of 0 to 3.
func (a *assembler) eachNumber(each func(row, x int)) {
	for row := 0; row < a.turn; row += a.rows() {
		each(row, row/a.rows())
	}
}

func arithmeticConst(name, symbol, mnemonic string) kernel {
	return kernel{name: name, registers: fourRegisters, doc: "writes a " + symbol + " k.", args: []argument{{"dst", numbers}, {"a", numbers}, {"k", number}},
		before: func(a *assembler) { a.broadcast("k", first) },
		turn: func(a *assembler) {
			a.eachNumber(func(row, x int) {
				a.load(a.row("a", row), x)
				a.op("%s %s, %s, %s", mnemonic, a.r(first), a.r(x), a.r(x))
				a.store(x, a.row("dst", row))
			})
		}}
}

func arithmetic(name, symbol, mnemonic string) kernel {
	return kernel{name: name, registers: fourRegisters, doc: "writes a " + symbol + " b.", args: []argument{{"dst", numbers}, {"a", numbers}, {"b", numbers}}, turn: func(a *assembler) {
		a.eachNumber(func(row, x int) {
			a.load(a.row("a", row), x)
			a.op("%s %s, %s, %s", mnemonic, a.row("b", row), a.r(x), a.r(x))
			a.store(x, a.row("dst", row))
		})
	}}
}

func extreme(name, which, mnemonic string) kernel {
	return kernel{name: name, registers: fourRegisters, doc: "writes the " + which + " of a and b, NaN where either is.", args: []argument{{"dst", numbers}, {"a", numbers}, {"b", numbers}}, turn: func(a *assembler) {
		a.eachNumber(func(row, x int) { // the instruction is b where one is NaN
			a.load(a.row("a", row), x)
			a.op("%s %s, %s, %s", mnemonic, a.row("b", row), a.r(x), a.r(x+4))
			a.orNaN(x, x, x+4)
			a.store(x+4, a.row("dst", row))
		})
	}}
}

// orNaN puts lanes of a register into dst where a tested one is NaN.
func (a *assembler) orNaN(tested, from, dst int) {
	if a.wide() {
		a.op("VCMPPD $0x%02x, Z%d, Z%d, K1", unordered, tested, tested)
		a.op("VMOVAPD Z%d, K1, Z%d", from, dst)
		return
	}
	a.op("VCMPPD $0x%02x, Y%d, Y%d, Y%d", unordered, tested, tested, spare)
	a.op("VBLENDVPD Y%d, Y%d, Y%d, Y%d", spare, from, dst, dst)
}

func onNumbers(name, doc string, bits uint64, each func(a *assembler, x int)) kernel {
	k := kernel{name: name, registers: fourRegisters, doc: doc, args: []argument{{"dst", numbers}, {"a", numbers}}, turn: func(a *assembler) {
		a.eachNumber(func(row, x int) {
			a.load(a.row("a", row), x)
			each(a, x)
			a.store(x, a.row("dst", row))
		})
	}}
	if bits != 0 {
		k.before = func(a *assembler) { a.bits64(bits, first) }
	}
	return k
}

func (a *assembler) round(how, from, to int) {
	a.op("%s $0x%02x, %s, %s", map[bool]string{true: "VRNDSCALEPD", false: "VROUNDPD"}[a.wide()], how, a.r(from), a.r(to))
}

// The bounds are the first sides of the instructions, which are the second where that is NaN, or both are zero.
func clamp() kernel {
	return kernel{name: "ClampConst", registers: fourRegisters, doc: "writes low where a is below it, high where a is above it, else a, also where it is NaN.",
		args: []argument{{"dst", numbers}, {"a", numbers}, {"low", number}, {"high", number}},
		before: func(a *assembler) {
			a.broadcast("low", first)
			a.broadcast("high", second)
		},
		turn: func(a *assembler) {
			a.eachNumber(func(row, x int) {
				a.op("VMAXPD %s, %s, %s", a.row("a", row), a.r(first), a.r(x))
				a.op("VMINPD %s, %s, %s", a.r(x), a.r(second), a.r(x))
				a.store(x, a.row("dst", row))
			})
		}}
}

func choose() kernel {
	return kernel{name: "Choose", registers: fourRegisters, doc: "writes a where test is 1 and b where it is 0.", args: []argument{{"dst", numbers}, {"test", bytes}, {"a", numbers}, {"b", numbers}},
		before: func(a *assembler) { a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(zero), a.r(zero), a.r(zero)) },
		turn: func(a *assembler) {
			a.eachNumber(func(row, x int) {
				a.op("VPMOVZXBQ %s, %s", a.row("test", row), a.r(x))
				a.load(a.row("b", row), x+4)
				if a.wide() {
					a.op("VPTESTMQ Z%d, Z%d, K1", x, x)
					a.op("VMOVUPD %s, K1, Z%d", a.row("a", row), x+4)
				} else {
					a.op("VPSUBQ Y%d, Y%d, Y%d", x, zero, x)
					a.op("VBLENDVPD Y%d, %s, Y%d, Y%d", x, a.row("a", row), x+4, x+4)
				}
				a.store(x+4, a.row("dst", row))
			})
		}}
}

// sumFixed is the end of a row function: to the grid, and summed.
func sumFixed(name string, where, values bool) kernel {
	k := kernel{name: name, registers: fourRegisters, doc: "is the sum of the fixed-point values int64((v-low)*scale + 0.5), where v is a brought into low to high, and null for NaN", sum: true,
		before: func(a *assembler) {
			for i, name := range []string{"low", "high", "null", "scale"} {
				a.broadcast(name, first+i)
			}
			a.bits64(halfBits, half)
			a.nullOnGrid(first, third, fourth, half)
			a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(zero), a.r(zero), a.r(zero))
			for i := range 4 {
				a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(i), a.r(i), a.r(i))
			}
		},
		turn: func(a *assembler) {
			a.eachNumber(func(row, x int) {
				a.load(a.row("a", row), x+4)
				a.fixed(row, x, x+4, where, values)
			})
		},
		after: func(a *assembler) {
			a.op("VPADDQ %s, %s, %s", a.r(1), a.r(0), a.r(0))
			a.op("VPADDQ %s, %s, %s", a.r(3), a.r(2), a.r(2))
			a.op("VPADDQ %s, %s, %s", a.r(2), a.r(0), a.r(0))
			a.add64(0)
		}}
	if values {
		k.args = append(k.args, argument{"dst", codes})
		k.doc += ", which it writes too"
	}
	k.args = append(k.args, argument{"a", numbers})
	if where {
		k.args = append(k.args, argument{"where", bytes})
		k.doc += "; 0 where where is 0"
	}
	k.args = append(k.args, argument{"low", number}, argument{"high", number}, argument{"null", number}, argument{"scale", number})
	k.doc += ". All are at most 2^30."
	return k
}

// gridded brings a register into the range, if it has to be, and to the grid, without the conversion to integers. What is null gets the value that null has there.
func (a *assembler) gridded(x, low, high, null, scale, halve, mask int, clamped bool) {
	v := a.r(x)
	if a.wide() {
		a.op("VCMPPD $0x%02x, %s, %s, K1", ordered, v, v)
	} else {
		a.op("VCMPPD $0x%02x, %s, %s, %s", unordered, v, v, a.r(mask))
	}
	if clamped {
		a.op("VMAXPD %s, %s, %s", v, a.r(low), v)
		a.op("VMINPD %s, %s, %s", v, a.r(high), v)
	}
	a.op("VSUBPD %s, %s, %s", a.r(low), v, v)
	a.op("VMULPD %s, %s, %s", a.r(scale), v, v)
	if a.wide() { // into a copy of null, in the lanes that are not
		a.op("VMOVAPD %s, %s", a.r(null), a.r(mask))
		a.op("VADDPD %s, %s, K1, %s", a.r(halve), v, a.r(mask))
		a.op("VMOVAPD %s, %s", a.r(mask), v)
		return
	}
	a.op("VADDPD %s, %s, %s", a.r(halve), v, v)
	a.op("VBLENDVPD %s, %s, %s, %s", a.r(mask), a.r(null), v, v)
}

// nullOnGrid makes of null what gridded needs.
func (a *assembler) nullOnGrid(low, null, scale, halve int) {
	a.op("VSUBPD %s, %s, %s", a.r(low), a.r(null), a.r(null))
	a.op("VMULPD %s, %s, %s", a.r(scale), a.r(null), a.r(null))
	a.op("VADDPD %s, %s, %s", a.r(halve), a.r(null), a.r(null))
}

// fixed adds the fixed-point values of a register to those of another.
func (a *assembler) fixed(row, sums, x int, where, values bool) {
	v, k := a.r(x), 2
	a.gridded(x, first, second, third, fourth, half, spare, true)
	switch {
	case a.wide() && where && values:
		a.op("VPMOVZXBQ %s, %s", a.row("where", row), a.r(spare))
		a.op("VPTESTMQ %s, %s, K%d", a.r(spare), a.r(spare), k)
		a.op("VCVTTPD2DQ.Z %s, K%d, Y%d", v, k, x)
	case a.wide() && where:
		a.op("VPMOVZXBQ %s, %s", a.row("where", row), a.r(spare))
		a.op("VPTESTMQ %s, %s, K%d", a.r(spare), a.r(spare), k)
		a.op("VCVTTPD2QQ %s, %s", v, v)
		a.op("VPADDQ %s, %s, K%d, %s", v, a.r(sums), k, a.r(sums))
		return
	case a.wide() && values:
		a.op("VCVTTPD2DQ %s, Y%d", v, x)
	case a.wide():
		a.op("VCVTTPD2QQ %s, %s", v, v)
		a.op("VPADDQ %s, %s, %s", v, a.r(sums), a.r(sums))
		return
	default:
		a.op("VCVTTPD2DQY %s, X%d", v, x)
		if where {
			a.op("VPMOVZXBD %s, X%d", a.row("where", row), spare)
			a.op("VPSUBD X%d, X%d, X%d", spare, zero, spare)
			a.op("VPAND X%d, X%d, X%d", spare, x, x)
		}
	}
	if values {
		if a.wide() {
			a.op("VMOVDQU Y%d, %s", x, a.row("dst", row))
		} else {
			a.op("VMOVDQU X%d, %s", x, a.row("dst", row))
		}
	}
	if a.wide() {
		a.op("VPMOVZXDQ Y%d, Z%d", x, x)
	} else {
		a.op("VPMOVZXDQ X%d, Y%d", x, x)
	}
	a.op("VPADDQ %s, %s, %s", v, a.r(sums), a.r(sums))
}

// ranks is a search among 127 sorted numbers in registers. The table has number 8c+i at 16i+c, so that the numbers of a rank's eighth place i are two registers, of which
// one instruction takes those of the places c. Four steps find the place c, three the rest.
func ranks() kernel {
	const (
		x, c, t, u, v, w   = 0, 1, 2, 3, 4, 5
		sign               = 8
		one, two, three    = 9, 10, 11
		four, eight, halve = 12, 13, 14
		table              = 16
	)
	k := kernel{name: "Ranks", doc: "writes how many of 127 rising numbers a is at least, 0 for NaN; the bits of a are changed by sign first. The table has the numbers in the order of [Table]. It exists for AVX-512 alone.",
		args: []argument{{"dst", bytes}, {"a", numbers}, {"table", numbers}, {"sign", word}}, only512: true, fixed: "table", registers: 1}
	k.before = func(a *assembler) {
		for i := range 16 {
			a.op("VMOVUPD %d(DX), Z%d", 64*i, table+i)
		}
		a.op("VBROADCASTSD %d(DX), Z%d", 8*(16*7+7), halve) // number 63
		a.op("VPBROADCASTQ %s, Z%d", a.at["sign"], sign)
		for i, n := range []uint64{1, 2, 3, 4, 8} {
			a.bits64(n, one+i)
		}
	}
	k.turn = func(a *assembler) {
		at := func(place, dst int) { // the numbers of a place, by c
			a.op("VMOVDQA64 Z%d, Z%d", c, dst)
			a.op("VPERMI2PD Z%d, Z%d, Z%d", table+2*place+1, table+2*place, dst)
		}
		passed := func(number, mask int) { a.op("VCMPPD $0x%02x, Z%d, Z%d, K%d", aboveOrAt, number, x, mask) }
		for row := 0; row < a.turn; row += 8 {
			a.op("VPXORQ %s, Z%d, Z%d", a.row("a", row), sign, x)
			passed(halve, 1)
			a.op("VMOVDQA64.Z Z%d, K1, Z%d", eight, c)
			for _, half := range []struct{ offset, amount int }{{three, four}, {one, two}, {-1, one}} {
				if half.offset >= 0 {
					a.op("VPADDQ Z%d, Z%d, Z%d", half.offset, c, t)
				} else {
					a.op("VMOVDQA64 Z%d, Z%d", c, t)
				}
				a.op("VPERMI2PD Z%d, Z%d, Z%d", table+15, table+14, t)
				passed(t, 1)
				a.op("VPADDQ Z%d, Z%d, K1, Z%d", half.amount, c, c)
			}
			at(3, t)
			passed(t, 1)
			at(1, t)
			at(5, u)
			a.op("VMOVAPD Z%d, K1, Z%d", u, t)
			passed(t, 2)
			at(0, t)
			at(2, u)
			at(4, v)
			at(6, w)
			a.op("VMOVAPD Z%d, K2, Z%d", u, t)
			a.op("VMOVAPD Z%d, K2, Z%d", w, v)
			a.op("VMOVAPD Z%d, K1, Z%d", v, t)
			passed(t, 3)
			a.op("VPSLLQ $3, Z%d, Z%d", c, c)
			a.op("VPADDQ Z%d, Z%d, K1, Z%d", four, c, c)
			a.op("VPADDQ Z%d, Z%d, K2, Z%d", two, c, c)
			a.op("VPADDQ Z%d, Z%d, K3, Z%d", one, c, c)
			a.op("VPMOVQB Z%d, %s", c, a.row("dst", row))
		}
	}
	return k
}

// What a chain does after its number is clamped, moved and scaled.
const (
	chainAlone = iota
	chainTimes
	chainSquare
)

// chain is a clamp, a sum and a product with constants, a product with a second number or with itself, and the grid of sumFixed, without leaving the registers.
// What is bare is neither moved nor scaled, and is in the range of the grid anyway.
func chain(name string, then int, bare bool) kernel {
	const (
		sums, v, low, high, added, factor = 0, 2, 5, 6, 7, 8
		toLow, toHigh, null, scale, halve = 9, 10, 11, 12, 13
		mask                              = 4
	)
	what := [...]string{"", ", then multiplied by b", ", then squared"}[then]
	doc := "is SumFixed of (ClampConst(a, low, high) + added) * factor" + what
	if bare {
		name, doc = "Bare"+name, "is SumFixed of ClampConst(a, low, high)"+what+", which the caller knows to be in toLow to toHigh"
	}
	k := kernel{name: name, sum: true, registers: 2, doc: doc + ". While it works it asks for the memory of next, the numbers that are read after these."}
	k.args = []argument{{"a", numbers}, {"next", numbers}}
	if then == chainTimes {
		k.args = append(k.args, argument{"b", numbers})
	}
	constants := []string{"low", "high", "added", "factor", "toLow", "toHigh", "null", "scale"}
	for _, c := range constants {
		k.args = append(k.args, argument{c, number})
	}
	k.before = func(a *assembler) {
		for i, c := range constants {
			a.broadcast(c, low+i)
		}
		a.bits64(halfBits, halve)
		a.nullOnGrid(toLow, null, scale, halve)
		for i := range 2 {
			a.op("%s %s, %s, %s", a.all("VPXOR"), a.r(sums+i), a.r(sums+i), a.r(sums+i))
		}
	}
	k.turn = func(a *assembler) {
		for i := range 2 {
			row, v := i*a.rows(), v+i
			if row%8 == 0 {
				a.op("PREFETCHT0 %s", a.row("next", row))
			}
			x, sum := a.r(v), a.r(sums+i)
			a.op("VMAXPD %s, %s, %s", a.row("a", row), a.r(low), x)
			a.op("VMINPD %s, %s, %s", x, a.r(high), x)
			if !bare {
				a.op("VADDPD %s, %s, %s", a.r(added), x, x)
				a.op("VMULPD %s, %s, %s", a.r(factor), x, x)
			}
			switch then {
			case chainTimes:
				a.op("VMULPD %s, %s, %s", a.row("b", row), x, x)
			case chainSquare:
				a.op("VMULPD %s, %s, %s", x, x, x)
			}
			a.gridded(v, toLow, toHigh, null, scale, halve, mask, !bare)
			if a.wide() {
				a.op("VCVTTPD2QQ %s, %s", x, x)
			} else {
				a.op("VCVTTPD2DQY %s, X%d", x, v)
				a.op("VPMOVZXDQ X%d, %s", v, x)
			}
			a.op("VPADDQ %s, %s, %s", x, sum, sum)
		}
	}
	k.after = func(a *assembler) {
		a.op("VPADDQ %s, %s, %s", a.r(sums+1), a.r(sums), a.r(sums))
		a.add64(sums)
	}
	return k
}
