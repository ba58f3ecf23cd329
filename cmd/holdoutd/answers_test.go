package main

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/holdoutd/holdoutd/client"
)

// TestPrintedAnswersHold: the ends of an interval as the commands print them are no nearer than what was proved, and neither is a bound: the table of package printed, and an answer in a line.
func TestPrintedAnswersHold(t *testing.T) {
	text, err := os.ReadFile("../../internal/printed/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Decimals []struct {
			X, Low, Near, High string
			Decimals           int
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, c := range table.Decimals {
		if c.Decimals != 4 { // those of an interval without a width
			continue
		}
		seen++
		x, err := strconv.ParseFloat(c.X, 64)
		if err != nil {
			t.Fatal(err)
		}
		if got := intervalText(&x, &x); got != "["+c.Low+", "+c.High+"]" {
			t.Errorf("%s: %s", c.X, got)
		}
		if got := figureText(&x, 0); got != c.Near {
			t.Errorf("%s: %s", c.X, got)
		}
	}
	if seen < 8 {
		t.Errorf("%d cases", seen)
	}
	value, low, high, p, regret := 0.71749, 0.69291, 0.74109, 0.04991, 0.020312
	line := headline(client.Answer{Value: &value, PValue: &p, Interval: &client.Interval{Low: &low, High: &high}})
	if line != "0.717 [0.692, 0.742] p = 0.0500" {
		t.Error(line)
	}
	if line := headline(client.Answer{Selected: "a", Regret: &regret}); !strings.Contains(line, "at most 0.0204 better") {
		t.Error(line)
	}
	if widestText(&regret) != "±0.0204" || widthText(&regret) != "±0.0203" {
		t.Errorf("%s, %s", widestText(&regret), widthText(&regret))
	}
}
