package holdout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/queries/model"
)

// ModelTime is how long a model is kept after its last use.
const ModelTime = 24 * time.Hour

// KeptModel is a model that questions can name by its digest.
type KeptModel struct {
	SHA256 string    `json:"sha256" doc:"what questions name it by: \"model\": {\"sha256\": …}"`
	Bytes  int64     `json:"bytes" doc:"about what it takes in memory"`
	Until  time.Time `json:"until" doc:"when it goes if nobody uses it; it goes earlier when the room is needed, and when the server ends"`
}

// besideDigest is said of what a model may have in a question, and not by itself.
const besideDigest = "belongs to the questions that name the model, beside its digest"

// KeepModel reads a model, as docs/MODELS.md has it, and keeps it for questions about any holdout that name it by its digest. What belongs to a question, a
// threshold and features, is refused. A model is kept in memory alone, for ModelTime after its last use, while there is room: who names one that is gone is told
// to send it again. Nothing is asked, and nothing is debited.
func (s *Service) KeepModel(ctx context.Context, p Principal, body []byte) (k KeptModel, err error) {
	if len(body) > s.limits.ModelBytes {
		return k, fail(TooLarge, "the model has %d bytes, at most %d", len(body), s.limits.ModelBytes)
	}
	err = s.InTurn(ctx, p, modelWork(body), func(context.Context) error {
		m, err := model.Parse(body)
		var wrong *model.Error
		switch {
		case errors.As(err, &wrong):
			e := &queries.Error{Kind: queries.Invalid}
			for _, v := range wrong.Violations {
				if v.Pointer == "/features" {
					v = model.Violation{Pointer: v.Pointer, Detail: besideDigest}
				}
				e.Violations = append(e.Violations, queries.Violation{Pointer: v.Pointer, Detail: v.Detail, Suggestion: v.Meant})
			}
			return queryError(e)
		case err != nil:
			return err
		case m.Threshold() != nil:
			return invalid("/threshold", besideDigest)
		}
		k = KeptModel{SHA256: m.ID(), Bytes: m.Bytes()}
		until, fits := s.models.keep(k.SHA256, m, k.Bytes)
		if !fits {
			return &Error{Kind: TooLarge, Members: map[string]any{"limit": s.models.most},
				Detail: fmt.Sprintf("the model takes %d bytes in memory, and models are kept in %d: a sixteenth of what the server may use (holdoutd serve --memory). A forest is smaller with fewer trees, or with larger leaves", k.Bytes, s.models.most)}
		}
		k.Until = until.UTC().Truncate(time.Second)
		return nil
	})
	return k, err
}

// FindModel is a model that is kept. Looking at it counts as a use.
func (s *Service) FindModel(sha256 string) (k KeptModel, err error) {
	m, until, ok := s.models.get(sha256)
	if !ok {
		return k, fail(NotFound, "no model of this digest is kept (any more): send it to POST /v1/models")
	}
	return KeptModel{sha256, m.Bytes(), until.UTC().Truncate(time.Second)}, nil
}

// keptModels are models by digest.
type keptModels struct {
	*kept[string, *model.Model]
}

func newKeptModels(most int64) keptModels {
	return keptModels{newKept[string, *model.Model](most, ModelTime)}
}

// Kept implements queries.Models.
func (k keptModels) Kept(sha256 string) *model.Model {
	m, _, _ := k.get(sha256)
	return m
}

// What reading a model holds, in bytes. TestMemoryOfModels measures it.
const (
	modelMemory = 28  // of a byte: the text, what is decoded from it, nodes; full trees have four times as many
	tokenMemory = 800 // of a comma, a colon or a bracket, of which there are as many as values
)

// modelWork is what reading a model takes.
func modelWork(body []byte) Work {
	tokens := 0
	for _, c := range []byte(`,:[{`) {
		tokens += bytes.Count(body, []byte{c})
	}
	return Work{Steps: 100 * int64(len(body)), Bytes: modelMemory*int64(len(body)) + tokenMemory*int64(tokens)}
}
