package kernel

import (
	"math"

	"github.com/holdoutd/holdoutd/queries/kernel/vector"
	"github.com/holdoutd/holdoutd/rowfn"
)

// maxPart bounds the absolute value of every part of a time that an int64 of microseconds can hold.
const maxPart = 1e6

const microsecondsPerDay = 86400 * 1000000

// daysAndRest splits a time into days since 1970 and microseconds of the day, 0 <= rest < a day, also before 1970.
func daysAndRest(x float64) (days, rest int64) {
	t := int64(x)
	days, rest = t/microsecondsPerDay, t%microsecondsPerDay
	before := rest >> 63 // -1 where the rest is negative
	return days + before, rest + before&microsecondsPerDay
}

// civil is the proleptic Gregorian date of a day: month 0 to 11, day of the month from 1, day of the year from 0. Years
// are counted from March within eras of 400 years (146097 days), so that the leap day is the last of its year.
func civil(days int64) (year, month, date, yearDay int64) {
	const era, toMarchOfYear0 = 146097, 719468
	z := days + toMarchOfYear0
	e := z / era
	doe := z - e*era // day of the era
	before := doe >> 63
	e += before
	doe += before & era
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100) // from 1 March
	mp := (5*doy + 2) / 153                  // months from March
	date = doy - (153*mp+2)/5 + 1
	late := (9 - mp) >> 63 // -1 in January and February, which are of the next year
	month = mp + 2 + late*12
	year = yoe + e*400 - late
	leap := int64(bit(year&3 == 0) & (bit(year%100 != 0) | bit(year%400 == 0)))
	yearDay = doy + 59 + leap + late&-(365+leap)
	return year, month, date, yearDay
}

// orNull is x, or NaN where from is.
func orNull(x int64, from float64) float64 {
	v := math.Float64bits(float64(x))
	if from != from {
		v = math.Float64bits(from)
	}
	return math.Float64frombits(v)
}

// timePart writes one part of the times a. Fractions of microseconds are cut off.
func timePart(part rowfn.Op, dst, a []float64) {
	done := vectorPart(part, dst, a)
	dst, a = dst[done:], a[done:]
	a = a[:len(dst)]
	switch part {
	case rowfn.OpFullYear:
		for i, x := range a {
			days, _ := daysAndRest(x)
			year, _, _, _ := civil(days)
			dst[i] = orNull(year, x)
		}
	case rowfn.OpMonth:
		for i, x := range a {
			days, _ := daysAndRest(x)
			_, month, _, _ := civil(days)
			dst[i] = orNull(month, x)
		}
	case rowfn.OpDayOfMonth, rowfn.OpDate:
		from := int64(bit(part == rowfn.OpDayOfMonth))
		for i, x := range a {
			days, _ := daysAndRest(x)
			_, _, date, _ := civil(days)
			dst[i] = orNull(date-from, x)
		}
	case rowfn.OpDayOfYear:
		for i, x := range a {
			days, _ := daysAndRest(x)
			_, _, _, yearDay := civil(days)
			dst[i] = orNull(yearDay, x)
		}
	case rowfn.OpDayOfWeek:
		for i, x := range a {
			days, _ := daysAndRest(x)
			day := (days + 4) % 7 // 1970-01-01 was a Thursday
			dst[i] = orNull(day+day>>63&7, x)
		}
	default:
		unit, modulus := clockPart(part)
		for i, x := range a {
			_, rest := daysAndRest(x)
			dst[i] = orNull(rest/unit%modulus, x)
		}
	}
}

// vectorPart is timePart of as many rows from the front as vector instructions take.
func vectorPart(part rowfn.Op, dst, a []float64) (done int) {
	switch part {
	case rowfn.OpFullYear:
		return vector.FullYear(dst, a)
	case rowfn.OpMonth:
		return vector.Month(dst, a)
	case rowfn.OpDayOfMonth:
		return vector.DayOfMonth(dst, a)
	case rowfn.OpDate:
		return vector.Date(dst, a)
	case rowfn.OpDayOfYear:
		return vector.DayOfYear(dst, a)
	case rowfn.OpDayOfWeek:
		return vector.DayOfWeek(dst, a)
	case rowfn.OpHours:
		return vector.Hours(dst, a)
	case rowfn.OpMinutes:
		return vector.Minutes(dst, a)
	case rowfn.OpSeconds:
		return vector.Seconds(dst, a)
	case rowfn.OpMilliseconds:
		return vector.Milliseconds(dst, a)
	}
	return 0
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
	}
	return 1000, 1000
}
