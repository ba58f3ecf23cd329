package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/nearest"
	"github.com/holdoutd/holdoutd/queries"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// A tool is one call of the service for an agent.
type tool struct {
	name, title, says string
	spends            bool           // it may debit the budget; the others only read
	input             map[string]any // the schema of its arguments
	output            any            // a value of the reply's Go type, for the schema
	run               func(a *API, ctx context.Context, arguments json.RawMessage) (reply, error)
}

// A reply is what a tool says: JSON of the shape that the HTTP interface has for it, and the same in a sentence.
type reply struct {
	structured json.RawMessage
	sentence   string
}

// mcpInstructions are what a host hands its model about the server, before any tool is called.
const mcpInstructions = `This server keeps held-out rows of tables secret and answers questions about them, with intervals that stay true however you choose your questions. Each holdout has a budget of questions that never comes back.
Work like this: holdouts (what there is), columns (what a holdout has), explain (the price, the interval to expect and what is wrong with a query; free), then ask. Use compare to decide between two models or measurements.
Asking the same again returns the recorded answer at no cost, so a call that failed on the way can always be repeated. A refusal costs nothing and says what to do. Fit and tune on the training part, which is free; ask the holdout to decide. Report the interval, not only the value.`

// holdoutArgument and the others are arguments that several tools have.
var (
	holdoutArgument = map[string]any{"type": "string", "description": "the id of a holdout, ho_…, as the tool holdouts lists it"}
	mostArgument    = map[string]any{"type": "integer", "minimum": 1, "description": "how many questions the call may cost; a dearer one is refused at no cost. Default: a tenth of the holdout's questions (or 2, where that is more)"}
)

// tools are in the order of the list.
var tools = []tool{
	{
		name: "holdouts", title: "List the holdouts",
		says:   "Lists the holdouts of this server: what they are about, their label, the parts' sizes, the guarantee, and what is left of the budget. Costs nothing.",
		input:  object(nil),
		output: ToolHoldouts{}, run: (*API).toolHoldouts,
	},
	{
		name: "columns", title: "Describe a holdout's columns",
		says: "The columns of a holdout as its training part shows them: kind, range, values, nulls. Also its label, and where the training part can be downloaded. Costs nothing.",
		input: object(map[string]any{"holdout": holdoutArgument, "match": map[string]any{"type": "string", "minLength": 1,
			"description": "a pattern of column names, with * and ?; default: all, of which at most " + strconv.Itoa(mostColumns) + " are listed"}}, "holdout"),
		output: ToolColumns{}, run: (*API).toolColumns,
	},
	{
		name: "plan", title: "Plan a guarantee",
		says:   "What each method would promise for a holdout that does not exist yet: of n units, for a number of questions or at a half-width. It looks at no data and costs nothing.",
		output: PlanReport{}, run: (*API).toolPlan,
	},
	{
		name: "explain", title: "Explain a query before asking it",
		says: "What a query means, what it would cost, how wide its interval will be, what the training part or the check part says, and what is wrong with it. It reads no holdout row and costs nothing. " +
			"To read it in a loop is to fit to the check part: decide by ask.",
		input: object(map[string]any{"holdout": holdoutArgument, "query": map[string]any{"type": "object", "required": []string{"type"}, "description": "a query, as the tool ask takes it",
			"properties": map[string]any{"type": map[string]any{"type": "string", "enum": queries.Types()}}}}, "holdout", "query"),
		output: holdout.Explanation{}, run: (*API).toolExplain,
	},
	{
		name: "ask", title: "Ask a question about the holdout", spends: true,
		says: "Answers one query about the held-out rows with a value and an interval, and debits its price from the budget for good. The same query again gets the recorded answer at no cost. " +
			"Expressions are CEL over the columns: delay > 15 && origin in ['SFO', 'OAK'].",
		input:  object(map[string]any{"holdout": holdoutArgument, "query": queries.FlatSchema(), "max_questions": mostArgument}, "holdout", "query"),
		output: AskReply{}, run: (*API).toolAsk,
	},
	{
		name: "compare", title: "Decide whether b is better than a", spends: true,
		says: "Asks whether b is better than a on the held-out rows: the verdict is yes, no or undecided, with the interval of the difference. One question for both; narrow where they seldom differ. " +
			"Debited as ask is; the same again is free. For example a and b are {\"type\":\"accuracy\",\"model\":…}.",
		input:  compareInput(),
		output: AskReply{}, run: (*API).toolCompare,
	},
	{
		name: "budget", title: "What is left of the budget",
		says:   "How many questions, and tokens where the mechanism has them, are left of a holdout's budget. Costs nothing.",
		input:  object(map[string]any{"holdout": holdoutArgument}, "holdout"),
		output: holdout.Budget{}, run: (*API).toolBudget,
	},
}

