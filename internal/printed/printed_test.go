package printed

import (
	_ "embed"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

//go:embed cases.json
var cases []byte

// TestCases: the table that Python and the page are tested by, too.
func TestCases(t *testing.T) {
	var table struct {
		Decimals, Significant []struct {
			X, Low, Near, High    string
			Decimals, Significant int
		}
	}
	if err := json.Unmarshal(cases, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Decimals) < 40 || len(table.Significant) < 20 {
		t.Fatalf("the table has %d and %d cases", len(table.Decimals), len(table.Significant))
	}
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, c := range table.Decimals {
		x := number(c.X)
		if low, value, high := Low(x, c.Decimals), Near(x, c.Decimals), High(x, c.Decimals); low != c.Low || value != c.Near || high != c.High {
			t.Errorf("%s to %d decimals: %s, %s, %s", c.X, c.Decimals, low, value, high)
		}
	}
	for _, c := range table.Significant {
		x := number(c.X)
		if low, value, high := LowOf(x, c.Significant), NearOf(x, c.Significant), HighOf(x, c.Significant); low != number(c.Low) || value != number(c.Near) || high != number(c.High) {
			t.Errorf("%s to %d digits: %v, %v, %v", c.X, c.Significant, low, value, high)
		}
	}
}

// TestPrintedHolds: whatever the doubles are, an interval as printed holds the interval, and a value within it is printed within it.
func TestPrintedHolds(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for range 20_000 {
		low := math.Ldexp(r.Float64()-0.5, r.IntN(120)-80)
		value := math.Nextafter(low, 1e300)
		if r.IntN(2) == 0 {
			value = low + math.Abs(low)*r.Float64()*math.Pow(10, -float64(r.IntN(17)))
		}
		high := value + (value-low)*r.Float64()
		d, n := r.IntN(18), 1+r.IntN(17)
		printed := [3]float64{}
		for i, text := range [3]string{Low(low, d), Near(value, d), High(high, d)} {
			printed[i], _ = strconv.ParseFloat(text, 64)
		}
		if printed[0] > low || printed[2] < high || printed[1] < printed[0] || printed[1] > printed[2] {
			t.Fatalf("%v in [%v, %v] to %d decimals: %v", value, low, high, d, printed)
		}
		if a, v, b := LowOf(low, n), NearOf(value, n), HighOf(high, n); a > low || b < high || v < a || v > b {
			t.Fatalf("%v in [%v, %v] to %d digits: %v in [%v, %v]", value, low, high, n, v, a, b)
		}
	}
}

func TestThousands(t *testing.T) {
	for count, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 4231: "4,231", 1e12: "1,000,000,000,000"} {
		if got := Thousands(count); got != want {
			t.Errorf("%d: %s", count, got)
		}
	}
}

// TestInLines: long lines are broken between words, at the width and not before; tables, code and short lines stay to the byte.
func TestInLines(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"a  short\n":                "a  short\n",
		"one two three four":        "one two\nthree four",
		"ééé éééé é\n\nx":           "ééé éééé é\n\nx",
		"ééé éééé éé\n":             "ééé éééé\néé\n",
		"| a row of a long table |": "| a row of a long table |",
		"```\nsome code that is long\n```\nand a text\nmuch longer than it\n": "```\nsome code that is long\n```\nand a text\nmuch\nlonger\nthan it\n",
		"averylongwordofmany letters":                                         "averylongwordofmany\nletters",
	} {
		if got := InLines(text, 10); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
