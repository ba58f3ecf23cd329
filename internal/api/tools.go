package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
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
	output            any            // a value of the reply's Go type, whose members the list names
	run               func(a *API, ctx context.Context, arguments json.RawMessage) (reply, error)
}

// A reply is what a tool says: JSON of the shape that the HTTP interface has for it, and the same in a sentence.
type reply struct {
	structured json.RawMessage
	sentence   string
}

// mcpInstructions are what a host hands its model about the server, before any tool is called. Not all hosts do: the descriptions say the order of the calls, too.
const mcpInstructions = `This server keeps held-out rows of tables secret and answers questions about them, with intervals that stay true however you choose your questions. Each holdout has a budget of questions that never comes back.
Work like this: holdouts (what there is), columns (what a holdout has), explain (the price, the interval to expect and what is wrong with a query; free), then ask. Use compare to decide between two models or measurements. The tool describe has the details of each type of query and each form of a model.
Asking the same again returns the recorded answer at no cost, so a call that failed on the way can always be repeated. A refusal costs nothing and says what to do. Fit and tune on the training part, which is free; ask the holdout to decide. Report the interval, not only the value.`

// holdoutArgument and the others are arguments that several tools have.
var (
	holdoutArgument = map[string]any{"type": "string", "description": "the id of a holdout, ho_…, or its name where no other has it"}
	mostArgument    = map[string]any{"type": "integer", "description": "most questions that the call may cost; a dearer one is refused, at no cost. Default: a tenth of the holdout's, at least 2"}
)

// tools are in the order of the list.
var tools = []tool{
	{
		name: "holdouts", title: "List the holdouts",
		says:   "Begin here. Lists the holdouts: names, labels, sizes, budgets. Then: columns, explain, ask. Free.",
		input:  closed(nil),
		output: ToolHoldouts{}, run: (*API).toolHoldouts,
	},
	{
		name: "columns", title: "Describe a holdout's columns",
		says: "The columns of a holdout as its training part shows them: kind, range, values, nulls; its label; where the training part can be downloaded. Next: explain, then ask. Free.",
		input: closed(map[string]any{"holdout": holdoutArgument, "match": map[string]any{"type": "string",
			"description": "a pattern of column names, with * and ?; default: all, of which at most " + strconv.Itoa(mostColumns) + " are listed"}}, "holdout"),
		output: ToolColumns{}, run: (*API).toolColumns,
	},
	{
		name: "describe", title: "Describe a type of query or a form of model",
		says: "All about one type of query (members, ranges, prices, examples), one form of a model, with an example, or the expressions. Free.",
		input: closed(map[string]any{"name": map[string]any{"type": "string", "enum": describedNames(),
			"description": "a type of query, a form of model, or " + describeExpressions}}, "name"),
		output: ToolDescription{}, run: (*API).toolDescribe,
	},
	{
		name: "plan", title: "Plan a guarantee",
		says:   "What each method would promise for a planned holdout of n units, for a number of questions or at a half-width. Free.",
		output: PlanReport{}, run: (*API).toolPlan,
	},
	{
		name: "explain", title: "Explain a query before asking it",
		says: "After columns, before ask: what a query means and would cost, how wide its interval will be, what the training or check part says, and what is wrong with it. It reads no holdout row and costs nothing. " +
			"To read it in a loop is to fit to the check part: decide by ask.",
		input:  closed(map[string]any{"holdout": holdoutArgument, "query": worded(queries.NestedSchema(), "a query, as the tool ask takes it")}, "holdout", "query"),
		output: holdout.Explanation{}, run: (*API).toolExplain,
	},
	{
		name: "ask", title: "Ask a question about the holdout", spends: true,
		says: "Answers one query about the held-out rows with a value and an interval, and debits its price for good. The same query again is free. First columns, then explain, then ask. " +
			"In a holdout with rounds a call would end a round and lose its other questions: use batch there.",
		input:  closed(map[string]any{"holdout": holdoutArgument, "query": askedQuery(), "max_questions": mostArgument}, "holdout", "query"),
		output: AskReply{}, run: (*API).toolAsk,
	},
	{
		name: "batch", title: "Ask many questions at once", spends: true,
		says: "Answers many queries in one call, in their order; where the holdout has rounds, all questions of one round. All are paid or none is.",
		input: closed(map[string]any{"holdout": holdoutArgument, "queries": map[string]any{"type": "array", "items": queries.NestedSchema(), "description": "queries, as the tool ask takes them"},
			"partial": map[string]any{"type": "boolean", "description": "answer as many as the budget pays for, instead of all or none"}, "max_questions": worded(mostArgument, "most questions that all together may cost; default: a tenth of the holdout's for each")},
			"holdout", "queries"),
		output: BatchReply{}, run: (*API).toolBatch,
	},
	{
		name: "compare", title: "Decide whether b is better than a", spends: true,
		says: "Asks whether b is better than a on the held-out rows: the verdict is yes, no or undecided, with the interval of the difference. " +
			`a and b are queries, as the tool ask takes them: {"type": "accuracy", "model": …}. First columns, then explain.`,
		input:  compareInput(),
		output: AskReply{}, run: (*API).toolCompare,
	},
	{
		name: "budget", title: "What is left of the budget",
		says:   "What is left of a holdout's budget, in questions and tokens, and how many one query may cost without max_questions. Free.",
		input:  closed(map[string]any{"holdout": holdoutArgument}, "holdout"),
		output: ToolBudget{}, run: (*API).toolBudget,
	},
}