// object is the schema of an object with these members and no others.
func object(properties map[string]any, required ...string) map[string]any {
	if properties == nil {
		properties = map[string]any{}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

// compareInput is the schema of a compare, as its parser reads it, with the arguments of every tool that asks.
func compareInput() map[string]any {
	var s map[string]any
	if err := json.Unmarshal(queries.FlatMembers("compare"), &s); err != nil {
		panic("api: the schema of compare is no JSON: " + err.Error())
	}
	properties := s["properties"].(map[string]any)
	properties["holdout"], properties["max_questions"] = holdoutArgument, mostArgument
	s["required"] = append([]any{"holdout"}, s["required"].([]any)...)
	return s
}

// mcpServer is the SDK's server with the tools.
func (a *API) mcpServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "holdoutd", Title: "holdoutd: a holdout that can be asked again and again", Version: a.version},
		&mcp.ServerOptions{Instructions: mcpInstructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	server.AddReceivingMiddleware(a.serveMethods)
	no := false
	for _, t := range tools {
		input := t.input
		if input == nil { // that of the HTTP interface's body
			input = a.schemaFor(PlanRequest{}, true)
		}
		server.AddTool(&mcp.Tool{
			Name: t.name, Title: t.title, Description: t.says, InputSchema: input, OutputSchema: a.schemaFor(t.output, false),
			Annotations: &mcp.ToolAnnotations{Title: t.title, ReadOnlyHint: !t.spends, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
		}, a.handle(t))
	}
	return server
}

// schemaFor is the schema of a Go type as a document of its own: the components that it refers to are under $defs. Arguments are closed; replies may get
// members that an agent does not know.
func (a *API) schemaFor(v any, closed bool) map[string]any {
	const components, definitions = "#/components/schemas/", "#/$defs/"
	text, err := marshal(a.schemaOf(v))
	all := a.huma.OpenAPI().Components.Schemas.Map()
	defs := map[string]any{}
	read := func(text []byte) (s map[string]any) {
		if err == nil {
			err = json.Unmarshal(bytes.ReplaceAll(text, []byte(components), []byte(definitions)), &s)
		}
		return s
	}
	root := read(text)
	pending := []any{root}
	for len(pending) > 0 {
		at := pending[0]
		pending = pending[1:]
		switch at := at.(type) {
		case []any:
			pending = append(pending, at...)
		case map[string]any:
			for _, member := range at {
				pending = append(pending, member)
			}
			ref, _ := at["$ref"].(string)
			name, ok := strings.CutPrefix(ref, definitions)
			if !ok || defs[name] != nil || all[name] == nil {
				continue
			}
			var text []byte
			if text, err = marshal(all[name]); err == nil {
				defs[name] = read(text)
				pending = append(pending, defs[name])
			}
		}
	}
	if err != nil {
		panic("api: the schema of a tool: " + err.Error())
	}
	if ref, ok := root["$ref"].(string); ok { // hosts want an object at the root
		name := strings.TrimPrefix(ref, definitions)
		root = defs[name].(map[string]any)
		delete(defs, name)
	}
	if len(defs) > 0 {
		root["$defs"] = defs
	}
	if closed {
		root["additionalProperties"] = false
	}
	return root
}

// handle is a tool as the SDK calls it. What is refused is a result that the model reads, not an error of the protocol, which it does not.
func (a *API) handle(t tool) mcp.ToolHandler {
	return func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		call, ok := ctx.Value(mcpCallKey{}).(*mcpCall)
		if !ok {
			panic("api: a tool was called without the request that it came with")
		}
		arguments := call.arguments
		if len(arguments) == 0 || string(arguments) == "null" {
			arguments = json.RawMessage("{}")
		}
		said, err := t.run(a, call.ctx, arguments)
		if err != nil {
			p := problemOf(err)
			call.refuse(p)
			return refusal(p)
		}
		return &mcp.CallToolResult{
			StructuredContent: said.structured,
			Content:           []mcp.Content{&mcp.TextContent{Text: said.sentence}, &mcp.TextContent{Text: string(said.structured)}},
		}, nil
	}
}

// refusal is a problem for an agent: what happened and what it can do, then the problem itself. It is not structured content, whose schema is that of an answer.
func refusal(p *Problem) (*mcp.CallToolResult, error) {
	body, err := marshal(p)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: refusalSentence(p)}, &mcp.TextContent{Text: string(body)}}}, nil
}

