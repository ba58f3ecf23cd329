package expr

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/holdoutd/holdoutd/internal/stattest" // the seed of properties
)

// TestNull: what an expression reads as something else where it is null, and that the two conditions are each other's opposite. One that forgets a comparison, or takes what is tested for null, turns it red.
func TestNull(t *testing.T) {
	for text, want := range map[string]string{
		"delay":                                "delay == null",
		"3":                                    "",
		"delay > 15":                           "delay == null",
		"15 < delay && delay < 20":             "delay == null",
		"delay in [1, 2] || origin in ['SFO']": "delay == null || origin == null",
		"!(origin.startsWith('S'))":            "origin == null",
		"x == null || y > 2":                   "y == null",
		"x == null || x > 2":                   "",
		"x / y > 2":                            "(x / y) == null",
		"day.getHours() < 6":                   "day.getHours() == null",
		"late":                                 "late == null",
		"late ? 1 : 0":                         "late == null",
		"x + (late ? 1 : 0)":                   "late == null || (x + (late ? 1 : 0)) == null",
		"late ? x > 1 : y > 1":                 "late == null || x == null || y == null",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		null, err := s.Null()
		notNull, err2 := s.NotNull()
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		got := ""
		if null != nil {
			got = null.Canonical()
			same, err := Parse(want)
			if err != nil {
				t.Fatal(err)
			}
			want = same.Canonical()
		}
		if got != want || (notNull == nil) != (null == nil) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestAndHasEachOnce: a chain of conditions holds each of them once, whatever chains it was made of, so that leaving nulls out twice is the same question.
func TestAndHasEachOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func() *Syntax {
			text := ""
			for i, n := range rapid.SliceOfN(rapid.IntRange(0, 5), 1, 4).Draw(t, "conditions") {
				if i > 0 {
					text += " && "
				}
				text += fmt.Sprintf("x > %d", n)
			}
			s, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		a, b := draw(), draw()
		once, err := And(a, b, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := And(once, b, a)
		if err != nil || again.Canonical() != once.Canonical() {
			t.Fatalf("%s and again %v: %v", once.Canonical(), again, err)
		}
	})
}

// TestNullColumns: an expression is known to be null by its columns alone where nothing in it is computed.
func TestNullColumns(t *testing.T) {
	for text, want := range map[string]string{
		"delay > 15 && origin == 'SFO'": "[delay origin] true", "delay": "[delay] true", "delay / 2 > 1": "[] false", "x == null || x > 2": "[] true", "late ? 1 : 0": "[late] true",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		columns, plain := s.NullColumns()
		if got := fmt.Sprint(columns, plain); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