// What the programs of hosts read of a schema differs: some refuse references, alternatives and bounds, and some close an object that does not say that it is open. So the
// list has types, descriptions, words to choose from and items of lists, and every object says what else it may have.

// closed is the schema of an object with these members and no others.
func closed(properties map[string]any, required ...string) map[string]any {
	if properties == nil {
		properties = map[string]any{}
	}
	return map[string]any{"type": "object", "properties": properties, "required": append([]string{}, required...), "additionalProperties": false}
}

// worded is a schema with a description.
func worded(schema map[string]any, words string) map[string]any {
	s := maps.Clone(schema)
	s["description"] = words
	return s
}

// askedQuery is the schema of a query with all that the list says of the language.
func askedQuery() map[string]any {
	var s map[string]any
	if err := json.Unmarshal(queries.FlatSchema(), &s); err != nil {
		panic("api: the schema of a query is no JSON: " + err.Error())
	}
	return worded(s, `A type with its members, such as {"type": "mean", "of": "delay", "range": [-60, 180], "where": "origin in ['SFO', 'OAK']"}. `+
		`Expressions are CEL over the columns: delay > 15 && !(origin == 'SFO'), col("air time") / 60, x == null, t.getMonth(); the tool describe has them all, and the details of each type. `+
		"The list of types has (needed members; others). M is one of model, prediction, predictions, and the label where the holdout has none. "+
		"Most types may also have where, null, weight, guess, half_width, measure, promise. With \"measure\": true the value is the holdout's own, for a token and more questions.")
}

// compareInput is the schema of a compare, as its parser reads it, with the arguments of every tool that asks.
func compareInput() map[string]any {
	properties, needed := queries.FlatMembers("compare")
	for _, side := range []string{"a", "b"} {
		properties[side] = worded(queries.NestedSchema(), properties[side].(map[string]any)["description"].(string))
	}
	properties["holdout"], properties["max_questions"] = holdoutArgument, mostArgument
	return closed(properties, append([]string{"holdout"}, needed...)...)
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
			input = planInput()
		}
		server.AddTool(&mcp.Tool{
			Name: t.name, Title: t.title, Description: t.says, InputSchema: input, OutputSchema: outputOf(t.output),
			Annotations: &mcp.ToolAnnotations{ReadOnlyHint: !t.spends, IdempotentHint: true, DestructiveHint: &no, OpenWorldHint: &no},
		}, a.handle(t))
	}
	return server
}

// membersOf are the schemas of a reply's or a body's members, by its Go type. What only tools reply is not in the document of the HTTP interface.
func membersOf(v any) map[string]*huma.Schema {
	const prefix = "#/"
	registry := huma.NewMapRegistry(prefix, schemaName)
	return registry.Map()[strings.TrimPrefix(registry.Schema(reflect.TypeOf(v), true, "").Ref, prefix)].Properties
}

// planInput is the schema of what a plan is asked for.
func planInput() map[string]any {
	properties := map[string]any{}
	for name, member := range membersOf(PlanRequest{}) {
		properties[name] = map[string]any{"type": member.Type, "description": member.Description}
	}
	properties["workload"].(map[string]any)["description"] = "what is to be asked, as a text: 60 accuracy, 60 auc, 10 groups of 12 in -60..180 sd 39. Then questions may be left out"
	return closed(properties, "n")
}

