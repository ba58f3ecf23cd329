package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Meters are amounts by the name of a meter: what a holdout may spend, what it has spent, or what one entry debits. The names
// are the caller's; the ledger knows none of them. A meter that is not named has the amount 0.
//
// As JSON they are an object with its members in the order of their names. Limits, what is spent, and the debit of a recorded
// entry all name the same meters, also with the amount 0.
type Meters map[string]int64

const (
	// MaxMeters is how many meters a holdout may have: each is a row that a debit of it writes.
	MaxMeters = 16
	// MaxMeterName is the length of a meter's name in bytes.
	MaxMeterName = 32
)

// checkLimits says whether a holdout can have these limits.
func (m Meters) checkLimits() error {
	if len(m) == 0 || len(m) > MaxMeters {
		return invalid("%d meters: a holdout has at least 1 and at most %d", len(m), MaxMeters)
	}
	for name, limit := range m {
		if !meterName(name) {
			return invalid("meter %q: a name is 1 to %d of a-z, 0-9 and _, and begins with a letter", short(name), MaxMeterName)
		}
		if limit < 0 {
			return invalid("meter %q has the negative limit %d", name, limit)
		}
	}
	return nil
}

func meterName(s string) bool {
	if s == "" || len(s) > MaxMeterName || s[0] < 'a' || s[0] > 'z' {
		return false
	}
	return strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// names are those of the meters, in ascending order of their bytes.
func (m Meters) names() []string { return slices.Sorted(maps.Keys(m)) }

// Equal reports whether both name the same meters with the same amounts.
func (m Meters) Equal(other Meters) bool { return maps.Equal(m, other) }

// sameNames reports whether both name the same meters.
func (m Meters) sameNames(other Meters) bool {
	for name := range other {
		if _, ok := m[name]; !ok {
			return false
		}
	}
	return len(m) == len(other)
}

// none is 0 of each of the meters.
func (m Meters) none() Meters {
	zero := make(Meters, len(m))
	for name := range m {
		zero[name] = 0
	}
	return zero
}

// left is what is left of limits m when so much is spent.
func (m Meters) left(spent Meters) Meters {
	left := make(Meters, len(m))
	for name, limit := range m {
		left[name] = limit - spent[name]
	}
	return left
}

// plus adds a debit; the result names the meters of m.
func (m Meters) plus(debit Meters) Meters {
	sum := make(Meters, len(m))
	for name, amount := range m {
		sum[name] = amount + debit[name]
	}
	return sum
}

// String says the amounts as a sentence does: "3 questions, 1 tokens".
func (m Meters) String() string {
	words := make([]string, 0, len(m))
	for _, name := range m.names() {
		words = append(words, fmt.Sprintf("%d %s", m[name], name))
	}
	return strings.Join(words, ", ")
}

// Text is the one spelling of the meters as JSON, for names that a meter can have.
func (m Meters) Text() string {
	text := make([]byte, 0, 64)
	for i, name := range m.names() {
		text = append(text, ',')
		if i == 0 {
			text[0] = '{'
		}
		text = append(append(append(text, '"'), name...), `":`...)
		text = strconv.AppendInt(text, m[name], 10)
	}
	if len(m) == 0 {
		text = append(text, '{')
	}
	return string(append(text, '}'))
}

// ParseMeters is the inverse of Text and accepts nothing else. It is written out because it reads two of them for every answer that is replayed.
func ParseMeters(text string) (Meters, error) {
	rest, ok := strings.CutPrefix(text, "{")
	if rest, ok = strings.CutSuffix(rest, "}"); !ok || len(rest)+2 != len(text) {
		return nil, fmt.Errorf("meters %q are not in their one spelling", short(text))
	}
	m, before := Meters{}, ""
	for more := rest != ""; more; {
		var member string
		member, rest, more = strings.Cut(rest, ",")
		name, digits, _ := strings.Cut(member, `":`)
		name, ok = strings.CutPrefix(name, `"`)
		amount, err := strconv.ParseInt(digits, 10, 64)
		if !ok || !meterName(name) || name <= before || err != nil || strconv.FormatInt(amount, 10) != digits {
			return nil, fmt.Errorf("meters %q are not in their one spelling, at %q", short(text), short(member))
		}
		m[name], before = amount, name
	}
	return m, nil
}