// tell makes a reply of a value.
func tell(v any, sentence string) (reply, error) {
	body, err := marshal(v)
	return reply{body, sentence}, err
}

// ToolHoldouts is what the tool holdouts replies.
type ToolHoldouts struct {
	Holdouts []ToolHoldout `json:"holdouts"`
}

// ToolHoldout is a holdout in a line: what an agent needs to choose one, and how much of its budget is left.
type ToolHoldout struct {
	ID         string            `json:"id"`
	Name       string            `json:"name"`
	Label      string            `json:"label,omitempty" doc:"the column that is predicted: the label of queries that name none"`
	Features   string            `json:"features" enum:"secret,public" doc:"public: everything but the label can be downloaded, and predictions can be sent row by row"`
	Unit       string            `json:"unit" doc:"what is independent of the others: row, or a column whose rows with the same value belong together"`
	Units      holdout.Counts    `json:"units"`
	Columns    int               `json:"columns" doc:"how many; the tool columns describes them"`
	Mechanism  thresholdout.Name `json:"mechanism"`
	Confidence float64           `json:"confidence" doc:"the probability that all intervals together hold"`
	HalfWidth  float64           `json:"half_width,omitempty" doc:"the planned half-width of a share of all units"`
	Budget     holdout.Budget    `json:"budget"`
	State      string            `json:"state,omitempty" doc:"damaged, changed, rolled-back or restored: the holdout gives no new answers; absent where it does"`
}

func (a *API) toolHoldouts(ctx context.Context, arguments json.RawMessage) (reply, error) {
	if _, err := readObject(arguments); err != nil {
		return reply{}, err
	}
	cards, err := a.service.List(ctx, caller(ctx))
	if err != nil {
		return reply{}, err
	}
	list := ToolHoldouts{Holdouts: []ToolHoldout{}}
	var words []string
	for _, c := range cards {
		budget, err := a.service.Budget(ctx, caller(ctx), c.ID)
		if holdout.KindOf(err) == holdout.NotFound && err != nil {
			continue // deleted meanwhile
		}
		if err != nil {
			return reply{}, err
		}
		features := c.Settings.Features
		if features == "" {
			features = "secret"
		}
		list.Holdouts = append(list.Holdouts, ToolHoldout{c.ID, c.Name, c.Settings.Label, features, c.Unit, c.Units, len(c.Columns),
			c.Guarantee.Mechanism, c.Guarantee.Confidence, c.Guarantee.HalfWidth, budget, c.State})
		words = append(words, fmt.Sprintf("%s (%s), %s", named(c.Name), c.ID, budgetWords(budget)))
	}
	if len(words) == 0 {
		return tell(list, "There is no holdout on this server yet; a person with an admin key uploads a table.")
	}
	return tell(list, fmt.Sprintf("There %s: %s.", numbered(len(words), "is %d holdout", "are %d holdouts"), strings.Join(words, "; ")))
}

// mostColumns are listed in one reply: a table of thousands would fill an agent's memory.
const mostColumns = 200

// ToolColumns is what the tool columns replies.
type ToolColumns struct {
	Holdout  string               `json:"holdout" doc:"its id"`
	Label    string               `json:"label,omitempty" doc:"the column that is predicted"`
	Columns  []holdout.ColumnCard `json:"columns"`
	More     int                  `json:"more,omitempty" doc:"how many columns match and are not listed"`
	NullRule string               `json:"null_rule" doc:"what a null counts as"`
	Training string               `json:"training,omitempty" doc:"the path on this server of the training part, as Parquet; it needs the same key"`
	Features string               `json:"features,omitempty" doc:"the path of the features of the held-out rows, where they are public"`
}

