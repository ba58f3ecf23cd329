// Package gate decides for a pipeline whether a candidate may replace a baseline: by one compare question to a server, whose verdict is
// read and never worked out anew. Nothing here is statistics. What is never to happen is that a pipeline goes on without a verdict that says so.
package gate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/internal/members"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries/expr"
	"github.com/holdoutd/holdoutd/queries/model"
)

// A Verdict is what a gate says of a candidate.
type Verdict string

// The verdicts.
const (
	Passed   Verdict = "passed"    // the whole interval says that the candidate is better by more than was asked for
	NotShown Verdict = "not shown" // the interval does not say so; that is not a finding of no difference
	Worse    Verdict = "worse"     // the whole interval says that the candidate is worse than the baseline
)

// Exit codes of the verdicts. Only a candidate that passed ends with 0; no other code is shared with another outcome of the program.
const (
	ExitPassed   = 0
	ExitNotShown = 3
	ExitWorse    = 4
)

// ExitCode is what a pipeline sees.
func (v Verdict) ExitCode() int {
	switch v {
	case Passed:
		return ExitPassed
	case Worse:
		return ExitWorse
	}
	return ExitNotShown
}

// What the server calls the verdict of a compare.
const (
	yes       = "yes"
	no        = "no"
	undecided = "undecided"
)

// Judge reads the verdict of an answer to a compare that was asked with by, from 0 on, and least, which is true of losses. The verdict is
// the server's; an answer whose verdict is not what its own interval says is an error, and so is one without a verdict.
func Judge(a client.Answer, by float64, least bool) (Verdict, error) {
	low, high, bounded := Gain(a, least)
	says := undecided
	switch {
	case !bounded:
	case low > by:
		says = yes
	case high <= by:
		says = no
	}
	if a.Verdict != says {
		return "", fmt.Errorf("the answer's verdict is %q, but its interval says %q: nothing can be concluded from it", a.Verdict, says)
	}
	switch {
	case says == yes:
		return Passed, nil
	case bounded && high < 0:
		return Worse, nil
	}
	return NotShown, nil
}

// Gain is the interval of how much better the candidate is: of losses that of the baseline's minus the candidate's. It is false where no
// valid interval is known.
func Gain(a client.Answer, least bool) (low, high float64, ok bool) {
	if a.Value == nil || a.Interval == nil || a.Interval.Low == nil || a.Interval.High == nil {
		return 0, 0, false
	}
	if least {
		return -*a.Interval.High, -*a.Interval.Low, true
	}
	return *a.Interval.Low, *a.Interval.High, true
}

// A Metric is what models are compared by.
type Metric struct {
	Name  string          // as it was asked for
	Type  string          // of the query: one of compared
	Loss  json.RawMessage // of a loss: which one
	Least bool            // less is better
}

// called are other names for the losses, and for the area: those of scikit-learn.
var called = map[string]string{
	"roc_auc": "auc", "log_loss": "log", "neg_log_loss": "log", "neg_brier_score": "brier",
	"mean_absolute_error": "absolute", "neg_mean_absolute_error": "absolute", "mean_squared_error": "squared", "neg_mean_squared_error": "squared",
}

// compared are the types of queries about models that a compare takes.
var compared = []string{"accuracy", "balanced_accuracy", "auc", "loss"}

// Metrics are the names of what models can be compared by: types of queries, each loss, and scikit-learn's names for them.
func Metrics(types []members.Type) []string {
	names := append(slices.Clone(compared[:len(compared)-1]), losses(types)...)
	return append(names, slices.Sorted(maps.Keys(called))...)
}

func losses(types []members.Type) []string {
	loss, _ := members.Of(types, "loss")
	which, _ := loss.Member("loss")
	return which.Choices()
}

// MetricOf is the metric with a name.
func MetricOf(types []members.Type, name string) (Metric, error) {
	meant := cmp.Or(called[name], name)
	switch {
	case meant != "loss" && slices.Contains(compared, meant):
		return Metric{Name: name, Type: meant}, nil
	case slices.Contains(losses(types), meant):
		loss, err := json.Marshal(meant)
		return Metric{Name: name, Type: "loss", Loss: loss, Least: true}, err
	}
	all := Metrics(types)
	if _, ok := members.Of(types, name); ok {
		return Metric{}, fmt.Errorf("models are not compared by %s, which is not the mean of something in each row; there are %s", name, strings.Join(all, ", "))
	}
	if near := nearest.Name(name, all); near != "" {
		return Metric{}, fmt.Errorf("there is no metric %q; did you mean %s?", name, near)
	}
	return Metric{}, fmt.Errorf("there is no metric %q; there are %s", name, strings.Join(all, ", "))
}

// A Subject is what a file says of a model: itself, or its predictions, as members of a query.
type Subject map[string]json.RawMessage

// besideForms are the members that a model may have beside the one that says its form.
var besideForms = []string{"threshold", "features", "sha256"}

