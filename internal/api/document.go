package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
	"github.com/holdoutd/holdoutd/thresholdout/bounds"
)

// interfaceVersion is that of the HTTP interface, not of the program: it changes when a client must.
const interfaceVersion = "1"

// config is huma without what it adds by itself: no $schema links (they are built from the Host header), no docs page
// from a CDN, no second copies of the document.
func (a *API) config() huma.Config {
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "holdoutd", Version: interfaceVersion,
				Description: "Keeps a holdout secret and answers adaptive statistical queries about it, with intervals that hold together and a durable budget. Errors are RFC 9457 problems.",
				License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Tags: []*huma.Tag{
				{Name: "holdouts", Description: "Secret tables with one mechanism, one guarantee and one budget each"},
				{Name: "queries", Description: "Questions and answers"},
				{Name: "reports", Description: "The final report, which closes a holdout"},
				{Name: "releases", Description: "Private statistics of the training part, for people without a key"},
				{Name: "models", Description: "Models that questions name"},
				{Name: "plans", Description: "What could be promised, before there is a holdout"},
				{Name: "agents", Description: "The same questions and answers by the Model Context Protocol"},
				{Name: "simulations", Description: "Experiments, played by the server on made-up data"},
				{Name: "keys", Description: "Who may ask"},
				{Name: "operations", Description: "The server itself"},
			},
			Components: &huma.Components{
				Schemas: huma.NewMapRegistry("#/components/schemas/", schemaName),
				SecuritySchemes: map[string]*huma.SecurityScheme{
					bearer: {Type: "http", Scheme: "bearer", Description: "A key: hk_…, or a token of the server's OpenID Connect issuer"},
					cookie: {Type: "apiKey", In: "cookie", Name: sessionCookie, Description: "What POST /v1/session sets, for the pages of this server. The port follows the name where the address has one, and `__Host-` comes before it under TLS. " +
						"A request with it counts only from this server's own pages (`Sec-Fetch-Site`), and all but GET need the header `" + pageHeader + "`."},
				},
			},
		},
		Formats:                      map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat}, // "json": of +json
		DefaultFormat:                "application/json",
		Transformers:                 []huma.Transformer{noteProblem},
		RejectUnknownQueryParameters: true,
	}
}

// published are the names that the document has for types whose own name says too little outside of their package.
var published = map[string]string{"McpMessage": "Message", "Amounts": "Cost", "Report": "Plan", "PlanReport": "Plan", "Estimate": "Workload", "Kind": "WorkloadItem", "Way": "WorkloadPlan", "Price": "WorkloadPrice", "ColumnCard": "Column", "Item": "AnswerItem", "Released": "AnswerPart"}

func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if better, ok := published[name]; ok {
		return better
	}
	return name
}