// outputOf is the schema of what a tool replies: the reply's members, each with its type alone, beside those that every reply has. It is open, and a refusal obeys it, too: some hosts
// hold both against it.
func outputOf(v any) map[string]any {
	properties := map[string]any{
		"sentence": map[string]any{"type": "string"},
		"problem":  map[string]any{"type": "object", "additionalProperties": true}, // of a refusal alone
	}
	for name, member := range membersOf(v) {
		s := map[string]any{}
		switch {
		case member.Type == huma.TypeArray && member.Items.Type != "" && member.Items.Type != huma.TypeObject:
			s["type"], s["items"] = member.Type, map[string]any{"type": member.Items.Type}
		case member.Type == huma.TypeArray:
			s["type"], s["items"] = member.Type, map[string]any{}
		case member.Ref != "" || member.Type == huma.TypeObject:
			s["type"], s["additionalProperties"] = "object", true
		case member.Type != "" && !member.Nullable:
			s["type"] = member.Type
		}
		properties[name] = s
	}
	return map[string]any{"type": "object", "properties": properties, "required": []string{"sentence"}, "additionalProperties": true}
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
		return toolResult(said, false)
	}
}

// refusal is a problem for an agent: what happened and what it can do, then the problem itself.
func refusal(p *Problem) (*mcp.CallToolResult, error) {
	body, err := marshal(map[string]any{"problem": p})
	if err != nil {
		return nil, err
	}
	return toolResult(reply{body, refusalSentence(p)}, true)
}

// toolResult is a reply as the protocol has it. Hosts hand their models the texts, or the structured content alone: the sentence is in both.
func toolResult(said reply, refused bool) (*mcp.CallToolResult, error) {
	sentence, err := marshal(said.sentence)
	if err != nil {
		return nil, err
	}
	whole := slices.Concat([]byte(`{"sentence":`), sentence, []byte(","), said.structured[1:])
	return &mcp.CallToolResult{
		IsError: refused, StructuredContent: json.RawMessage(whole),
		Content: []mcp.Content{&mcp.TextContent{Text: said.sentence}, &mcp.TextContent{Text: string(whole)}},
	}, nil
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
	State      string            `json:"state,omitempty" doc:"damaged or rolled-back: the holdout gives no new answers; absent where it does"`
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
	Draft    string               `json:"draft,omitempty" doc:"of a holdout of which nothing was shown yet: when ranges are shown"`
	Training string               `json:"training,omitempty" doc:"the path on this server of the training part, as Parquet; it needs the same key"`
	Features string               `json:"features,omitempty" doc:"the path of the features of the held-out rows, where they are public"`
}

