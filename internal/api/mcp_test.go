package api

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdoutd/holdoutd/holdout"
	"github.com/holdoutd/holdoutd/internal/printed"
	"github.com/holdoutd/holdoutd/queries"
)

// An agent is the SDK's own client, with a key, against the real server.
type agent struct {
	t *testing.T
	*mcp.ClientSession
}

// withKey sends a key with every request.
type withKey struct{ key string }

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

func (s *server) agent(key string) *agent {
	s.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(s.t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: withKey{key}}}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { session.Close() })
	return &agent{s.t, session}
}

// call calls a tool with arguments as JSON and returns the sentence and the JSON beside it.
func (a *agent) call(tool, arguments string) (sentence, body string, refused bool) {
	a.t.Helper()
	params := &mcp.CallToolParams{Name: tool}
	if arguments != "" {
		params.Arguments = json.RawMessage(arguments)
	}
	result, err := a.CallTool(context.Background(), params)
	if err != nil {
		a.t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	if len(result.Content) != 2 {
		a.t.Fatalf("%s: %d pieces, want a sentence and JSON", tool, len(result.Content))
	}
	return result.Content[0].(*mcp.TextContent).Text, result.Content[1].(*mcp.TextContent).Text, result.IsError
}

// outline is a schema without its words: which members there are, of which types, and which are needed. The words are those of docs/QUERIES.md and of the document.
func outline(schema any) any {
	switch schema := schema.(type) {
	case []any:
		for i := range schema {
			schema[i] = outline(schema[i])
		}
	case map[string]any:
		for name, member := range schema {
			if _, says := member.(string); says && name == "description" {
				delete(schema, name)
				continue
			}
			schema[name] = outline(member)
		}
	}
	return schema
}

// TestDocumentOfTools: hosts and people write about tools by their names and arguments; a change of the list is seen. If it is meant: make generate.
func TestDocumentOfTools(t *testing.T) {
	s := start(t, Options{Version: "test"})
	a := s.agent(s.key)
	list, err := a.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var outlines []any
	for _, tool := range list.Tools {
		text, err := json.Marshal(tool)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		members["inputSchema"] = outline(members["inputSchema"])
		outlines = append(outlines, members)
	}
	got, err := json.MarshalIndent(outlines, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const golden = "testdata/mcp-tools.json"
	if *update {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != string(got) {
		t.Errorf("the tools are not what %s says; if that is meant: make generate", golden)
	}
	// A model reads the list before it reads anything else: about four characters are a token.
	const most = 20_000
	text, _ := marshal(list.Tools)
	t.Logf("the list has %d characters", utf8.RuneCount(text))
	if n := utf8.RuneCount(text); n > most {
		t.Errorf("the list of tools has %d characters, more than the %d that a model should have to read", n, most)
	}
	for _, tool := range list.Tools {
		for _, wrong := range slices.Concat(unread(tool.InputSchema, tool.Name+" takes"), unread(tool.OutputSchema, tool.Name+" replies")) {
			t.Error(wrong)
		}
		if root := tool.InputSchema.(map[string]any); root["additionalProperties"] != false {
			t.Errorf("%s: arguments that no tool reads are not said to be wrong", tool.Name)
		}
		if tool.Name == "ask" || tool.Name == "columns" || tool.Name == "explain" { // hosts may leave the instructions out
			for _, step := range []string{"columns", "explain", "ask"} {
				if step != tool.Name && !strings.Contains(tool.Description, step) {
					t.Errorf("%s does not say where %s comes: %s", tool.Name, step, tool.Description)
				}
			}
		}
	}
	spends := map[string]bool{"ask": true, "batch": true, "compare": true}
	for _, tool := range list.Tools {
		if hints := tool.Annotations; hints == nil || hints.ReadOnlyHint == spends[tool.Name] || !hints.IdempotentHint || *hints.DestructiveHint || *hints.OpenWorldHint {
			t.Errorf("%s: the hints %+v", tool.Name, hints)
		}
	}
	if instructions := a.InitializeResult().Instructions; !strings.Contains(instructions, "explain") {
		t.Errorf("a host is told %q", instructions)
	}
}

// readByAll are the keywords of a schema that the programs of all hosts read.
var readByAll = []string{"type", "properties", "required", "additionalProperties", "items", "enum", "description"}

// unread is what some programs misread in a schema: keywords that they refuse, references, alternatives, objects that do not say whether they are open, and empty schemas of lists.
func unread(schema any, at string) (wrong []string) {
	s, ok := schema.(map[string]any)
	if !ok {
		return []string{at + ": is no schema of its own"}
	}
	for key := range s {
		if !slices.Contains(readByAll, key) {
			wrong = append(wrong, at+": has "+key)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		wrong = append(wrong, unread(properties[name], at+"/"+name)...)
	}
	switch more, said := s["additionalProperties"]; {
	case s["type"] != "object" && (said || properties != nil):
		wrong = append(wrong, at+": is no object and has members")
	case s["type"] == "object" && more != true && (more != false || s["required"] == nil):
		wrong = append(wrong, at+": does not say whether it is open")
	case s["type"] == "array":
		wrong = append(wrong, unread(s["items"], at+"/items")...)
	}
	for _, word := range asList(s["enum"]) {
		if _, text := word.(string); !text {
			wrong = append(wrong, at+": has a word that is no text")
		}
	}
	return wrong
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

// TestUnread: the rule notices each of what it is for.
func TestUnread(t *testing.T) {
	for _, text := range []string{
		`{"type":"object","properties":{"query":{"type":"object"}},"required":[],"additionalProperties":false}`, `{"$ref":"#/$defs/a"}`, `{"oneOf":[{"type":"string"}]}`,
		`{"type":"object","additionalProperties":true,"properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"string"}}}}}}`,
		`{"type":"object","additionalProperties":{"type":"string"}}`, `{"type":"array"}`, `{"type":"array","items":true}`, `{"type":"number","exclusiveMinimum":0}`, `{"type":"integer","enum":[0,1]}`,
		`{"type":"object","additionalProperties":false}`,
	} {
		var s any
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if len(unread(s, "it")) == 0 {
			t.Errorf("nothing is wrong with %s", text)
		}
	}
}

// TestEveryTool: each tool answers in the shape that it declares, and its sentence has the numbers. A reply that is not as its schema says, or a sentence without what
// was said, turns it red.
func TestEveryTool(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&label=delay&questions=30")
	_, key := s.newKey("analyst")
	a := s.agent(key)
	schemas := a.outputSchemas()
	target := `{"holdout":"` + card.ID + `"`
	share := target + `,"query":{"type":"fraction","of":"delay > 15"}}`
	models := `,"a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 900"}`
	for _, c := range []struct{ tool, arguments, says string }{
		{"holdouts", ``, "flights (" + card.ID + "), 30 of 30 questions and 20 of 20 tokens left"},
		{"columns", target + `}`, "5 columns: date, delay, distance, origin, destination. The label is delay."},
		{"columns", target + `,"match":"d*"}`, "4 columns: date, delay, distance, destination."},
		{"columns", `{"holdout":"flights"}`, "Ranges, values and nulls are shown after the first explain or ask"},
		{"describe", `{"name":"mean"}`, "range (needed): [low, high]"},
		{"describe", `{"name":"trees"}`, "A tree is the list of its nodes **in preorder**"},
		{"describe", `{"name":"expressions"}`, "getDayOfWeek"},
		{"plan", `{"n":3000,"questions":100}`, "(mechanism gaussian), with intervals of ±0.103"},
		{"plan", `{"n":30000,"workload":"60 accuracy, 10 auc"}`, "For the workload it is"},
		{"explain", share, "Asking costs 1 question, and at most 1 token if the guess is wrong. The training and check part together says 0."},
		{"ask", share, "with 95% confidence for all 30 questions. The value is that of the training and check parts, which the holdout did not contradict. It cost 1 question; there are 29 of 30 questions"},
		{"ask", share, "It was answered before and cost nothing now; there are 29 of 30 questions and 20 of 20 tokens left."},
		{"explain", share, "It was answered before: asking again costs nothing."},
		{"ask", target + `,"query":{"type":"histogram","of":"delay","edges":[-60,0,15,180]},"max_questions":6}`, "[-60, 0): "},
		{"compare", target + models + `,"by":0.01}`, "The verdict is yes. The value is 0.1"},
		{"batch", target + `,"queries":[{"type":"fraction","of":"delay > 15"},{"type":"fraction","of":"delay > 31"}]}`, "2 of 2 queries were answered, 1 of them before and at no cost now. 1: The value is"},
		{"budget", target + `}`, " of 30 questions and 20 of 20 tokens left. Without max_questions one query may cost 3 at most."},
	} {
		sentence, body, refused := a.call(c.tool, c.arguments)
		if refused || !strings.Contains(sentence, c.says) {
			t.Errorf("%s %s: %s\nwant: %s", c.tool, c.arguments, sentence, c.says)
		}
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatalf("%s: %v", c.tool, err)
		}
		if err := schemas[c.tool].Validate(value); err != nil {
			t.Errorf("%s: the reply is not as its schema says: %v\n%s", c.tool, err, body)
		}
		if said, _ := value.(map[string]any)["sentence"].(string); said != sentence {
			t.Errorf("%s: the structured content has the sentence %q, the text %q", c.tool, said, sentence)
		}
	}
	// The sentence has the numbers of the JSON.
	sentence, body, _ := a.call("ask", share)
	var said struct {
		Answer struct {
			Value    float64
			Interval struct{ Low, High float64 }
		}
	}
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("The value is %.6g. The true value is in [%.6g, %.6g]", said.Answer.Value, printed.LowOf(said.Answer.Interval.Low, 6), printed.HighOf(said.Answer.Interval.High, 6)); !strings.HasPrefix(sentence, want) {
		t.Errorf("%s\nwant %s", sentence, want)
	}
	// The same door: what an agent was answered is the recorded bytes, in its own history, and is replayed by the HTTP interface.
	r := s.post(path+"/queries", `{"type":"fraction","of":"delay > 15"}`)
	if !strings.Contains(string(r.body), `"replayed":true`) || string(r.body) != unsaid(body) {
		t.Errorf("by the tool %s\nby HTTP %s", body, r.body)
	}
	if r := s.get(path+"/answers", "Authorization: Bearer "+key); strings.Count(string(r.body), `"id":"ans_`) != 4 || strings.Count(string(r.body), `"name":"ana"`) != 4 {
		t.Errorf("the agent's history: %s", r.body)
	}
}

// unsaid is the structured content of a tool without its sentence: the reply of the HTTP interface.
func unsaid(body string) string {
	rest := strings.TrimPrefix(body, `{"sentence":`)
	d := json.NewDecoder(strings.NewReader(rest))
	var sentence string
	if err := d.Decode(&sentence); err != nil || rest == body {
		return "no sentence: " + body
	}
	return "{" + strings.TrimPrefix(rest[d.InputOffset():], ",")
}

// outputSchemas are what the tools declare that they reply.
func (a *agent) outputSchemas() map[string]*jsonschema.Resolved {
	a.t.Helper()
	list, err := a.ListTools(a.t.Context(), nil)
	if err != nil {
		a.t.Fatal(err)
	}
	all := map[string]*jsonschema.Resolved{}
	for _, tool := range list.Tools {
		all[tool.Name] = resolved(a.t, tool.OutputSchema)
	}
	return all
}

func resolved(t *testing.T, schema any) *jsonschema.Resolved {
	t.Helper()
	text, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRefusalsForAgents: a refusal says in words what is wrong, where, what was probably meant and what to do, and costs nothing.
func TestRefusalsForAgents(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&label=delay&questions=40")
	a := s.agent(s.key)
	schemas := a.outputSchemas()
	target := `{"holdout":"` + card.ID + `"`
	for _, c := range []struct{ tool, arguments, says string }{
		{"ask", target + `,"query":{"type":"fraction","of":"delya > 15"}}`, `At /query/of: unknown column "delya". Did you mean delay? Nothing was read and nothing was debited: correct the arguments and call again.`},
		{"explain", target + `,"query":{"type":"fraction","of":"delya > 15"}}`, `At /query/of: unknown column "delya". Did you mean delay?`},
		{"ask", target + `,"query":{"type":"fractoin","of":"delay > 15"}}`, `Did you mean fraction?`},
		{"ask", target + `,"query":{"type":"fraction","off":"delay > 15"}}`, `At /query/off: unknown member`},
		{"ask", target + `,"query":{"type":"fraction","of":"delay >"}}`, `At /query/of: `},
		{"ask", target + `,"query":"{\"type\":\"fraction\"}"}`, `At /query: must be an object with a type, not a text that holds one.`},
		{"ask", target + `}`, `"query" is missing`},
		{"ask", target + `,"qeury":{}}`, `At /qeury: unknown member; there are holdout, query, max_questions. Did you mean query?`},
		{"ask", `{"holdout":"flight","query":{"type":"fraction","of":"delay > 15"}}`, `At /holdout: there is no such holdout. Did you mean flights?`},
		{"ask", target + `,"query":{"type":"fraction","of":"` + "`delay` > 15" + `"}}`, `a column is named without them`},
		{"describe", `{"name":"meen"}`, `Did you mean mean?`},
		{"describe", `{}`, `"name" is missing`},
		{"batch", target + `}`, `"queries" is missing`},
		{"batch", target + `,"queries":[{"type":"fraction","of":"delya > 15"}]}`, `At /queries/0/of: unknown column "delya". Did you mean delay?`},
		{"batch", target + `,"queries":[{"type":"fraction","of":"delay > 15"}],"partial":1}`, `At /partial: must be true or false`},
		{"ask", `{"holdout":7,"query":{"type":"fraction","of":"delay > 15"}}`, `At /holdout: must be a text that is not empty.`},
		{"ask", `[]`, `Must be an object with holdout, query, max_questions.`},
		{"ask", target + `,"query":{"type":"fraction","of":"delay > 15"},"max_questions":0}`, `At /max_questions: must be a whole number of at least 1`},
		{"ask", target + `,"query":{"type":"fraction","of":"delay > 15","type":"mean"}}`, `key occurs twice`},
		{"ask", target + `,"query":{"type":"groups","of":"delay > 15","by":"origin"}}`, `This costs 102 questions, and the call may cost 4. Nothing was read and nothing was debited. Ask for fewer categories, bins or features, or, if the price is meant, call again with max_questions=102.`},
		{"ask", target + `,"query":{"type":"histogram","of":"delay","edges":[0,1,2,3,4,5]},"max_questions":2}`, `and the call may cost 2.`},
		{"ask", target + `,"query":{"type":"fraction","of":"delay > 15","guess":0.2,"half_width":0.0001}}`, `At /query/half_width: `},
		{"ask", target + `,"query":{"type":"accuracy","label":"delay > 15","predictions":[1,0,1]}}`, `features=public`},
		{"compare", target + `,"a":{"type":"accuracy","label":"delay > 15","prediction":"distance > 500"}}`, `"b" is missing`},
		{"compare", target + `,"a":{"type":"accuracy","label":"delay > 15","prediction":"distanc > 500"},"b":{"type":"accuracy","label":"delay > 15","prediction":"distance > 900"}}`, `Did you mean distance?`},
		{"compare", target + `,"type":"mean","a":{},"b":{}}`, `At /type: unknown member`},
		{"columns", target + `,"match":"delya"}`, `At /match: none of the 5 columns matches; leave match out for all. Did you mean delay?`},
		{"columns", target + `,"match":"[a-z]"}`, `At /match: must be a pattern with * and ? alone.`},
		{"columns", `{"holdout":"ho_x"}`, `The tool holdouts lists what there is.`},
		{"explain", `{"holdout":"flihgts","query":{"type":"fraction","of":"delay > 15"}}`, `At /holdout: there is no such holdout. Did you mean flights?`},
		{"explain", target + `,"query":{"type":"fraction","of":"delay > 15","max_questions":3}}`, `At /query/max_questions: is an argument of ask, and explain has none: leave it out.`},
		{"batch", target + `,"queries":[{"type":"fraction","of":"delay > 15","max_questions":3}]}`, `At /queries/0/max_questions: is an argument of the call: write it beside the query, not in it.`},
		{"plan", `{"n":3000,"questons":100}`, `Did you mean questions?`},
		{"plan", `{"questions":100}`, `"n" is missing`},
		{"budget", `{}`, `"holdout" is missing`},
		{"holdouts", `{"all":true}`, `At /all: unknown member`},
	} {
		sentence, body, refused := a.call(c.tool, c.arguments)
		if !refused || !strings.Contains(sentence, c.says) {
			t.Errorf("%s %s:\n     %s\nwant %s", c.tool, c.arguments, sentence, c.says)
		}
		var structured struct {
			Sentence string
			Problem  Problem
		}
		if err := json.Unmarshal([]byte(body), &structured); err != nil || structured.Sentence != sentence || structured.Problem.Code == "" || structured.Problem.Status < 400 {
			t.Errorf("%s: no problem beside the sentence: %s", c.tool, body)
		}
		var value any
		if json.Unmarshal([]byte(body), &value); schemas[c.tool].Validate(value) != nil {
			t.Errorf("%s: a refusal is not as the tool's schema says: %s", c.tool, body)
		}
	}
	if sentence, _, _ := a.call("budget", target+`}`); !strings.Contains(sentence, "40 of 40 questions") {
		t.Errorf("refusals cost something: %s", sentence)
	}
	// What is wide is said before it is paid.
	if sentence, _, _ := a.call("explain", target+`,"query":{"type":"mean","of":"delay","range":[-100000,100000]}}`); !strings.Contains(sentence, "Careful: ") {
		t.Errorf("nothing is said of an interval that is wider than the values vary: %s", sentence)
	}
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "upload"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("a tool that there is not: %v", err)
	}
	if r := s.get(path + "/budget"); !strings.Contains(string(r.body), `"left":40`) {
		t.Errorf("%s", r.body)
	}
}

// TestSpentBudgetForAgents: an agent that has spent the budget is told what is left, what can still be asked, and that recorded answers are free; and no wording
// gets it another answer.
func TestSpentBudgetForAgents(t *testing.T) {
	s := start(t, Options{})
	_, card := s.upload("name=flights&questions=4")
	a := s.agent(s.key)
	ask := func(query, more string) (string, bool) {
		sentence, _, refused := a.call("ask", `{"holdout":"`+card.ID+`","query":`+query+more+`}`)
		return sentence, refused
	}
	for i := range 3 {
		if sentence, refused := ask(fmt.Sprintf(`{"type":"fraction","of":"delay > %d"}`, i), ""); refused {
			t.Fatal(sentence)
		}
	}
	sentence, refused := ask(`{"type":"frequencies","of":"origin","values":["SFO"]}`, `,"max_questions":3`)
	if !refused || !strings.Contains(sentence, "1 are left") || !strings.Contains(sentence, "A query that costs at most 1 question can still be asked; explain says what a query costs.") {
		t.Errorf("one question is left: %s", sentence)
	}
	if sentence, refused := ask(`{"type":"fraction","of":"delay > 3"}`, ""); refused {
		t.Fatal(sentence)
	}
	for i := range 3 {
		sentence, refused := ask(fmt.Sprintf(`{"type":"fraction","of":"delay >= %d"}`, 100+i), "")
		if !refused || !strings.Contains(sentence, "Do not try other wordings") || !strings.Contains(sentence, "0 are left") {
			t.Errorf("no question is left: %s", sentence)
		}
	}
	if sentence, refused := ask(`{"type":"fraction","of":"delay > 2"}`, ""); refused || !strings.Contains(sentence, "cost nothing now") {
		t.Errorf("a recorded answer: %s", sentence)
	}
}

// TestAgentsNeedAKey: the endpoint has the same keys, rates and sizes as the rest, whatever the message is.
func TestAgentsNeedAKey(t *testing.T) {
	s := start(t, Options{})
	_, card := s.upload("name=flights&questions=4")
	id, key := s.newKey("analyst")
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":` + arguments + `}}`
	}
	ask := call(`{"holdout":"` + card.ID + `","query":{"type":"fraction","of":"delay > 15"}}`)
	for name, c := range map[string]struct {
		method, body, header, code string
		status                     int
	}{
		"no key":           {"POST", ask, "Authorization: ", "unauthorized", 401},
		"another key":      {"POST", ask, "Authorization: Bearer hk_nobody", "unauthorized", 401},
		"a list of tools":  {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Authorization: ", "unauthorized", 401},
		"a page":           {"POST", ask, "Origin: https://evil.example", "foreign-origin", 403},
		"a sandboxed page": {"POST", ask, "Origin: null", "foreign-origin", 403},
		"GET":              {"GET", "", "Accept: text/event-stream", "method-not-allowed", 405},
		"DELETE":           {"DELETE", "", "Mcp-Session-Id: x", "method-not-allowed", 405},
		"no JSON":          {"POST", `{"jsonrpc":`, "", "malformed", 400},
		"nothing":          {"POST", ``, "", "malformed", 400},
		"a batch":          {"POST", `[` + ask + `,` + ask + `]`, "", "invalid", 422},
		"no UTF-8":         {"POST", call("\"\xff\""), "", "malformed", 400},
		"two bodies":       {"POST", ask + ask, "", "malformed", 400},
		"two ids":          {"POST", strings.Replace(ask, `"id":1`, `"id":1,"id":2`, 1), "", "malformed", 400},
		"two arguments":    {"POST", strings.Replace(ask, `"name":"ask"`, `"name":"ask","arguments":{}`, 1), "", "invalid", 422},
		"no method":        {"POST", `{"jsonrpc":"2.0","id":1}`, "", "invalid", 422},
		"a reply":          {"POST", `{"jsonrpc":"2.0","id":1,"result":{}}`, "", "invalid", 422},
		"another version":  {"POST", `{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, "", "malformed", 400},
		"params no object": {"POST", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, "", "invalid", 422},
		"deep":             {"POST", call(strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)), "", "malformed", 400},
		"another media":    {"POST", ask, "Content-Type: text/plain", "unsupported-media-type", 415},
		"a parameter":      {"POST?session=1", ask, "", "invalid", 422},
		"huge":             {"POST", call(`"` + strings.Repeat("x", holdout.DefaultLimits.QueryBytes+mcpEnvelope) + `"`), "", "too-large", 413},
	} {
		method, parameters, _ := strings.Cut(c.method, "?")
		if parameters != "" {
			parameters = "?" + parameters
		}
		headers := []string{"Content-Type: application/json"}
		if c.header != "" {
			headers = append(headers, c.header)
		}
		r := s.send(method, "/mcp"+parameters, strings.NewReader(c.body), headers...)
		if r.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d: %.300s", name, r.StatusCode, c.status, r.body)
			continue
		}
		if method != "POST" {
			if p := r.problem(t); p.Code != c.code {
				t.Errorf("%s: %s, want %s", name, p.Code, c.code)
			}
			continue
		}
		wantRefused(t, name, r, c.code)
	}
	// The dashboard's session is no key for agents.
	signed := s.post("/v1/session", `{}`)
	for _, cookie := range signed.Cookies() {
		if r := s.post("/mcp", ask, "Authorization: ", "Cookie: "+cookie.Name+"="+cookie.Value, pageHeader+": 1"); r.StatusCode != 401 {
			t.Errorf("a cookie is taken for a key: %d %s", r.StatusCode, r.body)
		}
	}
	if len(signed.Cookies()) == 0 {
		t.Errorf("no session was begun: %d %s", signed.StatusCode, signed.body)
	}
	// A key that is revoked ends its agents at once: there is no session that goes on without it.
	a := s.agent(key)
	if _, _, refused := a.call("holdouts", `{}`); refused {
		t.Error("a good key is refused")
	}
	if r := s.send("DELETE", "/v1/keys/"+id, nil); r.StatusCode != http.StatusNoContent {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if _, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "holdouts"}); err == nil {
		t.Error("a revoked key goes on")
	}
	if r := s.get("/v1/holdouts/" + card.ID + "/budget"); !strings.Contains(string(r.body), `"left":4,`) {
		t.Errorf("a refusal was debited: %s", r.body)
	}

	limited := start(t, Options{Limits: Limits{Rate: 0.001, Burst: 3}})
	for i := range 5 {
		r := limited.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if want := 200; i >= 3 && r.StatusCode != 429 || i < 3 && r.StatusCode != want {
			t.Errorf("request %d of 3: %d", i+1, r.StatusCode)
		}
		if i >= 3 {
			e := wantRefused(t, "too many", r, "rate-limited")
			if !strings.Contains(e.Message, "seconds") || r.Header.Get("Retry-After") == "" {
				t.Errorf("how long to wait is not said: %s", r.body)
			}
		}
	}
}

// wantRefused is a refusal as an error of the protocol, which clients show: with the sentence, and the problem as its data.
func wantRefused(t *testing.T, what string, r result, code string) (e jsonrpc.Error) {
	t.Helper()
	var reply struct {
		JSONRPC string
		ID      json.RawMessage
		Error   jsonrpc.Error
	}
	var p Problem
	if err := json.Unmarshal(r.body, &reply); err != nil || reply.JSONRPC != "2.0" || reply.ID == nil || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: no error of the protocol: %v %s", what, r.Header, r.body)
	}
	if err := json.Unmarshal(reply.Error.Data, &p); err != nil || p.Code != code || p.Status != r.StatusCode || reply.Error.Code >= 0 || reply.Error.Message == "" {
		t.Errorf("%s: %s, want %s", what, r.body, code)
	}
	return reply.Error
}

// TestLargeMessageHearsWhy: a client that reads nothing before it has sent all, as Python's does, is told that its message is too large. A server that closes while the body is being
// sent takes its reply with it.
func TestLargeMessageHearsWhy(t *testing.T) {
	s := start(t, Options{})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	body := `{"jsonrpc":"2.0","id":"seven","method":"tools/call","params":"` + strings.Repeat("x", 24<<20) + `"}`
	if _, err := fmt.Fprintf(conn, "POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		strings.TrimPrefix(s.url, "http://"), s.key, len(body), body); err != nil {
		t.Fatalf("the server closed while the message was sent: %v", err)
	}
	reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(text), "the body is larger than") && !strings.Contains(string(text), "The body is larger than") {
		t.Errorf("%d %s %v", reply.StatusCode, text, err)
	}
}

// TestOwnPage: requests without Origin are no page's; a page of this server's own address is let through, and one that has bound its name to this machine is not.
func TestOwnPage(t *testing.T) {
	for _, c := range []struct {
		local, host, origin string
		want                bool
	}{
		{"127.0.0.1:8080", "evil.example:8080", "", true}, // a proxy on this machine
		{"127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080", true},
		{"127.0.0.1:8080", "localhost:8080", "http://localhost:8080", true},
		{"[::1]:8080", "[::1]:8080", "http://[::1]:8080", true},
		{"127.0.0.1:8080", "evil.example:8080", "http://evil.example:8080", false}, // a name bound to this machine
		{"127.0.0.1:8080", "localhost:8080", "http://localhost:3000", false},
		{"10.0.0.7:443", "holdout.example", "https://holdout.example", true},
		{"10.0.0.7:443", "holdout.example", "https://evil.example", false},
		{"10.0.0.7:443", "holdout.example", "null", false},
		{"10.0.0.7:443", "holdout.example", "://", false},
	} {
		local, err := net.ResolveTCPAddr("tcp", c.local)
		if err != nil {
			t.Fatal(err)
		}
		r := (&http.Request{Host: c.host, Header: http.Header{}}).WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(local)))
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if got := ownPage(r); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestManyAgents: agents in sessions of their own share one budget, as every client does: it is never overspent, a question that two ask is paid once, and all get the
// same bytes. An answer that is not debited, or is debited twice, turns it red.
func TestManyAgents(t *testing.T) {
	s := start(t, Options{})
	const agents, budget = 6, 10
	path, card := s.upload(fmt.Sprintf("name=flights&mechanism=gaussian&questions=%d", budget))
	var mu sync.Mutex
	said := map[string]map[string]int{} // by query: the answers' bytes
	refusals := 0
	var group sync.WaitGroup
	for i := range agents {
		a := s.agent(s.key)
		group.Go(func() {
			for j := range 6 {
				query := fmt.Sprintf(`{"type":"fraction","of":"delay > %d"}`, (i%3)*4+j) // twelve different ones, shared by pairs
				result, err := a.CallTool(context.Background(), &mcp.CallToolParams{Name: "ask", Arguments: json.RawMessage(`{"holdout":"` + card.ID + `","query":` + query + `}`)})
				if err != nil {
					t.Error(err)
					return
				}
				text := result.Content[1].(*mcp.TextContent).Text
				mu.Lock()
				if result.IsError {
					refusals++
				} else {
					answer, _, _ := strings.Cut(unsaid(text), `,"budget":`)
					if said[query] == nil {
						said[query] = map[string]int{}
					}
					said[query][answer]++
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	for query, answers := range said {
		if len(answers) != 1 {
			t.Errorf("%s has %d different answers", query, len(answers))
		}
	}
	if len(said) != budget || refusals == 0 {
		t.Errorf("%d different questions were answered and %d calls refused; the budget has %d", len(said), refusals, budget)
	}
	if r := s.get(path + "/budget"); !strings.Contains(string(r.body), `{"left":0,"of":10}`) {
		t.Errorf("%s", r.body)
	}
	if r := s.get(path + "/ledger"); strings.Count(string(r.body), `"kind":"answer"`) != budget {
		t.Errorf("the ledger: %s", r.body)
	}
}

// TestCancelledCalls: an agent that does not wait gets nothing that is not debited: each question that it cancelled is in the ledger, or was not read and costs nothing.
// Asked again, all are answered, and none is paid twice.
func TestCancelledCalls(t *testing.T) {
	s := start(t, Options{})
	path, card := s.upload("name=flights&mechanism=gaussian&questions=100")
	a := s.agent(s.key)
	ask := func(ctx context.Context, i int) (*mcp.CallToolResult, error) {
		return a.CallTool(ctx, &mcp.CallToolParams{Name: "ask", Arguments: json.RawMessage(fmt.Sprintf(`{"holdout":%q,"query":{"type":"fraction","of":"delay > %d"}}`, card.ID, i))})
	}
	const calls = 24
	heard := 0
	for i := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond/2)
		if result, err := ask(ctx, i); err == nil && !result.IsError {
			heard++
		}
		cancel()
	}
	if heard == calls {
		t.Fatal("no call was cancelled")
	}
	debited := func() int { return strings.Count(string(s.get(path+"/ledger").body), `"kind":"answer"`) }
	before := debited()
	if before < heard {
		t.Errorf("%d answers were heard and %d are in the ledger", heard, before)
	}
	for i := range calls {
		if result, err := ask(t.Context(), i); err != nil || result.IsError {
			t.Fatalf("%v %v", result, err)
		}
	}
	if n := debited(); n != calls {
		t.Errorf("%d questions have %d debits", calls, n)
	}
	if r := s.get(path + "/budget"); !strings.Contains(string(r.body), fmt.Sprintf(`{"left":%d,"of":100}`, 100-calls)) {
		t.Errorf("%s", r.body)
	}
}

// moving sends requests to where the server is now.
type moving struct {
	withKey
	host atomic.Pointer[string]
}

func (m *moving) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = *m.host.Load()
	return m.withKey.RoundTrip(r)
}

// TestAgentsSurviveARestart: a connection holds nothing in the server, so an agent goes on after a restart, and what it was answered is replayed.
func TestAgentsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	var card holdout.Card
	var recorded string
	road := &moving{}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	var a *agent
	run := func(f func(s *server)) {
		t.Run("", func(t *testing.T) { // a server ends with its test
			s := startIn(t, dir, Options{})
			host := strings.TrimPrefix(s.url, "http://")
			road.host.Store(&host)
			road.key = s.key
			f(s)
		})
	}
	share := func() string { return `{"holdout":"` + card.ID + `","query":{"type":"fraction","of":"delay > 15"}}` }
	run(func(s *server) {
		_, card = s.upload("name=flights&questions=10")
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: road}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a = &agent{t, session}
		_, recorded, _ = a.call("ask", share())
	})
	run(func(s *server) {
		_, again, _ := a.call("ask", share())
		answer, _, _ := strings.Cut(unsaid(recorded), `,"budget":`)
		if !strings.HasPrefix(unsaid(again), answer) || !strings.Contains(again, `"replayed":true`) {
			t.Errorf("before the restart %s\nafter it %s", recorded, again)
		}
		a.Close()
	})
}

// TestOldProtocols: hosts that know the versions with sessions connect, too: the server gives them none, and answers a call without one.
func TestOldProtocols(t *testing.T) {
	s := start(t, Options{})
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		r := s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"old","version":"1"}}}`, "Accept: application/json, text/event-stream")
		if r.StatusCode != 200 || !strings.Contains(string(r.body), `"protocolVersion":"`+version+`"`) || r.Header.Get("Mcp-Session-Id") != "" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d %v %.300s", version, r.StatusCode, r.Header, r.body)
		}
		if strings.Contains(string(r.body), "listChanged") || strings.Contains(string(r.body), "logging") {
			t.Errorf("%s: the server offers what it does not have: %s", version, r.body)
		}
		if r := s.post("/mcp", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Protocol-Version: "+version); r.StatusCode != 202 || len(r.body) != 0 {
			t.Errorf("%s: %d %s", version, r.StatusCode, r.body)
		}
		if r := s.post("/mcp", `{"jsonrpc":"2.0","id":"two","method":"tools/call","params":{"name":"holdouts"}}`, "Mcp-Protocol-Version: "+version); r.StatusCode != 200 || !strings.Contains(string(r.body), `There is no holdout on this server yet`) {
			t.Errorf("%s: %d %s", version, r.StatusCode, r.body)
		}
		for _, method := range []string{"resources/list", "prompts/list", "logging/setLevel", "subscriptions/listen", "nothing/at/all"} {
			r := s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{}}`, "Mcp-Protocol-Version: "+version)
			if !strings.Contains(string(r.body), `"error"`) && r.StatusCode < 400 {
				t.Errorf("%s: %s: %d %s", version, method, r.StatusCode, r.body)
			}
		}
	}
	if r := s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Protocol-Version: 1999-01-01"); r.StatusCode != 400 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	} else {
		wantRefused(t, "another version", r, "malformed")
	}
}

// TestPanicsOfMessages: the SDK works in goroutines of its own, where a panic would end the server. It is answered, logged without its value, and the server goes on.
func TestPanicsOfMessages(t *testing.T) {
	s := start(t, Options{})
	defer func(before []tool) { tools = before }(tools)
	tools = append(slices.Clip(tools), tool{name: "fall", says: "falls", input: closed(nil), output: ToolHoldouts{},
		run: func(*API, context.Context, json.RawMessage) (reply, error) { panic("a value of a row: " + panicValue) }})
	s.api.startMCP()
	r := s.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fall"}}`)
	if !strings.Contains(string(r.body), "the server failed") || strings.Contains(string(r.body), panicValue) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if log := s.log.String(); !strings.Contains(log, `"msg":"panic"`) || !strings.Contains(log, `"problem":"internal"`) || strings.Contains(log, panicValue) {
		t.Errorf("the log: %s", log)
	}
	if r := s.get("/healthz"); r.StatusCode != 200 {
		t.Errorf("%d", r.StatusCode)
	}
}

// TestAgentsLeaveNoTraceOfTime: how long a call of a tool took is neither logged nor measured, because it may read rows; nor is what was asked.
func TestAgentsLeaveNoTraceOfTime(t *testing.T) {
	s := start(t, Options{})
	_, card := s.upload("name=flights&questions=4")
	a := s.agent(s.key)
	a.call("ask", `{"holdout":"`+card.ID+`","query":{"type":"fraction","of":"delay > 15.625"}}`)
	a.call("ask", `{"holdout":"`+card.ID+`","query":{"type":"fraction","of":"dilay > 15.625"}}`)
	refused := false
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, `"route":"/mcp"`) && strings.Contains(line, `"ms"`) || strings.Contains(line, "15.625") {
			t.Errorf("the log says %s", line)
		}
		refused = refused || strings.Contains(line, `"route":"/mcp"`) && strings.Contains(line, `"problem":"invalid"`)
	}
	if !refused {
		t.Error("the log does not say that a call was refused")
	}
	if r := s.get("/metrics"); strings.Contains(string(r.body), `duration_seconds_count{route="/mcp"}`) {
		t.Error("the metrics have durations of calls")
	}
}

// TestFlatSchemaOfAgents: the schema of a query that agents are given accepts every example of every type, alone and as an operand, and knows every member; what no type has is refused.
// A type or a member that is added to the language and missing here turns it red.
func TestFlatSchemaOfAgents(t *testing.T) {
	flat := resolved(t, queries.FlatSchema())
	var members struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(queries.FlatSchema(), &members); err != nil {
		t.Fatal(err)
	}
	for name, text := range queries.JSONSchemas("#/$defs/") {
		var s struct {
			Properties map[string]json.RawMessage
			Examples   []any
		}
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		for member := range s.Properties {
			if members.Properties[member] == nil {
				t.Errorf("%s has %s, and agents are not told", name, member)
			}
		}
		for _, example := range s.Examples {
			if err := flat.Validate(example); err != nil {
				t.Errorf("%s: %v: %v", name, example, err)
			}
		}
	}
	for _, wrong := range []string{`{}`, `{"type":"nothing"}`, `{"type":"mean","of":"x","range":"0..1"}`, `"mean"`} {
		var v any
		json.Unmarshal([]byte(wrong), &v)
		if flat.Validate(v) == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
	text, err := json.Marshal(compareInput())
	if err != nil {
		t.Fatal(err)
	}
	input := resolved(t, json.RawMessage(text))
	var example map[string]any
	json.Unmarshal([]byte(`{"holdout":"ho_1","a":{"type":"mean","of":"x","range":[0,1]},"b":{"type":"fraction","of":"x > 0.5"},"by":0.1,"max_questions":2}`), &example)
	if err := input.Validate(example); err != nil {
		t.Error(err)
	}
	delete(example, "b")
	if input.Validate(example) == nil {
		t.Error("a compare without b is accepted")
	}
}

// FuzzMessages: whatever is sent as a message, what is handed to the SDK is one JSON object without the arguments, and the arguments are JSON.
func FuzzMessages(f *testing.F) {
	for _, seed := range []string{`{}`, `[]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":{"query":{"type":"mean"}}}}`, `{"method":"tools/call","params":{"arguments":null}}`,
		`{"method":"tools/call"}`, `{"method":1}`, `{"id":null,"method":"tools/list","params":{"cursor":"x"}}`, `{"method":"tools/call","params":{"name":"\u0061sk","arguments":{},"arguments":{}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		message, arguments, err := openMessage(body)
		if err != nil {
			return
		}
		var members struct {
			Method string
			Params map[string]json.RawMessage
		}
		if err := json.Unmarshal(message, &members); err != nil && members.Method == "tools/call" {
			t.Fatalf("%s: %v", message, err)
		}
		if members.Method == "tools/call" && members.Params["arguments"] != nil {
			t.Fatalf("the arguments are still there: %s", message)
		}
		if len(arguments) > 0 && !json.Valid(arguments) {
			t.Fatalf("the arguments are no JSON: %s", arguments)
		}
	})
}