// The shapes of replies that write themselves, for the document.
type (
	AskReply struct {
		Answer   Answer         `json:"answer"`
		Budget   holdout.Budget `json:"budget"`
		Replayed bool           `json:"replayed" doc:"whether the answer had been given before; it cost nothing then"`
		Per      string         `json:"per,omitempty" doc:"where units have several rows: what has one vote each, a column whose values are units, day(column), or row"`

		Warnings []holdout.Warning `json:"warnings,omitempty" doc:"about the request: round-not-full says how many questions of its round it lost"`
	}
	BatchReply struct {
		Answers []BatchItem    `json:"answers" doc:"in the order of the queries"`
		Budget  holdout.Budget `json:"budget"`

		Warnings []holdout.Warning `json:"warnings,omitempty" doc:"about the request: round-not-full says how many questions of its round it lost"`
	}
	BatchItem struct {
		Answer   *Answer `json:"answer,omitempty"`
		Replayed bool    `json:"replayed"`
		Per      string  `json:"per,omitempty" doc:"where units have several rows: what has one vote each, a column whose values are units, day(column), or row"`
		NotAsked string  `json:"not_asked,omitempty" enum:"tokens-exhausted,rounds-exhausted,questions-exhausted,grant-questions-exhausted,grant-tokens-exhausted,half-width-too-narrow,max-questions,interrupted,holdout-closed,holdout-retired" doc:"why there is no answer; nothing was debited"`
	}
	AnswerPage struct {
		Answers []PastAnswer `json:"answers"`
		Next    int64        `json:"next,omitempty" doc:"the cursor of the next page; absent on the last"`
	}
	// PastAnswer is holdout.PastAnswer as it is sent: the recorded bytes, the canonical form as it was hashed, and what is said beside them.
	PastAnswer struct {
		Answer    Answer          `json:"answer" doc:"the recorded bytes"`
		Canonical json.RawMessage `json:"canonical" doc:"the canonical form of the query, which its identity is the hash of"`
		PastMembers
	}
	// FinalReport is holdout.FinalReport as it is sent, with its text.
	FinalReport struct {
		holdout.ReportFacts
		Answers []ReportAnswer `json:"answers" doc:"in the order of the report"`
		Ledger  LedgerPlace    `json:"ledger" doc:"the place of the closing, which is the end of the holdout's questions"`
		Text    string         `json:"text" doc:"the report in sentences, for a paper or a pull request; the ends of intervals are rounded outward"`
	}
	// ReportAnswer is holdout.ReportAnswer as it is sent.
	ReportAnswer struct {
		Answer    Answer          `json:"answer" doc:"the recorded bytes"`
		Canonical json.RawMessage `json:"canonical" doc:"the canonical form of the query, which says that it is a report's"`
		Note      *string         `json:"note" doc:"the remark that came with the query, such as a model's name"`
		Measure   queries.Measure `json:"measure" doc:"in what its numbers are measured: what may stand on one axis"`
		Per       string          `json:"per,omitempty" doc:"where units have several rows: what has one vote each"`
	}
	PastMembers struct {
		Note      *string               `json:"note" doc:"the remark of who asked first; null where there is none, or notes were not kept yet"`
		AskedBy   holdout.Asker         `json:"asked_by"`
		Time      time.Time             `json:"time" doc:"when the answer was recorded, in whole seconds"`
		Measure   queries.Measure       `json:"measure" doc:"in what its numbers are measured: what may stand on one axis"`
		Per       string                `json:"per,omitempty" doc:"where units have several rows: what has one vote each, a column whose values are units, day(column), or row"`
		Outcome   *thresholdout.Outcome `json:"outcome" enum:"close,rough,differs,agrees,kept,broken,measured,unknown,selected,best,behind,mixed" doc:"that of the answer; null where it was recorded before outcomes were"`
		Reference *holdout.Reference    `json:"reference" doc:"what the check part says to a query about a model, and what it and the training part together say to others; null without such parts, where they have no say (predictions by row without a check part), or where they cannot be read"`
	}
	// Answer is the recorded form of an answer, which package session writes, with its place in the ledger. Its bytes never change.
	Answer struct {
		session.Answer
		holdout.Shown
		Ledger LedgerPlace `json:"ledger"`
	}
	// PrivateRelease is the recorded form of a release. Its bytes never change.
	PrivateRelease struct {
		holdout.Released
		Ledger LedgerPlace `json:"ledger"`
	}
	// PrivateReleases is holdout.Releases as it is sent.
	PrivateReleases struct {
		holdout.ReleaseAccount
		Releases []PrivateRelease `json:"releases" doc:"in the order of their creation, each the recorded bytes"`
		Next     int64            `json:"next,omitempty" doc:"the parameter after for the next page; absent on the last one"`
	}
	LedgerPlace struct {
		Seq  int64  `json:"seq" doc:"the answer's place in the holdout's chain"`
		Head string `json:"head" doc:"the chain's head with this answer: sha256:…; keep it to notice a restored old backup"`
	}
)

func (a *API) schemaOf(v any) *huma.Schema {
	return a.huma.OpenAPI().Components.Schemas.Schema(reflect.TypeOf(v), true, "")
}

// querySchema refers to the schema that package queries makes from what its parser reads.
var querySchema = &huma.Schema{Ref: "#/components/schemas/Query"}

func batchSchema(most int) *huma.Schema {
	least, no := 1, false
	return &huma.Schema{
		Type: "object", Required: []string{"queries"}, AdditionalProperties: false,
		Properties: map[string]*huma.Schema{
			"queries": {Type: "array", MinItems: &least, MaxItems: &most, Items: querySchema},
			"partial": {Type: "boolean", Default: no, Description: "answer as many as the budget allows, instead of all or none"},
		},
	}
}

func (a *API) jsonBody(s *huma.Schema) *huma.RequestBody {
	return &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: s}}}
}

// jsonReply documents a reply that writes itself.
func (a *API) jsonReply(description string, shape any, idempotent bool) map[string]*huma.Response {
	r := &huma.Response{Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: a.schemaOf(shape)}}}
	if idempotent {
		r.Headers = map[string]*huma.Param{"Idempotent-Replayed": {
			Description: "true where a request with this Idempotency-Key was answered before", Schema: &huma.Schema{Type: "string"},
		}}
	}
	return map[string]*huma.Response{"200": r, "default": a.problemResponse()}
}

