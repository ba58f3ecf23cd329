package trinotest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// Exec runs statements one by one as the owner.
func (c *Cluster) Exec(t testing.TB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := c.Query(s); err != nil {
			t.Fatalf("%s: %v", s[:min(len(s), 300)], err)
		}
	}
}

// Query runs a statement as the owner and returns its rows. It is a client of its own, so that tests do not ask the code that they test.
func (c *Cluster) Query(statement string) ([][]any, error) { return c.QueryAs(Owner, statement) }

// QueryAs runs a statement as a user.
func (c *Cluster) QueryAs(user, statement string) (rows [][]any, err error) {
	method, url, body := http.MethodPost, c.URL()+"/v1/statement", strings.NewReader(statement)
	for url != "" {
		request, err := http.NewRequest(method, url, body)
		if err != nil {
			return nil, err
		}
		request.Header.Set("X-Trino-User", user)
		reply, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		var page struct {
			NextURI string `json:"nextUri"`
			Data    [][]any
			Error   *struct{ Message string }
		}
		decoder := json.NewDecoder(reply.Body)
		decoder.UseNumber()
		err = decoder.Decode(&page)
		reply.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", reply.Status, err)
		}
		if page.Error != nil {
			return nil, fmt.Errorf("trino: %s", page.Error.Message)
		}
		rows = append(rows, page.Data...)
		method, url, body = http.MethodGet, page.NextURI, strings.NewReader("")
	}
	return rows, nil
}
