package queries

import (
	"encoding/json"
	"fmt"
)

// Batch is many queries that were chosen before any of their answers was seen.
type Batch struct {
	Queries []*Query // at least one, in the order of the body
	Partial bool     // answer as many as the budget allows, instead of all or none
}

// BatchJSONSchema is the JSON schema (2020-12) of a batch.
func BatchJSONSchema() json.RawMessage {
	return mustMarshal(map[string]any{
		"title":       "Batch",
		"description": "Many questions that were chosen before any of their answers was seen. They are answered in one pass, in their order.",
		"type":        "object",
		"properties": map[string]any{
			"queries": map[string]any{"type": "array", "items": JSONSchema(), "minItems": 1, "maxItems": MaxBatch},
			"partial": map[string]any{"type": "boolean", "default": false, "description": "answer as many as the budget allows, instead of all or none"},
		},
		"required": []string{"queries"}, "additionalProperties": false,
	})
}

// ParseBatch reads {"queries":[…],"partial":false} as strictly as Parse reads one query. Pointers start at the body.
func ParseBatch(body []byte) (*Batch, error) {
	in, malformed := readJSON(body)
	if malformed != nil {
		return nil, malformed
	}
	var v violations
	b := readBatch(&v, in)
	if err := v.err(); err != nil {
		return nil, err
	}
	return b, nil
}

func readBatch(v *violations, in *value) *Batch {
	b := &Batch{}
	if in.kind != objectValue {
		v.wrongType("", "an object: a batch", in)
		return b
	}
	if in.member("queries") == nil {
		v.add("", `"queries" is missing: a list of queries`)
	}
	for _, m := range in.members {
		at := "/" + escape(m.name)
		switch m.name {
		case "queries":
			b.readQueries(v, at, m.value)
		case "partial":
			if b.Partial = m.value.truth; m.value.kind != truthValue {
				v.wrongType(at, "true or false", m.value)
			}
		default:
			v.add(at, "unknown member; a batch has queries, partial")
		}
	}
	return b
}

func (b *Batch) readQueries(v *violations, pointer string, in *value) {
	switch {
	case in.kind != listValue:
		v.wrongType(pointer, "a list of queries", in)
	case len(in.items) == 0:
		v.add(pointer, "is empty")
	case len(in.items) > MaxBatch:
		v.add(pointer, fmt.Sprintf("has more than %d queries", MaxBatch))
	default:
		for i, item := range in.items {
			if q := readQuery(v, fmt.Sprintf("%s/%d", pointer, i), item); q != nil {
				b.Queries = append(b.Queries, q)
			}
		}
	}
}
