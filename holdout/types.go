package holdout

import (
	"encoding/json"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// Scope is what a key may do.
type Scope string

const (
	Admin   Scope = "admin"
	Analyst Scope = "analyst"
)

// Principal is who asks.
type Principal struct {
	KeyID string
	Name  string
	Scope Scope
}

// Settings are the choices made at creation, one flat parameter each (their JSON name).
type Settings struct {
	Name       string  `json:"name"`
	Holdout    float64 `json:"holdout"`            // in (0,1]: the fraction of units; above 1 and whole: a count; 0 means DefaultHoldout
	Unit       string  `json:"unit,omitempty"`     // a column, or day(column)
	Label      string  `json:"label,omitempty"`    // a column; recorded on the card
	Features   string  `json:"features,omitempty"` // "secret" (default), "public": everything but the label is given out, by row
	Stratify   string  `json:"stratify,omitempty"` // a column whose counts become public
	Split      string  `json:"split,omitempty"`    // "hash" (default), "time:COLUMN", "given" (parts training and holdout were uploaded)
	Mechanism  string  `json:"mechanism,omitempty"`
	Form       string  `json:"form,omitempty"`
	Preset     string  `json:"preset,omitempty"`
	Questions  int64   `json:"questions,omitempty"`
	Rounds     int64   `json:"rounds,omitempty"` // 0: one by one
	Tokens     int64   `json:"tokens,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`
	HalfWidth  float64 `json:"half_width,omitempty"`
	Threshold  float64 `json:"threshold,omitempty"`
	Sigma      float64 `json:"sigma,omitempty"`
	Bounds     string  `json:"bounds,omitempty"` // "any" (default), "published"

	// LargestUnit, where it is declared, is the most rows that a unit of the population has; an upload with a larger one is refused. 0
	// takes the largest unit of the training part instead, and with "weight":"row" a larger one counts as one of that size.
	LargestUnit int64 `json:"largest_unit,omitempty"`
}

// Card is what everyone with a key may know about a holdout. Nothing on it depends on holdout rows, but for the
// number of units and rows and, when stratified, the counts of the strata.
type Card struct {
	ID       string    `json:"id"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created"`
	Settings Settings  `json:"settings"`
	Rows     Counts    `json:"rows"`
	Units    Counts    `json:"units"`
	Unit     string    `json:"unit"` // "row", the unit column, or day(column)
	// LargestUnit is the most votes that a unit has with "weight":"row": declared, or the rows of the training part's largest unit; 1
	// where units are rows.
	LargestUnit int64                  `json:"largest_unit"`
	Columns     []ColumnCard           `json:"columns"`
	Skipped     []Skipped              `json:"skipped"`
	Strata      map[string]Counts      `json:"strata,omitempty"`
	Guarantee   thresholdout.Guarantee `json:"guarantee"`
	Assumes     string                 `json:"assumes,omitempty"` // what the mechanism needs for its budget to last, or for its target to be the one on the card
	NullRule    string                 `json:"null_rule"`
	Target      string                 `json:"target"`
	Warnings    []Warning              `json:"warnings"`
	// Parts are the fingerprints of the holdout's tables ("sha256:…"), by their names in its directory. They say nothing about rows.
	Parts  map[string]string `json:"parts,omitempty"`
	Budget *Budget           `json:"budget,omitempty"`
	// State is "damaged" or "rolled-back" for a holdout that gives no new answers; empty for one that does.
	State string `json:"state,omitempty"`
}

// Counts are the sizes of the two parts.
type Counts struct {
	Training int64 `json:"training"`
	Holdout  int64 `json:"holdout"`
}

// ColumnCard is a column as the training part shows it.
type ColumnCard struct {
	Name     string       `json:"name"`
	Kind     dataset.Kind `json:"kind"`
	Source   string       `json:"source"`
	Nulls    int64        `json:"nulls"`              // in training
	Min      *float64     `json:"min,omitempty"`      // in training; numbers
	Max      *float64     `json:"max,omitempty"`      // in training; numbers
	Earliest *time.Time   `json:"earliest,omitempty"` // in training; times
	Latest   *time.Time   `json:"latest,omitempty"`
	Distinct int64        `json:"distinct,omitempty"` // in training; texts
	Values   []string     `json:"values,omitempty"`   // in training; texts with few values

	Dictionary *dataset.TextShape `json:"dictionary,omitempty"` // texts; of the whole upload, rounded up to powers of two
}

// Skipped is a column of the upload that is not part of the holdout.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Warning is something that the owner should know. Code is stable: "dependent-rows", …
type Warning struct {
	Code   string  `json:"code"`
	Detail string  `json:"detail"`
	Column string  `json:"column,omitempty"`
	Unit   string  `json:"unit,omitempty"` // the unit setting that would mend it
	Effect float64 `json:"design_effect,omitempty"`
}

// What package session says of budgets and answers is said in its words.
type (
	Budget = session.Budget
	Meter  = session.Meter
	Cost   = session.Cost
	Item   = session.Item
)

// Reasons why an item of a batch was not asked; such an item costs nothing.
const (
	QuestionsExhausted = session.QuestionsExhausted
	TokensExhausted    = session.TokensExhausted
	RoundsExhausted    = session.RoundsExhausted
	HalfWidthTooNarrow = session.HalfWidthTooNarrow
)

// Answer is one reply to one question.
type Answer struct {
	Body     json.RawMessage `json:"answer"` // the recorded bytes, the same for ever
	Budget   Budget          `json:"budget"`
	Replayed bool            `json:"replayed"`
}

// BatchItem is one item of a batch, in order: an answer, or the reason why it was not asked.
type BatchItem struct {
	Body     json.RawMessage `json:"answer,omitempty"`
	Replayed bool            `json:"replayed"`
	NotAsked string          `json:"not_asked,omitempty"` // "tokens-exhausted", "half-width-too-narrow", "rounds-exhausted", or with partial "questions-exhausted"
}

// BatchAnswer is the reply to a batch.
type BatchAnswer struct {
	Answers []BatchItem `json:"answers"`
	Budget  Budget      `json:"budget"`
}

// Explanation is what is known of a query without touching a holdout row. It costs nothing.
type Explanation struct {
	Query     string          `json:"query"`     // the ID, "sha256:…"
	Canonical json.RawMessage `json:"canonical"` // the canonical form, which the ID is the hash of
	Functions []string        `json:"functions"` // the row functions, for people
	Combine   string          `json:"combine"`   // how their means make the value
	Target    string          `json:"target"`    // what the interval is about
	NullRule  string          `json:"null_rule"`
	Cost      Cost            `json:"cost"`
	Training  *float64        `json:"training"`           // what the training part says; null without one or where undefined
	HalfWidth *float64        `json:"half_width"`         // of the interval that an answer now would get, in the query's own units, of items the widest; null where there is none
	Items     []Item          `json:"items,omitempty"`    // what the training part says, with the intervals that answers like it would get
	Selected  string          `json:"selected,omitempty"` // what the training part would select
	Regret    *float64        `json:"regret,omitempty"`   // of a selection
	Verdict   queries.Verdict `json:"verdict,omitempty"`  // what an answer like the training part would decide
	Bound     string          `json:"bound,omitempty"`
	Answered  bool            `json:"answered"` // asking would be a replay, at no cost
	Warnings  []Warning       `json:"warnings"`
}

// AnswerPage is a piece of the history of a holdout, oldest first. Next is the cursor of the next page, 0 at the end.
type AnswerPage struct {
	Answers []json.RawMessage `json:"answers"`
	Next    int64             `json:"next,omitempty"`
}

// KeyInfo is what is known of an API key; its secret is not kept.
type KeyInfo struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Scope   Scope     `json:"scope"`
	Created time.Time `json:"created"`
	Revoked bool      `json:"revoked"`
}
