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
	Granted Scope = "granted" // what its grants say, and nothing without one
)

// Principal is who asks.
type Principal struct {
	KeyID string
	Name  string
	Scope Scope
}

// Settings are the choices made at creation, one flat parameter each (their JSON name).
type Settings struct {
	Name    string  `json:"name"`
	Holdout float64 `json:"holdout"` // in (0,1]: the fraction of units; above 1 and whole: a count; 0 means DefaultHoldout
	// Check is the check part: the fraction of units, or above 1 and whole their count; 0: none; nil: DefaultCheck where a label is named, else none. Absent on the cards of
	// holdouts that were created before there were check parts.
	Check *float64 `json:"check,omitempty"`

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
	Bounds     string  `json:"bounds,omitempty"`  // "any" (default), "published"
	Overlap    string  `json:"overlap,omitempty"` // "refuse" (default), "accepted": a table is taken though rows of it are known from other holdouts
	Cells      string  `json:"cells,omitempty"`   // the declared cells, as rowfn/cells reads them
	Capped     float64 `json:"capped,omitempty"`  // 0: a tenth
	Sealed     float64 `json:"sealed,omitempty"`  // the share of the units that no question reads
	// Source is the name of the engine in which the held-out rows lie; "": here.
	Source string `json:"source,omitempty"`
	// Path is that of a table in a source of the server's operator, behind the name of that source: NAME/PATH, or NAME/TABLE of a database; "": the table was uploaded.
	Path string `json:"path,omitempty"`
	// Succeeds is the id of a retired holdout that this one comes after.
	Succeeds string `json:"succeeds,omitempty"`

	// LargestUnit, where it is declared, is the most rows that a unit of the population has; an upload with a larger one is refused. 0
	// takes the largest unit of the training part instead, and with "weight":"row" a larger one counts as one of that size.
	LargestUnit int64 `json:"largest_unit,omitempty"`
}

// Card is what everyone with a key may know about a holdout. Nothing on it depends on holdout rows, but for the
// number of units and rows and, when stratified, the counts of the strata.
type Card struct {
	ID       string    `json:"id,omitempty" doc:"absent on the card of a dry run, which makes no holdout"`
	Name     string    `json:"name"`
	Created  time.Time `json:"created,omitzero"`
	Draft    bool      `json:"draft,omitempty" doc:"true as long as nothing was asked and nothing of the parts was shown: the table may be created again with other settings. The card then says nothing that depends on rows; the rest is on it after the first look"`
	Replaces string    `json:"replaces,omitempty" doc:"the id of the holdout in whose place this one was created again"`
	Settings Settings  `json:"settings"`
	Rows     Counts    `json:"rows,omitzero" doc:"absent on a draft whose units are not rows"`
	Units    Counts    `json:"units"`
	Unit     string    `json:"unit" doc:"what is independent of the others: row, a column whose rows with the same value belong together, or day(column)"`

	LargestUnit int64                  `json:"largest_unit,omitempty" doc:"the most votes that a unit has with weight row: declared, or the rows of the training part's largest unit; 1 where units are rows"`
	Columns     []ColumnCard           `json:"columns"`
	Skipped     []Skipped              `json:"skipped"`
	Strata      map[string]Counts      `json:"strata,omitempty" doc:"the sizes of each stratum, where the split is stratified"`
	Guarantee   thresholdout.Guarantee `json:"guarantee"`
	Chosen      string                 `json:"chosen,omitempty" doc:"where the settings name no budget: how many questions the guarantee has instead, and how wide their intervals are; absent where they do"`
	Widest      *float64               `json:"widest_half_width,omitempty" doc:"of a question about a share of all units, beside the planned half_width of the guarantee: no answer has a wider interval while nothing is spent, whatever its outcome. Each token that is spent, and under guess_and_check each rough answer, widens what follows. The question brings no half_width and no promise of its own. Absent where nothing is known"`
	Assumes     string                 `json:"assumes,omitempty" doc:"what the mechanism needs for its budget to last, or for its target to be the one on the card"`
	NullRule    string                 `json:"null_rule" doc:"what a null counts as"`
	Target      string                 `json:"target" doc:"what the intervals are about"`
	Warnings    []Warning              `json:"warnings"`
	Overlaps    []Overlap              `json:"overlaps,omitempty" doc:"what its rows have in common with earlier holdouts, which an admin has accepted. It stays, and no interval covers it"`
	Parts       map[string]string      `json:"parts,omitempty" doc:"the fingerprints of the tables, sha256:…, by their names; they say nothing about rows"`
	Budget      *Budget                `json:"budget,omitempty"`
	Closed      bool                   `json:"closed,omitempty" doc:"true where a final report has closed the holdout: it answers nothing more, and the report can be read"`
	Retired     bool                   `json:"retired,omitempty" doc:"true where it was retired: it answers nothing more, and its rows were released. Do not judge a model that was fitted to them by its answers"`
	Succeeds    string                 `json:"succeeds,omitempty" doc:"the retired holdout before this one"`
	SucceededBy []string               `json:"succeeded_by,omitempty" doc:"the holdouts after this one"`
	State       string                 `json:"state,omitempty" doc:"damaged or rolled-back: the holdout gives no new answers; absent where it does"`
}

