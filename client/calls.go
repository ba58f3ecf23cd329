package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime/multipart"
	"net/http"
	"net/url"
	"strconv"
)

const (
	jsonMedia    = "application/json"
	parquetMedia = "application/vnd.apache.parquet"
)

// CreateHoldout uploads a Parquet file and makes a holdout of it. The table is read once as a stream; it is sent again
// after a broken connection only if it is an io.Seeker, such as a file. With s.Path it is nil: the table is there already.
func (c *Client) CreateHoldout(ctx context.Context, table io.Reader, s Settings) (Card, error) {
	return c.upload(ctx, table, s.values())
}

// DryRun says what CreateHoldout would make: the card of a draft, without an id. Nothing is made.
func (c *Client) DryRun(ctx context.Context, table io.Reader, s Settings) (Card, error) {
	values := s.values()
	values.Set("dry_run", "true")
	return c.upload(ctx, table, values)
}

func (c *Client) upload(ctx context.Context, table io.Reader, values url.Values) (Card, error) {
	if table == nil {
		return c.create(ctx, call{query: values})
	}
	start := int64(0)
	seeker, again := table.(io.Seeker)
	if again {
		var err error
		if start, err = seeker.Seek(0, io.SeekCurrent); err != nil {
			again = false // a pipe, say
		}
	}
	first := true
	return c.create(ctx, call{
		media: parquetMedia, query: values, once: !again,
		body: func() (io.Reader, error) {
			if !first {
				if _, err := seeker.Seek(start, io.SeekStart); err != nil {
					return nil, err
				}
			}
			first = false
			return io.NopCloser(table), nil // the transport would close a file
		},
	})
}

// CreateGiven uploads two Parquet files with the same columns that were split before: the training part and the holdout.
func (c *Client) CreateGiven(ctx context.Context, training, holdout io.Reader, s Settings) (Card, error) {
	return c.createParts(ctx, s, file{"training", training}, file{"holdout", holdout})
}

// CreateGivenWithCheck is [Client.CreateGiven] with a third file: the check part, which values of questions about models come from and which nobody is given.
func (c *Client) CreateGivenWithCheck(ctx context.Context, training, check, holdout io.Reader, s Settings) (Card, error) {
	return c.createParts(ctx, s, file{"training", training}, file{"check", check}, file{"holdout", holdout})
}

// file is a part of an upload.
type file struct {
	name string
	body io.Reader
}

func (c *Client) createParts(ctx context.Context, s Settings, files ...file) (Card, error) {
	s.Split = "given"
	pipe, w := io.Pipe()
	parts := multipart.NewWriter(w)
	go func() { w.CloseWithError(writeParts(parts, files)) }()
	defer pipe.Close() // ends the goroutine if the request ended early
	return c.create(ctx, call{
		media: parts.FormDataContentType(), query: s.values(), once: true,
		body: func() (io.Reader, error) { return pipe, nil },
	})
}

func writeParts(parts *multipart.Writer, files []file) error {
	for _, part := range files {
		w, err := parts.CreateFormFile(part.name, part.name+".parquet")
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, part.body); err != nil {
			return err
		}
	}
	return parts.Close()
}

func (c *Client) create(ctx context.Context, r call) (card Card, err error) {
	r.method, r.path, r.idempotent = http.MethodPost, "/v1/holdouts", true
	return card, c.decode(ctx, r, &card)
}

// Holdouts lists the cards of all holdouts.
func (c *Client) Holdouts(ctx context.Context) ([]Card, error) {
	var list holdoutList
	err := c.decode(ctx, call{method: http.MethodGet, path: "/v1/holdouts"}, &list)
	return list.Holdouts, err
}

// Holdout returns the card of a holdout with its budget.
func (c *Client) Holdout(ctx context.Context, id string) (card Card, err error) {
	return card, c.decode(ctx, call{method: http.MethodGet, path: holdout(id, "")}, &card)
}

// Delete removes a holdout's rows and secrets. Its table stays known.
func (c *Client) Delete(ctx context.Context, id string) error {
	return c.decode(ctx, call{method: http.MethodDelete, path: holdout(id, ""), once: true}, nil)
}

