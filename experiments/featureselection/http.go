package featureselection

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdoutd/holdoutd/client"
	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/experiments/selection"
	"github.com/holdoutd/holdoutd/featuresel"
)

// keyVariable is the environment's name of the key for a server, where no flag gives it.
const keyVariable = "HOLDOUTD_KEY"

// httpRepetitions is the default over HTTP: a repetition uploads two files.
const httpRepetitions = 5

// overHTTP makes run one that plays against a running server.
func (s *setup) overHTTP() error {
	s.repetitions = s.o.RepetitionsOr(httpRepetitions)
	key := s.o.Text("key")
	if key == "" {
		key = os.Getenv(keyVariable)
	}
	server, err := client.New(s.o.Text("http"), key)
	if err != nil {
		return fmt.Errorf("experiments: --http: %w", err)
	}
	s.how = "All data was drawn, training part and holdout uploaded to a running holdoutd as Parquet, and every correlation and accuracy asked for over HTTP; " +
		"a repetition's holdout is deleted when it is over. The server's noise is its own, so that the same seed gives the same data and not the same numbers."
	sizes := s.sizes
	var uploads sync.Mutex // one at a time: at full size the files and what they are made of take gigabytes
	s.play = func(ctx context.Context, condition, method string, seed uint64) (selection.Path, error) {
		return playHTTP(ctx, server, &uploads, selection.NewParts(sizes[condition], seed), method)
	}
	return nil
}

// playHTTP is a repetition against a server.
func playHTTP(ctx context.Context, server *client.Client, uploads *sync.Mutex, parts selection.Parts, method string) (p selection.Path, err error) {
	uploads.Lock()
	card, err := uploadParts(ctx, server, parts, method)
	uploads.Unlock()
	if err != nil {
		return p, err
	}
	defer func() {
		// The holdout goes although the experiment was interrupted.
		ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer stop()
		if deleting := server.Delete(ctx, card.ID); deleting != nil {
			err = errors.Join(err, fmt.Errorf("experiments: holdout %s: %w", card.ID, deleting))
		}
	}()
	o := &remoteHoldout{server: server, id: card.ID, columns: parts.Holdout.Columns(), rows: parts.Holdout.Rows()}
	p, err = parts.Play(ctx, o)
	if err != nil {
		return p, err
	}
	budget, err := server.Budget(ctx, card.ID)
	if err != nil {
		return p, fmt.Errorf("experiments: holdout %s: %w", card.ID, err)
	}
	if budget.Tokens != nil {
		p.Above = int(budget.Tokens.Of - budget.Tokens.Left)
	}
	return p, nil
}

func uploadParts(ctx context.Context, server *client.Client, parts selection.Parts, method string) (client.Card, error) {
	s := parts.Training.Shape
	// A server refuses a table that it has had before. This one may come again after an interruption, so the column
	// "upload" makes it another.
	upload := rand.Float64()
	training, err := parquet(parts.Training, upload)
	if err != nil {
		return client.Card{}, err
	}
	holdout, err := parquet(parts.Holdout, upload)
	if err != nil {
		return client.Card{}, err
	}
	settings := client.Settings{Name: "feature-selection", Mechanism: "naive", Questions: int64(s.D + len(s.Ks))}
	if method == selection.ThroughThresholdout {
		root := math.Sqrt(float64(s.N)) * featuresel.Width
		settings.Mechanism, settings.Form, settings.Tokens = "thresholdout", "gaussian", settings.Questions
		settings.Threshold, settings.Sigma = selection.Threshold/root, selection.Noise/root
	}
	card, err := server.CreateGiven(ctx, training, holdout, settings)
	var problem *client.Problem
	if errors.As(err, &problem) && problem.Status == http.StatusUnprocessableEntity && method == selection.StandardReuse {
		return card, fmt.Errorf("experiments: the standard reuse needs a server that was started with --allow-naive: %w", err)
	}
	if err != nil {
		return card, fmt.Errorf("experiments: upload: %w", err)
	}
	return card, nil
}

// parquet is a part as a Parquet file: columns x1, x2, ... and the label y.
func parquet(d *selection.Part, upload float64) (*bytes.Reader, error) {
	columns := make([]dataset.Column, 0, d.Columns()+2)
	number := func(name string, values []float64) {
		columns = append(columns, dataset.Column{Field: dataset.Field{Name: name, Kind: dataset.Number}, Numbers: values})
	}
	number("y", slices.Clone(d.Label()))
	number("upload", slices.Repeat([]float64{upload}, d.Rows()))
	for j := range d.Columns() {
		values := make([]float64, d.Rows())
		d.Column(values, j)
		number(columnName(j), values)
	}
	table, err := dataset.FromColumns(columns...)
	if err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	defer table.Close()
	var file bytes.Buffer
	if err := ingest.Export(&file, table); err != nil {
		return nil, fmt.Errorf("experiments: %w", err)
	}
	return bytes.NewReader(file.Bytes()), nil
}

func columnName(j int) string { return fmt.Sprintf("x%d", j+1) }

// remoteHoldout is the featuresel.Oracle of a holdout on a server.
type remoteHoldout struct {
	server  *client.Client
	id      string
	columns int
	rows    int
}

var _ featuresel.Oracle = (*remoteHoldout)(nil)

// correlationBatch is how many columns are asked about in one request.
const correlationBatch = 500

// Correlations implements featuresel.Oracle.
func (o *remoteHoldout) Correlations(ctx context.Context) ([]float64, error) {
	out := make([]float64, 0, o.columns)
	for from := 0; from < o.columns; from += correlationBatch {
		var queries []any
		for j := from; j < min(from+correlationBatch, o.columns); j++ {
			queries = append(queries, map[string]any{"type": "mean", "of": columnName(j) + " * y", "range": featuresel.CorrelationRange})
		}
		reply, err := o.server.AskBatch(ctx, o.id, queries, false)
		if err != nil {
			return nil, fmt.Errorf("experiments: correlations: %w", err)
		}
		for i, item := range reply.Answers {
			if item.Answer == nil || item.Answer.Value == nil {
				return nil, fmt.Errorf("experiments: no correlation of column %d: %s", from+i, item.NotAsked)
			}
			out = append(out, *item.Answer.Value)
		}
	}
	return out, nil
}

// Accuracy implements featuresel.Oracle.
func (o *remoteHoldout) Accuracy(ctx context.Context, c featuresel.Classifier) (float64, error) {
	score := "0"
	if len(c.Columns) > 0 {
		score = balancedSum(c)
	}
	reply, err := o.server.Ask(ctx, o.id, map[string]any{"type": "mean", "of": "(" + score + ") * y > 0 ? 1 : 0", "range": featuresel.AccuracyRange(o.rows)})
	if err != nil {
		return 0, fmt.Errorf("experiments: accuracy: %w", err)
	}
	if reply.Answer.Value == nil {
		return 0, errors.New("experiments: no accuracy")
	}
	return *reply.Answer.Value, nil
}

// balancedSum is the sum of a classifier's columns with its signs as a row expression. Its depth is the logarithm of the number
// of columns: a server limits the depth.
func balancedSum(c featuresel.Classifier) string {
	if len(c.Columns) == 1 {
		if c.Signs[0] < 0 {
			return "(-" + columnName(c.Columns[0]) + ")"
		}
		return columnName(c.Columns[0])
	}
	half := len(c.Columns) / 2
	rest := featuresel.Classifier{Columns: c.Columns[half:], Signs: c.Signs[half:]}
	return "(" + strings.Join([]string{balancedSum(c.First(half)), balancedSum(rest)}, " + ") + ")"
}