// IDPrefix is how the ids of holdouts begin.
const IDPrefix = "ho_"

// Counts are the sizes of the parts.
type Counts struct {
	Training int64 `json:"training"`
	Check    int64 `json:"check,omitempty" doc:"of the part that answers about models are compared with, which is never handed out; absent where there is none"`
	Holdout  int64 `json:"holdout"`
}

// least is the size of the smallest part that answers are compared with.
func (c Counts) least() int64 {
	if c.Check > 0 {
		return c.Check
	}
	return c.Training
}

// ColumnCard is a column as the training part shows it.
type ColumnCard struct {
	Name     string       `json:"name"`
	Kind     dataset.Kind `json:"kind" doc:"number, bool, text or time"`
	Source   string       `json:"source" doc:"the type in the uploaded file"`
	Note     string       `json:"note,omitempty" doc:"what the values are where the type does not say it, such as seconds since midnight"`
	Nulls    *int64       `json:"nulls,omitempty" doc:"rows of the training part without a value"`
	Min      *float64     `json:"min,omitempty" doc:"of numbers"`
	Max      *float64     `json:"max,omitempty" doc:"of numbers"`
	Earliest *time.Time   `json:"earliest,omitempty" doc:"of times"`
	Latest   *time.Time   `json:"latest,omitempty" doc:"of times"`
	Distinct int64        `json:"distinct,omitempty" doc:"of texts: how many different ones"`
	Values   []string     `json:"values,omitempty" doc:"of texts with few different ones"`
	Category bool         `json:"category,omitempty" doc:"of texts that are categories of pandas without an order"`
	Order    []string     `json:"order,omitempty" doc:"of texts that are categories in an order, as their writer has it: those of the training part, from the first to the last"`

	Dictionary *dataset.TextShape `json:"dictionary,omitempty"` // of texts
}

// Skipped is a column of the upload that is not part of the holdout.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// What package session says of budgets and answers is said in its words.
type (
	Budget = session.Budget
	Meter  = session.Meter
	Cost   = session.Cost
	Item   = session.Item

	Warning = session.Warning
	Watched = session.Watched
)

// Reasons why an item of a batch was not asked; such an item costs nothing.
const (
	QuestionsExhausted = session.QuestionsExhausted
	TokensExhausted    = session.TokensExhausted
	RoundsExhausted    = session.RoundsExhausted
	HalfWidthTooNarrow = session.HalfWidthTooNarrow
	HoldoutClosed      = session.HoldoutClosed
	HoldoutRetired     = session.HoldoutRetired
)

// Answer is one reply to one question.
type Answer struct {
	Body     json.RawMessage `json:"answer"` // the recorded bytes, the same for ever
	Budget   Budget          `json:"budget"`
	Replayed bool            `json:"replayed"`
	Per      string          `json:"per,omitempty"`      // what has one vote each, where units have several rows: a unit as the card names it, or row
	Warnings []Warning       `json:"warnings,omitempty"` // about the request
}

// BatchItem is one item of a batch, in order: an answer, or the reason why it was not asked.
type BatchItem struct {
	Body     json.RawMessage `json:"answer,omitempty"`
	Replayed bool            `json:"replayed"`
	Per      string          `json:"per,omitempty"`       // of an answer: what has one vote each
	NotAsked string          `json:"not_asked,omitempty"` // "tokens-exhausted", "half-width-too-narrow", "rounds-exhausted", "interrupted", or with partial "questions-exhausted", "grant-questions-exhausted", "grant-tokens-exhausted", "max-questions"
}

// BatchAnswer is the reply to a batch.
type BatchAnswer struct {
	Answers  []BatchItem `json:"answers"`
	Budget   Budget      `json:"budget"`
	Warnings []Warning   `json:"warnings,omitempty"` // about the request
	Repeated bool        `json:"-"`                  // it is the recorded outcome of the request under its Idempotency-Key
}

