package queries

import (
	"encoding/json"
	"testing"
)

// TestMeasures: how an answer is measured, by examples of each kind; and no type is forgotten.
func TestMeasures(t *testing.T) {
	for _, name := range Types() {
		if _, known := (&queryText{Type: name}).measure(); !known {
			t.Errorf("measure.go does not say how the answers of %s are measured", name)
		}
	}
	for body, want := range map[string]string{
		`{"type":"fraction","of":"delay > 15"}`:                                                                    `{"kind":"share"}`,
		`{"type":"mean","of":"(delay)","range":[0,9]}`:                                                             `{"kind":"of","of":["delay"]}`,
		`{"type":"count","of":"delay > 15"}`:                                                                       `{"kind":"count"}`,
		`{"type":"variance","of":"delay","range":[0,9]}`:                                                           `{"kind":"product","of":["delay","delay"]}`,
		`{"type":"covariance","x":"a","y":"b","range_x":[0,1],"range_y":[0,2]}`:                                    `{"kind":"product","of":["a","b"]}`,
		`{"type":"difference","of":"late","between":["a","b"]}`:                                                    `{"kind":"share"}`,
		`{"type":"difference","of":"delay","range":[0,9],"between":["a","b"]}`:                                     `{"kind":"of","of":["delay"]}`,
		`{"type":"compare","a":{"type":"mean","of":"x","range":[0,1]},"b":{"type":"mean","of":"y","range":[0,1]}}`: `{"kind":"of","of":["x"]}`,
		`{"type":"passes","of":{"type":"fraction","of":"late"},"above":0.5}`:                                       `{"kind":"share"}`,
		`{"type":"argmax","of":[{"type":"mean","of":"x","range":[0,1]},{"type":"mean","of":"y","range":[0,1]}]}`:   `{"kind":"of","of":["x"]}`,
		`{"type":"loss","loss":"zero_one","label":"late","prediction":"x > 1"}`:                                    `{"kind":"share"}`,
		`{"type":"loss","loss":"absolute","range":[0,9],"label":"delay","prediction":"x"}`:                         `{"kind":"of","of":["delay"]}`,
		`{"type":"test","test":"value","query":{"type":"mean","of":"x","range":[0,1]},"equals":0}`:                 `{"kind":"of","of":["x"]}`,
		`{"type":"test","test":"goodness-of-fit","cells":["a"],"expected":[0.1]}`:                                  `{"kind":"share"}`,
		`{"type":"auc","label":"late","prediction":"x","edges":[0,0.5,1]}`:                                         `{"kind":"pure"}`,
		`{"type":"balanced_accuracy","label":"late","prediction":"x > 1"}`:                                         `{"kind":"pure"}`,
	} {
		q, err := Parse([]byte(body))
		if err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if got, err := json.Marshal(q.Measure()); err != nil || string(got) != want {
			t.Errorf("%s is in %s (%v), want %s", body, got, err, want)
		}
	}
}
