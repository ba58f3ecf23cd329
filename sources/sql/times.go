package sql

import (
	"math"
	"strings"

	"github.com/holdoutd/holdoutd/rowfn"
)

func textTest(o rowfn.Op, text, literal string) bool {
	switch o {
	case rowfn.OpHasPrefix:
		return strings.HasPrefix(text, literal)
	case rowfn.OpHasSuffix:
		return strings.HasSuffix(text, literal)
	}
	return strings.Contains(text, literal)
}

// maxMicros is how far times of tables are from 1970 at most, so that an integer holds them.
const maxMicros = 1 << 62

// wholeTimes reports whether a Time is a whole number of microseconds within maxMicros in every row: columns are, and so are most literals.
func wholeTimes(n *rowfn.Node, seen map[*rowfn.Node]bool) bool {
	if seen[n] {
		return true
	}
	seen[n] = true
	switch n.Op {
	case rowfn.OpColumn, rowfn.OpNull:
		return true
	case rowfn.OpNumber:
		return math.Abs(n.Number) <= maxMicros && n.Number == math.Trunc(n.Number)
	case rowfn.OpIf:
		return len(n.Args) == 3 && wholeTimes(n.Args[1], seen) && wholeTimes(n.Args[2], seen)
	}
	return false
}

const microsecondsPerDay = 86400 * 1000000

// partOfTime is a part of a time by integer arithmetic, as the kernels have it (number.go's and part.go's civil dates): engines' own functions of times have time zones, and ranges.
func (l *lowering) partOfTime(part rowfn.Op, x id) id {
	if l.isNull(x) {
		return x
	}
	x = l.strict(x)
	null := l.isNullOf(x)
	t := l.add(value{op: opWhole, class: integers, args: args(l.choose(null, l.number(0), x))})
	return l.choose(null, l.number(math.NaN()), l.decimal(l.countOf(part, t)))
}

func (l *lowering) decimal(a id) id {
	return l.add(value{op: opDecimal, class: numbers, args: args(a), bound: 1e6})
}

func (l *lowering) plus(a id, k int64) id {
	if k == 0 {
		return a
	}
	return l.whole(opPlus, a, l.integer(k))
}
func (l *lowering) times(a id, k int64) id     { return l.whole(opTimes, a, l.integer(k)) }
func (l *lowering) quotient(a id, k int64) id  { return l.whole(opQuotient, a, l.integer(k)) }
func (l *lowering) remainder(a id, k int64) id { return l.whole(opRemainder, a, l.integer(k)) }
func (l *lowering) sum(a, b id) id             { return l.whole(opPlus, a, b) }
func (l *lowering) less(a id, k int64) id {
	return l.bit(l.add(value{op: opIntegerLess, class: bits, args: args(a, l.integer(k))}))
}
func (l *lowering) difference(a, b id) id { return l.whole(opMinus, a, b) }

// high and low are halves of an integer that is not negative.
func (l *lowering) high(a id) id { return l.add(value{op: opHigh, class: integers, args: args(a)}) }
func (l *lowering) low(a id) id  { return l.add(value{op: opLow, class: integers, args: args(a)}) }

// countOf is a part of a time in microseconds, within ±2^62.
func (l *lowering) countOf(part rowfn.Op, t id) id {
	day := l.quotient(t, microsecondsPerDay)
	rest := l.difference(t, l.times(day, microsecondsPerDay)) // has the sign of t
	before := l.less(rest, 0)
	if unit, modulus := clockPart(part); unit > 0 {
		rest = l.sum(rest, l.times(before, microsecondsPerDay))
		return l.remainder(l.quotient(rest, unit), modulus)
	}
	days := l.difference(day, before)
	if part == rowfn.OpDayOfWeek {
		const weeks = 7 * 10_000_000 // more than the days of 2^62 microseconds: nothing is negative
		return l.remainder(l.plus(days, weeks+4), 7)
	}
	return l.civil(part, days)
}

// civil is the proleptic Gregorian date of a day, in which years begin in March, so that the leap day is the last of its year. It is the algorithm of Neri and Schneider ("Euclidean affine functions and their
// application to calendar algorithms", 2022, section 6), in which multiplications take the place of most divisions: in a row of a statement a division is the dearest of them. 400 years have 146097 days; 400 times
// as many are added, so that nothing is negative.
func (l *lowering) civil(part rowfn.Op, days id) id {
	const era, toMarchOfYear0, eras = 146097, 719468, 400
	quarters := l.plus(l.times(l.plus(days, toMarchOfYear0+eras*era), 4), 3)
	century := l.quotient(quarters, era)
	day := l.high(l.times(l.difference(quarters, l.times(century, era)), 1<<30)) // of the century: a fourth, without its fraction
	years := l.plus(l.times(day, 4*2939745), 3*2939745)                          // of the century, times 2^32
	doy := l.quotient(l.low(years), 4*2939745)                                   // from 1 March
	months := l.plus(l.times(doy, 2141<<16), 197913<<16)                         // from 3 for March on, times 2^32
	late := l.difference(l.integer(1), l.less(doy, 306))                         // January and February are of the next year
	switch part {
	case rowfn.OpMonth:
		return l.difference(l.plus(l.high(months), -1), l.times(late, 12))
	case rowfn.OpDate, rowfn.OpDayOfMonth:
		date := l.quotient(l.low(months), 2141<<16) // from 0
		if part == rowfn.OpDate {
			return l.plus(date, 1)
		}
		return date
	}
	year := l.sum(l.plus(l.sum(l.times(century, 100), l.high(years)), -400*eras), late)
	if part == rowfn.OpFullYear {
		return year
	}
	positive := l.plus(year, 400*eras+400)
	leap := l.sum(l.difference(l.less(l.remainder(positive, 4), 1), l.less(l.remainder(positive, 100), 1)), l.less(l.remainder(positive, 400), 1))
	// 1 March is day 59, or 60 of a leap year; January and February come a year of the next year's length before.
	return l.difference(l.sum(l.plus(doy, 59), leap), l.whole(opTimes, late, l.plus(leap, 365)))
}

// clockPart is a part of the time of day as the count of a unit of microseconds modulo another count.
func clockPart(part rowfn.Op) (unit, modulus int64) {
	switch part {
	case rowfn.OpHours:
		return 3600 * 1000000, 24
	case rowfn.OpMinutes:
		return 60 * 1000000, 60
	case rowfn.OpSeconds:
		return 1000000, 60
	case rowfn.OpMilliseconds:
		return 1000, 1000
	}
	return 0, 0
}
