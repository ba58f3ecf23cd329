package client

import (
	"encoding/json"
	"net/url"
	"strconv"
	"time"
)

// Settings are the choices made when a holdout is created. A zero field leaves the choice to the server.
type Settings struct {
	Name       string  `json:"name"`
	Holdout    float64 `json:"holdout"`    // in (0,1]: the fraction of units kept secret; above 1 and whole: their count
	Unit       string  `json:"unit"`       // a column whose rows with the same value are one observation, or day(column)
	Label      string  `json:"label"`      // the column that is predicted
	Features   string  `json:"features"`   // "secret", "public": everything but the label is given out
	Stratify   string  `json:"stratify"`   // a column whose values both parts get in proportion
	Split      string  `json:"split"`      // "hash", "time:COLUMN", "given"
	Mechanism  string  `json:"mechanism"`  // "auto", "gaussian", "guess_and_check", "thresholdout", "split", "ladder", "naive"
	Form       string  `json:"form"`       // of thresholdout: "gaussian", "laplace"
	Preset     string  `json:"preset"`     // "science2015"
	Questions  int64   `json:"questions"`  // how many questions may be asked
	Rounds     int64   `json:"rounds"`     // of gaussian: in how many requests the questions are asked
	Tokens     int64   `json:"tokens"`     // of guess_and_check and thresholdout: how many guesses may be wrong
	Confidence float64 `json:"confidence"` // of all intervals together
	HalfWidth  float64 `json:"half_width"`
	Threshold  float64 `json:"threshold"`
	Sigma      float64 `json:"sigma"`
	Bounds     string  `json:"bounds"` // "any", "published"

	LargestUnit int64 `json:"largest_unit"` // with Unit: the most rows that a unit can have
}

// values are the settings that are not zero, as parameters.
func (s Settings) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"name": s.Name, "unit": s.Unit, "label": s.Label, "features": s.Features, "stratify": s.Stratify, "split": s.Split,
		"mechanism": s.Mechanism, "form": s.Form, "preset": s.Preset, "bounds": s.Bounds,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, value := range map[string]float64{
		"holdout": s.Holdout, "confidence": s.Confidence, "half_width": s.HalfWidth, "threshold": s.Threshold, "sigma": s.Sigma,
	} {
		if value != 0 {
			v.Set(name, strconv.FormatFloat(value, 'g', -1, 64))
		}
	}
	for name, value := range map[string]int64{"questions": s.Questions, "tokens": s.Tokens, "rounds": s.Rounds, "largest_unit": s.LargestUnit} {
		if value != 0 {
			v.Set(name, strconv.FormatInt(value, 10))
		}
	}
	return v
}

// Card is what everyone with a key may know about a holdout.
type Card struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Created     time.Time         `json:"created"`
	Settings    Settings          `json:"settings"`
	Rows        Counts            `json:"rows"`
	Units       Counts            `json:"units"`
	Unit        string            `json:"unit"`
	LargestUnit int64             `json:"largest_unit"`
	Columns     []Column          `json:"columns"`
	Skipped     []Skipped         `json:"skipped"`
	Strata      map[string]Counts `json:"strata"`
	Guarantee   Guarantee         `json:"guarantee"`
	Assumes     string            `json:"assumes"` // what the mechanism needs for the budget to last; intervals need none of it
	NullRule    string            `json:"null_rule"`
	Target      string            `json:"target"`
	Warnings    []Warning         `json:"warnings"`
	Parts       map[string]string `json:"parts,omitempty"` // fingerprints of the tables
	Budget      *Budget           `json:"budget"`
	State       string            `json:"state,omitempty"` // "damaged" or "rolled-back": it gives no new answers
}

// Counts are the sizes of the two parts.
type Counts struct {
	Training int64 `json:"training"`
	Holdout  int64 `json:"holdout"`
}

// Column is a column as the training part shows it.
type Column struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind"` // "number", "bool", "text", "time"
	Source   string     `json:"source"`
	Nulls    int64      `json:"nulls"`
	Min      *float64   `json:"min"`
	Max      *float64   `json:"max"`
	Earliest *time.Time `json:"earliest"`
	Latest   *time.Time `json:"latest"`
	Distinct int64      `json:"distinct"`
	Values   []string   `json:"values"`

	Dictionary *Dictionary `json:"dictionary"` // texts; null for other columns
}

// Dictionary is what is public of the texts of a column: sizes of the whole upload, rounded up to powers of two.
type Dictionary struct {
	Texts int64 `json:"texts"` // distinct texts
	Bytes int64 `json:"bytes"` // their lengths together, with a byte around each
}

// Skipped is a column of the upload that is not part of the holdout.
type Skipped struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// Warning is something that the owner should know.
type Warning struct {
	Code         string  `json:"code"`
	Detail       string  `json:"detail"`
	Column       string  `json:"column"`
	Unit         string  `json:"unit"`
	DesignEffect float64 `json:"design_effect"`
}

// Guarantee is the mechanism with its numbers, fixed at creation.
type Guarantee struct {
	Version    int     `json:"version"` // of this form: 1, of guess_and_check 2
	Mechanism  string  `json:"mechanism"`
	N          int64   `json:"n"`
	Training   int64   `json:"training"`
	Questions  int64   `json:"questions"`
	Tokens     int64   `json:"tokens"`
	Confidence float64 `json:"confidence"`
	Sigma      float64 `json:"sigma"`
	Scheduled  bool    `json:"scheduled"`

	Rounds     int64     `json:"rounds"`      // 0: questions are asked one by one
	RoundSigma []float64 `json:"round_sigma"` // the noise of each round
	Published  bool      `json:"published"`   // intervals rest on a published bound
	Capped     float64   `json:"capped"`      // the share of the probability of error that pays for answers that are not plain
	Subsample  int64     `json:"subsample"`   // of their account

	HalfWidth float64            `json:"half_width"`
	Parts     map[string]float64 `json:"parts"` // what HalfWidth is made of
	Form      string             `json:"form"`
	Preset    string             `json:"preset"`
	Threshold float64            `json:"threshold"`

	Deviations float64 `json:"deviations"` // of guess_and_check: how many standard deviations its narrowest margin leaves room for
}

