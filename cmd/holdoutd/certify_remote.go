package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dp/certify"
	"github.com/holdoutd/holdoutd/queries/model"
)

// remote is a predictor that answers over HTTP: it is posted {"columns": […], "rows": [[…], …]} and returns {"labels": […]}, one for each row.
type remote struct {
	ctx    context.Context // of the command
	url    string
	names  []string // of the columns, JSON
	client *http.Client
}

// Limits of a predictor's replies.
const (
	remoteTimeout  = 5 * time.Minute // for a batch: a large network on a small machine
	maxRemoteReply = 16 << 20        // bytes: labels of certify.BatchRows rows are far less
	maxRemoteError = 300             // bytes of a refusal that are shown
)

// remoteSubject is a predictor over HTTP on a table. Numbers are moved but for those named by --fixed; other columns are sent as they are.
func (f *certifyFlags) remoteSubject(ctx context.Context, table *dataset.Table) (*subject, error) {
	u, err := url.Parse(f.url)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, misuse("--url is the address of a predictor, such as http://127.0.0.1:8000/predict, not %q", f.url)
	}
	switch {
	case f.of == "scores":
		return nil, misuse("--url answers with labels: --of labels")
	case len(f.classes) < 2:
		return nil, misuse("name all labels that the predictor may answer with: --classes no,yes")
	}
	s := &subject{rows: table.Rows(), remote: &remote{ctx: ctx, url: f.url, client: &http.Client{Timeout: remoteTimeout}}}
	if f.rows > 0 {
		s.rows = min(f.rows, s.rows)
	}
	for _, class := range f.classes {
		if slices.Contains(s.names, canonicalLabel(class)) {
			return nil, misuse("--classes names %s twice", class)
		}
		s.names = append(s.names, canonicalLabel(class))
	}
	read := f.columns
	if read == nil {
		for i := range table.Columns() {
			if name := table.Column(i).Name; name != f.label {
				read = append(read, name)
			}
		}
	}
	for _, name := range read {
		column, ok := table.Lookup(name)
		if !ok {
			return nil, misuse("--columns names the column %q, which the file does not have%s", name, columnHint(table, name))
		}
		encoded, err := json.Marshal(name)
		if err != nil {
			return nil, fmt.Errorf("the column %q: %w", name, err)
		}
		s.remote.names = append(s.remote.names, string(encoded))
		feature := subjectFeature{Feature: model.Feature{Column: name}, column: column, moved: -1}
		if (column.Kind == dataset.Number || column.Kind == dataset.Time) && !slices.Contains(f.fixed, name) {
			feature.moved = len(s.moved)
			s.moved = append(s.moved, column)
		}
		s.features = append(s.features, feature)
	}
	return s, f.completeSubject(s, table)
}

// canonicalLabel is a label as it is compared: numbers that are equal are one label, however they are written.
func canonicalLabel(text string) string {
	if v, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return text
}

// remoteClassifier sends noisy copies of one row after another.
func (s *subject) remoteClassifier() certify.Classifier {
	var row int
	var body bytes.Buffer
	return certify.Classifier{Classes: len(s.names), Begin: func(i int) { row = i }, Labels: func(dst []int, x []float64) error {
		body.Reset()
		body.WriteString(`{"columns":[` + strings.Join(s.remote.names, ",") + `],"rows":[`)
		for i := range dst {
			if i > 0 {
				body.WriteByte(',')
			}
			body.WriteByte('[')
			for j := range s.features {
				if j > 0 {
					body.WriteByte(',')
				}
				body.WriteString(s.features[j].sent(row, x[i*len(s.moved):]))
			}
			body.WriteByte(']')
		}
		body.WriteString("]}")
		return s.predictRemotely(dst, body.Bytes())
	}}
}

// sent is a value as JSON: that of the noisy copy where it moves and is not null, else the row's own.
func (f *subjectFeature) sent(row int, noisy []float64) string {
	if f.column.Null(row) {
		return "null"
	}
	switch f.column.Kind {
	case dataset.Text:
		encoded, err := json.Marshal(f.column.Dictionary.Text(int(f.column.Codes[row]) - 1))
		if err != nil {
			return "null" // no text of a table is one that JSON cannot hold
		}
		return string(encoded)
	case dataset.Bool:
		return strconv.FormatBool(f.column.Bools[row] != 0)
	}
	v := f.column.Numbers[row]
	if math.IsNaN(v) {
		return "null"
	}
	if f.moved >= 0 {
		v = noisy[f.moved]
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// predictRemotely posts a batch and reads its labels.
func (s *subject) predictRemotely(dst []int, body []byte) error {
	request, err := http.NewRequestWithContext(s.remote.ctx, http.MethodPost, s.remote.url, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("the predictor: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := s.remote.client.Do(request)
	if err != nil {
		return fmt.Errorf("the predictor does not answer: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxRemoteReply))
	if err != nil {
		return fmt.Errorf("the predictor at %s broke off: %w", s.remote.url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the predictor at %s answers %s: %.*s", s.remote.url, response.Status, maxRemoteError, text)
	}
	var reply struct {
		Labels []json.RawMessage `json:"labels"`
	}
	if err := json.Unmarshal(text, &reply); err != nil || len(reply.Labels) != len(dst) {
		return fmt.Errorf(`the predictor at %s was sent %d rows and answers %.*s: it returns {"labels": […]}, one for each row`, s.remote.url, len(dst), maxRemoteError, text)
	}
	for i, raw := range reply.Labels {
		label := string(raw)
		var quoted string
		if json.Unmarshal(raw, &quoted) == nil {
			label = quoted
		}
		if dst[i] = slices.Index(s.names, canonicalLabel(label)); dst[i] < 0 {
			return fmt.Errorf("the predictor at %s answers with the label %s, which --classes does not name; it has %s", s.remote.url, label, strings.Join(s.names, ", "))
		}
	}
	return nil
}
