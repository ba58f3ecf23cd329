package ledger

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

var someMeters = rapid.MapOfN(rapid.StringMatching(`[a-z][a-z0-9_]{0,31}`), rapid.Int64(), 1, MaxMeters)

// TestMetersHaveOneSpelling: what Text writes ParseMeters reads, and of any other text it reads none or says the same with the same bytes. It would
// notice amounts that lose digits, and a second spelling of what the chain commits to.
func TestMetersHaveOneSpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := Meters(someMeters.Draw(t, "meters"))
		text := m.Text()
		if want, err := json.Marshal(m); err != nil || text != string(want) {
			t.Fatalf("%s is spelled %s", want, text)
		}
		if got, err := ParseMeters(text); err != nil || !got.Equal(m) {
			t.Fatalf("%s is read as %v, %v", text, got, err)
		}
		at := rapid.IntRange(0, len(text)).Draw(t, "at")
		to := rapid.IntRange(at, len(text)).Draw(t, "to")
		other := text[:at] + rapid.SampledFrom([]string{"", " ", "0", ",", `"a":1`, "e0", text}).Draw(t, "instead") + text[to:]
		if got, err := ParseMeters(other); err == nil && got.Text() != other {
			t.Fatalf("%s is read as %s", other, got.Text())
		}
	})
	for _, text := range []string{"", "null", "[]", "{} ", `{"a":1.0}`, `{"a":1,"a":1}`, `{"b":1,"a":1}`, `{"a":9223372036854775808}`, `{"a":null}`, `{"a":-0}`, `{"a":+1}`, `{"a":01}`, `{"A":1}`, `{"a":1,}`, `{,}`, `{a":1}`, `{"a:1}`, `}`, `{`, `{"a\u0062":1}`} {
		if m, err := ParseMeters(text); err == nil {
			t.Errorf("%s is read as %v", text, m)
		}
	}
}

// TestNamesOfMeters: what can be a meter, and what cannot.
func TestNamesOfMeters(t *testing.T) {
	for name, ok := range map[string]bool{
		"questions": true, "a": true, "a_1": true, strings.Repeat("m", MaxMeterName): true,
		"": false, "1a": false, "_a": false, "Questions": false, "a b": false, "é": false, `a"`: false, strings.Repeat("m", MaxMeterName+1): false,
	} {
		if err := (Meters{name: 1}).checkLimits(); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestMetersAddUp: sums and differences are meter by meter, name the meters of the first, and change neither.
func TestMetersAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, debit := Meters{}, Meters{}
		for _, name := range slices.Sorted(maps.Keys(someMeters.Draw(t, "meters"))) {
			limits[name] = rapid.Int64Range(0, 1<<62).Draw(t, "limit")
			if rapid.Bool().Draw(t, "debited") {
				debit[name] = rapid.Int64Range(0, limits[name]).Draw(t, "debit")
			}
		}
		before := limits.Text() + debit.Text()
		spent := limits.none().plus(debit)
		left := limits.left(spent)
		for name, limit := range limits {
			if spent[name] != debit[name] || left[name]+spent[name] != limit {
				t.Fatalf("%s: %d of %d spent, %d left", name, spent[name], limit, left[name])
			}
		}
		if !limits.sameNames(spent) || !spent.sameNames(limits) || !limits.sameNames(left) || limits.Text()+debit.Text() != before {
			t.Fatalf("limits %v, spent %v, left %v", limits, spent, left)
		}
	})
}
