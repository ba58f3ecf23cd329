package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humagin"
	"github.com/gin-gonic/gin"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdoutd/holdoutd/holdout"
)

// The endpoint for agents speaks the Model Context Protocol. It is a way of writing the requests that the HTTP interface has, and no second
// door: each message is one HTTP request with a key, a rate, a body limit and a time limit; each tool is one call of the service.
//
// There are no sessions: a message carries its key, is answered by one JSON reply, and leaves nothing behind. So a session cannot be
// taken over, a restart of the server ends none, and an agent whose connection broke asks again: an answer that was recorded is replayed.
//
// The protocol is the SDK's. It sees a message without the arguments of the tool: those go to the service as they came, because
// queries.Parse is the only one that reads a query.

const (
	mcpPath = "/mcp"
	// mcpEnvelope is how much larger than a query a message may be: its frame, the holdout's id and what a host adds.
	mcpEnvelope = 64 << 10
	// mcpGrace is how much longer than its work a message is waited for: the SDK hands the reply of a work that ended in time, or of its time's end.
	mcpGrace = 5 * time.Second
)

// mcpMessage is a JSON-RPC 2.0 message, for the document.
type mcpMessage struct {
	JSONRPC string          `json:"jsonrpc" enum:"2.0" doc:"the version of JSON-RPC"`
	ID      json.RawMessage `json:"id,omitempty" doc:"of the request: a number or a text; absent in a notification"`
	Method  string          `json:"method,omitempty" example:"tools/call" doc:"such as initialize, tools/list or tools/call"`
	Params  json.RawMessage `json:"params,omitempty" doc:"of the method"`
}

func (a *API) registerMCP() {
	message := a.schemaOf(mcpMessage{})
	a.raw(huma.Operation{
		OperationID: "mcp", Method: http.MethodPost, Path: mcpPath, Tags: []string{"agents"}, Security: []map[string][]string{{bearer: {}}},
		Summary:     "Model Context Protocol",
		Description: "The streamable HTTP transport, without sessions and streams: one JSON-RPC message a request, one JSON reply. docs/AGENTS.md says how to connect a host, and what the tools do. What the HTTP interface refuses is refused here: before the message is read as a JSON-RPC error whose data is the problem, with the status of the HTTP interface, and after as a result with isError.",
		Middlewares: huma.Middlewares{a.fromNoPage, a.inTime, a.withBody(int64(a.asked.QueryBytes) + mcpEnvelope)},
		RequestBody: a.jsonBody(message),
		Responses: map[string]*huma.Response{
			"200":     {Description: "The reply to a request", Content: map[string]*huma.MediaType{"application/json": {Schema: message}}},
			"202":     {Description: "A notification was taken"},
			"default": {Description: "A JSON-RPC error, whose data is the problem", Content: map[string]*huma.MediaType{"application/json": {Schema: message}}},
		},
	}, a.serveMCP)
}

// forAgents is a problem that was found before a message was worked on, as an error of the protocol: clients show no other body of an error status. message is the body, as far
// as it was read: its id is repeated where it has one. problem is the problem as JSON.
func (p *Problem) forAgents(message, problem []byte) []byte {
	reply := struct {
		JSONRPC string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   jsonrpc.Error   `json:"error"`
	}{JSONRPC: "2.0", ID: json.RawMessage("null"), Error: jsonrpc.Error{Code: codeRefused, Message: refusalSentence(p), Data: problem}}
	switch p.Code {
	case classes[holdout.Malformed].code:
		reply.Error.Code = jsonrpc.CodeParseError
	case classes[holdout.Invalid].code:
		reply.Error.Code = jsonrpc.CodeInvalidRequest
	}
	if members, err := readMembers(message); err == nil && isID(members["id"]) {
		reply.ID = members["id"]
	}
	body, err := marshal(reply)
	if err != nil {
		panic("api: a problem that is no JSON: " + err.Error())
	}
	return body
}

// codeRefused is the JSON-RPC code of what the HTTP interface refuses: of those that servers may give a meaning, the first.
const codeRefused = -32000

// isID reports whether a member is a JSON-RPC id that a reply can repeat: a number or a text.
func isID(id json.RawMessage) bool {
	return len(id) > 0 && (id[0] == '"' || id[0] == '-' || '0' <= id[0] && id[0] <= '9')
}

// startMCP makes the tools, whose schemas are those of the finished document.
func (a *API) startMCP() {
	server := a.mcpServer()
	a.agents = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true,
		DisableLocalhostProtection: true, // fromNoPage says more, and lets a proxy on this machine through
		MaxRequestBodyBytes:        -1,   // the body has been read, within the limit of withBody
	})
}