func (a *API) toolColumns(ctx context.Context, arguments json.RawMessage) (reply, error) {
	members, err := readObject(arguments, "holdout", "match")
	if err != nil {
		return reply{}, err
	}
	id, err := textArgument(members, "holdout", true)
	if err != nil {
		return reply{}, err
	}
	pattern, err := textArgument(members, "match", false)
	if err != nil {
		return reply{}, err
	}
	if _, bad := path.Match(pattern, ""); bad != nil || strings.ContainsAny(pattern, `[\`) {
		return reply{}, wrongMember("/match", "must be a pattern with * and ? alone")
	}
	card, err := a.service.Card(ctx, caller(ctx), id)
	if err != nil {
		return reply{}, a.near(ctx, err, id)
	}
	out := ToolColumns{Holdout: id, Label: card.Settings.Label, Columns: []holdout.ColumnCard{}, NullRule: card.NullRule}
	var names, all []string
	for _, c := range card.Columns {
		all = append(all, c.Name)
		switch ok, _ := path.Match(pattern, c.Name); {
		case pattern != "" && !ok:
		case len(out.Columns) == mostColumns:
			out.More++
		default:
			out.Columns, names = append(out.Columns, c), append(names, c.Name)
		}
	}
	if len(names) == 0 && pattern != "" {
		p := wrongMember("/match", fmt.Sprintf("none of the %d columns matches; leave match out for all", len(all)))
		p.Errors[0].Suggestion = nearest.Name(strings.Trim(pattern, "*?"), all)
		return reply{}, p
	}
	if card.Units.Training > 0 {
		out.Training = "/v1/holdouts/" + id + "/training"
	}
	if card.Settings.Features == "public" {
		out.Features = "/v1/holdouts/" + id + "/features"
	}
	sentence := fmt.Sprintf("%s: %s.", numbered(len(names), "%d column", "%d columns"), strings.Join(names, ", "))
	if out.More > 0 {
		sentence += fmt.Sprintf(" %s; use match to see others.", numbered(out.More, "%d more matches", "%d more match"))
	}
	if out.Label != "" {
		sentence += " The label is " + out.Label + "."
	}
	return tell(out, sentence)
}

func (a *API) toolPlan(ctx context.Context, arguments json.RawMessage) (reply, error) {
	report, err := a.plan(ctx, arguments)
	if err != nil {
		return reply{}, err
	}
	return tell(report, planSentence(report))
}

func (a *API) toolExplain(ctx context.Context, arguments json.RawMessage) (reply, error) {
	id, query, _, err := readAsk(arguments, false)
	if err != nil {
		return reply{}, err
	}
	e, err := a.service.Explain(ctx, caller(ctx), id, query)
	if err != nil {
		return reply{}, a.near(ctx, below(err, "/query"), id)
	}
	return tell(e, explanationSentence(e))
}

func (a *API) toolAsk(ctx context.Context, arguments json.RawMessage) (reply, error) {
	id, query, options, err := readAsk(arguments, true)
	if err != nil {
		return reply{}, err
	}
	r, err := a.answer(ctx, id, query, options)
	return r, below(err, "/query")
}

// toolCompare asks the query that its arguments are, without those of every tool that asks.
func (a *API) toolCompare(ctx context.Context, arguments json.RawMessage) (reply, error) {
	known := slices.Sorted(maps.Keys(compareInput()["properties"].(map[string]any)))
	members, err := readObject(arguments, known...)
	if err != nil {
		return reply{}, err
	}
	id, options, err := readTarget(members)
	if err != nil {
		return reply{}, err
	}
	delete(members, "holdout")
	delete(members, "max_questions")
	query := bytes.NewBufferString(`{"type":"compare"`)
	for _, name := range known {
		if value, ok := members[name]; ok {
			fmt.Fprintf(query, ",%q:%s", name, value)
		}
	}
	query.WriteByte('}')
	return a.answer(ctx, id, query.Bytes(), options)
}

// answer asks, as POST …/queries does: through the same door, and with the same bytes in the reply.
func (a *API) answer(ctx context.Context, id string, query []byte, options []holdout.AskOption) (reply, error) {
	answer, err := a.service.Ask(ctx, caller(ctx), id, query, "", options...)
	if err != nil {
		return reply{}, a.near(ctx, err, id)
	}
	body, err := askReply(answer)
	if err != nil {
		return reply{}, err
	}
	sentence, err := answerSentence(answer)
	return reply{body, sentence}, err
}

func (a *API) toolBudget(ctx context.Context, arguments json.RawMessage) (reply, error) {
	members, err := readObject(arguments, "holdout")
	if err != nil {
		return reply{}, err
	}
	id, err := textArgument(members, "holdout", true)
	if err != nil {
		return reply{}, err
	}
	b, err := a.service.Budget(ctx, caller(ctx), id)
	if err != nil {
		return reply{}, a.near(ctx, err, id)
	}
	return tell(b, budgetSentence(b))
}

// near says which holdouts there are, where the one that was named is none.
func (a *API) near(ctx context.Context, err error, id string) error {
	if holdout.KindOf(err) != holdout.NotFound {
		return err
	}
	cards, failed := a.service.List(ctx, caller(ctx))
	if failed != nil {
		return err
	}
	ids := make([]string, len(cards))
	p := problem(classes[holdout.NotFound], "there is no such holdout")
	violation := Violation{Pointer: "/holdout", Detail: p.Detail}
	for i, c := range cards {
		if ids[i] = c.ID; c.Name != "" && c.Name == id {
			violation.Suggestion = c.ID
		}
	}
	if violation.Suggestion == "" {
		violation.Suggestion = nearest.Name(id, ids)
	}
	p.Errors = []Violation{violation}
	return p
}

// readAsk reads the arguments of ask and explain. The query is left as it came.
func readAsk(arguments json.RawMessage, spends bool) (id string, query json.RawMessage, options []holdout.AskOption, err error) {
	known := []string{"holdout", "query"}
	if spends {
		known = append(known, "max_questions")
	}
	members, err := readObject(arguments, known...)
	if err != nil {
		return "", nil, nil, err
	}
	if id, options, err = readTarget(members); err != nil {
		return "", nil, nil, err
	}
	query, ok := members["query"]
	if !ok {
		return "", nil, nil, wrongMember("", `"query" is missing: an object with a type, such as {"type":"fraction","of":"delay > 15"}`)
	}
	if query[0] != '{' {
		return "", nil, nil, wrongMember("/query", "must be an object with a type, not a text that holds one")
	}
	return id, query, options, nil
}

// readTarget reads which holdout is asked, and how many questions that may cost.
func readTarget(members map[string]json.RawMessage) (id string, options []holdout.AskOption, err error) {
	if id, err = textArgument(members, "holdout", true); err != nil {
		return "", nil, err
	}
	value, ok := members["max_questions"]
	if !ok {
		return id, nil, nil
	}
	var most int64
	if json.Unmarshal(value, &most) != nil || most < 1 {
		return "", nil, wrongMember("/max_questions", "must be a whole number of at least 1; leave it out for the default")
	}
	return id, []holdout.AskOption{holdout.MaxQuestions(most)}, nil
}

// textArgument reads an argument that is a text and not empty.
func textArgument(members map[string]json.RawMessage, name string, required bool) (s string, err error) {
	value, ok := members[name]
	switch {
	case !ok && required:
		return "", wrongMember("", `"`+name+`" is missing`)
	case !ok:
		return "", nil
	case json.Unmarshal(value, &s) != nil || s == "":
		return "", wrongMember("/"+name, "must be a text that is not empty")
	}
	return s, nil
}

// below moves the places that an error names: the query is a member of the arguments.
func below(err error, pointer string) error {
	if err == nil {
		return nil
	}
	p := problemOf(err)
	moved := *p
	moved.Errors = slices.Clone(p.Errors)
	for i, v := range moved.Errors {
		if v.Parameter == "" && v.Pointer != "/holdout" {
			moved.Errors[i].Pointer = pointer + v.Pointer
		}
	}
	return &moved
}
