package queries

import (
	"encoding/json"
	"strings"
)

// TitleOf is what a person calls the query with this canonical form, in a line: "accuracy for churned", "mean of delay where origin == 'SFO'". A text that is no query has the title "a query".
func TitleOf(canonical []byte) string {
	var t titled
	if json.Unmarshal(canonical, &t) != nil || t.Type == "" {
		return "a query"
	}
	title := t.subject()
	if t.Where != "" {
		title += " where " + t.Where
	}
	return title
}

// titled is what a canonical form says for its title.
type titled struct {
	Type, Label, Loss, Test, X, Y, Where, By string
	Of, A, B, Query                          json.RawMessage
	Between                                  []string
	P                                        *float64
	Equals                                   *float64
}

// scoreNames are what types, and the losses of the type loss, are called that are about a model or predictions.
var scoreNames = map[string]string{
	"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy", "precision": "precision", "recall": "recall", "f1": "F1", "auc": "AUC", "r2": "R²", "rmse": "RMSE", "confusion": "confusion", "calibration": "calibration",
	"log": "log loss", "brier": "Brier score", "hinge": "hinge loss", "squared": "squared error", "absolute": "absolute error", "pinball": "pinball loss", "zero_one": "error rate",
}

func (t *titled) subject() string {
	name, score := scoreNames[t.Type]
	if t.Type == "loss" {
		if name, score = scoreNames[t.Loss]; !score {
			name, score = t.Loss+" loss", true
		}
	}
	of := text(t.Of)
	switch {
	case score && t.Label != "":
		return name + " for " + t.Label
	case score:
		return name
	case t.Type == "compare":
		return TitleOf(t.A) + ", second minus first"
	case t.Type == "passes":
		return "whether " + TitleOf(t.Of) + " passes"
	case t.Type == "test" && t.Query != nil:
		return "test of " + TitleOf(t.Query)
	case t.Type == "test":
		return strings.TrimSpace("test (" + t.Test + ") of " + t.about(of))
	case t.Type == "fraction":
		return "share of " + of
	case t.X != "" && t.Y != "":
		return t.Type + " of " + t.X + " and " + t.Y
	case len(t.Between) > 0:
		return t.Type + " in " + of + " between " + strings.Join(t.Between, " and ")
	case t.By != "":
		return of + " by " + t.By
	case of != "":
		return t.Type + " of " + of
	}
	return t.Type
}

// about is what a test looks at.
func (t *titled) about(of string) string {
	if t.X != "" {
		return t.X + " and " + t.Y
	}
	if len(t.Between) > 0 {
		return of + " between " + strings.Join(t.Between, " and ")
	}
	return of
}
