// Package printed writes numbers for people so that what is printed holds what was proved: the low end of an interval is rounded down and the high end up, never to
// nearest. Values are rounded to nearest on the same grid, so that one within its interval is printed within it.
//
// A double is taken for the shortest decimal that reads as it: .3 is .3, though its binary is a little less, and an end that is short already stays as it is. What is printed, read as a
// double again, is not above the low end and not below the high one. JSON has the doubles themselves.
//
// Texts it breaks into lines.
//
// Python (_printed.py) and the page (format.ts) do the same in their own words; cases.json is the table that all of them are tested by.
package printed

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Low is x rounded down to so many decimals.
func Low(x float64, decimals int) string { return fixed(x, decimals, down) }

// Near is x rounded to the nearest number of so many decimals, of two the one farther from 0. A zero has no sign.
func Near(x float64, decimals int) string { return fixed(x, decimals, near) }

// High is x rounded up to so many decimals.
func High(x float64, decimals int) string { return fixed(x, decimals, up) }

// LowOf is x rounded down to so many significant digits.
func LowOf(x float64, digits int) float64 { return significant(x, digits, down) }

// NearOf is x rounded to nearest to so many significant digits.
func NearOf(x float64, digits int) float64 { return significant(x, digits, near) }

// HighOf is x rounded up to so many significant digits.
func HighOf(x float64, digits int) float64 { return significant(x, digits, up) }

// Decimals show a number to about a hundredth of its half-width: two digits of that, at most 12 decimals; 4 where the half-width is not known.
func Decimals(halfWidth float64) int {
	if !(halfWidth > 0) || math.IsInf(halfWidth, 0) {
		return 4
	}
	return max(0, min(12, 1-int(math.Floor(math.Log10(halfWidth)))))
}

// Thousands writes 4231 as 4,231.
func Thousands(count int64) string {
	s := strconv.FormatInt(count, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

type direction int

const (
	down direction = iota
	near
	up
)

// units is the magnitude of a finite x in units of 10^-decimals, rounded. decimals may be negative.
func units(x float64, decimals int, to direction) *big.Int {
	text := strconv.FormatFloat(math.Abs(x), 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exponent) // strconv has written it
	m, _ := new(big.Int).SetString(whole+fraction, 10)
	shift := len(fraction) - e - decimals // m is in units of 10^-(decimals+shift)
	if shift <= 0 {
		return m.Mul(m, power(-shift))
	}
	one := power(shift)
	m, rest := m.QuoRem(m, one, new(big.Int))
	grows := rest.Sign() != 0 && (to == down && x < 0 || to == up && x > 0)
	if to == near {
		grows = rest.Lsh(rest, 1).Cmp(one) >= 0
	}
	if grows {
		m.Add(m, big.NewInt(1))
	}
	return m
}

func power(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func fixed(x float64, decimals int, to direction) string {
	switch {
	case math.IsNaN(x):
		return "NaN"
	case math.IsInf(x, 1):
		return "∞"
	case math.IsInf(x, -1):
		return "-∞"
	}
	m := units(x, decimals, to)
	text := m.String()
	if missing := decimals + 1 - len(text); missing > 0 {
		text = strings.Repeat("0", missing) + text
	}
	if decimals > 0 {
		text = text[:len(text)-decimals] + "." + text[len(text)-decimals:]
	}
	if x < 0 && m.Sign() != 0 {
		text = "-" + text
	}
	return text
}

func significant(x float64, digits int, to direction) float64 {
	if x == 0 || math.IsInf(x, 0) || math.IsNaN(x) {
		return x
	}
	text := strconv.FormatFloat(x, 'e', -1, 64)
	e, _ := strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	decimals := digits - 1 - e
	rounded, err := strconv.ParseFloat(units(x, decimals, to).String()+"e"+strconv.Itoa(-decimals), 64)
	if err != nil {
		return x // no double is large enough
	}
	return math.Copysign(rounded, x)
}
