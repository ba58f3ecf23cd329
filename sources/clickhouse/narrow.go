package clickhouse

import (
	"fmt"
	"strconv"

	"github.com/holdoutd/holdoutd/dataset"
)

// How columns lie in a part. A question costs what reading its columns costs before all else, so a column of numbers is kept in the narrowest type that holds each of its values exactly, and read through an
// ALIAS that is the same float64 as before: the number 40 is one byte, a moment in whole seconds four. Texts that are few are kept in a dictionary (LowCardinality), on whose entries the engine computes tests of
// texts and their checksums. Statements and checksums do not know of either. That no value has changed on the way is seen when the part is compared with the table, row by row.
// A type is chosen by the whole table, not by a part. Columns with nulls are kept as they are: no integer is null.

const (
	// fewTexts is up to how many distinct texts a column is a dictionary: the entries that a dictionary of a block has, if nothing else is said (low_cardinality_max_dictionary_size).
	fewTexts = 8192
	// dictionaries is the first version whose dictionaries are not experimental.
	dictionaries = 20
	// narrowFactsOfColumn is how many facts [kept.narrow] takes.
	narrowFactsOfColumn = 5
)

const (
	microsecondsPerSecond = 1e6
	microsecondsPerDay    = 86400e6
)

// integerTypes are those that narrow columns have, narrow ones first.
var integerTypes = []struct {
	name        string
	least, most float64
}{{"UInt8", 0, 1<<8 - 1}, {"Int8", -1 << 7, 1<<7 - 1}, {"UInt16", 0, 1<<16 - 1}, {"Int16", -1 << 15, 1<<15 - 1}, {"UInt32", 0, 1<<32 - 1}, {"Int32", -1 << 31, 1<<31 - 1}}

// narrowFacts is SQL of what decides: how many values are no finite number, how many are no whole number of the unit that is counted in, how many no Float32 holds, the least and the greatest.
func (k *kept) narrowFacts() []string {
	if k.Kind != dataset.Number && k.Kind != dataset.Time {
		return []string{"''", "''", "''", "''", "''"}
	}
	v := k.number()
	count := func(condition string) string { return "ifNull(toString(sum(" + condition + ")), '0')" }
	whole := "floor(" + v + ")"
	if ticks := k.ticks(); ticks != 0 {
		whole = fmt.Sprintf("multiply(floor(divide(%[1]s, toFloat64(%[2]d))), toFloat64(%[2]d))", v, int64(ticks))
	}
	return []string{count("ifNull(toUInt8(isFinite(" + v + ")), toUInt8(0)) = 0"), count("notEquals(" + v + ", " + whole + ")"), count("notEquals(" + v + ", toFloat64(toFloat32(" + v + ")))"),
		"ifNull(toString(min(" + v + ")), '')", "ifNull(toString(max(" + v + ")), '')"}
}

// ticks is what a time is counted in, in microseconds; 0 of a number.
func (k *kept) ticks() float64 {
	switch {
	case k.Kind != dataset.Time:
		return 0
	case k.base == "Date" || k.base == "Date32":
		return microsecondsPerDay
	}
	return microsecondsPerSecond
}

// narrow decides by the facts of narrowFacts. What is not clear leaves the column as wide as it is.
func (k *kept) narrow(facts []string) {
	k.Narrow, k.Ticks = "", 0
	least, errA := strconv.ParseFloat(facts[3], 64)
	most, errB := strconv.ParseFloat(facts[4], 64)
	if k.Kind != dataset.Number && k.Kind != dataset.Time || errA != nil || errB != nil || facts[0] != "0" || !(least <= most) {
		return
	}
	ticks := k.ticks()
	if facts[1] == "0" {
		unit := max(ticks, 1)
		for _, t := range integerTypes {
			if t.least*unit <= least && most <= t.most*unit {
				k.Narrow, k.Ticks = t.name, ticks
				return
			}
		}
	}
	if k.Kind == dataset.Number && facts[2] == "0" {
		k.Narrow = "Float32"
	}
}

// definition says column i of a part, which is this one, in a CREATE TABLE.
func (k *kept) definition(i, version int, texts dataset.TextShape) string {
	switch {
	case k.Narrow != "":
		wide := fmt.Sprintf("toFloat64(n%d)", i)
		if k.Ticks != 0 {
			wide = fmt.Sprintf("multiply(%s, toFloat64(%d))", wide, int64(k.Ticks))
		}
		return fmt.Sprintf("n%[1]d %[2]s, c%[1]d Float64 ALIAS %[3]s", i, k.Narrow, wide)
	case k.Kind == dataset.Text && version >= dictionaries && texts.Texts <= fewTexts:
		return fmt.Sprintf("c%d LowCardinality(String)", i)
	}
	return fmt.Sprintf("c%d %s", i, storedType(k.Kind))
}

// kept is the name of column i of a part, which is this one, in an INSERT, and SQL of its value there, of the wide one.
func (k *kept) kept(i int, wide string) (name, value string) {
	if k.Narrow == "" {
		return fmt.Sprintf("c%d", i), wide
	}
	if k.Ticks != 0 {
		wide = fmt.Sprintf("divide(%s, toFloat64(%d))", wide, int64(k.Ticks))
	}
	return fmt.Sprintf("n%d", i), "to" + k.Narrow + "(" + wide + ")"
}
