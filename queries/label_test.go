package queries

import (
	"reflect"
	"strings"
	"testing"
)

// zeroOnes is a training part of which the numbers of one column are known.
type zeroOnes struct {
	counted
	values []float64
}

func (z zeroOnes) Numbers(column string, most int) []float64 {
	if column != "v" || len(z.values) > most {
		return nil
	}
	return z.values
}

// labelledByNumbers are queries whose label, LABEL, is a condition.
var labelledByNumbers = []string{
	`{"type":"accuracy","label":"LABEL","prediction":"w"}`,
	`{"type":"precision","label":"LABEL","prediction":"w"}`,
	`{"type":"recall","label":"LABEL","prediction":"w"}`,
	`{"type":"balanced_accuracy","label":"LABEL","prediction":"w"}`,
	`{"type":"f1","label":"LABEL","prediction":"w"}`,
	`{"type":"confusion","label":"LABEL","prediction":"w"}`,
	`{"type":"auc","label":"LABEL","prediction":"v","edges":[0.2,0.5]}`,
	`{"type":"calibration","label":"LABEL","prediction":"v","edges":[0,0.5,1]}`,
	`{"type":"calibration","label":"LABEL","prediction":"v","edges":[0,0.5,1],"form":"gap"}`,
	`{"type":"loss","loss":"log","label":"LABEL","prediction":"v"}`,
	`{"type":"loss","loss":"brier","label":"LABEL","prediction":"v"}`,
	`{"type":"loss","loss":"zero_one","label":"LABEL","prediction":"w"}`,
	`{"type":"loss","loss":"hinge","label":"LABEL","prediction":"v","range":[0,5]}`,
	`{"type":"gradient","label":"LABEL","model":{"linear":{"weights":{"v":0.1},"link":"logit"}},"clip":1}`,
	`{"type":"screen","label":"LABEL","features":["v"],"statistic":"product","range":[0,1]}`,
	`{"type":"compare","a":{"type":"accuracy","label":"LABEL","prediction":"w"},"b":{"type":"accuracy","label":"LABEL","prediction":"!w"}}`,
}

// TestLabelsOfZeroAndOne: a label that is a column of 0 and 1 in the training part asks what the condition that it is 1 asks, and the plan says so. Of other columns the refusal names a condition.
func TestLabelsOfZeroAndOne(t *testing.T) {
	labelled := func(body, label string) *Query { return mustParse(t, strings.ReplaceAll(body, "LABEL", label)) }
	for _, body := range labelledByNumbers {
		for _, values := range [][]float64{{0, 1}, {0}, {1}} {
			training := Training(zeroOnes{values: values})
			number, err := labelled(body, "v").Compile(t.Context(), small, training)
			if err != nil {
				t.Errorf("%s with %v in training: %v", body, values, err)
				continue
			}
			condition, err := labelled(body, "v == 1").Compile(t.Context(), small, training)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(number.Functions, condition.Functions) || !reflect.DeepEqual(number.Shape, condition.Shape) {
				t.Errorf("%s with %v in training asks something else than with v == 1", body, values)
			}
			if !strings.HasPrefix(number.Words.Null, "v holds where it is 1; ") || strings.Contains(condition.Words.Null, "holds where it is 1") {
				t.Errorf("%s: %q", body, number.Words.Null)
			}
		}
		if strings.Contains(body, `"screen"`) { // whose label may be any number, with a range
			continue
		}
		for _, c := range []struct {
			values []float64
			want   string
		}{{[]float64{0, 1, 2}, "such as v == 2"}, {[]float64{1, 2}, "such as v == 2"}, {[]float64{-1, 1}, "such as v == 1"}, {[]float64{0, 0.5}, "such as v == 0.5"}, {nil, "such as v > 0"}} {
			_, err := labelled(body, "v").Compile(t.Context(), small, Training(zeroOnes{values: c.values}))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %v in training: %v", body, c.values, err)
			}
		}
		if _, err := labelled(body, "v").Compile(t.Context(), small); err == nil {
			t.Errorf("%s is taken without a training part", body)
		}
	}
}
