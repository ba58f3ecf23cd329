package api

import (
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/holdoutd/holdoutd/session"
)

// TestSentencesHold: the ends of an interval, a p-value and a regret as an agent reads them are no nearer than what was proved, and a value is within its interval as both are said: the table of package printed.
func TestSentencesHold(t *testing.T) {
	text, err := os.ReadFile("../printed/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Significant []struct {
			X, Low, Near, High string
			Significant        int
		}
	}
	if err := json.Unmarshal(text, &table); err != nil {
		t.Fatal(err)
	}
	number := func(text string) float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	said := regexp.MustCompile(`^The value is (\S+)\. The p-value is (\S+), .* The true value is in \[(\S+), (\S+)\] with 95% confidence`)
	seen := 0
	for _, c := range table.Significant {
		if c.Significant != sentenceDigits {
			continue
		}
		seen++
		x := number(c.X)
		sentence := resultWords(session.Answer{Value: &x, PValue: &x, Interval: &session.Interval{Low: &x, High: &x, Confidence: 0.95, Scope: "all"}})
		m := said.FindStringSubmatch(sentence)
		if m == nil {
			t.Fatal(sentence)
		}
		if value, p, low, high := number(m[1]), number(m[2]), number(m[3]), number(m[4]); value != number(c.Near) || p != number(c.High) || low != number(c.Low) || high != number(c.High) {
			t.Errorf("%s: %s", c.X, sentence)
		}
		if item := itemWords([]session.Item{{Of: "a", Value: &x, Low: &x, High: &x}}); item != "a: "+m[1]+" in ["+m[3]+", "+m[4]+"]." {
			t.Errorf("%s: %s", c.X, item)
		}
	}
	if seen < 10 {
		t.Errorf("%d cases", seen)
	}
}
