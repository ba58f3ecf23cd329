package queries

import (
	"strings"
	"testing"
)

// TestSkip: leaving nulls out is the question with the condition that nothing is null, in every type that takes it: the same canonical form, so that the other spelling is a replay. A spelling that
// keeps its "null" would be asked, and paid, twice.
func TestSkip(t *testing.T) {
	for skip, where := range map[string]string{
		`"type":"mean","of":"delay","range":[0,9]`:                                                `delay != null`,
		`"type":"mean","of":"delay * 2","range":[0,9]`:                                            `delay * 2 != null`,
		`"type":"mean","of":"late ? delay : 0","range":[0,9]`:                                     `(late ? delay : 0) != null && late != null`,
		`"type":"mean","of":"delay > 15 ? 1 : 0","range":[0,1]`:                                   `delay != null`,
		`"type":"mean","of":"delay == null ? 0 : 1","range":[0,1]`:                                ``,
		`"type":"variance","of":"delay","range":[0,9]`:                                            `delay != null`,
		`"type":"stddev","of":"delay","range":[0,9]`:                                              `delay != null`,
		`"type":"median","of":"delay","range":[0,9]`:                                              `delay != null`,
		`"type":"quantile","p":0.9,"of":"delay","range":[0,9]`:                                    `delay != null`,
		`"type":"groups","of":"delay","range":[0,9],"by":"origin"`:                                `delay != null`,
		`"type":"difference","of":"late","between":["delay > 15"]`:                                `late != null`,
		`"type":"fraction","of":"delay > 15 && (origin == 'SFO' || !late)"`:                       `delay != null && origin != null && late != null`,
		`"type":"fraction","of":"log(delay) > 2"`:                                                 `log(delay) != null`,
		`"type":"fraction","of":"delay in [1, 2] || delay == null || origin == null"`:             ``,
		`"type":"correlation","x":"delay","y":"distance","range_x":[0,9],"range_y":[0,9]`:         `delay != null && distance != null`,
		`"type":"covariance","x":"delay","y":"distance","range_x":[0,9],"range_y":[0,9]`:          `distance != null && delay != null`,
		`"type":"kendall","x":"delay","y":"distance"`:                                             `delay != null && distance != null`,
		`"type":"accuracy","label":"late","prediction":"delay"`:                                   `late != null && delay != null`,
		`"type":"precision","label":"late","prediction":"delay"`:                                  `late != null && delay != null`,
		`"type":"loss","loss":"log","label":"late","prediction":"delay"`:                          `late != null && delay != null`,
		`"type":"rmse","label":"delay","prediction":"distance / 100","max_error":9`:               `delay != null && distance / 100 != null`,
		`"type":"r2","label":"delay","prediction":"distance","range":[0,9]`:                       `delay != null && distance != null`,
		`"type":"auc","label":"late","prediction":"delay"`:                                        `late != null && delay != null`,
		`"type":"calibration","label":"late","prediction":"delay"`:                                `late != null && delay != null`,
		`"type":"confusion","label":"late","prediction":"delay"`:                                  `late != null && delay != null`,
		`"type":"test","test":"mean","of":"delay","range":[0,9]`:                                  `delay != null`,
		`"type":"test","test":"proportion","of":"delay > 15"`:                                     `delay != null`,
		`"type":"test","test":"two-sample","of":"delay","range":[0,9],"between":["late"]`:         `delay != null`,
		`"type":"test","test":"slope","x":"delay","y":"distance","range_x":[0,9],"range_y":[0,9]`: `delay != null && distance != null`,
	} {
		without := "{" + skip + "}"
		if where != "" {
			without = "{" + skip + `,"where":"` + where + `"}`
		}
		skipping := mustParse(t, "{"+skip+`,"null":"skip"}`)
		if got, want := string(skipping.Canonical()), string(mustParse(t, without).Canonical()); got != want {
			t.Errorf("%s without nulls is %s, want %s", skip, got, want)
		}
		again := mustParse(t, string(skipping.Canonical()))
		if again.ID() != skipping.ID() {
			t.Errorf("%s: the canonical form is another question", skip)
		}
		// With a condition beside it, and with the same condition.
		if where == "" || !strings.Contains(where, "delay != null") {
			continue
		}
		beside := mustParse(t, "{"+skip+`,"null":"skip","where":"distance > 5 && delay != null"}`)
		if got, want := beside.ID(), mustParse(t, "{"+skip+`,"where":"`+where+` && distance > 5"}`).ID(); got != want {
			t.Errorf("%s with a condition beside it: %s", skip, beside.Canonical())
		}
	}
	for body, want := range map[string]string{
		`{"type":"mean","of":"delay","range":[0,9],"null":"leave"}`:                                `/null: must be a number or "skip"`,
		`{"type":"fraction","of":"late","null":0}`:                                                 `/null: must be "skip"`,
		`{"type":"sum","of":"delay","range":[0,9],"null":"skip"}`:                                  `/null: unknown member`,
		`{"type":"test","test":"goodness-of-fit","cells":["late"],"expected":[0.5],"null":"skip"}`: `/null: does not go with this test`,
	} {
		if _, err := Parse([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
