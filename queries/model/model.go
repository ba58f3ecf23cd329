package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"slices"
)

// Link is what turns scores into predictions.
type Link string

const (
	Identity Link = "identity" // the prediction is the score
	Logit    Link = "logit"    // the prediction is a probability, 1/(1+exp(-score))
	Log      Link = "log"      // the prediction is exp(score)
	Sqrt     Link = "sqrt"     // the prediction is score·|score|
	Softmax  Link = "softmax"  // the predictions are the probabilities of the classes, exp(score)/sum(exp(scores))
)

// Model is a parsed model. It is immutable.
type Model struct {
	link     Link
	classes  []Class
	features []Feature
	scorer   *Scorer
	linear   *Linear // nil for trees
	form     any     // canonical
	id       string
	size     int // of the canonical form, in bytes
	nodes    int // of all trees
	weights  int

	threshold *float64        // nil where the model does not say
	asZero    map[string]bool // columns of whose nulls the model does not say what they count as
	weighs    map[string]bool // text columns whose texts have weights
}

// Class is a class of a model with several outputs: a text, or a number.
type Class struct {
	Text    string // how it is shown
	Number  float64
	Numeric bool // the label is a number and Number is its value; else the label is Text
}

// Feature is a number that a model reads of a row.
type Feature struct {
	Column string
	// Texts are the values of the texts of a text column; every other text is 0 and a null is Null. A nil Texts makes the
	// feature the column's number, or 1 and 0 for true and false, NaN where it is null.
	Texts map[string]float64
	Null  float64
}

// Parse reads a model from its JSON, strictly: docs/MODELS.md. An error is an [*Error] with all that is wrong.
func Parse(body []byte) (*Model, error) {
	r := new(reader)
	in, ok := r.json(body)
	if !ok {
		return nil, &Error{r.violations}
	}
	m := r.model("", in, 0)
	if !r.ok() {
		return nil, &Error{r.violations}
	}
	h := &counted{Hash: sha256.New()}
	m.writeTo(h)
	m.id = hex.EncodeToString(h.Sum(nil))
	m.scorer.of, m.nodes, m.weights, m.size = m, r.nodes, r.weights, h.bytes
	return m, nil
}

// ParseClasses reads a list of 2 to [MaxClasses] classes, all texts or all numbers. Errors are *[Error].
func ParseClasses(body []byte) ([]Class, error) {
	r := new(reader)
	in, ok := r.json(body)
	if !ok {
		return nil, &Error{r.violations}
	}
	classes := r.classes("", in)
	if !r.ok() {
		return nil, &Error{r.violations}
	}
	return classes, nil
}

// Link is what turns the scores into predictions.
func (m *Model) Link() Link { return m.link }

// Classes are the classes of the outputs; nil for a model with one output.
func (m *Model) Classes() []Class { return m.classes }

// Features are what the model reads of a row, in the order in which [Scorer.Block] and [Model.Predict] want them.
func (m *Model) Features() []Feature { return m.features }

// NullsAsZero reports whether a null of a column counts as 0 since the model does not say what it counts as. Trees always say it: by its side.
func (m *Model) NullsAsZero(column string) bool { return m.asZero[column] }

// WeighsTexts reports whether the texts of a column have weights, so that one without counts as 0.
func (m *Model) WeighsTexts(column string) bool { return m.weighs[column] }

// Texts are the texts that the model knows of a text column.
func (m *Model) Texts(column string) map[string]bool {
	known := map[string]bool{}
	for _, f := range m.features {
		if f.Column == column {
			for text := range f.Texts {
				known[text] = true
			}
		}
	}
	return known
}

// Scorer computes the scores.
func (m *Model) Scorer() *Scorer { return m.scorer }

// Threshold is the number above which the prediction says yes; nil where the model does not say. It is no part of Form: a question that decides by
// it says it itself.
func (m *Model) Threshold() *float64 { return m.threshold }

// WithThreshold is the model with another Threshold.
func (m *Model) WithThreshold(x float64) *Model {
	other := *m
	other.threshold = new(x + 0) // -0 is 0
	return &other
}

// Linear are the weights of a linear model with one output; nil for every other.
func (m *Model) Linear() *Linear { return m.linear }

// Form is the canonical form as a value for encoding/json: all spellings of one model share it.
func (m *Model) Form() any { return m.form }

// ID is the hex digest of Canonical.
func (m *Model) ID() string { return m.id }

// Canonical is the JSON of Form: sorted keys, shortest numbers, no member that says its default.
func (m *Model) Canonical() []byte {
	var b bytes.Buffer
	m.writeTo(&b)
	return b.Bytes()
}

// Digest is a model of which only the digest is known. A query with it can be recognised, and not compiled.
func Digest(sha256 string) *Model { return &Model{id: sha256, size: MaxForm + 1} }

// Large is whether the canonical form is too long to be a part of a question's: the question has ID then. So it is with more than MaxNodes nodes, or
// more than MaxForm bytes.
func (m *Model) Large() bool { return m.nodes > MaxNodes || m.size > MaxForm }

// Size is the length of Canonical.
func (m *Model) Size() int { return m.size }

// What a model takes in memory beside the nodes of its trees, in bytes. TestBytes measures it.
const (
	modelBytes  = 4 << 10
	weightBytes = 600 // with its column's name, and in the canonical form
	textBytes   = 200 // of the list of a split
)

// Bytes is about what the model takes in memory.
func (m *Model) Bytes() int64 {
	bytes := modelBytes + weightBytes*int64(m.weights) + m.scorer.form.bytes()
	for _, f := range m.features {
		bytes += textBytes * int64(1+len(f.Texts))
	}
	return bytes
}

// counted is a hash that counts what it is given.
type counted struct {
	hash.Hash
	bytes int
}

func (c *counted) Write(b []byte) (int, error) {
	c.bytes += len(b)
	return c.Hash.Write(b)
}

// Columns are the names of the columns that the model reads, sorted; text says which of them must be texts.
func (m *Model) Columns() (names []string, text map[string]bool) {
	text = map[string]bool{}
	for _, f := range m.features {
		if _, seen := text[f.Column]; !seen {
			names = append(names, f.Column)
		}
		text[f.Column] = f.Texts != nil
	}
	slices.Sort(names)
	return names, text
}

// Predict is the model at one row: features in the order of Features, NaN for null. It returns the predictions, one for each
// class, or one. A prediction that is no finite number is NaN.
func (m *Model) Predict(features []float64) []float64 {
	in := make([][]float64, len(features))
	for i := range in {
		in[i] = features[i : i+1]
	}
	out := make([]float64, m.scorer.outputs)
	dst := make([][]float64, len(out))
	for i := range dst {
		dst[i] = out[i : i+1]
	}
	m.scorer.Block(dst, in)
	predictions(m.link, dst)
	return out
}
