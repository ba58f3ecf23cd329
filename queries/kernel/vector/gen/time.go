package main

import (
	"fmt"
	"math"
)

// The parts of times, in float64 arithmetic on whole numbers below 2^53, which is exact. A quotient is rounded down: (n + 1/2)/d lies at least 1/(2d) from every whole number, and its error here is
// far below that.
const (
	microsecondsOfDay = 86400 * 1000000
	twoTo63           = 0x1p63
	toMarchOfYear0    = 719468 // days from 0000-03-01 to 1970-01-01
	daysOfEra         = 146097 // of 400 years
)

// Predicates that hold for what is not below, null among it, and for what is below zero.
const notBelow = 0x15

// Registers of a turn.
const (
	instant = iota // the time, as it was
	days           // since 1970
	rest           // microseconds of the day
	era
	ofEra // day of the era
	year  // of the era, from March on
	ofYear
	month // from March on
	s0    // scratch
	s1
	s2
)

// constant is a number in memory, in all lanes.
func (a *assembler) constant(x float64) string {
	bits := math.Float64bits(x)
	a.constants[bits] = true
	return fmt.Sprintf("const_%016x<>(SB)", bits)
}

func (a *assembler) addC(x float64, from, to int) {
	a.op("VADDPD %s, %s, %s", a.constant(x), a.r(from), a.r(to))
}

func (a *assembler) mulC(x float64, from, to int) {
	a.op("VMULPD %s, %s, %s", a.constant(x), a.r(from), a.r(to))
}

// sub is to = x - y.
func (a *assembler) sub(x, y, to int) { a.op("VSUBPD %s, %s, %s", a.r(y), a.r(x), a.r(to)) }

func (a *assembler) plus(x, y, to int) { a.op("VADDPD %s, %s, %s", a.r(y), a.r(x), a.r(to)) }

// quotient is to = floor(from / divisor).
func (a *assembler) quotient(from int, divisor float64, to int) {
	a.addC(0.5, from, to)
	a.mulC(1/divisor, to, to)
	a.round(roundDown, to, to)
}

// addIf adds an amount to a register where another compares with a constant as the predicate says.
func (a *assembler) addIf(tested, predicate int, with float64, amount float64, to int) {
	if a.wide() {
		a.op("VCMPPD $0x%02x, %s, %s, K1", predicate, a.constant(with), a.r(tested))
		a.op("VADDPD %s, %s, K1, %s", a.constant(amount), a.r(to), a.r(to))
		return
	}
	a.op("VCMPPD $0x%02x, %s, %s, %s", predicate, a.constant(with), a.r(tested), a.r(spare))
	a.op("VANDPD %s, %s, %s", a.constant(amount), a.r(spare), a.r(spare))
	a.op("VADDPD %s, %s, %s", a.r(spare), a.r(to), a.r(to))
}

// split makes days and rest of the instant, whose fraction is cut off. What no int64 holds, null too, is the least one, as the conversion of a processor has it.
func (a *assembler) split() {
	const toZero = 0x0B
	a.op("VBROADCASTSD %s, %s", a.constant(-twoTo63), a.r(s0))
	a.op("VMAXPD %s, %s, %s", a.r(instant), a.r(s0), a.r(rest))
	if a.wide() {
		a.op("VCMPPD $0x%02x, %s, %s, K1", notBelow, a.constant(twoTo63), a.r(rest))
		a.op("VMOVAPD %s, K1, %s", a.r(s0), a.r(rest))
	} else {
		a.op("VCMPPD $0x%02x, %s, %s, %s", notBelow, a.constant(twoTo63), a.r(rest), a.r(spare))
		a.op("VBLENDVPD %s, %s, %s, %s", a.r(spare), a.r(s0), a.r(rest), a.r(rest))
	}
	a.round(toZero, rest, rest)
	a.mulC(1.0/microsecondsOfDay, rest, days) // off by one at most, which the rest shows
	a.round(roundDown, days, days)
	a.mulC(microsecondsOfDay, days, s0) // 27 and 24 bits: exact
	a.sub(rest, s0, rest)
	a.op("VMOVAPD %s, %s", a.r(rest), a.r(s1))
	a.addIf(s1, below, 0, -1, days)
	a.addIf(s1, below, 0, microsecondsOfDay, rest)
	a.addIf(s1, aboveOrAt, microsecondsOfDay, 1, days)
	a.addIf(s1, aboveOrAt, microsecondsOfDay, -microsecondsOfDay, rest)
}