// subjectMembers are the members that a file may have beside each other, where it is no model or predictions by itself.
var subjectMembers = []string{"model", "features", "prediction", "predictions"}

// SubjectOf reads a file: a model as docs/MODELS.md has it; predictions, a list of a number for each row or their bytes or digest; or an
// object with the members of a query about a model: {"model": …, "features": …}.
func SubjectOf(types []members.Type, file json.RawMessage) (Subject, error) {
	var list []json.RawMessage
	if json.Unmarshal(file, &list) == nil && list != nil {
		return Subject{"predictions": file}, nil
	}
	var object map[string]json.RawMessage
	accuracy, _ := members.Of(types, "accuracy")
	model, _ := accuracy.Member("model")
	forms := slices.DeleteFunc(slices.Clone(model.Kinds()), func(name string) bool { return slices.Contains(besideForms, name) })
	if json.Unmarshal(file, &object) == nil && len(object) > 0 {
		all := func(of []string) bool {
			for name := range object {
				if !slices.Contains(of, name) {
					return false
				}
			}
			return true
		}
		switch {
		case all(append(forms, besideForms...)) && slices.ContainsFunc(forms, func(form string) bool { return object[form] != nil }):
			return Subject{"model": file}, nil
		case all([]string{"f32", "f64", "bits", "sha256", "count"}):
			return Subject{"predictions": file}, nil
		case all(subjectMembers):
			return object, nil
		}
	}
	return nil, fmt.Errorf("is neither a model (%s, as docs/MODELS.md has them), nor predictions (a list with a number for each row, or its bytes), nor an object of %s",
		strings.Join(forms, ", "), strings.Join(subjectMembers, ", "))
}

// ReadsTruth are the columns that a model's file and the truth both read, sorted. The truth is the column of that name or, where it is no
// column, an expression. A model that reads them was made from what it is to predict: it is rightly found to be better, and of no use. What cannot
// be read here has none: the server says what is wrong with it.
func ReadsTruth(truth string, columns []string, s Subject) []string {
	told := []string{truth}
	if !slices.Contains(columns, truth) {
		told = columnsOf(truth)
	}
	var read []string
	var computed, own map[string]string
	var parts map[string]json.RawMessage
	if json.Unmarshal(s["model"], &parts) == nil && parts != nil {
		_ = json.Unmarshal(parts["features"], &own) // what is no object of texts computes nothing
		delete(parts, "features")
		if rest, err := json.Marshal(parts); err == nil {
			if m, err := model.Parse(rest); err == nil {
				read, _ = m.Columns()
			}
		}
	}
	var text string
	if json.Unmarshal(s["prediction"], &text) == nil {
		read = append(read, columnsOf(text)...)
	}
	_ = json.Unmarshal(s["features"], &computed)
	for _, by := range []map[string]string{computed, own} {
		read = slices.DeleteFunc(read, func(name string) bool { _, is := by[name]; return is })
		for _, text := range by {
			read = append(read, columnsOf(text)...)
		}
	}
	read = slices.DeleteFunc(read, func(name string) bool { return !slices.Contains(told, name) })
	slices.Sort(read)
	return slices.Compact(read)
}

func columnsOf(expression string) []string {
	s, err := expr.Parse(expression)
	if err != nil {
		return nil
	}
	return s.Columns()
}

// Query is the compare question: the candidate is what may be better. of are further members of the questions about both models, such as
// label, and own are members of the compare itself, such as where. by is from 0 on.
func Query(types []members.Type, m Metric, baseline, candidate Subject, by float64, of, own map[string]json.RawMessage) (json.RawMessage, error) {
	if by < 0 || by != by || by-by != 0 {
		return nil, errors.New("how much better the candidate must be is a number from 0 on")
	}
	inner, ok := members.Of(types, m.Type)
	if !ok {
		return nil, fmt.Errorf("there is no query type %s", m.Type)
	}
	operand := func(s Subject) json.RawMessage {
		given := maps.Clone(of)
		if given == nil {
			given = map[string]json.RawMessage{}
		}
		maps.Copy(given, s)
		if m.Loss != nil {
			given["loss"] = m.Loss
		}
		return inner.Query(given)
	}
	for name := range of {
		if _, known := inner.Member(name); !known {
			return nil, fmt.Errorf("%s has no %s", m.Name, name)
		}
	}
	outer, ok := members.Of(types, "compare")
	if !ok {
		return nil, errors.New("there is no query type compare")
	}
	given := maps.Clone(own)
	if given == nil {
		given = map[string]json.RawMessage{}
	}
	given["a"], given["b"] = operand(baseline), operand(candidate)
	number, err := json.Marshal(by)
	if err != nil {
		return nil, err
	}
	given["by"] = number
	if m.Least {
		given["least"] = json.RawMessage("true")
	}
	return outer.Query(given), nil
}
