package api

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// sample is what the document says of a parameter beside its meaning: a value as one would send it, and what holds where it is absent.
type sample struct {
	example any
	value   any    // the default, where sending it always means the same as leaving the parameter out
	absent  string // else what holds without it, in words; added to the description where that says nothing of a default
}

// samples are those of every parameter, by name, or by operation and name where the name means something else there.
var samples = map[string]sample{
	"id":              {example: "ho_3f6c1d1e-0d0c-4a3e-9b1d-6a4c2f1e7b90"},
	"revoke-key id":   {example: "key_9d2f6c1e-0d0c-4a3e-9b1d-6a4c2f1e7b90"},
	"revoke-grant id": {example: "gr_5b0c7a52-7c1e-4f0e-8f55-2f6f3c9d1a77"},
	"Idempotency-Key": {example: "2026-11-22-flights-1", absent: "none, and a request that is sent again is a new one"},
	"Last-Event-ID":   {example: "41", absent: "none, and the stream begins with the first answer, or at after"},
	"after":           {example: 100, value: 0},
	"limit":           {example: 500},
	"max_questions":   {example: 50},
	"sha256":          {example: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"},

	"seed":   {example: 7, value: 0},
	"signal": {example: true, value: false},

	"dry_run":      {example: true},
	"name":         {example: "flights", absent: "no name"},
	"holdout":      {example: 0.3, value: holdout.DefaultHoldout},
	"check":        {example: 0.2},
	"unit":         {example: "customer_id"},
	"largest_unit": {example: 40},
	"label":        {example: "churned", absent: "none"},
	"features":     {example: "public", value: "secret"},
	"stratify":     {example: "region", absent: "not stratified"},
	"split":        {example: "time:date", value: "hash"},
	"mechanism":    {example: "gaussian", value: string(thresholdout.Auto)},
	"form":         {example: "laplace"},
	"preset":       {example: "science2015", absent: "none"},
	"questions":    {example: 300, absent: "the largest of 1000, 500, 200 and 100 whose intervals are useful for so many rows, or as many as half_width allows"},
	"rounds":       {example: 2},
	"tokens":       {example: 20, absent: "20, or a tenth of a default number of questions, and 2 under gaussian"},
	"confidence":   {example: 0.95, value: thresholdout.DefaultConfidence},
	"half_width":   {example: 0.02, absent: "none: questions says how many there are, and the half-width follows"},
	"threshold":    {example: 0.02, absent: "what gives the narrowest planned interval"},
	"sigma":        {example: 0.005, absent: "what gives the narrowest planned interval"},
	"capped":       {example: 0.5},
	"sealed":       {example: 0.5, absent: "none"},
	"cells":        {example: `{"member":[true,false],"region":["north","south"],"age":[18,40,65]}`, absent: "none"},
	"overlap":      {example: "accepted", value: "refuse"},
	"succeeds":     {example: "ho_0f8fad5b-d9cb-469f-a165-70867728950e", absent: "none"},
	"source":       {example: "warehouse", absent: "none: the server keeps them"},
	"path":         {example: "lake/orders/2026", absent: "none: the table is the body"},
	"bounds":       {example: "published"},
}

// addSamples completes the document's parameters.
func addSamples(doc *huma.OpenAPI) {
	for _, path := range doc.Paths {
		for _, op := range []*huma.Operation{path.Get, path.Post, path.Put, path.Patch, path.Delete} {
			if op == nil {
				continue
			}
			for i, p := range op.Parameters {
				s, ok := samples[op.OperationID+" "+p.Name]
				if !ok {
					s = samples[p.Name]
				}
				op.Parameters[i] = s.complete(p)
			}
		}
	}
}

// complete is a copy of a parameter with what the sample says; operations share parameters, and validation has read them already.
func (s sample) complete(p *huma.Param) *huma.Param {
	param, schema := *p, *p.Schema
	param.Schema = &schema
	if s.example != nil {
		schema.Examples = []any{s.example}
	}
	if schema.Default == nil {
		schema.Default = s.value
	}
	if s.absent != "" && !strings.Contains(strings.ToLower(param.Description), "default") {
		param.Description = strings.TrimSuffix(param.Description, ".") + "; default: " + s.absent
	}
	return &param
}