func (a *API) toolColumns(ctx context.Context, arguments json.RawMessage) (reply, error) {
	members, err := readObject(arguments, "holdout", "match")
	if err != nil {
		return reply{}, err
	}
	id, err := a.target(ctx, members)
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
			c.Dictionary = nil // how large it may be is no number of texts
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
	if card.Draft {
		out.Draft = "Ranges, values and nulls are shown after the first explain or ask of this holdout."
		sentence += " " + out.Draft
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
	id, query, _, err := a.readAsk(ctx, arguments, false)
	if err != nil {
		return reply{}, err
	}
	e, err := a.service.Explain(ctx, caller(ctx), id, query)
	if err != nil {
		return reply{}, below(misplaced(a.near(ctx, err, id), "is an argument of ask, and explain has none: leave it out"), "/query")
	}
	return tell(e, explanationSentence(e))
}

func (a *API) toolAsk(ctx context.Context, arguments json.RawMessage) (reply, error) {
	id, query, options, err := a.readAsk(ctx, arguments, true)
	if err != nil {
		return reply{}, err
	}
	r, err := a.answer(ctx, id, query, options)
	return r, below(err, "/query")
}

// compareMembers are the arguments of compare.
var compareMembers = slices.Sorted(maps.Keys(compareInput()["properties"].(map[string]any)))

// toolBatch asks many queries, as POST …/queries/batch does.
func (a *API) toolBatch(ctx context.Context, arguments json.RawMessage) (reply, error) {
	members, err := readObject(arguments, "holdout", "queries", "partial", "max_questions")
	if err != nil {
		return reply{}, err
	}
	id, options, err := a.readTarget(ctx, members)
	if err != nil {
		return reply{}, err
	}
	list, partial, err := batchOf(members, a.asked.BatchQueries)
	if err != nil {
		return reply{}, err
	}
	answer, err := a.service.AskBatch(ctx, caller(ctx), id, list, partial, "", options...)
	if err != nil {
		return reply{}, misplaced(a.near(ctx, err, id), besideQuery)
	}
	body, err := batchReply(answer)
	if err != nil {
		return reply{}, err
	}
	sentence, err := batchSentence(answer)
	return reply{body, sentence}, err
}

// toolCompare asks the query that its arguments are, without those of every tool that asks.
func (a *API) toolCompare(ctx context.Context, arguments json.RawMessage) (reply, error) {
	known := compareMembers
	members, err := readObject(arguments, known...)
	if err != nil {
		return reply{}, err
	}
	id, options, err := a.readTarget(ctx, members)
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
		return reply{}, misplaced(a.near(ctx, err, id), besideQuery)
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
	id, err := a.target(ctx, members)
	if err != nil {
		return reply{}, err
	}
	b, err := a.service.Budget(ctx, caller(ctx), id)
	if err != nil {
		return reply{}, a.near(ctx, err, id)
	}
	out := ToolBudget{Budget: b}
	if b.Questions.Left > 0 && b.Rounds == nil {
		out.MostUnasked = holdout.MostUnasked(b.Questions.Of)
	}
	return tell(out, budgetSentence(b))
}

// ToolBudget is what the tool budget replies.
type ToolBudget struct {
	holdout.Budget
	MostUnasked int64 `json:"max_questions,omitempty" doc:"how many questions one query may cost without max_questions"`
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
	var ids []string
	p := problem(classes[holdout.NotFound], "there is no such holdout")
	violation := Violation{Pointer: "/holdout", Detail: p.Detail}
	for _, c := range cards {
		ids = append(ids, c.ID)
		if c.Name != "" {
			ids = append(ids, c.Name)
		}
	}
	violation.Suggestion = nearest.Name(id, ids)
	p.Errors = []Violation{violation}
	return p
}

// readAsk reads the arguments of ask and explain. The query is left as it came.
func (a *API) readAsk(ctx context.Context, arguments json.RawMessage, spends bool) (id string, query json.RawMessage, options []holdout.AskOption, err error) {
	known := []string{"holdout", "query"}
	if spends {
		known = append(known, "max_questions")
	}
	members, err := readObject(arguments, known...)
	if err != nil {
		return "", nil, nil, err
	}
	if id, options, err = a.readTarget(ctx, members); err != nil {
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

// readTarget reads which holdout is asked, and how many questions that may cost. No person watches: the questions of a round are lost only where the call says so.
func (a *API) readTarget(ctx context.Context, members map[string]json.RawMessage) (id string, options []holdout.AskOption, err error) {
	if id, err = a.target(ctx, members); err != nil {
		return "", nil, err
	}
	options = []holdout.AskOption{holdout.WholeRounds()}
	value, ok := members["max_questions"]
	if !ok {
		return id, options, nil
	}
	var most int64
	if json.Unmarshal(value, &most) != nil || most < 1 {
		return "", nil, wrongMember("/max_questions", "must be a whole number of at least 1; leave it out for the default")
	}
	return id, append(options, holdout.MaxQuestions(most)), nil
}

// target reads which holdout is meant: its id, or its name where one holdout has it.
func (a *API) target(ctx context.Context, members map[string]json.RawMessage) (id string, err error) {
	name, err := textArgument(members, "holdout", true)
	if err != nil || strings.HasPrefix(name, holdout.IDPrefix) {
		return name, err
	}
	cards, err := a.service.List(ctx, caller(ctx))
	if err != nil {
		return "", err
	}
	var ids []string
	for _, c := range cards {
		if c.Name == name {
			ids = append(ids, c.ID)
		}
	}
	switch len(ids) {
	case 0:
		return name, nil // there is no such id: near says what there is
	case 1:
		return ids[0], nil
	}
	return "", wrongMember("/holdout", fmt.Sprintf("%d holdouts have this name; name one by its id: %s", len(ids), strings.Join(ids, ", ")))
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

// besideQuery is what is said of an argument that stands within a query.
const besideQuery = "is an argument of the call: write it beside the query, not in it"

// misplaced says of max_questions within a query where it belongs.
func misplaced(err error, instead string) error {
	p := problemOf(err)
	moved := *p
	moved.Errors = slices.Clone(p.Errors)
	for i, v := range moved.Errors {
		if strings.HasSuffix(v.Pointer, "/max_questions") && strings.HasPrefix(v.Detail, "unknown member") {
			moved.Errors[i].Detail, moved.Errors[i].Suggestion = instead, ""
		}
	}
	return &moved
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