// Training opens the training part as Parquet. The caller closes it.
func (c *Client) Training(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, holdout(id, "/training"))
}

// VoidHeld debits what is held for questions that were sent to a holdout's source and are not answered, and ends their holds. It needs an admin's key.
func (c *Client) VoidHeld(ctx context.Context, id string) (b Budget, err error) {
	return b, c.decode(ctx, call{method: http.MethodDelete, path: holdout(id, "/held")}, &b)
}

// Retire ends a holdout's questions for good, and releases its rows. Retiring again does nothing. It needs an admin's key.
func (c *Client) Retire(ctx context.Context, id string) (card Card, err error) {
	return card, c.decode(ctx, call{method: http.MethodPost, path: holdout(id, "/retire")}, &card)
}

// Retired opens the rows of a retired holdout as Parquet, with those of its check part. The caller closes it.
func (c *Client) Retired(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, holdout(id, "/retired"))
}

// Features opens the features of the holdout's rows as Parquet, for holdouts that were created with features=public. The caller
// closes it.
func (c *Client) Features(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, holdout(id, "/features"))
}

func (c *Client) open(ctx context.Context, path string) (io.ReadCloser, error) {
	reply, err := c.send(ctx, call{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return reply.Body, nil
}

// Ask asks one question. The query is anything that encodes to its JSON: a map, a struct, a json.RawMessage.
func (c *Client) Ask(ctx context.Context, id string, query any) (reply Reply, err error) {
	return reply, c.post(ctx, holdout(id, "/queries"), query, true, &reply)
}

// UnmarshalJSON keeps the bytes beside what they say.
func (a *Answer) UnmarshalJSON(b []byte) error {
	type plain Answer
	if err := json.Unmarshal(b, (*plain)(a)); err != nil {
		return err
	}
	a.Raw = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON writes the answer as the ledger has it, where it came from a server.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Raw != nil {
		return a.Raw, nil
	}
	type plain Answer
	return json.Marshal(plain(a))
}

// AskBatch asks many questions at once, all or none of them; with partial as many as the budget allows.
func (c *Client) AskBatch(ctx context.Context, id string, queries []any, partial bool) (reply BatchReply, err error) {
	body := struct {
		Queries []any `json:"queries"`
		Partial bool  `json:"partial"`
	}{queries, partial}
	return reply, c.post(ctx, holdout(id, "/queries/batch"), body, true, &reply)
}

// Explain says what a query means and would cost. It costs nothing.
func (c *Client) Explain(ctx context.Context, id string, query any) (e Explanation, err error) {
	return e, c.post(ctx, holdout(id, "/queries/explain"), query, false, &e)
}

// Answers yields the answers given so far, oldest first, page by page. It ends at the first error.
func (c *Client) Answers(ctx context.Context, id string) iter.Seq2[PastAnswer, error] {
	return func(yield func(PastAnswer, error) bool) {
		for after := int64(0); ; {
			var page answerPage
			err := c.decode(ctx, call{
				method: http.MethodGet, path: holdout(id, "/answers"), query: url.Values{"after": {strconv.FormatInt(after, 10)}},
			}, &page)
			if err != nil {
				yield(PastAnswer{}, err)
				return
			}
			for _, a := range page.Answers {
				if !yield(a, nil) {
					return
				}
			}
			if page.Next == 0 {
				return
			}
			after = page.Next
		}
	}
}

// Follow yields the answers after a place in the ledger, 0 for all, and then each new one when it is recorded. It ends when ctx does, and at the first
// error; a stream that the server ended is io.ErrUnexpectedEOF: follow again after the last answer's place.
func (c *Client) Follow(ctx context.Context, id string, after int64) iter.Seq2[PastAnswer, error] {
	return func(yield func(PastAnswer, error) bool) {
		reply, err := c.send(ctx, call{
			method: http.MethodGet, path: holdout(id, "/answers/events"), query: url.Values{"after": {strconv.FormatInt(after, 10)}},
		})
		if err != nil {
			yield(PastAnswer{}, err)
			return
		}
		defer reply.Body.Close()
		for lines := bufio.NewReader(reply.Body); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				yield(PastAnswer{}, fmt.Errorf("client: the stream ended: %w", err))
				return
			}
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			if !ok {
				continue
			}
			var a PastAnswer
			if err := json.Unmarshal(data, &a); err != nil {
				yield(a, fmt.Errorf("client: an event is no answer: %w", err))
				return
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}

// PlanReport says how wide the intervals of a final report with these queries would be. It costs nothing and closes nothing.
func (c *Client) PlanReport(ctx context.Context, id string, queries []any) (p ReportPlan, err error) {
	body := struct {
		Queries []any `json:"queries"`
	}{queries}
	return p, c.post(ctx, holdout(id, "/report/plan"), body, false, &p)
}

// CloseWithReport closes a holdout with its final report: exact answers to these queries, and nothing after them. The title may be empty. The same report again is the recorded one.
func (c *Client) CloseWithReport(ctx context.Context, id string, queries []any, title string) (r FinalReport, err error) {
	body, err := json.Marshal(struct {
		Queries []any  `json:"queries"`
		Title   string `json:"title,omitempty"`
		Close   bool   `json:"close"`
	}{queries, title, true})
	if err != nil {
		return r, fmt.Errorf("client: the report cannot be encoded: %w", err)
	}
	return r, c.decode(ctx, call{method: http.MethodPost, path: holdout(id, "/report"), media: jsonMedia, body: bytesBody(body), idempotent: true}, &r)
}

// Report returns the final report that closed a holdout.
func (c *Client) Report(ctx context.Context, id string) (r FinalReport, err error) {
	return r, c.decode(ctx, call{method: http.MethodGet, path: holdout(id, "/report")}, &r)
}

// ReportPage opens the final report as an HTML page. The caller closes it.
func (c *Client) ReportPage(ctx context.Context, id string) (io.ReadCloser, error) {
	return c.open(ctx, holdout(id, "/report.html"))
}

// Release makes a private release of the training part, or returns the recorded one of the same request. For admins.
func (c *Client) Release(ctx context.Context, id string, n NewRelease) (r PrivateRelease, err error) {
	return r, c.post(ctx, holdout(id, "/releases"), n, false, &r)
}

// Releases lists all releases of a holdout, with what they have spent. For admins.
func (c *Client) Releases(ctx context.Context, id string) (r PrivateReleases, err error) {
	for after := int64(0); ; {
		var page PrivateReleases
		if err := c.decode(ctx, call{method: http.MethodGet, path: holdout(id, "/releases"), query: url.Values{"after": {strconv.FormatInt(after, 10)}}}, &page); err != nil {
			return r, err
		}
		page.Releases = append(r.Releases, page.Releases...)
		if after = page.Next; after == 0 {
			return page, nil
		}
		r = page
	}
}

// Budget returns what is left.
func (c *Client) Budget(ctx context.Context, id string) (b Budget, err error) {
	return b, c.decode(ctx, call{method: http.MethodGet, path: holdout(id, "/budget")}, &b)
}

// Ledger writes the ledger of a holdout to w, for holdoutd verify.
func (c *Client) Ledger(ctx context.Context, id string, w io.Writer) error {
	reply, err := c.send(ctx, call{method: http.MethodGet, path: holdout(id, "/ledger")})
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if _, err := io.Copy(w, reply.Body); err != nil {
		return fmt.Errorf("client: the ledger was cut off: %w", err)
	}
	return nil
}

// Plan says what every method promises, before there is a holdout. It looks at no data and costs nothing.
func (c *Client) Plan(ctx context.Context, r PlanRequest) (p Plan, err error) {
	return p, c.post(ctx, "/v1/plans", r, false, &p)
}

// KeepModel sends a model, the JSON of docs/MODELS.md, once. Questions then name it as {"sha256": k.SHA256}. The server keeps it until k.Until, or longer where it is used;
// a question that names one that is gone is an error about the place /model/sha256, and costs nothing.
func (c *Client) KeepModel(ctx context.Context, model json.RawMessage) (k KeptModel, err error) {
	return k, c.decode(ctx, call{method: http.MethodPost, path: "/v1/models", media: jsonMedia, body: bytesBody(model)}, &k)
}

// FindModel is a model that is kept, by its digest; an error that is NotFound if it is not.
func (c *Client) FindModel(ctx context.Context, sha256 string) (k KeptModel, err error) {
	return k, c.decode(ctx, call{method: http.MethodGet, path: "/v1/models/" + url.PathEscape(sha256)}, &k)
}

// CreateKey makes a key with the scope admin, analyst or granted. It is not sent again by itself: there would be two keys.
func (c *Client) CreateKey(ctx context.Context, name, scope string) (k Key, err error) {
	return c.createKey(ctx, newKey{Name: name, Scope: scope})
}

// BindKey makes a key without a secret: tokens of the subject, of the server's OpenID Connect issuer, stand for it.
func (c *Client) BindKey(ctx context.Context, name, scope, subject string) (k Key, err error) {
	return c.createKey(ctx, struct {
		newKey
		Subject string `json:"oidc_subject"` // also an empty one, which the server refuses: without it the key would have a secret
	}{newKey{Name: name, Scope: scope}, subject})
}

func (c *Client) createKey(ctx context.Context, n any) (k Key, err error) {
	body, err := json.Marshal(n)
	if err != nil {
		return k, err
	}
	return k, c.decode(ctx, call{method: http.MethodPost, path: "/v1/keys", media: jsonMedia, once: true, body: bytesBody(body)}, &k)
}

// Keys lists the keys. Their Secret is empty: it is not kept.
func (c *Client) Keys(ctx context.Context) ([]Key, error) {
	var list keyList
	err := c.decode(ctx, call{method: http.MethodGet, path: "/v1/keys"}, &list)
	return list.Keys, err
}

// RevokeKey ends a key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.decode(ctx, call{method: http.MethodDelete, path: "/v1/keys/" + url.PathEscape(id), once: true}, nil)
}

// CreateGrant makes a grant: a slice of a holdout's budget for a key with the scope granted.
func (c *Client) CreateGrant(ctx context.Context, n NewGrant) (g Grant, err error) {
	body, err := json.Marshal(n)
	if err != nil {
		return g, err
	}
	return g, c.decode(ctx, call{method: http.MethodPost, path: "/v1/grants", media: jsonMedia, once: true, body: bytesBody(body)}, &g)
}

// Grants lists the grants, with what is spent of each: all for an admin, the key's own for others.
func (c *Client) Grants(ctx context.Context) ([]Grant, error) {
	var list grantList
	err := c.decode(ctx, call{method: http.MethodGet, path: "/v1/grants"}, &list)
	return list.Grants, err
}

// RevokeGrant ends a grant at once, and those below it.
func (c *Client) RevokeGrant(ctx context.Context, id string) error {
	return c.decode(ctx, call{method: http.MethodDelete, path: "/v1/grants/" + url.PathEscape(id), once: true}, nil)
}

// Spending says what each key has spent of a holdout.
func (c *Client) Spending(ctx context.Context, id string) ([]Spender, error) {
	var list spending
	err := c.decode(ctx, call{method: http.MethodGet, path: holdout(id, "/spending")}, &list)
	return list.Spenders, err
}

func holdout(id, rest string) string { return "/v1/holdouts/" + url.PathEscape(id) + rest }

func (c *Client) post(ctx context.Context, path string, v any, idempotent bool, into any) error {
	var query url.Values
	if idempotent { // it asks
		query = asking(ctx)
	}
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("client: the query cannot be encoded: %w", err)
	}
	return c.decode(ctx, call{method: http.MethodPost, path: path, query: query, media: jsonMedia, body: bytesBody(body), idempotent: idempotent}, into)
}

func bytesBody(b []byte) func() (io.Reader, error) {
	return func() (io.Reader, error) { return bytes.NewReader(b), nil }
}

// decode sends a call and reads the JSON of its reply.
func (c *Client) decode(ctx context.Context, r call, into any) error {
	reply, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if into == nil {
		return nil
	}
	if err := json.NewDecoder(reply.Body).Decode(into); err != nil {
		return fmt.Errorf("client: the reply cannot be read: %w", err)
	}
	return nil
}