// Meter is one budget: Left of Of.
type Meter struct {
	Left int64 `json:"left"`
	Of   int64 `json:"of"`
}

// Budget is what is left of a holdout. Tokens is nil for mechanisms without.
type Budget struct {
	Questions Meter  `json:"questions"`
	Tokens    *Meter `json:"tokens"`
	Rounds    *Meter `json:"rounds"` // nil where questions are asked one by one
}

// Answer is one recorded answer.
type Answer struct {
	Version   int          `json:"version"` // of the members and what they mean
	ID        string       `json:"id"`
	Holdout   string       `json:"holdout"`
	Query     string       `json:"query"`
	Value     *float64     `json:"value"`         // nil where the query has no defined result
	Interval  *Interval    `json:"interval"`      // nil where no valid bound is known
	Items     []AnswerItem `json:"items"`         // where the answer is many numbers
	Selected  string       `json:"selected"`      // of a selection: the candidate
	Regret    *float64     `json:"regret"`        // of a selection: the best candidate is at most so much better
	Verdict   string       `json:"verdict"`       // of a decision or a test: "yes", "no" or "undecided"
	PValue    *float64     `json:"p_value"`       // of a test: valid after all questions of the guarantee
	Alone     *float64     `json:"plain_p_value"` // of a test by itself, where nothing had been told of the units before
	Parts     []Part       `json:"row_functions"` // where the answer is made of several row functions
	Best      *bool        `json:"best"`          // of a submission to a ladder: whether it is shown now
	Mechanism string       `json:"mechanism"`
	Source    string       `json:"source"` // "holdout", "training", "guess" (the analyst's own) or "mixed"
	Cost      Cost         `json:"cost"`
	Ledger    struct {
		Seq  int64  `json:"seq"`
		Head string `json:"head"` // keep it to notice a restored old backup
	} `json:"ledger"`

	// Raw is the answer as the ledger has it, byte for byte.
	Raw json.RawMessage `json:"-"`
}

// AnswerItem is one number of an answer that is many, with an interval of its own.
type AnswerItem struct {
	Of    string   `json:"of"`
	Value *float64 `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// Interval holds the true value, together with all other intervals of the holdout, with Confidence. Low and High are 0 where the answer
// has Items, each with an interval of its own, or is Selected.
type Interval struct {
	Low        float64            `json:"low"`
	High       float64            `json:"high"`
	Confidence float64            `json:"confidence"`
	Scope      string             `json:"scope"`
	Target     string             `json:"target"`
	Bound      string             `json:"bound"`
	Parts      map[string]float64 `json:"parts"`
}

// Part is the released mean of one row function, in [0,1].
type Part struct {
	Value  float64  `json:"value"`
	Low    *float64 `json:"low"`
	High   *float64 `json:"high"`
	Source string   `json:"source"`
}

// Cost is what a query debits.
type Cost struct {
	Questions int64 `json:"questions"`
	Tokens    int64 `json:"tokens"`
	Rounds    int64 `json:"rounds"`
}

// UnmarshalJSON keeps the bytes beside what they say.
func (a *Answer) UnmarshalJSON(b []byte) error {
	type plain Answer
	if err := json.Unmarshal(b, (*plain)(a)); err != nil {
		return err
	}
	a.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// Reply is an answer with what is left.
type Reply struct {
	Answer   Answer `json:"answer"`
	Budget   Budget `json:"budget"`
	Replayed bool   `json:"replayed"` // the question had been answered before and cost nothing now
}

// Item is one item of a batch: an answer, or the reason why there is none.
type Item struct {
	Answer   *Answer `json:"answer"`
	Replayed bool    `json:"replayed"`
	NotAsked string  `json:"not_asked"` // "tokens-exhausted", "rounds-exhausted", "questions-exhausted", "half-width-too-narrow"; "" where there is an answer
}

// BatchReply is the reply to a batch, in the order of its queries.
type BatchReply struct {
	Answers []Item `json:"answers"`
	Budget  Budget `json:"budget"`
}

// Explanation is what is known of a query without touching a holdout row.
type Explanation struct {
	Query     string          `json:"query"`
	Canonical json.RawMessage `json:"canonical"`
	Functions []string        `json:"functions"`
	Combine   string          `json:"combine"`
	Target    string          `json:"target"`
	NullRule  string          `json:"null_rule"`
	Cost      Cost            `json:"cost"` // tokens: at most
	Training  *float64        `json:"training"`
	HalfWidth *float64        `json:"half_width"` // of the interval that an answer now would get
	Items     []AnswerItem    `json:"items"`      // what the training part says, where it is many numbers
	Selected  string          `json:"selected"`   // what the training part would select
	Regret    *float64        `json:"regret"`     // of a selection
	Verdict   string          `json:"verdict"`    // what an answer like the training part would decide
	Bound     string          `json:"bound"`
	Answered  bool            `json:"answered"`
	Warnings  []Warning       `json:"warnings"`
}

// Key is what is known of an API key. Secret is set by CreateKey only.
type Key struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Scope   string    `json:"scope"` // "admin" or "analyst"
	Created time.Time `json:"created"`
	Revoked bool      `json:"revoked"`
	Secret  string    `json:"secret"`
}
