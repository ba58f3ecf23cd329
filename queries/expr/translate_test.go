package expr

import (
	"strings"
	"testing"
)

// TestOtherLanguages: what is written in the words of SQL or of pandas is answered with the whole expression, which is right then; and with no expression where it could mean two things.
func TestOtherLanguages(t *testing.T) {
	for source, want := range map[string]string{
		"delay = 3":                                 "delay == 3",
		"origin = 'SFO' AND dest IS NOT NULL":       "origin == 'SFO' && dest != null",
		"origin <> 'SFO' or delay is null":          "origin != 'SFO' || delay == null",
		"delay is not None and NOT late":            "delay != null && !late",
		"(delay > 3) & (distance < 9) | ~(late)":    "(delay > 3) && (distance < 9) || !(late)",
		"origin in ('SFO', 'OAK')":                  "origin in ['SFO', 'OAK']",
		"delay > 3 AND origin NOT IN ('SFO','OAK')": "delay > 3 && !(origin in ['SFO','OAK'])",
		"day.getMonth() IN (0, 1)":                  "day.getMonth() in [0, 1]",
		"delay BETWEEN -5 AND 15 AND late = TRUE":   "delay >= -5 && delay <= 15 && late == true",
		"delay NOT BETWEEN 0 AND 15":                "!(delay >= 0 && delay <= 15)",
		"origin LIKE 'S%' or dest not like '%O'":    "origin.startsWith('S') || !(dest.endsWith('O'))",
		"origin LIKE '%F%'":                         "origin.contains('F')",
		"origin LIKE 'SFO'":                         "origin == 'SFO'",
		"origin = 'a = b AND c'":                    "origin == 'a = b AND c'",
		`origin = 'it\'s' AND late`:                 `origin == 'it\'s' && late`,

		`"origin" = 'SFO' AND late`:                   "", // a name in quotes is a text here
		`late AND "origin" IS NOT NULL`:               "",
		"NOT delay = 3":                               "", // of SQL all of it, of CEL the column alone
		"origin LIKE 'S_O' AND late":                  "", // a pattern that no function has
		"origin LIKE dest AND late":                   "", // a pattern that is none
		"1 + delay BETWEEN 0 AND 3":                   "", // the sum, or the column
		"delay BETWEEN 0 AND (1 + delay)":             "", // no bound
		"origin in (dest())":                          "",
		"delay == 3 late":                             "",
		strings.Repeat("delay = 3 AND ", 40) + "late": "", // too long to be read
	} {
		_, err := parse(source, celParser(true))
		if err == nil {
			t.Errorf("%s: is an expression", source)
			continue
		}
		if want != "" && err.Suggestion != want {
			t.Errorf("%s: suggests %q, want %q", source, err.Suggestion, want)
		}
		if whole := translated(source, celParser(true)); whole != want {
			t.Errorf("%s: in the words of this language %q, want %q", source, whole, want)
		}
		if want == "" {
			continue
		}
		s, err := parse(want, celParser(true))
		if err != nil {
			t.Errorf("%s: what is suggested is %v", source, err)
		} else if again := translated(want, celParser(true)); again != "" {
			t.Errorf("%s: is written anew as %s", s.Source(), again)
		}
	}
}