// fromNoPage refuses what a page of another site sends, as the protocol asks of its servers, and what comes with a cookie instead of a key: an agent
// has no session of the dashboard. No foreign page has a key, and no reply allows it to read; this keeps one that a browser is made to send, by
// whatever means, from being used. A page that has bound a name of its own to a loopback address names it in both headers.
func (a *API) fromNoPage(ctx huma.Context, next func(huma.Context)) {
	c := humagin.Unwrap(ctx)
	if _, err := bearerOf(c.Request); err != nil {
		problemOf(err).reply(c)
		return
	}
	if !ownPage(c.Request) {
		problem(foreignOrigin, "the header Origin names another site than this server; agents send none").reply(c)
		return
	}
	next(ctx)
}

// ownPage reports whether a request is from no page, or from one of this server.
func ownPage(r *http.Request) bool {
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return true
	}
	origin, err := url.Parse(origins[0])
	if len(origins) > 1 || err != nil || origin.Host == "" || !strings.EqualFold(origin.Host, r.Host) {
		return false
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return local == nil || !loopback(local.String()) || loopback(r.Host)
}

// loopback reports whether an address, with or without a port, is of this machine alone.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// An mcpCall is a message under way: what the SDK does not carry from the request to a tool, and back to the log.
type mcpCall struct {
	ctx       context.Context // of the request: its key, its time, and whether the client is still there
	arguments json.RawMessage // of a tool, as they came; nil without

	mu      sync.Mutex
	problem *Problem // why the tool refused
}

type mcpCallKey struct{}

func (c *mcpCall) refuse(p *Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.problem = p
}

// serveMCP answers one message.
func (a *API) serveMCP(c *gin.Context) error {
	client := c.Request.Context()
	message, arguments, err := openMessage(bodyOf(client))
	if err != nil {
		return err
	}
	call := &mcpCall{ctx: client, arguments: arguments}
	// The tool works in the request's own context, which ends in time; the SDK waits for the tool, so that no reply is lost between the two.
	ctx, cancel := context.WithTimeout(context.WithValue(context.WithoutCancel(client), mcpCallKey{}, call), a.limits.Handle+mcpGrace)
	defer cancel()
	r := c.Request.Clone(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(message)), int64(len(message))
	r.Header.Del("Content-Encoding")
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream") // there is one kind of reply, whatever is accepted
	w := &plainErrors{ResponseWriter: c.Writer}
	a.agents.ServeHTTP(w, r)
	call.mu.Lock()
	defer call.mu.Unlock()
	if call.problem != nil {
		c.Set(keyProblem, call.problem)
	}
	if w.status != 0 {
		return problem(classes[holdout.Malformed], "%s", strings.TrimSpace(w.text.String()))
	}
	return nil
}

// plainErrors holds back what the SDK says in plain text of a message that it cannot take: it becomes a problem.
type plainErrors struct {
	gin.ResponseWriter
	status int
	text   bytes.Buffer
}

func (w *plainErrors) WriteHeader(status int) {
	if status >= http.StatusBadRequest && strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		w.status = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *plainErrors) Write(b []byte) (int, error) {
	if w.status != 0 {
		return w.text.Write(b)
	}
	return w.ResponseWriter.Write(b)
}

// methodsServed are the methods that a client without sessions needs; a notification is taken, whatever it says. Others ask for what there
// is not, or would be held open, such as subscriptions.
var methodsServed = []string{"initialize", "ping", "server/discover", "tools/list", "tools/call"}

// openMessage reads a JSON-RPC message and takes the arguments of a tool out of it. A batch is no message: it would be many questions for one
// request of the key's rate, and the protocol has none since 2025-06-18.
func openMessage(body []byte) (message []byte, arguments json.RawMessage, err error) {
	members, err := readObject(body, "jsonrpc", "id", "method", "params")
	if err != nil {
		return nil, nil, err
	}
	method, err := textArgument(members, "method", true) // a reply has none; this server asks its clients nothing
	if err != nil {
		return nil, nil, err
	}
	if method != "tools/call" {
		return body, nil, nil
	}
	params, err := readMembers(members["params"])
	if err != nil {
		return nil, nil, wrongMember("/params", "must be an object with name and arguments, in which no key occurs twice")
	}
	arguments = params["arguments"]
	delete(params, "arguments")
	if members["params"], err = json.Marshal(params); err == nil {
		message, err = json.Marshal(members)
	}
	return message, arguments, err
}

// serveMethods refuses methods that are not served, and turns a panic in the work on a message into an error of the protocol: the SDK works in
// goroutines of its own, where it would end the process. The stack goes to the log; it holds no values of rows.
func (a *API) serveMethods(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if v := recover(); v != nil {
				a.log.Error("panic", "route", mcpPath, "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
				if call, ok := ctx.Value(mcpCallKey{}).(*mcpCall); ok {
					call.refuse(problemOf(fmt.Errorf("panic: %T", v)))
				}
				result, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the server failed; the message was not answered"}
			}
		}()
		if !slices.Contains(methodsServed, method) && !strings.HasPrefix(method, "notifications/") {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "this server has " + strings.Join(methodsServed, ", ")}
		}
		return next(ctx, method, r)
	}
}