// Explanation is what is known of a query without touching a holdout row. It costs nothing.
type Explanation struct {
	Query     string            `json:"query" doc:"the query's identity: sha256:…"`
	Canonical json.RawMessage   `json:"canonical" doc:"the canonical form of the query, which its identity is the hash of. A member of more than 4096 bytes, such as a model, stands as {bytes, digest}"`
	Functions []string          `json:"functions" doc:"the row functions, for people"`
	Combine   string            `json:"combine" doc:"how their means make the value"`
	Target    string            `json:"target" doc:"what the interval is about"`
	NullRule  string            `json:"null_rule" doc:"what a null counts as"`
	Per       string            `json:"per,omitempty" doc:"where units have several rows: what has one vote each, the column whose values are units, day(column), or row"`
	Cost      Cost              `json:"cost"`
	Training  *float64          `json:"training" doc:"what the rows of value_from say; null without such or where it is undefined"`
	ValueFrom session.ValueFrom `json:"value_from,omitempty" enum:"check,training,training+check" doc:"what an answer is compared with, and which rows training is about: check: the part that is kept for questions about models; training: the part that everyone with a key can download; training+check: both. Absent where no part has a say"`
	HalfWidth *float64          `json:"half_width" doc:"the planned half-width, in the query's own units: of an answer now with the likeliest outcome, if the holdout is as the training part is; of items the widest; of an answered query the recorded one; null where there is none"`
	Widest    *float64          `json:"widest_half_width" doc:"the widest half-width: no answer now has a wider one, whatever its outcome; null where nothing is known"`
	Outcomes  []ForeseenOutcome `json:"outcomes" doc:"how an answer now can come out, the likeliest first; of an answered query how it came out, at no cost"`
	Measured  *ForeseenOutcome  `json:"measured,omitempty" doc:"where the question could be measured instead: what it would cost with \"measure\": true, and the half-width; the value is then the holdout's, whatever is guessed"`
	Report    *float64          `json:"report_width,omitempty" doc:"how wide a final report of five numbers would be now: the half-width of each, in half-widths of a textbook's interval for one question; about, by the normal law"`
	Promise   *Foreseen         `json:"promise,omitempty" doc:"under gaussian with tokens: the question's promise, or what the training part suggests; how wide the interval is with it and without"`
	Items     []Item            `json:"items,omitempty" doc:"what the training part says, with the intervals that answers like it would get"`
	Selected  string            `json:"selected,omitempty" doc:"what the training part would select"`
	Regret    *float64          `json:"regret,omitempty" doc:"of a selection like that: the best candidate is at most so much better"`
	Verdict   queries.Verdict   `json:"verdict,omitempty" doc:"what an answer like the training part would decide"`
	Bound     string            `json:"bound,omitempty" doc:"the theorem"`
	Values    []Watched         `json:"values,omitempty" doc:"the expressions of the query that can be null or clamped, with what shares of the training part are"`
	Answered  bool              `json:"answered" doc:"whether asking would be a replay, at no cost"`
	Warnings  []Warning         `json:"warnings"`
}

// ForeseenOutcome is one way in which an answer can come out. Nothing of it depends on the holdout's rows.
type ForeseenOutcome struct {
	Outcome   thresholdout.Outcome `json:"outcome" enum:"close,rough,differs,agrees,kept,broken,measured,unknown,selected,best,behind,mixed" doc:"as the answer says it; absent of an answer that was recorded before answers said it"`
	Cost      Cost                 `json:"cost" doc:"what an answer with this outcome costs; of mixed, at most; nothing if it is recorded"`
	HalfWidth *float64             `json:"half_width" doc:"the planned half-width: with this outcome, if the holdout varies as the training part does; null where there is none"`
	Widest    *float64             `json:"widest_half_width" doc:"the widest half-width: no answer with this outcome has a wider one; null where nothing is known. The range's own where the holdout may have too few rows to say anything"`
	Report    *float64             `json:"report_width,omitempty" doc:"how wide a final report would be after it: as report_width of the explanation"`
	Recorded  bool                 `json:"recorded,omitempty" doc:"true of the outcome of a query that was answered: asking again is a replay"`
}

// Foreseen is what an explanation says of a promise. Nothing of it depends on the holdout's rows.
type Foreseen struct {
	session.Bounds
	From    string   `json:"from" enum:"question,training" doc:"question: you promise it; training: the training part suggests it"`
	Used    bool     `json:"used" doc:"whether it would be checked if the question were asked now as it is; what the training part only suggests is for you to promise: of a model it was fitted to, it says too much good"`
	With    *float64 `json:"half_width" doc:"of the interval if the promise holds"`
	Without *float64 `json:"half_width_without" doc:"of the interval without a promise; about as wide as that of a broken one"`
}

// KeyInfo is what is known of an API key; its secret is not kept.
type KeyInfo struct {
	ID      string      `json:"id"`
	Name    string      `json:"name" doc:"who uses it, for people"`
	Scope   Scope       `json:"scope" doc:"admin, analyst or granted"`
	Created time.Time   `json:"created"`
	Revoked bool        `json:"revoked"`
	By      string      `json:"by,omitempty" doc:"the id of the key that made it; absent of a key that the server made at its start, and of keys from before this was kept"`
	OIDC    *KeySubject `json:"oidc,omitempty" doc:"whose tokens stand for it; absent of a key with a secret"`
}

// KeySubject is the subject of an OpenID Connect issuer that a key is bound to: the three together say whose tokens stand for the key.
type KeySubject struct {
	Issuer  string `json:"issuer"`
	Claim   string `json:"claim" doc:"the claim of a token that names the subject"`
	Subject string `json:"subject"`
}