// civil makes era, year, ofYear and month of days: package kernel's civil has the names.
func (a *assembler) civil() {
	a.addC(toMarchOfYear0, days, s0)
	a.quotient(s0, daysOfEra, era)
	a.mulC(daysOfEra, era, s1)
	a.sub(s0, s1, ofEra)

	a.quotient(ofEra, 1460, s0)
	a.sub(ofEra, s0, s1)
	a.quotient(ofEra, 36524, s0)
	a.plus(s1, s0, s1)
	a.quotient(ofEra, 146096, s0)
	a.sub(s1, s0, s1)
	a.quotient(s1, 365, year)

	a.mulC(365, year, s0)
	a.quotient(year, 4, s1)
	a.plus(s0, s1, s0)
	a.quotient(year, 100, s1)
	a.sub(s0, s1, s0)
	a.sub(ofEra, s0, ofYear)

	a.mulC(5, ofYear, s0)
	a.addC(2, s0, s0)
	a.quotient(s0, 153, month)
}

// january is the least month, counted from March, that is of the next year.
const january = 9.5

// fullYear is the year, in s0.
func (a *assembler) fullYear() {
	a.mulC(400, era, s0)
	a.plus(year, s0, s0)
	a.addIf(month, aboveOrAt, january, 1, s0)
}

func timeParts() []kernel {
	part := func(name, doc string, compute func(a *assembler)) kernel {
		return kernel{name: name, doc: "writes " + doc + " of the times a, NaN for NaN.", registers: 1, args: []argument{{"dst", numbers}, {"a", numbers}}, turn: func(a *assembler) {
			for row := 0; row < a.turn; row += a.rows() {
				a.load(a.row("a", row), instant)
				a.split()
				compute(a)
				a.orNaN(instant, instant, s0)
				a.store(s0, a.row("dst", row))
			}
		}}
	}
	clock := func(name, doc string, unit, modulus float64) kernel {
		return part(name, doc, func(a *assembler) {
			a.quotient(rest, unit, s0)
			a.quotient(s0, modulus, s1)
			a.mulC(modulus, s1, s1)
			a.sub(s0, s1, s0)
		})
	}
	date := func(name string, from float64) kernel {
		return part(name, fmt.Sprintf("the days of the month, from %v,", from), func(a *assembler) {
			a.civil()
			a.mulC(153, month, s1)
			a.addC(2, s1, s1)
			a.quotient(s1, 5, s0)
			a.sub(ofYear, s0, s0)
			a.addC(from, s0, s0)
		})
	}
	return []kernel{
		part("FullYear", "the years", func(a *assembler) { a.civil(); a.fullYear() }),
		part("Month", "the months, from 0,", func(a *assembler) {
			a.civil()
			a.addC(2, month, s0)
			a.addIf(month, aboveOrAt, january, -12, s0)
		}),
		date("DayOfMonth", 0), date("Date", 1),
		part("DayOfYear", "the days of the year, from 0,", func(a *assembler) {
			a.civil()
			a.fullYear() // s0; s2 becomes 1 in leap years
			a.op("VXORPD X%d, X%d, X%d", s2, s2, s2)
			for _, rule := range []struct{ years, amount float64 }{{4, 1}, {100, -1}, {400, 1}} {
				a.quotient(s0, rule.years, s1)
				a.mulC(rule.years, s1, s1)
				a.sub(s0, s1, s1)
				a.addIf(s1, equalTo, 0, rule.amount, s2)
			}
			// From 1 March on: 59 days and the leap day are before. January and February: 306 days are behind.
			a.plus(ofYear, s2, s0)
			a.addC(59, s0, s0)
			a.op("VMOVAPD %s, %s", a.r(ofYear), a.r(s1))
			a.addC(59-365, s1, s1)
			if a.wide() {
				a.op("VCMPPD $0x%02x, %s, %s, K1", aboveOrAt, a.constant(january), a.r(month))
				a.op("VMOVAPD %s, K1, %s", a.r(s1), a.r(s0))
			} else {
				a.op("VCMPPD $0x%02x, %s, %s, %s", aboveOrAt, a.constant(january), a.r(month), a.r(spare))
				a.op("VBLENDVPD %s, %s, %s, %s", a.r(spare), a.r(s1), a.r(s0), a.r(s0))
			}
		}),
		part("DayOfWeek", "the days of the week, from 0 for Sunday,", func(a *assembler) {
			a.addC(4, days, s0) // 1970-01-01 was a Thursday
			a.quotient(s0, 7, s1)
			a.mulC(7, s1, s1)
			a.sub(s0, s1, s0)
		}),
		clock("Hours", "the hours", 3600*1000000, 24), clock("Minutes", "the minutes", 60*1000000, 60),
		clock("Seconds", "the seconds", 1000000, 60), clock("Milliseconds", "the milliseconds", 1000, 1000),
	}
}