func (a *API) problemResponse() *huma.Response {
	return &huma.Response{Description: "A problem", Content: map[string]*huma.MediaType{problemType: {Schema: a.schemaOf(Problem{})}}}
}

// finishDocument says what Go types do not: problems have more members, answers may get more, tokens may be null.
func (a *API) finishDocument() {
	schemas := a.huma.OpenAPI().Components.Schemas.Map()
	describe(schemas)
	for name, s := range queries.JSONSchemas("#/components/schemas/") {
		var members map[string]any
		if err := json.Unmarshal(s, &members); err != nil {
			panic("api: the schema " + name + " is no JSON: " + err.Error())
		}
		if schemas[name] != nil {
			panic("api: two schemas are called " + name)
		}
		schemas[name] = &huma.Schema{Extensions: members}
	}
	for _, s := range schemas { // huma closes every object; replies may get members that old clients do not know
		if s.AdditionalProperties == false {
			s.AdditionalProperties = nil
		}
	}
	schemas["Problem"].AdditionalProperties = true
	codes := []any{}
	for _, c := range allClasses() {
		codes = append(codes, c.code)
	}
	schemas["Problem"].Properties["code"].Enum = codes
	plan := schemas["PlanRequest"].Properties
	for name, most := range map[string]float64{
		"n": thresholdout.MaxUnits, "questions": bounds.MaxQuestions, "rounds": thresholdout.MaxRounds, "tokens": bounds.MaxQuestions, "training": thresholdout.MaxUnits,
	} {
		plan[name].Minimum, plan[name].Maximum = number(1), number(most)
	}
	plan["n"].Minimum, plan["training"].Minimum = number(bounds.MinUnits), number(0)
	plan["confidence"].ExclusiveMinimum, plan["confidence"].Maximum = number(0), number(thresholdout.MaxConfidence)
	plan["half_width"].ExclusiveMinimum, plan["half_width"].ExclusiveMaximum = number(0), number(1)
	documentGuarantee(schemas["Guarantee"])
	null := &huma.Schema{Type: "null"}
	budget := schemas["Budget"].Properties
	budget["tokens"] = &huma.Schema{OneOf: []*huma.Schema{budget["tokens"], null}, Description: "null where the mechanism has none"}
	answer := schemas["Answer"].Properties
	answer["interval"] = &huma.Schema{OneOf: []*huma.Schema{{Ref: answer["interval"].Ref}, null}, Description: "null where no valid bound is known"}
	session := schemas["Session"].Properties
	session["key"] = &huma.Schema{OneOf: []*huma.Schema{{Ref: session["key"].Ref}, null}, Description: session["key"].Description}
	granted := schemas["GrantInfo"].Properties
	granted["tokens"] = &huma.Schema{OneOf: []*huma.Schema{{Ref: granted["tokens"].Ref}, null}, Description: granted["tokens"].Description}
	past := schemas["PastAnswer"].Properties
	past["reference"] = &huma.Schema{OneOf: []*huma.Schema{{Ref: past["reference"].Ref}, null}, Description: past["reference"].Description}
	past["outcome"].Enum = append(past["outcome"].Enum, nil)

	addSamples(a.huma.OpenAPI())

	document := sync.OnceValues(func() ([]byte, error) { return a.OpenAPI() })
	a.router.GET("/openapi.json", func(c *gin.Context) {
		body, err := document()
		if err != nil {
			problemOf(err).reply(c)
			return
		}
		c.Data(http.StatusOK, "application/vnd.oai.openapi+json;version=3.1", body)
	})
}

// documentGuarantee adds the members that a mechanism has beside those of every guarantee, and says whose they are.
func documentGuarantee(s *huma.Schema) {
	common := maps.Clone(s.Properties)
	for _, k := range thresholdout.Kinds() {
		for _, v := range k.Variants {
			own := huma.SchemaFromType(huma.NewMapRegistry("", huma.DefaultSchemaNamer), reflect.TypeOf(v.Is).Elem())
			for name, member := range own.Properties {
				if common[name] != nil {
					continue
				}
				says, known := "of "+string(k.Name)+": "+member.Description, s.Properties[name]
				switch {
				case known == nil:
					member.Description = says
					s.Properties[name] = member
				case !strings.Contains(known.Description, says):
					known.Description += "; " + says
				}
			}
		}
	}
}

func number(x float64) *float64 { return &x }

// OpenAPI is the OpenAPI 3.1 document of the interface. It does not depend on the service's data.
func (a *API) OpenAPI() ([]byte, error) {
	b, err := marshal(a.huma.OpenAPI())
	if err != nil {
		return nil, err
	}
	return b, nil
}
