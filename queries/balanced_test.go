package queries

import (
	"errors"
	"strings"
	"testing"
)

// TestBalancedAccuracyOfClasses: a model of two classes is asked about where the label is one of them, and no other row counts; a model of more, and two models of different classes, are refused with what to do.
// It would notice rows of a third class that count as the first one, and a compare of two decisions about different classes.
func TestBalancedAccuracyOfClasses(t *testing.T) {
	softmax := func(classes string) string {
		return `"label":"u","model":{"softmax":{"classes":[` + classes + `],"intercepts":[0.1,0` + strings.Repeat(",0", strings.Count(classes, ",")-1) + `],"weights":{"v":[1,-1` + strings.Repeat(",0", strings.Count(classes, ",")-1) + `]}}}`
	}
	two := compiled(t, `{"type":"balanced_accuracy",`+softmax("1,2")+`}`, people)
	if len(two.Functions) != 4 || !strings.Contains(two.Words.Target, "u is 1 or 2") {
		t.Errorf("%d functions, about %s", len(two.Functions), two.Words.Target)
	}
	one := compiled(t, `{"type":"balanced_accuracy","label":"w","prediction":"v > 1"}`, people)
	if len(one.Functions) != 4 || one.Range != (Range{Low: 0, High: 1}) {
		t.Errorf("%d functions, in %v", len(one.Functions), one.Range)
	}
	for body, want := range map[string]string{
		`{"type":"balanced_accuracy",` + softmax("1,2,3") + `}`:                                                                                                                 "/model: has 3 classes, and balanced accuracy is answered of two: ask for the recall of each class, with positive",
		`{"type":"compare","a":{"type":"balanced_accuracy",` + softmax("1,2") + `},"b":{"type":"balanced_accuracy",` + softmax("2,1") + `}}`:                                    "/b/model: must have the classes of a's, in their order",
		`{"type":"compare","a":{"type":"balanced_accuracy","label":"w","prediction":"v > 1"},"b":{"type":"auc","label":"w","prediction":"v","edges":[1]}}`:                      "/a",
		`{"type":"compare","a":{"type":"balanced_accuracy","label":"w","prediction":"v > 1"},"b":{"type":"balanced_accuracy","label":"!w","prediction":"v > 1"}}`:               "/b/label: must be that of a",
		`{"type":"compare","weight":"row","a":{"type":"balanced_accuracy","label":"w","prediction":"v > 1"},"b":{"type":"balanced_accuracy","label":"w","prediction":"v > 2"}}`: "/weight: goes without balanced_accuracy",
	} {
		_, err := mustParse(t, body).Compile(t.Context(), people, Grouped(true))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Violations[0].String(), want) {
			t.Errorf("%s: %v, want %s", body, err, want)
		}
	}
}
