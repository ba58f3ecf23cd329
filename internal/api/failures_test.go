package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/gin-gonic/gin"

	"github.com/holdoutd/holdoutd/queries"
)

// TestEveryFailureIsLogged: whatever way a 500 is made, the log has one line of it with its cause and the id that the client was
// told. An operator who is shown an X-Request-Id finds out what happened.
func TestEveryFailureIsLogged(t *testing.T) {
	s := start(t, Options{})
	typed(s.api, huma.Operation{OperationID: "test-typed", Method: http.MethodGet, Path: "/test/typed"}, func(context.Context, *struct{}) (*statusReply, error) {
		return nil, errors.New("the disk of typed")
	})
	typed(s.api, huma.Operation{OperationID: "test-body", Method: http.MethodPost, Path: "/test/body"}, func(context.Context, *struct{ Body struct{ N int } }) (*statusReply, error) {
		return nil, fmt.Errorf("wrapped: %w", errors.New("the disk of body"))
	})
	huma.Register(s.api.huma, huma.Operation{OperationID: "test-plain", Method: http.MethodGet, Path: "/test/plain"}, func(context.Context, *struct{}) (*statusReply, error) {
		return nil, errors.New("the disk of plain") // not through typed: huma makes the problem
	})
	s.api.raw(huma.Operation{OperationID: "test-raw", Method: http.MethodGet, Path: "/test/raw"}, func(*gin.Context) error { return errors.New("the disk of raw") })
	causes := map[string]string{
		"/test/typed": "the disk of typed", "/test/body": "the disk of body", "/test/plain": "the disk of plain", "/test/raw": "the disk of raw", "/test/panic": "panic: string",
	}
	for path, cause := range causes {
		method, body := http.MethodGet, ""
		if path == "/test/body" {
			method, body = http.MethodPost, `{"N":1}`
		}
		r := s.send(method, path, strings.NewReader(body), "X-Request-Id: of"+path, "Content-Type: application/json")
		if p := r.problem(t); p.Status != 500 || r.Header.Get("X-Request-Id") != "of"+path || strings.Contains(string(r.body), cause) {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	s.stop() // lines are written after replies
	found := map[string]int{}
	for _, line := range strings.Split(s.log.String(), "\n") {
		var l struct{ Level, Msg, ID, Cause, Route string }
		if json.Unmarshal([]byte(line), &l) != nil || l.Route == "" || l.Msg == "panic" {
			continue
		}
		if found[l.Route]++; l.Level != "ERROR" || l.Msg != "request failed" || l.ID != "of"+l.Route || !strings.Contains(l.Cause, causes[l.Route]) {
			t.Errorf("the log says %s", line)
		}
	}
	for path := range causes {
		if found[path] != 1 {
			t.Errorf("%s: %d lines of the log are about it", path, found[path])
		}
	}
}

// TestNoQueryIsAFault puts numbers at the ends of what JSON and float64 can say into every place of a query where the schema has
// a number, whether the example has it or not. Whatever they mean, they are an answer or the client's mistake, never the server's.
func TestNoQueryIsAFault(t *testing.T) {
	s := start(t, Options{})
	path, _ := s.upload("name=flights&holdout=0.5&mechanism=gaussian&questions=1000000")
	extremes := []string{"0", "-1", "5e-324", "1e-150", "1e-140", "1e-6", "1e150", "1.7976931348623157e308"}
	tried := 0
	for name, schema := range queries.JSONSchemas("") {
		var of struct {
			Properties map[string]struct {
				Type  any
				Items struct{ Type any }
			}
			Examples []map[string]any
		}
		if err := json.Unmarshal(schema, &of); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, example := range of.Examples {
			for _, member := range slices.Sorted(maps.Keys(of.Properties)) {
				for _, x := range extremes {
					changed := maps.Clone(example)
					switch p := of.Properties[member]; {
					case p.Type == "number" || p.Type == "integer":
						changed[member] = json.RawMessage(x)
					case p.Items.Type == "number":
						changed[member] = json.RawMessage("[0," + x + "]")
					default:
						continue
					}
					body, err := json.Marshal(changed)
					if err != nil {
						t.Fatal(err)
					}
					r := s.post(path+"/queries/explain", string(body))
					if tried++; r.StatusCode == 200 {
						r = s.post(path+"/queries", string(body))
					}
					if r.StatusCode >= 500 {
						t.Errorf("%d %s\n%s", r.StatusCode, r.body, body)
					}
				}
			}
		}
	}
	if tried < 1000 {
		t.Errorf("%d queries: the schemas have more numbers", tried)
	}
}
