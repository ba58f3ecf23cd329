package session_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/holdoutd/holdoutd/dataset"
	"github.com/holdoutd/holdoutd/dataset/ingest"
	"github.com/holdoutd/holdoutd/dp/noise"
	"github.com/holdoutd/holdoutd/queries/engine"
	"github.com/holdoutd/holdoutd/session"
	"github.com/holdoutd/holdoutd/thresholdout"
)

// From a Parquet file to an answer with an interval: here the whole file is the holdout, of flights that nobody has looked at, and 1000
// questions may be asked of it, whatever the answers before.
func Example() {
	dir, err := os.MkdirTemp("", "session")
	check(err)
	defer os.RemoveAll(dir)
	_, err = ingest.Decode(context.Background(), "../experiments/data/flights-100k.parquet", filepath.Join(dir, "flights"), ingest.DefaultLimits())
	check(err)
	table, err := dataset.Open(filepath.Join(dir, "flights"))
	check(err)
	rows, err := engine.NewTable(table, nil, 1)
	check(err)
	guarantee, err := thresholdout.Plan(thresholdout.Spec{Mechanism: thresholdout.Gaussian, N: rows.Units(), Questions: 1000})
	check(err)
	var key noise.Key // secret: whoever knows it can take the noise off the answers
	_, err = rand.Read(key[:])
	check(err)
	digest := sha256.Sum256([]byte("flights-100k.parquet")) // what tells this table from others under the same key

	holdout := session.Local{Session: session.Session{Guarantee: guarantee, Noise: session.Keyed(key, digest)}, Schema: table.Schema(), Holdout: rows}
	answer, err := holdout.Ask(context.Background(), []byte(`{"type":"fraction","of":"delay > 15"}`))
	check(err)
	fmt.Printf("%.1f within %.2f, %d questions left\n", *answer.Value, (*answer.Interval.High-*answer.Interval.Low)/2, holdout.Budget(holdout.State).Questions.Left)
	// Output: 0.2 within 0.03, 999 questions left
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
