package queries

import "encoding/json"

// Measure says in what the numbers of an answer are measured: what may stand on one axis. It is said by the query's text alone.
type Measure struct {
	Kind MeasureKind `json:"kind" enum:"share,count,of,product,pure" doc:"share: a part of 1; count: of rows or units; of: as the expression in of; product: as the product of the two expressions in of, for example of a variance; pure: a number without a unit, such as a correlation or an AUC"`
	Of   []string    `json:"of,omitempty" doc:"row expressions: one of kind of, two of kind product"`
}

// MeasureKind is one of the constants below.
type MeasureKind string

// Kinds of measures.
const (
	MeasureShare   MeasureKind = "share"
	MeasureCount   MeasureKind = "count"
	MeasureOf      MeasureKind = "of"
	MeasureProduct MeasureKind = "product"
	MeasurePure    MeasureKind = "pure"
)

// Measure is that of the answer's value or, where the answer is many numbers, of its items.
func (q *Query) Measure() Measure { return MeasureOfText(q.Canonical()) }

// MeasureOfText is that of the query with this canonical form.
func MeasureOfText(canonical []byte) Measure { return nested(canonical) }

// queryText is what a canonical form says of the measure of an answer.
type queryText struct {
	Type, Label, Loss, Test, X, Y string
	Weight                        Weight
	Range                         []float64
	Of, A, Query                  json.RawMessage
}

// measure is false for a type that it does not know.
func (t *queryText) measure() (m Measure, known bool) {
	switch t.Type {
	case "fraction", "accuracy", "precision", "recall", "histogram", "frequencies", "confusion", "calibration":
		return Measure{Kind: MeasureShare}, true
	case "f1", "auc", "balanced_accuracy", "kendall", "correlation", "r2", "gradient", "screen":
		return Measure{Kind: MeasurePure}, true
	case "count":
		return Measure{Kind: MeasureCount}, true
	case "mean", "sum", "quantile", "median", "stddev":
		return measureOf(text(t.Of)), true
	case "groups", "difference":
		return t.numberOrShare(), true
	case "variance":
		return Measure{MeasureProduct, []string{text(t.Of), text(t.Of)}}, true
	case "covariance":
		return Measure{MeasureProduct, []string{t.X, t.Y}}, true
	case "rmse":
		return measureOf(t.Label), true
	case "loss":
		return t.ofLoss(), true
	case "compare":
		return nested(t.A), true
	case "passes":
		return nested(t.Of), true
	case "argmax":
		return t.ofFirst(), true
	case "test":
		return t.ofEffect(), true
	}
	return Measure{Kind: MeasurePure}, false
}

func measureOf(expression string) Measure { return Measure{MeasureOf, []string{expression}} }

// numberOrShare is about a number, which has a range, or about a condition, which has none.
func (t *queryText) numberOrShare() Measure {
	if t.Range == nil {
		return Measure{Kind: MeasureShare}
	}
	return measureOf(text(t.Of))
}

func (t *queryText) ofLoss() Measure {
	switch t.Loss {
	case "zero_one":
		return Measure{Kind: MeasureShare}
	case "squared":
		return Measure{MeasureProduct, []string{t.Label, t.Label}}
	case "absolute", "pinball":
		return measureOf(t.Label)
	}
	return Measure{Kind: MeasurePure}
}

// ofEffect is that of a test's effect.
func (t *queryText) ofEffect() Measure {
	switch t.Test {
	case "mean", "two-sample":
		return measureOf(text(t.Of))
	case "correlation":
		return Measure{MeasureProduct, []string{t.X, t.Y}}
	case "slope":
		return Measure{Kind: MeasurePure}
	case "value":
		return nested(t.Query)
	}
	return Measure{Kind: MeasureShare}
}

// ofFirst is that of the first of many candidates, which all have the same range.
func (t *queryText) ofFirst() Measure {
	var of []json.RawMessage
	if json.Unmarshal(t.Of, &of) != nil || len(of) == 0 {
		return Measure{Kind: MeasurePure}
	}
	return nested(of[0])
}

// nested is the measure of a query inside of another.
func nested(query json.RawMessage) Measure {
	var t queryText
	if json.Unmarshal(query, &t) != nil {
		return Measure{Kind: MeasurePure}
	}
	m, _ := t.measure()
	return m
}

// VotesOfText says what has one vote each in the answer to the query with this canonical form, where units have several rows: [WeightUnit] or [WeightRow]; "" where nothing is averaged, as in a number of
// rows or a sum over them.
func VotesOfText(canonical []byte) Weight {
	var t queryText
	if json.Unmarshal(canonical, &t) != nil {
		return ""
	}
	switch {
	case t.Type == "count" || t.Type == "sum":
		return ""
	case t.Type == "passes":
		return VotesOfText(t.Of)
	case t.Type == "test" && t.Test == "value":
		return VotesOfText(t.Query)
	case t.Type == "argmax":
		var of []json.RawMessage
		if json.Unmarshal(t.Of, &of) != nil || len(of) == 0 {
			return ""
		}
		return VotesOfText(of[0])
	case t.Weight == WeightRow:
		return WeightRow
	}
	return WeightUnit
}

func text(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // an expression is a text
	return s
}
