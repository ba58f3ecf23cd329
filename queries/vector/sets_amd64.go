package vector

import "golang.org/x/sys/cpu"

// All are the instruction sets that this processor has, the widest last.
func All() []*Loops {
	var all []*Loops
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, &avx2)
		if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
			all = append(all, &avx512)
		}
	}
	return all
}

var avx2 = Loops{
	Name:             "AVX2",
	AddConst:         addConstAVX2,
	MulConst:         mulConstAVX2,
	DivConst:         divConstAVX2,
	Add:              addAVX2,
	Sub:              subAVX2,
	Mul:              mulAVX2,
	Div:              divAVX2,
	Minimum:          minimumAVX2,
	Maximum:          maximumAVX2,
	Neg:              negAVX2,
	Abs:              absAVX2,
	Sqrt:             sqrtAVX2,
	Floor:            floorAVX2,
	Ceil:             ceilAVX2,
	Finite:           finiteAVX2,
	ClampConst:       clampConstAVX2,
	Choose:           chooseAVX2,
	LessConst:        lessConstAVX2,
	LessEqConst:      lessEqConstAVX2,
	GreaterConst:     greaterConstAVX2,
	GreaterEqConst:   greaterEqConstAVX2,
	EqualConst:       equalConstAVX2,
	DifferConst:      differConstAVX2,
	Less:             lessAVX2,
	LessEq:           lessEqAVX2,
	Equal:            equalAVX2,
	Differ:           differAVX2,
	IsNull:           isNullAVX2,
	And:              andAVX2,
	Or:               orAVX2,
	Not:              notAVX2,
	IsTrue:           isTrueAVX2,
	IsNullBool:       isNullBoolAVX2,
	Above:            aboveAVX2,
	Count:            countAVX2,
	CodeEqual:        codeEqualAVX2,
	CodeDiffers:      codeDiffersAVX2,
	SumFixed:         sumFixedAVX2,
	SumFixedWhere:    sumFixedWhereAVX2,
	FixedValues:      fixedValuesAVX2,
	FixedValuesWhere: fixedValuesWhereAVX2,
	Dot:              dotAVX2,
	Year:             yearAVX2,
	Month:            monthAVX2,
	Date:             dateAVX2,
	YearDay:          yearDayAVX2,
	Weekday:          weekdayAVX2,
	Clock:            clockAVX2,
}

// Bytes are taken thirty-two at a time here too: they are in the first-level cache, and their loops are short.
var avx512 = Loops{
	Name:             "AVX-512",
	Ends:             true,
	AddConst:         addConstAVX512,
	MulConst:         mulConstAVX512,
	DivConst:         divConstAVX512,
	Add:              addAVX512,
	Sub:              subAVX512,
	Mul:              mulAVX512,
	Div:              divAVX512,
	Minimum:          minimumAVX512,
	Maximum:          maximumAVX512,
	Neg:              negAVX512,
	Abs:              absAVX512,
	Sqrt:             sqrtAVX512,
	Floor:            floorAVX512,
	Ceil:             ceilAVX512,
	Finite:           finiteAVX512,
	ClampConst:       clampConstAVX512,
	Choose:           chooseAVX512,
	LessConst:        lessConstAVX512,
	LessEqConst:      lessEqConstAVX512,
	GreaterConst:     greaterConstAVX512,
	GreaterEqConst:   greaterEqConstAVX512,
	EqualConst:       equalConstAVX512,
	DifferConst:      differConstAVX512,
	Less:             lessAVX512,
	LessEq:           lessEqAVX512,
	Equal:            equalAVX512,
	Differ:           differAVX512,
	IsNull:           isNullAVX512,
	And:              andAVX2,
	Or:               orAVX2,
	Not:              notAVX2,
	IsTrue:           isTrueAVX2,
	IsNullBool:       isNullBoolAVX2,
	Above:            aboveAVX2,
	Count:            countAVX2,
	CodeEqual:        codeEqualAVX512,
	CodeDiffers:      codeDiffersAVX512,
	SumFixed:         sumFixedAVX512,
	SumFixedWhere:    sumFixedWhereAVX512,
	FixedValues:      fixedValuesAVX512,
	FixedValuesWhere: fixedValuesWhereAVX512,
	Dot:              dotAVX512,
	Year:             yearAVX512,
	Month:            monthAVX512,
	Date:             dateAVX512,
	YearDay:          yearDayAVX512,
	Weekday:          weekdayAVX512,
	Clock:            clockAVX512,
}

// Loops of ensembles of trees, the same in every set. They are functions, so that what they are given stays on the stack. sortRows, partOfRows and addEnds of package
// model say what they do.

// SortRows moves, split after split, the rows of a part that are in a mask to the part of the split's number plus one; count is at least 1.
func SortRows(parts *[4]uint64, splits *uint32, count int, masks *[4]uint64, stride int) {
	sortRowsAVX2(parts, splits, count, masks, stride)
}

// Eighths writes three digits of the parts' numbers, and joins each eight of count times 8 parts.
func Eighths(parts *[4]uint64, count int, digits *[4]uint64) { eighthsAVX2(parts, count, digits) }

// Turn writes the numbers of 256 rows whose eight digits are given.
func Turn(dst *uint8, digits *[4]uint64) { turnAVX2(dst, digits) }

// AddEnds adds ends[parts] to n rows of out. size, at most MaxEnds, is how many ends there are; MaxEnds of them are read. It wants Loops.Ends.
func AddEnds(out *float64, parts *uint8, ends *float64, size, n int) {
	switch {
	case size <= 8:
		addEnds8OfAVX512(out, parts, ends, n)
	case size <= 16:
		addEnds16OfAVX512(out, parts, ends, n)
	case size <= 32:
		addEnds32OfAVX512(out, parts, ends, n)
	default:
		addEnds64OfAVX512(out, parts, ends, n)
	}
}
